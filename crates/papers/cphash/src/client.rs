//! A client: a thread's rings to all partitions, and how it waits for them.

use std::cell::UnsafeCell;
use std::collections::VecDeque;
use std::sync::Arc;

use nuthatch_base::sync::clock::Time;
use nuthatch_base::sync::ring::{Counts, Full, RingKind, Sender, Word};
use nuthatch_base::sync::wait::{Event, fence_before_wake};

use super::call::{Address, Call, Task};
use super::count::{COUNTS, Count};
use super::message::PartitionRequest;
use super::server;
use super::shared::{ClientRing, Shared};
use nuthatch_engine::counters::Counters;
use nuthatch_partition::Partition;

/// A thread's rings.
pub(super) struct Client<D: RingKind> {
    pub shared: Arc<Shared<D>>,
    pub channels: Box<[Channel<D>]>,
    counters: Arc<Counters<COUNTS>>,
    event: Arc<Event>,
}

/// The ring to one partition.
pub(super) struct Channel<D: RingKind> {
    sender: D::Sender,
    /// The least hash of the partition.
    start: u64,
    /// Answers that arrived while the client waited for something else.
    inbox: VecDeque<Word>,
    /// The number of answers that have not arrived.
    missing: usize,
    /// The last moment that was sent to the partition.
    told: Option<Time>,
    /// The ring's counts that are already in the client's.
    counted: Counts,
}

impl<D: RingKind> Channel<D> {
    /// Stages a message that takes effect at `now`.
    #[inline]
    pub fn put(&mut self, now: Time, message: PartitionRequest) -> Result<(), Full> {
        if self.told != Some(now) {
            self.sender
                .put(PartitionRequest::Now { now }.encode(self.start))?;
            self.told = Some(now);
        }
        let message = message.encode(self.start);
        self.sender.put(message)?;
        self.missing += usize::from(message.answered);
        Ok(())
    }

    /// The next answer, if it has arrived.
    #[inline]
    pub fn receive(&mut self) -> Option<Word> {
        if let Some(word) = self.inbox.pop_front() {
            return Some(word);
        }
        self.fetch()
    }

    /// The next answer from the ring.
    #[inline]
    fn fetch(&mut self) -> Option<Word> {
        let word = self.sender.receive()?;
        self.missing -= 1;
        Some(word)
    }

    /// True if there is nothing to wait for.
    #[inline]
    fn is_idle(&self) -> bool {
        self.missing == 0 && !self.sender.has_staged()
    }

    /// True if there is an answer, or room for the staged messages.
    #[inline]
    fn is_moving(&self) -> bool {
        self.sender.has_answer() || self.sender.has_staged() && self.sender.can_flush()
    }
}

impl<D: RingKind> Client<D> {
    /// Joins: creates a ring of this client to every partition.
    pub fn join(shared: &Arc<Shared<D>>) -> Self {
        let event = Arc::new(Event::default());
        shared.register(&event);
        let channels = shared.partitions.iter().enumerate().map(|(number, place)| {
            let (sender, receiver) = D::ring();
            place.welcome(ClientRing::new(receiver, Arc::clone(&event)));
            Channel {
                sender,
                start: shared.start(number),
                inbox: VecDeque::new(),
                missing: 0,
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

    /// Stages a message, and waits for room if there is none. Answers that arrive meanwhile are kept.
    pub fn put_waiting(&mut self, partition: usize, now: Time, message: PartitionRequest) {
        while self.channels[partition].put(now, message).is_err() {
            self.wait_for_room(partition);
        }
    }

    /// Sends the messages staged for a partition, and waits for room if there is none.
    pub fn flush_waiting(&mut self, partition: usize) {
        while self.channels[partition].sender.flush().is_err() {
            self.wait_for_room(partition);
        }
    }

    #[cold]
    fn wait_for_room(&mut self, partition: usize) {
        if self.channels[partition].sender.flush().is_ok() {
            return;
        }
        self.wait(&[partition]);
        let channel = &mut self.channels[partition];
        while let Some(word) = channel.fetch() {
            channel.inbox.push_back(word);
        }
    }

    /// Sends the messages staged for these partitions, as far as there is room, and waits until one of them answers, or
    /// takes messages for which there was no room; it may return earlier. Panics if a server thread that panicked has
    /// left one of them behind: that partition would never answer.
    pub fn wait(&mut self, partitions: &[usize]) {
        for &partition in partitions {
            // A partition without room is one of those that this call waits for.
            let _ = self.channels[partition].sender.flush();
        }
        fence_before_wake();
        let served = partitions.iter().map(|&partition| self.rouse(partition));
        // Messages for which there was no room may have been sent by now without owing an answer: then nothing would
        // end the wait.
        let idle = |&partition: &usize| self.channels[partition].is_idle();
        if served.sum::<usize>() > 0 || partitions.iter().all(idle) {
            return;
        }
        let (shared, channels) = (&self.shared, &self.channels);
        // The same again: the messages may have been sent just now, with nothing else to wait for.
        if partitions
            .iter()
            .all(|&partition| channels[partition].is_idle())
        {
            return;
        }
        self.event.wait(|| {
            let is_moving = |&partition: &usize| channels[partition].is_moving();
            partitions.iter().any(is_moving) || shared.is_broken()
        });
        if shared.is_broken() {
            let abandoned = |&partition: &usize| shared.is_abandoned(partition);
            assert!(
                !partitions.iter().any(abandoned),
                "a server thread of the cphash engine has panicked"
            );
        }
    }

    /// If the owner of a partition sleeps: serves in its place, or wakes it. Returns how many messages were served.
    #[inline]
    fn rouse(&self, partition: usize) -> usize {
        let owner = self.shared.partitions[partition].lease.owner();
        let idle = self.channels[partition].is_idle();
        if idle || !self.shared.servers[owner as usize].event.is_parked() {
            return 0;
        }
        let served = match self.shared.self_service {
            true => server::stand_in(&self.shared, partition),
            false => None,
        };
        match served {
            Some(messages) => self
                .counters
                .add(Count::SelfServed as usize, messages as u64),
            None => self.shared.wake(owner),
        }
        served.unwrap_or(0)
    }

    /// The next answer of a partition; `None` if no thread is left that would give it.
    pub fn receive_waiting(&mut self, partition: usize) -> Option<Word> {
        loop {
            if let Some(word) = self.channels[partition].receive() {
                return Some(word);
            }
            if self.shared.is_abandoned(partition) {
                return None;
            }
            self.wait(&[partition]);
        }
    }

    /// Makes the owner of a partition carry out `work`, and waits until it is done. May be called while other answers
    /// are missing.
    pub fn run<T: Send>(
        &mut self,
        partition: usize,
        now: Time,
        work: impl FnOnce(&mut Partition) -> T + Send,
    ) -> T {
        let (mut work, mut result) = (Some(work), None);
        let mut task = |partition: &mut Partition| {
            result = work.take().map(|work| work(partition));
        };
        let call = UnsafeCell::new(Call::new(now, Task::Run(&mut task)));
        let address = Address::of(&call);
        self.put_waiting(partition, now, PartitionRequest::Call { call: address });
        // The answer to this call is the last one.
        while self.channels[partition].missing > 0 {
            let channel = &mut self.channels[partition];
            match channel.fetch() {
                Some(_) if channel.missing == 0 => {}
                Some(word) => channel.inbox.push_back(word),
                None => self.wait(&[partition]),
            }
        }
        match result {
            Some(result) => result,
            None => unreachable!("what was answered was done"),
        }
    }

    /// Adds the counts of these partitions' rings to the counters.
    pub fn count(&mut self, operations: usize, partitions: &[usize]) {
        let add = |count: Count, now: u64, before: u64| {
            self.counters.add(count as usize, now - before);
        };
        add(Count::Operations, operations as u64, 0);
        for &partition in partitions {
            let channel = &mut self.channels[partition];
            let now = channel.sender.counts();
            let before = std::mem::replace(&mut channel.counted, now);
            add(Count::LinesSent, now.lines_sent, before.lines_sent);
            add(Count::MessagesSent, now.messages_sent, before.messages_sent);
            add(
                Count::LinesReceived,
                now.lines_received,
                before.lines_received,
            );
            add(
                Count::AnswersReceived,
                now.answers_received,
                before.answers_received,
            );
        }
    }
}

/// Disconnects from every partition, and waits until all messages of this client have been served.
impl<D: RingKind> Drop for Client<D> {
    fn drop(&mut self) {
        for partition in 0..self.channels.len() {
            if self.shared.is_stopping() || self.shared.is_abandoned(partition) {
                continue;
            }
            self.put_waiting(partition, Time::default(), PartitionRequest::Leave);
            while self.channels[partition].missing > 0 {
                if self.receive_waiting(partition).is_none() {
                    break;
                }
            }
        }
        self.shared.unregister(&self.event);
        self.shared.counters.unregister(&self.counters);
    }
}
