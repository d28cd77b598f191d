//! The connections of one thread, driven by what is due and by readiness events.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};
use nuthatch_workload::Action;

use crate::connection::{Connection, Pending, Step};
use crate::course::{Course, Next};
use crate::items::Items;
use crate::tally::{Done, Kind};
use crate::wire::{Answer, Ask, Part, Protocol};

/// How often a wait checks whether it must end early.
pub const LOOK: Duration = Duration::from_millis(50);

/// A wait of the system may take so much longer than asked for: what is due sooner is waited for awake.
const COARSE: Duration = Duration::from_millis(2);

/// How long a connection may wait for an answer when no other is due before it.
const PATIENCE: Duration = Duration::from_secs(10);

/// How requests are made and answers understood.
pub struct Speaker {
    /// The items.
    pub items: Items,
    /// The server's protocol.
    pub protocol: Protocol,
    /// What a get misses is stored.
    pub store_misses: bool,
    /// Goes into the next value, so that each differs from the one before.
    pub stamp: u64,
}

/// Connections to one server.
pub struct Client {
    poll: Poll,
    events: Events,
    connections: Vec<Connection>,
    /// A connection's number for each request that it has room for, and since when it has.
    free: VecDeque<(usize, Instant)>,
    places: usize,
    speaker: Speaker,
    keys: Vec<Vec<u8>>,
    /// Numbers of keys without a value.
    missed: Vec<u64>,
}

/// Why no more is begun for now.
enum Pause {
    /// Nothing is due before this moment.
    Until(Instant),
    /// No connection is free.
    Full,
    /// Nothing will be due.
    Over,
}

impl Client {
    /// Opens so many connections, each for so many requests at once.
    pub fn connect(
        target: SocketAddr,
        conns: usize,
        pipeline: usize,
        speaker: Speaker,
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let named = |error: std::io::Error| format!("{target}: {error}");
        let poll = Poll::new().map_err(named)?;
        let opened = Instant::now();
        let mut connections = Vec::with_capacity(conns);
        for number in 0..conns {
            look(stop)?;
            let mut connection = Connection::connect(target, PATIENCE).map_err(named)?;
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry()
                .register(connection.socket(), Token(number), interest)
                .map_err(named)?;
            connections.push(connection);
        }
        Ok(Self {
            poll,
            events: Events::with_capacity(1024),
            // Each connection once, then each a second time.
            free: (0..pipeline)
                .flat_map(|_| 0..conns)
                .map(|number| (number, opened))
                .collect(),
            places: conns * pipeline,
            connections,
            speaker,
            keys: Vec::new(),
            missed: Vec::new(),
        })
    }

    /// Does what is due until the course is over and all is answered.
    pub fn drive(&mut self, course: &mut impl Course, stop: &AtomicBool) -> Result<(), String> {
        let mut checked = Instant::now();
        loop {
            let now = Instant::now();
            let pause = self.begin_due(course, now)?;
            let idle = self.free.len() == self.places;
            if idle && matches!(pause, Pause::Over) {
                return Ok(());
            }
            let patience = match pause {
                Pause::Until(due) => patience(due.saturating_duration_since(now)),
                Pause::Full | Pause::Over => LOOK,
            };
            if let Err(error) = self.poll.poll(&mut self.events, Some(patience))
                && error.kind() != ErrorKind::Interrupted
            {
                return Err(error.to_string());
            }
            look(stop)?;
            self.serve_events(course)?;
            if now - checked > LOOK {
                checked = now;
                self.check_patience(now)?;
            }
        }
    }

    /// An error if a connection has waited for too long, whatever the others hear, and whatever part of its answer has come.
    fn check_patience(&self, now: Instant) -> Result<(), String> {
        let waits = self.connections.iter().filter_map(Connection::waits_since);
        match waits.min() {
            Some(since) if now.saturating_duration_since(since) > PATIENCE => {
                Err(format!("no answer for {} seconds", PATIENCE.as_secs()))
            }
            _ => Ok(()),
        }
    }

    /// What has no answer yet, and since when each was due.
    pub fn owed(&self) -> impl Iterator<Item = (Kind, Instant)> {
        let pending = self.connections.iter().flat_map(Connection::pending);
        pending.map(|pending| (pending.step.kind(), pending.due))
    }

    /// Begins what is due, as long as a connection is free.
    fn begin_due(&mut self, course: &mut impl Course, now: Instant) -> Result<Pause, String> {
        let mut begun = Vec::new();
        let pause = loop {
            let Some(&(number, since)) = self.free.front() else {
                break Pause::Full;
            };
            match course.next(now, since) {
                Next::Do(action, due) => {
                    self.free.pop_front();
                    self.begin(number, action, due, now);
                    begun.push(number);
                }
                Next::Wait(due) => break Pause::Until(due),
                Next::Over => break Pause::Over,
            }
        };
        // What one connection begins is sent at once.
        begun.sort_unstable();
        begun.dedup();
        for number in begun {
            self.connections[number].send()?;
        }
        Ok(pause)
    }

    fn begin(&mut self, number: usize, action: Action, due: Instant, now: Instant) {
        let connection = &mut self.connections[number];
        let speaker = &mut self.speaker;
        let get = |from, count, then_set| Step::Get {
            from,
            count,
            then_set,
        };
        let step = match action {
            Action::Get(number) => get(number, 1, false),
            Action::GetMany(number, count) => get(number, count, false),
            Action::GetThenSet(number) => get(number, 1, true),
            Action::Set(number) => Step::Set {
                number,
                restores: false,
            },
            Action::Delete(number) => Step::Delete(number),
        };
        match step {
            Step::Get { from, count, .. } => {
                speaker.keys(from, count, &mut self.keys);
                let keys = &self.keys[..usize::from(count)];
                speaker.protocol.get(connection.out(), keys);
            }
            Step::Set { number, .. } => speaker.set(connection, number, &mut self.keys),
            Step::Delete(number) => {
                speaker.keys(number, 1, &mut self.keys);
                speaker.protocol.delete(connection.out(), &self.keys[0]);
            }
        }
        let pending = Pending {
            step,
            due,
            is_last: true,
        };
        connection.wait_for(pending, now);
    }

    fn serve_events(&mut self, course: &mut impl Course) -> Result<(), String> {
        for event in &self.events {
            let number = event.token().0;
            let connection = &mut self.connections[number];
            if event.is_writable() {
                connection.send()?;
            }
            if !event.is_readable() {
                continue;
            }
            while connection.receive()? {
                let mut answers = Answers {
                    speaker: &mut self.speaker,
                    keys: &mut self.keys,
                    missed: &mut self.missed,
                };
                let freed = answers.take(connection, course)?;
                let since = Instant::now();
                self.free.extend((0..freed).map(|_| (number, since)));
            }
            // What follows up on answers.
            connection.send()?;
        }
        Ok(())
    }
}

/// An error if the run is to end.
pub fn look(stop: &AtomicBool) -> Result<(), String> {
    // Relaxed: the flag publishes no other memory.
    match stop.load(Ordering::Relaxed) {
        true => Err("interrupted".to_owned()),
        false => Ok(()),
    }
}

/// How long to wait for events when something is due in so long.
fn patience(left: Duration) -> Duration {
    match left.checked_sub(COARSE) {
        Some(rest) => rest.min(LOOK),
        None => Duration::ZERO,
    }
}

impl Speaker {
    /// Makes the keys of a get: `room` has at least so many afterwards. Behind the last item of a range comes the first of
    /// all.
    fn keys(&self, from: u64, count: u16, room: &mut Vec<Vec<u8>>) {
        let count = usize::from(count);
        if room.len() < count {
            room.resize(count, Vec::new());
        }
        for (place, key) in room[..count].iter_mut().enumerate() {
            self.items.key(self.number(from, place), key);
        }
    }

    /// The number of the item at this place of a get.
    fn number(&self, from: u64, place: usize) -> u64 {
        match place {
            0 => from,
            place => (from + place as u64) % self.items.count,
        }
    }

    fn set(&mut self, connection: &mut Connection, number: u64, room: &mut Vec<Vec<u8>>) {
        self.stamp += 1;
        self.keys(number, 1, room);
        let shape = self.items.shape(number);
        let out = connection.out();
        self.protocol.set(out, &room[0], &shape, self.stamp);
    }
}

/// What parses the answers on a connection.
struct Answers<'c> {
    speaker: &'c mut Speaker,
    keys: &'c mut Vec<Vec<u8>>,
    missed: &'c mut Vec<u64>,
}

impl Answers<'_> {
    /// Takes all whole answers, and begins what follows from them. Returns for how many more there is room.
    fn take(
        &mut self,
        connection: &mut Connection,
        course: &mut impl Course,
    ) -> Result<usize, String> {
        let mut ended = 0;
        let at = Instant::now();
        while let Some(pending) = connection.first() {
            self.missed.clear();
            let answer = self.answer(pending.step, connection.unparsed())?;
            let Some((length, answer)) = answer else {
                return Ok(ended);
            };
            connection.answered(length, at);
            course.done(&self.done(&pending, at, answer));
            let more = self.follow_up(connection, &pending, at);
            ended += usize::from(pending.is_last && !more);
        }
        match connection.unparsed() {
            [] => Ok(ended),
            _ => Err("the server answered more than it was asked".to_owned()),
        }
    }

    /// Parses the answer to a request, if it is whole, and checks values.
    fn answer(&mut self, step: Step, bytes: &[u8]) -> Result<Option<(usize, Answer)>, String> {
        let protocol = self.speaker.protocol;
        let (from, count) = match step {
            Step::Get { from, count, .. } => (from, count),
            Step::Set { .. } => return protocol.answer(Ask::Set, bytes, &mut |_| Ok(())),
            Step::Delete(_) => return protocol.answer(Ask::Delete, bytes, &mut |_| Ok(())),
        };
        self.speaker.keys(from, count, self.keys);
        let ask = match count {
            1 => Ask::Get,
            count => Ask::GetMany(usize::from(count)),
        };
        let (speaker, missed) = (&*self.speaker, &mut *self.missed);
        let keys = &self.keys[..usize::from(count)];
        // The key whose value comes next at the earliest.
        let mut place = 0;
        let answer = protocol.answer(ask, bytes, &mut |part| {
            let value = match part {
                Part::Next(value) => value,
                Part::Found(key, value) => {
                    while keys.get(place).is_some_and(|asked| asked != key) {
                        missed.push(speaker.number(from, place));
                        place += 1;
                    }
                    Some(value)
                }
            };
            let key = keys
                .get(place)
                .ok_or("the server sends a key that was not asked for")?;
            let number = speaker.number(from, place);
            place += 1;
            match value {
                None => missed.push(number),
                Some(value) => speaker.items.check(number, key, value)?,
            }
            Ok(())
        })?;
        if answer.is_some() {
            missed.extend((place..keys.len()).map(|place| speaker.number(from, place)));
        }
        Ok(answer)
    }

    fn done(&self, pending: &Pending, at: Instant, answer: Answer) -> Done {
        let (kind, count, ends) = match pending.step {
            Step::Get {
                count, then_set, ..
            } => (Kind::Get, u64::from(count), !then_set),
            Step::Set { restores: true, .. } => (Kind::Restore, 0, false),
            Step::Set { .. } => (Kind::Set, 0, true),
            Step::Delete(_) => (Kind::Delete, 0, true),
        };
        let misses = self.missed.len() as u64;
        Done {
            kind,
            due: pending.due,
            at,
            hits: count - misses.min(count),
            misses,
            answer,
            ends,
        }
    }

    /// Begins the requests that follow from an answer. False: there are none.
    fn follow_up(&mut self, connection: &mut Connection, pending: &Pending, at: Instant) -> bool {
        let Step::Get { from, then_set, .. } = pending.step else {
            return false;
        };
        if then_set {
            self.speaker.set(connection, from, self.keys);
            let step = Step::Set {
                number: from,
                restores: false,
            };
            connection.wait_for(Pending { step, ..*pending }, at);
            return true;
        }
        if !self.speaker.store_misses {
            return false;
        }
        for (place, &number) in self.missed.iter().enumerate() {
            self.speaker.set(connection, number, self.keys);
            let pending = Pending {
                step: Step::Set {
                    number,
                    restores: true,
                },
                // It could not have been known earlier.
                due: at,
                is_last: place + 1 == self.missed.len(),
            };
            connection.wait_for(pending, at);
        }
        !self.missed.is_empty()
    }
}
