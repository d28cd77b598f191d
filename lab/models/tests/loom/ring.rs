//! Models of the byte streams between two processes: what was written arrives whole and in order, and who sleeps is woken.

use std::sync::Arc;

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use nuthatch_base::memory::Mapped;
use nuthatch_ring::stream::{Memory, words};
use nuthatch_ring::{Consumer, Producer, Side, Sleep, Want};

use crate::world::model;

/// Two rings of a word each.
fn memory() -> Memory {
    Arc::new(Mapped::reserve(words(8)).unwrap())
}

/// Stream 1 and 2: parts that share words, and wrap, arrive in order.
#[test]
fn what_was_written_arrives_whole_and_in_order() {
    model(3, || {
        let memory = memory();
        let mut producer = Producer::new(Arc::clone(&memory), Side::Client);
        let mut consumer = Consumer::new(memory, Side::Server);
        let reader = thread::spawn(move || {
            let mut got: Vec<u8> = Vec::new();
            for _ in 0..3 {
                let mut room = [0; 5];
                let count = consumer.read(&mut room).unwrap();
                got.extend(&room[..count]);
            }
            (consumer, got)
        });
        let bytes: Vec<u8> = (1..=15).collect();
        let mut sent = 0;
        for len in [3, 5, 5] {
            sent += producer.write(&bytes[sent..sent + len]).unwrap();
        }
        let (mut consumer, mut got) = reader.join().unwrap();
        let mut room = [0; 8];
        let count = consumer.read(&mut room).unwrap();
        got.extend(&room[..count]);
        assert_eq!(got, bytes[..sent]);
    });
}

/// A reader that sleeps unless something is there, and a writer that rings if the reader sleeps. The rings are counted.
fn sleeper(announces: bool) {
    model(3, move || {
        let memory = memory();
        let mut producer = Producer::new(Arc::clone(&memory), Side::Client);
        let consumer = Consumer::new(Arc::clone(&memory), Side::Server);
        let rings = Arc::new(AtomicUsize::new(0));
        let writer = {
            let (memory, rings) = (Arc::clone(&memory), Arc::clone(&rings));
            thread::spawn(move || {
                producer.write(b"ab").unwrap();
                if Sleep::new(memory, Side::Client).is_due_for_bytes() {
                    rings.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let sleep = Sleep::new(memory, Side::Server);
        let sees = match announces {
            true => {
                sleep.announce(Want::Bytes);
                consumer.is_ready()
            }
            false => {
                let sees = consumer.is_ready();
                sleep.announce(Want::Bytes);
                sees
            }
        };
        writer.join().unwrap();
        assert!(sees || rings.load(Ordering::Relaxed) == 1, "it sleeps on");
    });
}

/// Sleep: who looks behind its announcement does not sleep on.
#[test]
fn who_sleeps_is_woken() {
    sleeper(true);
}

#[test]
#[should_panic(expected = "it sleeps on")]
fn canary_a_look_before_the_announcement() {
    sleeper(false);
}

/// Sleep: who waits for room is woken by the read that makes it.
#[test]
fn who_waits_for_room_is_woken() {
    model(3, || {
        let memory = memory();
        let mut producer = Producer::new(Arc::clone(&memory), Side::Server);
        let mut consumer = Consumer::new(Arc::clone(&memory), Side::Client);
        assert_eq!(producer.write(&[1; 9]), Ok(8));
        let reader = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                assert_eq!(consumer.read(&mut [0; 8]), Ok(8));
                Sleep::new(memory, Side::Client).is_due_for_room()
            })
        };
        Sleep::new(memory, Side::Server).announce(Want::BytesOrRoom);
        let sees = producer.is_ready();
        let rings = reader.join().unwrap();
        assert!(sees || rings, "it sleeps on");
        if sees {
            assert!(producer.room().unwrap() > 0);
        }
    });
}
