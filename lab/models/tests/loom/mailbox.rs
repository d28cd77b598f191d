//! Models of mailboxes: a letter that was put in reaches its worker, however the two meet.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use nuthatch_channels::Call;
use nuthatch_channels::bell::Bell;
use nuthatch_channels::bounds::Bounds;
use nuthatch_channels::channels::Channels;
use nuthatch_channels::mailbox::Mailbox;
use nuthatch_channels::subscriptions::Subscriptions;
use nuthatch_resp::{ChannelKind, Version};

use crate::world::model;

/// Calls that the worker has not seen.
#[derive(Default)]
struct Calls(AtomicUsize);

impl Call for Calls {
    fn call(&self, _: usize) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }

    fn end(&self, _: usize, _: u64) {
        panic!("there is room");
    }
}

impl Calls {
    fn is_called(&self) -> bool {
        self.0.swap(0, Ordering::AcqRel) > 0
    }
}

/// Mailbox 1 and 2: a worker that comes only when it is called takes every message, in order.
#[test]
fn a_worker_that_comes_when_it_is_called_takes_all() {
    model(3, || {
        let calls: Arc<Calls> = Arc::default();
        let bell = Bell::new(Arc::clone(&calls) as Arc<dyn Call>, 0);
        let mailbox = Mailbox::new(1, bell, Arc::new(Bounds::default()), Version::Resp2);
        let channels: Arc<Channels> = Arc::default();
        let mut own = Subscriptions::new(Arc::clone(&channels), Arc::clone(&mailbox));
        own.add(ChannelKind::Channel, b"c").unwrap();
        let publisher = thread::spawn(move || {
            for text in [b"1", b"2"] {
                channels.publish(ChannelKind::Channel, b"c", text);
            }
        });
        let mut out = Vec::new();
        let mut come = || {
            if calls.is_called() {
                assert!(mailbox.take(&mut out, usize::MAX));
            }
        };
        come();
        come();
        publisher.join().unwrap();
        come();
        let message = |text| format!("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\n{text}\r\n");
        assert_eq!(String::from_utf8(out).unwrap(), message(1) + &message(2));
        drop(own);
    });
}

/// Without mailbox 2's order, looking first and answering the bell then, a letter stays.
#[test]
#[should_panic(expected = "a letter stays")]
fn canary_a_bell_that_is_answered_behind_the_look() {
    model(3, || {
        let calls: Arc<Calls> = Arc::default();
        let bell = Arc::new(Bell::new(Arc::clone(&calls) as Arc<dyn Call>, 0));
        let letters = Arc::new(Mutex::new(0));
        let publisher = {
            let (bell, letters) = (Arc::clone(&bell), Arc::clone(&letters));
            thread::spawn(move || {
                for _ in 0..2 {
                    *letters.lock().unwrap() += 1;
                    bell.ring();
                }
            })
        };
        let come = || {
            if calls.is_called() {
                *letters.lock().unwrap() = 0;
                bell.answer();
            }
        };
        come();
        publisher.join().unwrap();
        come();
        assert_eq!(*letters.lock().unwrap(), 0, "a letter stays");
    });
}
