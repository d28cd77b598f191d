//! A client: a thread's rings to all partitions, and how it waits for them.

use std::collections::VecDeque;
use std::sync::Arc;

use nuthatch_sync::clock::Time;
use nuthatch_sync::ring::{Counts, Design, Full, Sender, Word};
use nuthatch_sync::wait::Event;

use super::call::{Call, Task};
use super::count::{COUNTS, Count};
use super::message::Message;
use super::shared::{Shared, Visitor};
use crate::counters::Counters;
use crate::partition::element::Element;
use crate::partition::table::Partition;

/// A thread's rings.
pub(super) struct Client<D: Design> {
    pub shared: Arc<Shared<D>>,
    pub channels: Box<[Channel<D>]>,
    pub counters: Arc<Counters<COUNTS>>,
    event: Arc<Event>,
}

/// The ring to one partition.
pub(super) struct Channel<D: Design> {
    sender: D::Sender,
    /// Answers that came while something else was waited for.
    inbox: VecDeque<Word>,
    /// The moment that the partition was told last.
    told: Option<Time>,
    /// What of the ring's counts is in the client's.
    counted: Counts,
}

impl<D: Design> Channel<D> {
    /// Stages a message that takes effect at `now`.
    #[inline]
    pub fn put(&mut self, now: Time, message: Message) -> Result<(), Full> {
        if self.told != Some(now) {
            self.sender.put(Message::Now { now }.encode())?;
            self.told = Some(now);
        }
        self.sender.put(message.encode())
    }

    /// The next answer, if it is there.
    #[inline]
    pub fn receive(&mut self) -> Option<Word> {
        if let Some(word) = self.inbox.pop_front() {
            return Some(word);
        }
        self.sender.receive()
    }

    /// True if there is an answer, or room where there was none.
    #[inline]
    fn is_moving(&self, full: bool) -> bool {
        self.sender.has_answer() || full && self.sender.can_flush()
    }
}

impl<D: Design> Client<D> {
    /// Joins: from now on every partition has a ring of this client.
    pub fn join(shared: &Arc<Shared<D>>) -> Self {
        let event = Arc::new(Event::default());
        let channels = shared.places.iter().map(|place| {
            let (sender, receiver) = D::ring();
            place.welcome(Visitor {
                receiver,
                now: Time::default(),
                event: Arc::clone(&event),
                called: false,
                left: false,
            });
            Channel {
                sender,
                inbox: VecDeque::new(),
                told: None,
                counted: Counts::default(),
            }
        });
        Self {
            channels: channels.collect(),
            counters: shared.counters.register(),
            event,
            shared: Arc::clone(shared),
        }
    }

    /// Stages a message, and waits for room if there is none. Answers that come meanwhile are kept.
    pub fn put_waiting(&mut self, partition: usize, now: Time, message: Message) {
        while self.channels[partition].put(now, message).is_err() {
            self.wait_for_room(partition);
        }
    }

    /// Sends what is staged for a partition, and waits for room if there is none.
    pub fn flush_waiting(&mut self, partition: usize) {
        while self.channels[partition].sender.flush().is_err() {
            self.wait_for_room(partition);
        }
    }

    #[cold]
    fn wait_for_room(&mut self, partition: usize) {
        self.wait(&[partition]);
        let channel = &mut self.channels[partition];
        while let Some(word) = channel.sender.receive() {
            channel.inbox.push_back(word);
        }
    }

    /// Sends what is staged for these partitions, as far as there is room, and waits until one of them
    /// answers, or takes what there was no room for.
    pub fn wait(&mut self, partitions: &[usize]) {
        let mut any_full = false;
        for &partition in partitions {
            any_full |= self.channels[partition].sender.flush().is_err();
        }
        self.shared.wake_owners(partitions.iter().copied());
        let (shared, channels) = (&self.shared, &self.channels);
        self.event.wait(|| {
            let moves = |&partition: &usize| channels[partition].is_moving(any_full);
            partitions.iter().any(moves) || shared.is_broken()
        });
        if shared.is_broken() {
            self.check_owners();
        }
    }

    /// Panics if a partition was left behind by a server thread that panicked: nobody would ever answer.
    #[cold]
    fn check_owners(&self) {
        let abandoned = |place: &super::shared::Place<D>| place.seat.is_abandoned();
        assert!(
            std::thread::panicking() || !self.shared.places.iter().any(abandoned),
            "a server thread of the cphash engine has panicked"
        );
    }
}
