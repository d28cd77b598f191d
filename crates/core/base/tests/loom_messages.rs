//! Models of the parts that carry messages: the rings, waiting, and leases (`scripts/loom.sh`). Every interleaving of
//! two or three threads, and every value that a relaxed load may return. A test with canary in its name removes one
//! protection and must fail: this shows that the models can fail.
#![cfg(loom)]

use std::cell::RefCell;
use std::sync::Arc;

use loom::thread;
use nuthatch_base::sync::lease::Lease;
use nuthatch_base::sync::ring::{Array, Full, Message, Receiver, RingKind, Sender, Single, Word};
use nuthatch_base::sync::shim::{AtomicU32, AtomicU64, Ordering};
use nuthatch_base::sync::wait::{Event, fence_before_wake};

const RELAXED: Ordering = Ordering::Relaxed;

fn word(number: u64) -> Word {
    Word::new(number).expect("not zero")
}

/// A message of two words that points to `cell`; odd ones are answered.
fn message(number: u64) -> Message {
    Message {
        first: word(number),
        second: Some(word(number + 100)),
        answered: number % 2 == 1,
    }
}

/// The memory that messages point to: the client writes it before the message, the server before the answer.
struct Cells([AtomicU64; 4]);

impl Cells {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::array::from_fn(|_| AtomicU64::new(0))))
    }

    fn of(&self, number: u64) -> &AtomicU64 {
        &self.0[number as usize - 1]
    }
}

/// Serves one line: each message is whole, and the memory that it points to is written.
fn serve(receiver: &mut impl Receiver, cells: &Cells, expected: &mut u64) -> bool {
    let Some(line) = receiver.take() else {
        return false;
    };
    let words: Vec<_> = line.words().map(Word::get).collect();
    assert_eq!(words, [*expected, *expected + 100]);
    assert_eq!(cells.of(*expected).load(RELAXED), *expected);
    if *expected % 2 == 1 {
        cells.of(*expected).store(*expected + 1000, RELAXED);
        receiver.answer(word(*expected + 1000));
        assert!(receiver.publish());
    }
    *expected += 1;
    true
}

/// Line 1 and 2, array 1 and 3: messages 1 to `count` arrive whole and in order, each odd one's answer comes back in
/// order, and no line is overwritten before it was read: the ring has fewer places than there are messages.
fn carries<D: RingKind>(count: u64) {
    loom::model(move || {
        let (mut sender, mut receiver) = D::ring();
        let cells = Cells::new();
        let server = {
            let cells = Arc::clone(&cells);
            thread::spawn(move || {
                let mut expected = 1;
                while expected <= count {
                    if !serve(&mut receiver, &cells, &mut expected) {
                        thread::yield_now();
                    }
                }
            })
        };
        let mut answered = 1;
        let collect = |sender: &mut D::Sender, answered: &mut u64| {
            while let Some(answer) = sender.receive() {
                assert_eq!(answer.get(), *answered + 1000);
                assert_eq!(cells.of(*answered).load(RELAXED), *answered + 1000);
                *answered += 2;
            }
        };
        for number in 1..=count {
            cells.of(number).store(number, RELAXED);
            while sender.put(message(number)) == Err(Full) {
                collect(&mut sender, &mut answered);
                thread::yield_now();
            }
        }
        while sender.flush() == Err(Full) || answered <= count {
            collect(&mut sender, &mut answered);
            thread::yield_now();
        }
        server.join().unwrap();
        assert!(sender.is_taken() && !sender.has_answer());
    });
}

#[test]
fn an_array_carries_messages_and_answers_whole_and_in_order() {
    carries::<Array>(4);
}

#[test]
fn a_single_buffer_carries_messages_and_answers_whole_and_in_order() {
    carries::<Single>(3);
}

/// A flag that is raised, and a thread that waits for it. Without the announcement the waiter may sleep for ever, which
/// a model reports as a deadlock.
fn raises(announced: bool) {
    loom::model(move || {
        let (event, flag) = (Arc::new(Event::default()), Arc::new(AtomicU32::new(0)));
        let waiter = {
            let (event, flag) = (Arc::clone(&event), Arc::clone(&flag));
            thread::spawn(move || {
                event.wait(|| flag.load(Ordering::Acquire) == 1);
                assert_eq!(flag.load(RELAXED), 1);
            })
        };
        flag.store(1, Ordering::Release);
        if announced {
            fence_before_wake();
        }
        event.wake();
        waiter.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost() {
    raises(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn canary_without_the_announcement_one_is() {
    raises(false);
}

/// Two threads wait for each other in turn, each at its own event: a question and its answer.
#[test]
fn two_can_wait_for_each_other() {
    loom::model(|| {
        let events = Arc::new([Event::default(), Event::default()]);
        let turn = Arc::new(AtomicU32::new(0));
        let server = {
            let (events, turn) = (Arc::clone(&events), Arc::clone(&turn));
            thread::spawn(move || {
                events[1].wait(|| turn.load(Ordering::Acquire) == 1);
                turn.store(2, Ordering::Release);
                fence_before_wake();
                events[0].wake();
            })
        };
        turn.store(1, Ordering::Release);
        fence_before_wake();
        events[1].wake();
        events[0].wait(|| turn.load(Ordering::Acquire) == 2);
        server.join().unwrap();
    });
}

/// A lease whose value is the number of questions served, and a client that asks one.
struct Table {
    lease: Lease<u32>,
    asked: AtomicU32,
    answered: AtomicU32,
    servers: [Event; 2],
    client: Event,
    stop: AtomicU32,
}

impl Table {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            lease: Lease::new(0, 0),
            asked: AtomicU32::new(0),
            answered: AtomicU32::new(0),
            servers: [Event::default(), Event::default()],
            client: Event::default(),
            stop: AtomicU32::new(0),
        })
    }

    /// A server thread: it serves questions while it holds the lease, hands over on request, and sleeps while there is
    /// no question.
    fn run(&self, me: u32) {
        let mut held = None;
        // Acquire: pairs with the client's Release, here and below.
        let is_asked = |served| self.asked.load(Ordering::Acquire) > served;
        while self.stop.load(Ordering::Acquire) == 0 {
            held = held.or_else(|| self.lease.take(me));
            if let Some(served) = &mut held
                && is_asked(**served)
            {
                **served = self.asked.load(Ordering::Acquire);
                self.answered.store(**served, Ordering::Release);
                fence_before_wake();
                self.client.wake();
            }
            if self.lease.is_called_away(me)
                && let Some(lease) = held.take()
            {
                let next = self.lease.hand_over(lease);
                fence_before_wake();
                self.servers[next as usize].wake();
            }
            // A thread that sleeps releases its lease.
            let held = RefCell::new(&mut held);
            let ready = || {
                let waiting = match &**held.borrow() {
                    Some(served) => is_asked(**served) || self.lease.is_called_away(me),
                    None => self.lease.owner() == me,
                };
                waiting || self.stop.load(Ordering::Acquire) == 1
            };
            self.servers[me as usize].doze(ready, || **held.borrow_mut() = None);
        }
    }

    /// A client: serves itself if the owner sleeps and the lease is free, else wakes it.
    fn ask(&self, announced: bool) {
        self.asked.fetch_add(1, Ordering::Release);
        if announced {
            fence_before_wake();
        }
        let owner = &self.servers[self.lease.owner() as usize];
        if !owner.is_parked() {
            return;
        }
        match self.lease.borrow() {
            Some(mut served) => {
                let asked = self.asked.load(Ordering::Acquire);
                *served = asked;
                self.answered.store(asked, Ordering::Release);
                fence_before_wake();
                self.client.wake();
            }
            None => {
                owner.wake();
            }
        }
    }
}

/// Lease 1 to 3: a client asks while the lease moves from one server thread to the other. One of them serves the
/// question once, and neither misses it by sleeping; otherwise the model ends in a deadlock.
fn moves(announced: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.check(move || {
        let table = Table::new();
        let servers = [0, 1].map(|me| {
            let table = Arc::clone(&table);
            thread::spawn(move || table.run(me))
        });
        // The controller first, and then the client, which does not notice the move.
        table.lease.assign(1);
        fence_before_wake();
        table.servers[table.lease.owner() as usize].wake();
        table.ask(announced);
        table
            .client
            .wait(|| table.answered.load(Ordering::Acquire) == 1);
        table.stop.store(1, Ordering::Release);
        fence_before_wake();
        for (event, server) in table.servers.iter().zip(servers) {
            event.wake();
            server.join().unwrap();
        }
        let served = table.lease.take(table.lease.owner()).map(|served| *served);
        assert_eq!(served, Some(1));
    });
}

/// Two clients ask one partition whose owner may be asleep, awake, or falling asleep: the owner or one of the clients
/// serves both.
#[test]
fn clients_serve_themselves_while_the_owner_sleeps_and_nobody_is_forgotten() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = model.preemption_bound.or(Some(2));
    model.check(|| {
        let table = Table::new();
        let server = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.run(0))
        };
        let other = {
            let table = Arc::clone(&table);
            thread::spawn(move || table.ask(true))
        };
        table.ask(true);
        other.join().unwrap();
        table
            .client
            .wait(|| table.answered.load(Ordering::Acquire) == 2);
        table.stop.store(1, Ordering::Release);
        fence_before_wake();
        table.servers[0].wake();
        server.join().unwrap();
        assert_eq!(table.lease.take(0).map(|served| *served), Some(2));
    });
}

#[test]
fn a_message_is_served_once_while_its_partition_moves() {
    moves(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn canary_without_the_announcement_a_server_sleeps_through_it() {
    moves(false);
}
