//! Models of the byte streams between two processes: what was written arrives whole and in order, and who sleeps is woken.

use std::sync::Arc;

use loom::sync::Mutex;
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

/// Two threads of a client, of which one sleeps unless something is there, and one writes, each under the lock of their end.
/// The server answers what it reads, and rings if the client sleeps. `rises`: the write takes back the announcement.
fn sharers(rises: bool) {
    model(3, move || {
        let memory = memory();
        let mut asks = Producer::new(Arc::clone(&memory), Side::Client);
        let answers = Consumer::new(Arc::clone(&memory), Side::Client);
        let sleep = Arc::new(Mutex::new(Sleep::new(Arc::clone(&memory), Side::Client)));
        let server = {
            let mut asked = Consumer::new(Arc::clone(&memory), Side::Server);
            let mut answers = Producer::new(Arc::clone(&memory), Side::Server);
            let sleep = Sleep::new(Arc::clone(&memory), Side::Server);
            move || {
                let has_read = asked.read(&mut [0; 8]).unwrap() > 0;
                let rings = has_read && {
                    answers.write(b"b").unwrap();
                    sleep.is_due_for_bytes()
                };
                (has_read, rings)
            }
        };
        let writer = {
            let sleep = Arc::clone(&sleep);
            let mut server = server;
            thread::spawn(move || {
                {
                    let sleep = sleep.lock().unwrap();
                    if rises {
                        sleep.rise();
                    }
                    asks.write(b"a").unwrap();
                }
                // The server runs behind the write, and beside the one that sleeps.
                server()
            })
        };
        let sees = {
            let sleep = sleep.lock().unwrap();
            sleep.announce(Want::Bytes);
            answers.is_ready()
        };
        let (has_read, rings) = writer.join().unwrap();
        assert!(has_read);
        assert!(sees || rings, "it sleeps on");
    });
}

/// Sleep 2: a write leaves the announcement of another thread.
#[test]
fn who_sleeps_beside_a_writer_is_woken() {
    sharers(false);
}

#[test]
#[should_panic(expected = "it sleeps on")]
fn canary_a_write_that_takes_back_the_announcement() {
    sharers(true);
}

/// Sleep 1 and 2: a write that finds no room adds to the announcement of who sleeps, and looks again. Both are woken.
#[test]
fn who_sleeps_hears_of_room_for_a_writer() {
    model(3, || {
        let memory = memory();
        let mut asks = Producer::new(Arc::clone(&memory), Side::Client);
        let answers = Consumer::new(Arc::clone(&memory), Side::Client);
        let sleep = Sleep::new(Arc::clone(&memory), Side::Client);
        assert_eq!(asks.write(&[1; 8]), Ok(8));
        // It sleeps for bytes already.
        sleep.announce(Want::Bytes);
        assert!(!answers.is_ready());
        let server = {
            let memory = Arc::clone(&memory);
            thread::spawn(move || {
                let mut asked = Consumer::new(Arc::clone(&memory), Side::Server);
                assert_eq!(asked.read(&mut [0; 8]), Ok(8));
                Sleep::new(memory, Side::Server).is_due_for_room()
            })
        };
        let found = match asks.write(b"a").unwrap() {
            0 => {
                sleep.announce(Want::BytesOrRoom);
                asks.write(b"a").unwrap() > 0
            }
            _ => true,
        };
        let rings = server.join().unwrap();
        assert!(found || rings, "nobody tells of the room");
    });
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
