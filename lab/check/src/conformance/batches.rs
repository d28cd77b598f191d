//! Cases of batches: order, duplicates, and reads of writes of the same batch.

use nuthatch_engine::{Delta, Op, Read, Removal, Reply, Store, StoreMode};

use super::Case;
use super::client::Client;
use crate::answer::Answer;
use crate::values::bytes;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case::new("batch_of_none", none),
        Case::new("batch_of_every_size", every_size),
        Case::new("batch_of_duplicates", duplicates),
        Case::new("batch_keeps_order_for_a_key", order),
        Case::new("batch_reads_its_own_writes", own_writes),
        Case::new("batch_mixes_hits_misses_and_large_values", mixture),
        Case::new("batch_of_one_handle_is_seen_by_the_next", handles),
    ]
}

fn none(client: &mut Client) {
    assert_eq!(client.ask_all(&[]), []);
}

const SIZES: [usize; 12] = [1, 2, 3, 7, 8, 9, 31, 32, 33, 64, 100, 1000];

fn every_size(client: &mut Client) {
    for size in SIZES {
        let keys: Vec<_> = (0..size)
            .map(|n| format!("{size} {n}").into_bytes())
            .collect();
        let values: Vec<_> = (0..size).map(|n| bytes(n, n % 300)).collect();
        let set = |value| Op::Store(Store::set(value));
        let sets = keys
            .iter()
            .zip(&values)
            .map(|(key, value)| (&key[..], set(value)));
        let sets: Vec<_> = sets.collect();
        for answer in client.ask_all(&sets) {
            assert!(
                matches!(answer, Answer::Done(Reply::Stored(_))),
                "{answer:?}"
            );
        }
        let gets: Vec<_> = keys.iter().map(|key| (&key[..], Op::Get)).collect();
        for (answer, value) in client.ask_all(&gets).iter().zip(&values) {
            assert_eq!(answer.value(), Some(&value[..]));
        }
    }
}

fn duplicates(client: &mut Client) {
    client.set(b"key", b"value");
    client.set(b"number", b"0");
    for size in SIZES {
        let gets = vec![(&b"key"[..], Op::Get); size];
        for answer in client.ask_all(&gets) {
            assert_eq!(answer.value(), Some(&b"value"[..]));
        }
        client.set(b"number", b"0");
        let ups = vec![(&b"number"[..], Op::Delta(Delta::up(1))); size];
        let answers = client.ask_all(&ups).into_iter();
        let numbers = answers.map(|answer| match answer {
            Answer::Done(Reply::Number(number, _)) => number,
            other => panic!("incr was answered {other:?}"),
        });
        assert!(numbers.eq(1..=size as u64), "each adds to the one before");
    }
}

fn order(client: &mut Client) {
    let values: Vec<_> = (0..1000).map(|n| bytes(n, n * 7 % 500)).collect();
    let pairs = values.iter().flat_map(|value| {
        [
            (&b"key"[..], Op::Store(Store::set(value))),
            (&b"key"[..], Op::Get),
        ]
    });
    let batch: Vec<_> = pairs.collect();
    let answers = client.ask_all(&batch);
    for (answers, value) in answers.chunks(2).zip(&values) {
        assert!(matches!(answers[0], Answer::Done(Reply::Stored(_))));
        assert_eq!(answers[1].value(), Some(&value[..]));
    }
    assert_eq!(client.get(b"key").as_ref(), values.last());
}

fn own_writes(client: &mut Client) {
    let add = |value| Store {
        mode: StoreMode::Add,
        ..Store::set(value)
    };
    let append = |value| Store {
        mode: StoreMode::Append,
        ..Store::set(value)
    };
    let batch = [
        (&b"a"[..], Op::Get),
        (b"a", Op::Store(add(b"1"))),
        (b"b", Op::Store(add(b"x"))),
        (b"a", Op::Get),
        (b"a", Op::Store(add(b"2"))),
        (b"a", Op::Store(append(b"0"))),
        (b"a", Op::Delta(Delta::up(5))),
        (b"b", Op::Remove(Removal::default())),
        (b"a", Op::Read(Read::default())),
        (b"b", Op::Get),
        (b"b", Op::Store(append(b"y"))),
        (b"a", Op::Get),
    ];
    let answers = client.ask_all(&batch);
    assert_eq!(answers[0], Answer::Done(Reply::Miss));
    assert!(matches!(answers[1], Answer::Done(Reply::Stored(_))));
    assert!(matches!(answers[2], Answer::Done(Reply::Stored(_))));
    assert_eq!(answers[3].value(), Some(&b"1"[..]));
    assert_eq!(answers[4], Answer::Done(Reply::NotStored));
    assert!(matches!(answers[5], Answer::Done(Reply::Stored(item)) if item.value_len == 2));
    assert!(matches!(answers[6], Answer::Done(Reply::Number(15, _))));
    assert_eq!(answers[7], Answer::Done(Reply::Removed));
    assert_eq!(answers[8].value(), Some(&b"15"[..]));
    assert_eq!(answers[9], Answer::Done(Reply::Miss));
    assert_eq!(answers[10], Answer::Done(Reply::NotStored));
    assert_eq!(answers[11].value(), Some(&b"15"[..]));
}

fn mixture(client: &mut Client) {
    let lens = [0, 1, 100, 8192, 8193, 50_000, 300_000];
    for len in lens {
        client.set(format!("{len}").as_bytes(), &bytes(len, len));
    }
    let hits = lens.iter().map(|len| format!("{len}").into_bytes());
    let misses = lens.iter().map(|len| format!("no {len}").into_bytes());
    let pairs: Vec<_> = hits.zip(misses).collect();
    let batch = pairs.iter().flat_map(|(hit, miss)| {
        [
            (&hit[..], Op::Get),
            (&miss[..], Op::Get),
            (&hit[..], Op::Read(Read::default())),
        ]
    });
    let batch: Vec<_> = batch.collect();
    let answers = client.ask_all(&batch);
    for (answers, len) in answers.chunks(3).zip(lens) {
        assert!(answers[0].value() == Some(&bytes(len, len)), "{len}");
        assert_eq!(answers[1], Answer::Done(Reply::Miss));
        assert!(answers[2].value() == Some(&bytes(len, len)), "{len}");
    }
}

fn handles(client: &mut Client) {
    let mut other = Client::new(client.engine.clone());
    for round in 0..100_u8 {
        client.set(b"key", &[round]);
        assert_eq!(other.get(b"key"), Some(vec![round]));
        other.delete(b"key");
        assert_eq!(client.get(b"key"), None);
    }
}
