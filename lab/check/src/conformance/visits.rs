//! Cases of walks over all items.

use std::collections::BTreeMap;

use nuthatch_engine::{AnyHandle, Cursor, Engine, Handle, Inspect, Op, Removal, Reply, Store};

use super::Case;
use super::client::Client;
use crate::answer::Answer;
use crate::values::bytes;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("visit_of_none", none),
        Case::new("visit_meets_each_exactly_once", once),
        Case::new("visit_goes_on_while_others_change", churn),
        Case::new("visit_shows_what_a_read_shows", shows),
        Case::new("visit_passes_over_the_expired_and_flushed", expired),
    ]
}

/// Walks from the start to the end, with `between` called after each step; returns how often each
/// key was met.
fn walk(
    client: &mut Client,
    budget: usize,
    mut between: impl FnMut(&mut Client),
) -> BTreeMap<Vec<u8>, usize> {
    let mut met = BTreeMap::new();
    let mut cursor = Cursor::default();
    for _ in 0..10_000_000 {
        let mut note = |visit: nuthatch_engine::Visit<'_>| {
            *met.entry(visit.key.to_vec()).or_insert(0) += 1;
        };
        match client.handle.visit(client.now, cursor, budget, &mut note) {
            Some(next) => cursor = next,
            None => return met,
        }
        between(client);
    }
    panic!("the walk has no end");
}

fn none(client: &mut Client) {
    assert!(walk(client, 1, |_| ()).is_empty());
    assert!(walk(client, 1000, |_| ()).is_empty());
}

fn once(client: &mut Client) {
    const ITEMS: usize = 3000;
    for number in 0..ITEMS {
        let key = format!("key {number}");
        client.set(key.as_bytes(), &bytes(number, number % 2000));
    }
    for budget in [1, 7, 1000, usize::MAX] {
        let met = walk(client, budget, |_| ());
        assert_eq!(met.len(), ITEMS, "with a budget of {budget}");
        assert!(met.values().all(|&times| times == 1), "budget {budget}");
    }
}

fn churn(client: &mut Client) {
    const STAYING: usize = 2000;
    for number in 0..STAYING {
        client.set(format!("stays {number}").as_bytes(), b"value");
        client.set(format!("goes {number}").as_bytes(), b"value");
    }
    // Between two steps of the walk the table grows, shrinks, and moves its items.
    let mut step = 0;
    let met = walk(client, 50, |client| {
        let numbers = step * 20..(step + 1) * 20;
        let keys = |name: &str| -> Vec<String> {
            let key = |number| format!("{name} {number}");
            numbers.clone().map(key).collect()
        };
        let (goes, comes, stays) = (keys("goes"), keys("comes"), keys("stays"));
        let batch: Vec<_> = goes
            .iter()
            .map(|key| (key.as_bytes(), Op::Remove(Removal::default())))
            .chain(
                comes
                    .iter()
                    .map(|key| (key.as_bytes(), Op::Store(Store::set(&[b'v'; 100])))),
            )
            .chain(stays.iter().map(|key| (key.as_bytes(), Op::Get)))
            .collect();
        let answers = client.ask_all(&batch);
        let stored = |answer: &Answer| matches!(answer, Answer::Done(Reply::Stored(_)));
        assert_eq!(answers.into_iter().filter(stored).count(), comes.len());
        client.handle.maintain(client.now, 100);
        step += 1;
    });
    for number in 0..STAYING {
        let key = format!("stays {number}");
        let times = met.get(key.as_bytes()).copied();
        assert_eq!(times, Some(1), "{key} stayed where it was");
    }
}

fn shows(client: &mut Client) {
    let long = bytes(1, AnyHandle::COPY_MAX + 1);
    let values = [&b""[..], b"short", &long];
    let expiry = client.in_seconds(10);
    for (number, value) in values.into_iter().enumerate() {
        let store = Store {
            flags: number as u32,
            expiry,
            ..Store::set(value)
        };
        client.must_store(format!("{number}").as_bytes(), store);
    }
    let mut met = Vec::new();
    let engine = &client.engine;
    let mut note = |visit: nuthatch_engine::Visit<'_>| {
        let lens = (visit.key.len(), visit.item.value_len);
        assert!(visit.footprint.size >= lens.0 + lens.1);
        assert_eq!(visit.footprint, engine.footprint(lens.0, lens.1));
        met.push((visit.key.to_vec(), visit.item, visit.value.to_vec()));
    };
    let mut cursor = Some(Cursor::default());
    while let Some(from) = cursor {
        cursor = client.handle.visit(client.now, from, 100, &mut note);
    }
    met.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(met.len(), values.len());
    for (number, (key, item, value)) in met.into_iter().enumerate() {
        let seen = client.peek(&key);
        assert_eq!((item.flags, item.expiry), (number as u32, expiry));
        assert_eq!((item.cas, item.value_len), (seen.cas, seen.value_len));
        assert_eq!((item.fetched, item.stale), (false, false));
        let copied = values[number].len() <= AnyHandle::COPY_MAX;
        assert!(value == if copied { values[number] } else { b"" });
    }
}

fn expired(client: &mut Client) {
    for number in 0..100 {
        let store = Store {
            expiry: client.in_seconds(1 + number % 2),
            ..Store::set(b"value")
        };
        client.must_store(format!("{number}").as_bytes(), store);
    }
    client.wait(1);
    assert_eq!(walk(client, 10, |_| ()).len(), 50);
    client.engine.flush(client.now, client.now);
    client.set(b"new", b"value");
    assert_eq!(walk(client, 10, |_| ()).len(), 1);
}
