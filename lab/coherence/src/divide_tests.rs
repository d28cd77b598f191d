//! Recordings written by hand.

use super::*;
use crate::lackey::parse;

/// Marks at 0x1000, the stack at 0x2000, partitions of two lines at 0x10000, blocks at 0x20000, of which the first has
/// buckets.
fn layout(served: bool) -> Layout {
    Layout {
        marks: 0x1000,
        stack: 0x2000..0x3000,
        partitions: 0x10000..0x10200,
        partition_size: 0x80,
        blocks: 0x20000..0x30000,
        bookkeeping: std::iter::once(0x40000..0x40100).collect(),
        buckets: std::iter::once(0x20000..0x21000).collect(),
        order_word: 2,
        served,
    }
}

fn divided(served: bool, lines: &str) -> Result<Divided, String> {
    let mut events = Events::new(layout(served));
    for line in lines.lines() {
        events.take(parse(line.as_bytes()).unwrap());
    }
    divide(&events, &layout(served))
}

fn actions(run: &Run) -> Vec<(Action, Class)> {
    run.steps
        .iter()
        .map(|step| (step.action, step.class))
        .collect()
}

#[test]
fn a_critical_section() {
    let found = divided(
        false,
        "I  0,3\n L 20000,8\n S 1000,1\nI  0,3\n L 50000,8\nI  0,3\n L 2000,8\nI  0,3\n M 10040,4\nI  0,3\n L 20000,8\nI  \
         0,3\n M 10008,8\n L 21000,8\n S 21000,8\n L 21000,8\n L 21040,8\n S 40000,8\nI  0,3\n M 10040,4\nI  0,3\nI  \
         0,3\n S 1001,1\n S 1002,1",
    )
    .unwrap();
    let [piece] = &found.pieces[..] else {
        panic!("one piece");
    };
    assert_eq!(
        actions(&piece.client),
        [
            (Action::Read, Class::Client),
            (Action::Lock, Class::Lock),
            (Action::Read, Class::Bucket),
            (Action::Read, Class::Partition),
            (Action::Write, Class::Partition),
            (Action::Read, Class::Chain),
            (Action::Write, Class::Chain),
            (Action::Read, Class::Data),
            (Action::Write, Class::Space),
            (Action::Unlock, Class::Lock),
        ]
    );
    let instructions: Vec<u32> = piece
        .client
        .steps
        .iter()
        .map(|step| step.instructions)
        .collect();
    assert_eq!(instructions, [1, 2, 1, 1, 0, 0, 0, 0, 0, 1]);
    assert_eq!((piece.client.rest, found.instructions), (2, 8));
    assert_eq!(found.served_instructions, 0);
}

#[test]
fn what_an_insert_does_beside_its_search_is_the_inserts() {
    let section = |data: &str| {
        let lines = format!(
            " S 1000,1\n M 10040,4\n L 20000,8\n L 21000,8\n L 22010,8\n {data} 21040,8\n S 23000,8\n S 20000,8\n S \
             40000,8\n M 10040,4\n S 1001,1\n S 1002,1"
        );
        let found = divided(false, &lines).unwrap();
        let steps = actions(&found.pieces[0].client);
        steps.iter().map(|&(_, class)| class).collect::<Vec<_>>()
    };
    use Class::{Bucket, Chain, Data, Insert, Lock, Order, Space};
    assert_eq!(
        section("S"),
        [
            Lock, Bucket, Chain, Insert, Insert, Insert, Insert, Space, Lock
        ]
    );
    assert_eq!(
        section("L"),
        [Lock, Bucket, Chain, Order, Data, Chain, Bucket, Space, Lock]
    );
}

/// A client sends two lines, the server's turn serves both and answers; then the client reads the answer, and another
/// client makes the server serve a third.
const MESSAGES: &str = " S 1000,1
 S 50008,8
 S 50000,8
 S 50048,8
 S 50040,8
 M 10000,4
 L 10010,8
 L 50000,8
 L 20000,8
 S 50000,8
 S 60000,8
 L 50040,8
 L 21000,8
 S 60000,8
 M 10000,4
 L 60000,8
 S 60000,8
 S 50088,8
 S 50080,8
 S 1001,1
 S 70000,8
 M 10080,4
 L 70000,8
 L 23000,8
 M 10080,4
 M 10000,4
 L 50080,8
 L 22000,8
 M 10000,4
 L 70000,8
 S 1002,1";

#[test]
fn turns_become_items_that_are_sent_and_awaited() {
    let found = divided(true, MESSAGES).unwrap();
    let [piece] = &found.pieces[..] else {
        panic!("one piece");
    };
    assert_eq!(
        actions(&piece.client),
        [
            (Action::Publish(0), Class::Request),
            (Action::Publish(1), Class::Request),
            (Action::Await(1), Class::Answer),
            (Action::Read, Class::Answer),
            (Action::Write, Class::Answer),
            (Action::Publish(2), Class::Request),
        ]
    );
    let items: Vec<_> = piece.items.iter().map(|item| actions(&item.run)).collect();
    assert_eq!(
        items[0],
        [
            (Action::Read, Class::Partition),
            (Action::Read, Class::Request),
            (Action::Read, Class::Bucket),
            (Action::Write, Class::Request),
            (Action::Write, Class::Answer),
        ]
    );
    assert_eq!(items[1].len(), 3);
    assert_eq!(
        items[2],
        [(Action::Read, Class::Request), (Action::Read, Class::Chain)]
    );
}

#[test]
fn a_recording_without_marks_or_without_its_end_is_refused() {
    assert!(
        divided(true, " L 50000,8")
            .err()
            .unwrap()
            .contains("no mark")
    );
    let cut = MESSAGES.lines().take(10).collect::<Vec<_>>().join("\n");
    assert!(divided(true, &cut).is_err());
}
