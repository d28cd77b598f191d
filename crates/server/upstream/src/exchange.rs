//! One exchange with the servers: what the copies lack of a batch, in one pipeline.
//!
//! 1. The requests are looked at in order. Reads look for copies; a miss begins a read, or joins another's. Changes begin, and remove
//!    their copy.
//! 2. All commands go out together, those of one key in their order, and their answers are awaited.
//! 3. Reads and changes end: copies are stored, and those who joined get their answer. Only then is another's read waited for.
//! 4. The caller gets the replies in order.

use nuthatch_client::meta::{Answer, Command};
use nuthatch_client::{Error, Many};
use nuthatch_engine::{
    Condition, Engine, Handle, Item, Key, Op, Replies, Reply, Request, StoreMode, Time,
};

use crate::coherence::{Change, Join, Lead, Role};
use crate::copies;
use crate::counters::add;
use crate::engine::{Outcome, Upstream, name_of};
use crate::handle::Times;
use crate::probe::{Probe, Waiting};
use crate::translate::{self, Found, Translated};
use crate::value::UpstreamValue;

type Near<E> = <E as Engine>::Handle;
type NearValue<E> = <Near<E> as Handle>::Value;

/// A request that is not answered yet.
enum Pending<'e, V> {
    /// A copy answers it.
    Near(Waiting<V>),
    /// It is read, by the command of this number.
    Lead(Lead<'e, Outcome>, usize),
    /// It waits for another's read.
    Join(Join<Outcome>),
    /// It is changed, or read with more than its value, by the command of this number.
    Change(Change<'e, Outcome>, usize),
    /// It was read.
    Found(Result<Option<Found>, Reply>),
    /// It was changed.
    Changed(Reply),
}

/// An exchange.
pub struct Exchange<'e, 'b, E: Engine> {
    engine: &'e Upstream<E>,
    near: &'e mut Near<E>,
    times: Times,
    batch: &'b [Request<'b>],
    /// From the first request that waits to the last.
    pending: Vec<Pending<'e, NearValue<E>>>,
    /// Commands, with the places of their requests in the batch.
    commands: Vec<(Translated<'b>, usize)>,
}

impl<'e, 'b, E: Engine> Exchange<'e, 'b, E> {
    /// Answers the requests, whose first has this number in the caller's batch.
    pub fn run(
        engine: &'e Upstream<E>,
        near: &'e mut Near<E>,
        times: Times,
        batch: &'b [Request<'b>],
        first: usize,
        replies: &mut impl Replies<UpstreamValue<NearValue<E>>>,
    ) {
        let mut exchange = Self {
            engine,
            near,
            times,
            batch,
            pending: Vec::new(),
            commands: Vec::new(),
        };
        exchange.look(first, replies);
        if exchange.pending.is_empty() {
            return;
        }
        let answers = exchange.send();
        exchange.end(answers);
        exchange.reply(first, replies);
    }

    fn look(&mut self, first: usize, replies: &mut impl Replies<UpstreamValue<NearValue<E>>>) {
        let mut at = 0;
        while at < self.batch.len() {
            let rest = &self.batch[at..];
            let plain = rest
                .iter()
                .take_while(|request| translate::is_plain(&request.op));
            match plain.count() {
                0 => {
                    self.begin(at);
                    at += 1;
                }
                count => {
                    let mut probe = Probe {
                        replies,
                        first: first + at,
                        waiting: Vec::new(),
                        all_wait: !self.pending.is_empty(),
                    };
                    self.near
                        .execute(self.times.present, &rest[..count], &mut probe);
                    let waiting = probe.waiting;
                    let answered = count - waiting.len();
                    for (place, waiting) in (at + answered..).zip(waiting) {
                        match waiting {
                            Waiting::Miss => self.read(place),
                            waiting => self.pending.push(Pending::Near(waiting)),
                        }
                    }
                    at += count;
                }
            }
        }
    }

    /// Begins a read for which there is no copy.
    fn read(&mut self, place: usize) {
        let pending = match self.engine.table.read(&self.batch[place].key) {
            Role::Lead(lead) => Pending::Lead(lead, self.command(place)),
            Role::Join(join) => {
                add(&self.engine.counters.joined, 1);
                Pending::Join(join)
            }
        };
        self.pending.push(pending);
    }

    /// Begins what no copy answers. A read of more than the value counts as a change: it may find a newer item than the copy, and
    /// nobody gets the older one after that (who watches an item, and then reads it, relies on this).
    fn begin(&mut self, place: usize) {
        let key = self.batch[place].key;
        let change = self.engine.table.change(&key);
        copies::remove(self.near, self.times.present, key);
        let pending = Pending::Change(change, self.command(place));
        self.pending.push(pending);
    }

    fn command(&mut self, place: usize) -> usize {
        let command = translate::command(&self.batch[place].op, self.times.turn);
        let counters = &self.engine.counters;
        let counter = match command.is_read {
            true => &counters.reads,
            false => &counters.changes,
        };
        add(counter, 1);
        self.commands.push((command, place));
        self.commands.len() - 1
    }

    fn send(&self) -> Vec<Result<Answer, Error>> {
        let commands: Vec<_> = self
            .commands
            .iter()
            .map(|(command, place)| Command {
                verb: command.verb,
                key: name_of(&self.batch[*place].key),
                flags: &command.flags,
                value: command.value,
                is_read: command.is_read,
            })
            .collect();
        let Many { values, failed } = self.engine.client.commands(&commands);
        let mut answers: Vec<_> = values.into_iter().map(Ok).collect();
        for (place, error) in failed {
            answers[place] = Err(error);
        }
        answers
    }

    /// Ends the reads and changes.
    fn end(&mut self, mut answers: Vec<Result<Answer, Error>>) {
        let mut given_back = Vec::new();
        let first = self.batch.len() - self.pending.len();
        for at in 0..self.pending.len() {
            let Request { key, op } = &self.batch[first + at];
            let mut take =
                |number: usize| std::mem::replace(&mut answers[number], Ok(Answer::default()));
            let pending =
                std::mem::replace(&mut self.pending[at], Pending::Changed(Reply::Unavailable));
            self.pending[at] = match pending {
                Pending::Lead(lead, number) => {
                    let found = self.counted(self.found(*key, op, take(number)));
                    self.end_read(lead, *key, &found);
                    Pending::Found(found)
                }
                Pending::Change(change, number) => match op {
                    Op::Read(read) => {
                        let mut found = self.found(*key, op, take(number));
                        if translate::is_read(read) {
                            found = self.counted(found);
                            change.end(|| self.keep(*key, &found));
                        }
                        Pending::Found(found)
                    }
                    op => {
                        let reply = self.changed(*key, op, take(number));
                        self.end_change(change, &self.batch[first + at], &reply);
                        Pending::Changed(reply)
                    }
                },
                other => other,
            };
            if let Pending::Found(Ok(Some(found))) = &self.pending[at]
                && found.item.won
                && !may_win(op)
            {
                given_back.push((*key, found.item.cas));
            }
        }
        self.engine.give_back(&given_back);
    }

    /// What a read came to.
    fn found(
        &self,
        key: Key<'_>,
        op: &Op<'_>,
        answer: Result<Answer, Error>,
    ) -> Result<Option<Found>, Reply> {
        let found = answer.map(|answer| {
            self.engine.note_success(&key);
            translate::found(answer, self.times.turn)
        });
        found.unwrap_or_else(|error| Err(self.failed(key, op, &error)))
    }

    /// Counts a read that found something.
    fn counted(&self, found: Result<Option<Found>, Reply>) -> Result<Option<Found>, Reply> {
        if let Ok(Some(_)) = found {
            add(&self.engine.counters.found, 1);
        }
        found
    }

    fn changed(&self, key: Key<'_>, op: &Op<'_>, answer: Result<Answer, Error>) -> Reply {
        match answer {
            Ok(answer) => {
                self.engine.note_success(&key);
                translate::changed(op, answer, self.times.turn)
            }
            Err(error) => self.failed(key, op, &error),
        }
    }

    fn failed(&self, key: Key<'_>, op: &Op<'_>, error: &Error) -> Reply {
        translate::failed(op, error).unwrap_or_else(|reply| {
            self.engine.note_failure(&key, error);
            reply
        })
    }

    fn end_read(
        &mut self,
        lead: Lead<'_, Outcome>,
        key: Key<'_>,
        found: &Result<Option<Found>, Reply>,
    ) {
        // Those who have joined it get no answer, either, if there is none.
        if let Ok(item) = found {
            lead.end(Some(item.clone()), || self.keep(key, found));
        }
    }

    /// The new item has a copy at once if it is surely what the server has.
    fn end_change(&mut self, change: Change<'_, Outcome>, request: &Request<'_>, reply: &Reply) {
        let Op::Store(store) = request.op else {
            return;
        };
        let Reply::Stored(item) = reply else {
            return;
        };
        // An older number may have stored the item with a mark, of which the answer says nothing.
        let may_be_stale = matches!(store.condition, Condition::CasOrStale(_));
        if may_be_stale || matches!(store.mode, StoreMode::Append | StoreMode::Prepend) {
            return;
        }
        change.end(|| self.store_copy(request.key, item, store.value));
    }

    /// Leaves a copy of what a read found. The caller holds the place's lock.
    fn keep(&mut self, key: Key<'_>, found: &Result<Option<Found>, Reply>) {
        if let Ok(Some(Found {
            item,
            value: Some(value),
        })) = found
        {
            self.store_copy(key, item, value);
        }
    }

    fn store_copy(&mut self, key: Key<'_>, item: &Item, value: &[u8]) {
        let end = self.times.present.after(self.engine.lifetime);
        if copies::store(self.near, self.times.present, key, item, value, end) {
            add(&self.engine.counters.kept, 1);
        }
    }

    fn reply(self, first: usize, replies: &mut impl Replies<UpstreamValue<NearValue<E>>>) {
        let Self {
            near,
            times,
            batch,
            pending,
            ..
        } = self;
        let now = times.present;
        let before = batch.len() - pending.len();
        let mut answer = |replies: &mut _, place: usize, found| {
            answer::<E>(near, now, replies, first + place, &batch[place], found)
        };
        for (pending, place) in pending.into_iter().zip(before..) {
            let index = first + place;
            match pending {
                Pending::Near(Waiting::Value(item, bytes)) => {
                    replies.begin(index, &item).copy_from_slice(&bytes);
                    replies.commit(index);
                }
                Pending::Near(Waiting::Large(item, value)) => {
                    replies.large(index, &item, UpstreamValue::Near(value));
                }
                Pending::Join(join) => match join.wait() {
                    Some(Some(found)) => answer(replies, place, found.map(Found::of_another)),
                    _ => replies.done(index, Reply::Miss),
                },
                Pending::Found(Ok(found)) => answer(replies, place, found),
                Pending::Found(Err(reply)) | Pending::Changed(reply) => replies.done(index, reply),
                // Step 3 has ended all of these.
                Pending::Near(Waiting::Miss) | Pending::Lead(..) | Pending::Change(..) => {
                    replies.done(index, Reply::Unavailable)
                }
            }
        }
    }
}

/// Answers a read.
fn answer<E: Engine>(
    near: &mut Near<E>,
    now: Time,
    replies: &mut impl Replies<UpstreamValue<NearValue<E>>>,
    index: usize,
    request: &Request<'_>,
    found: Option<Found>,
) {
    let found = found.map(|found| match may_win(&request.op) {
        true => found,
        false => found.without_win(),
    });
    match found {
        None => replies.done(index, Reply::Miss),
        Some(Found { value: None, item }) => replies.done(index, Reply::Found(item)),
        Some(Found {
            value: Some(value),
            item,
        }) => {
            if value.len() > Near::<E>::COPY_MAX {
                let copy = copy_of::<E>(near, now, replies, request.key, &item);
                let value = copy.map_or(UpstreamValue::Read(value), UpstreamValue::Near);
                return replies.large(index, &item, value);
            }
            replies.begin(index, &item).write_copy_of_slice(&value);
            replies.commit(index);
        }
    }
}

/// The copy of a large value that was just read. It lies in the engine's memory, and what was read only as long as this answer,
/// which a connection has only so much memory for.
fn copy_of<E: Engine>(
    near: &mut Near<E>,
    now: Time,
    replies: &mut impl Replies<UpstreamValue<NearValue<E>>>,
    key: Key<'_>,
    item: &Item,
) -> Option<NearValue<E>> {
    let mut probe = Probe {
        replies,
        first: 0,
        waiting: Vec::new(),
        all_wait: true,
    };
    near.execute(now, &[Request { key, op: Op::Get }], &mut probe);
    match probe.waiting.pop() {
        Some(Waiting::Large(copy, value)) if copy.cas == item.cas => Some(value),
        _ => None,
    }
}

/// True if a read takes part in winning the right to renew an item.
fn may_win(op: &Op<'_>) -> bool {
    matches!(op, Op::Read(read) if read.may_win)
}

impl Found {
    /// What one gets that does not.
    fn without_win(self) -> Self {
        let item = Item {
            won: false,
            ..self.item
        };
        Self { item, ..self }
    }

    /// What one gets who has joined the read: another has won.
    fn of_another(self) -> Self {
        let Item {
            won, won_before, ..
        } = self.item;
        let item = Item {
            won: false,
            won_before: won_before || won,
            ..self.item
        };
        Self { item, ..self }
    }
}
