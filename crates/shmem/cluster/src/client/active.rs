//! Active operations: messages to servers, and their replies.

use std::io::Write;

use nuthatch_engine::semantics::wants_value;
use nuthatch_engine::{Key, Op, Read, Reply, Request, Store, Time};
use nuthatch_fabric::{Fabric, Gone};

use super::Client;
use super::batch::{Answer, Later, Step};
use super::direct::is_plain_read;
use super::directory::Hint;
use crate::bars::{self, Bars};
use crate::block::{self, Found, HEAD, Header, KEY, RECENCY, Recency, STALE, WON};
use crate::bucket::Pointer;
use crate::message::{BlockState, INLINE_MAX, ServerReply, ServerRequest, TimedRequest};
use crate::ring::Broken;
use crate::stats::Count;

/// Attempts of a wait after which the session checks whether the server is gone.
const ATTEMPTS: u32 = 4096;

/// How often a large value is read where it is, before the server makes a copy.
const READS: u32 = 2;

/// The answer in place of a server that is gone: its part of the store misses.
pub fn lost(op: &Op<'_>) -> Reply {
    match op {
        Op::Get | Op::Read(_) => Reply::Miss,
        Op::Store(_) => Reply::OutOfMemory,
        Op::Remove(_) | Op::Delta(_) => Reply::NotFound,
    }
}

/// True if a pair's block is all that a read with a value needs.
fn is_answered_by(op: &Op<'_>, header: &Header) -> bool {
    is_plain_read(op).is_some_and(|read| {
        let wins = read.may_win && header.status & (STALE | WON) == STALE;
        !wins && wants_value(&read, &header.item(false))
    })
}

impl<F: Fabric> Client<F> {
    /// Stages a message; waits for room, taking replies meanwhile.
    pub(super) fn send(
        &mut self,
        server: usize,
        timed: &TimedRequest<'_>,
        request: usize,
        replied: &mut impl FnMut(&mut Self, usize, &[u64]),
    ) -> Result<(), Gone> {
        let mut message = std::mem::take(&mut self.message);
        timed.encode(&mut message);
        let mut attempt = 0;
        while !self.channels[server]
            .sender
            .has_room(&*self.fabric, message.len())
        {
            if attempt == 0 {
                self.count(Count::RingsFull);
            }
            self.channels[server].sender.flush(&*self.fabric)?;
            self.take_replies(server, replied)?;
            self.pause(server, attempt)?;
            attempt = attempt.wrapping_add(1);
        }
        let channel = &mut self.channels[server];
        channel.sender.stage(&*self.fabric, &message);
        channel.waiting.push_back(request);
        self.message = message;
        self.count(Count::Active);
        Ok(())
    }

    /// Sends what is staged for a server, and waits until all of it is answered.
    pub(super) fn collect(
        &mut self,
        server: usize,
        replied: &mut impl FnMut(&mut Self, usize, &[u64]),
    ) -> Result<(), Gone> {
        self.channels[server].sender.flush(&*self.fabric)?;
        let mut attempt = 0;
        while !self.channels[server].waiting.is_empty() {
            match self.take_replies(server, replied)? {
                true => attempt = 0,
                false => {
                    self.pause(server, attempt)?;
                    attempt = attempt.wrapping_add(1);
                }
            }
        }
        Ok(())
    }

    pub(super) fn pause(&mut self, server: usize, attempt: u32) -> Result<(), Gone> {
        self.fabric.pause(attempt);
        match attempt % ATTEMPTS == ATTEMPTS - 1 && self.fabric.is_gone(server) {
            true => Err(Gone { pe: server }),
            false => Ok(()),
        }
    }

    fn take_replies(
        &mut self,
        server: usize,
        replied: &mut impl FnMut(&mut Self, usize, &[u64]),
    ) -> Result<bool, Gone> {
        let mut reply = std::mem::take(&mut self.reply);
        let mut some = false;
        let lasts = loop {
            let channel = &mut self.channels[server];
            match channel.receiver.read(&*self.fabric, &mut reply) {
                Ok(true) => channel.receiver.take(reply.len()),
                Ok(false) => break true,
                Err(Broken) => break false,
            }
            let is_closed = ServerReply::is_closing(&reply);
            match channel.waiting.pop_front() {
                Some(request) if !is_closed => replied(self, request, &reply),
                _ => break false,
            }
            some = true;
        };
        self.reply = reply;
        if !lasts {
            self.complain(server);
            return Err(Gone { pe: server });
        }
        self.channels[server].receiver.acknowledge(&*self.fabric)?;
        Ok(some)
    }

    /// Reports that words sent to a server, or received from it, are no message. A counter alone would not do: the
    /// caller gets a miss, or the answer of a full server, and it is neither.
    #[cold]
    fn complain(&mut self, server: usize) {
        if std::mem::replace(&mut self.channels[server].complained, true) {
            return;
        }
        let pe = self.fabric.pe();
        let text = format!(
            "nuthatch: PE {pe}: a message to server {server}, or from it, is none: somebody writes over the store's memory\n"
        );
        // In one call, so that lines of PEs do not mix. There is no other place to report it.
        let _ = std::io::stderr().write_all(text.as_bytes());
    }

    /// Gives up a server that is gone: no more replies come.
    pub(super) fn lose(&mut self, server: usize) {
        self.channels[server].gone = true;
        self.channels[server].waiting.clear();
    }

    /// Something was lost: asks for each server whether it is gone.
    #[cold]
    pub(super) fn lose_those_gone(&mut self) {
        for server in 0..self.channels.len() {
            if self.fabric.is_gone(server) {
                self.lose(server);
            }
        }
    }

    /// One message and its reply.
    pub(super) fn exchange(
        &mut self,
        server: usize,
        timed: &TimedRequest<'_>,
    ) -> Result<Vec<u64>, Gone> {
        if self.channels[server].gone {
            return Err(Gone { pe: server });
        }
        let mut words = Vec::new();
        let mut replied = |_: &mut Self, _, reply: &[u64]| words = reply.to_vec();
        let done = self
            .send(server, timed, 0, &mut replied)
            .and_then(|()| self.collect(server, &mut replied));
        match done {
            Ok(()) => Ok(words),
            Err(gone) => {
                self.lose(server);
                Err(gone)
            }
        }
    }

    /// The next step of a request, by its reply.
    pub(super) fn judge_reply(
        &mut self,
        server: usize,
        request: &Request<'_>,
        words: &[u64],
    ) -> Step {
        let hash = request.key.hash();
        let used = !matches!(request.op, Op::Read(Read { bump: false, .. }));
        let told = ServerReply::decode(words).unwrap_or(ServerReply::Refused);
        match told {
            ServerReply::Reply(reply, known) => {
                match known {
                    Some(known) => self.learn(server, hash, known, used),
                    None => self.directory.forget_key(hash),
                }
                Step::Answered(Answer::Done(reply))
            }
            ServerReply::Value(item, known, value) => {
                self.learn(server, hash, known, used);
                let at = self.wave.words.len();
                block::push_bytes(&mut self.wave.words, &[value]);
                Step::Answered(Answer::Value { item, at })
            }
            ServerReply::At(item, known) => Step::Later(Later::At(item, known)),
            ServerReply::Long => Step::Later(Later::Copy),
            ServerReply::Copied(item, known) => {
                self.learn(server, hash, known, used);
                let at = self.wave.words.len();
                let words = at + block::words_of(item.value_len);
                self.wave.words.resize(words, 0);
                Step::Answered(Answer::Value { item, at })
            }
            ServerReply::Reserved(_)
            | ServerReply::Done(_)
            | ServerReply::Text(_)
            | ServerReply::Words(_)
            | ServerReply::Refused
            | ServerReply::Closed => {
                self.complain(server);
                Step::Answered(Answer::Done(lost(&request.op)))
            }
        }
    }

    fn learn(&mut self, server: usize, hash: u64, known: BlockState, used: bool) {
        let control = self.control(server);
        let hint = Hint {
            pointer: known.pointer,
            generation: known.generation,
            tail: known.tail,
        };
        let bars = Bars::new(self.fabric.local(self.layout.bars(server), bars::WORDS));
        self.directory.learn(hash, hint, control.epoch, bars, used);
    }

    /// Reads a large value from the block that its server named, or has the server copy it if writers are faster.
    pub(super) fn read_large(
        &mut self,
        now: Time,
        server: usize,
        request: &Request<'_>,
        item: nuthatch_engine::Item,
        known: BlockState,
    ) -> Result<Answer, Gone> {
        let key = &request.key;
        for _ in 0..READS {
            self.enter();
            let page = self.layout.page_of(known.pointer);
            let same_page = self.page_changes(server, page) == known.generation;
            let start = match same_page {
                true => self.get_block(server, known.pointer),
                false => Ok(0),
            };
            self.exit();
            let start = start?;
            if !same_page {
                break;
            }
            let len = self.layout.block_words(known.pointer);
            let words = &self.wave.words[start..start + len];
            if let Found::Pair(header) = block::judge(words, key.bytes(), Some(&self.checksum))
                && let flushes = self.control(server).flushes
                && header.is_live(now, flushes.generation)
                && !flushes.may_be_over(now)
            {
                let tail = words[len - 1];
                let was_read = Recency(words[RECENCY]).was_read(words[HEAD]);
                self.learn(server, key.hash(), BlockState { tail, ..known }, false);
                // The server's item describes the version that it saw. For another version the answer may differ: that
                // this read wins, or how long the pair was idle.
                let item = match tail == known.tail {
                    true => item,
                    false if is_answered_by(&request.op, &header) => header.item(was_read),
                    false => break,
                };
                return Ok(Answer::Value {
                    item,
                    at: start + header.value_at(),
                });
            }
        }
        self.read_copy(now, server, request)
    }

    /// Has the server carry out a read and keep the value, and takes it piece by piece.
    pub(super) fn read_copy(
        &mut self,
        now: Time,
        server: usize,
        request: &Request<'_>,
    ) -> Result<Answer, Gone> {
        let read = match request.op {
            Op::Read(read) => read,
            _ => Read::default(),
        };
        let copy = TimedRequest {
            now,
            request: ServerRequest::Copy(request.key, read),
        };
        let words = self.exchange(server, &copy)?;
        let Step::Answered(answer) = self.judge_reply(server, request, &words) else {
            unreachable!("a copy is made at once")
        };
        if let (Answer::Value { item, at }, Some(ServerReply::Copied(..))) =
            (answer, ServerReply::decode(&words))
            && !self.take_pieces(now, server, at, item.value_len)?
        {
            self.complain(server);
            return Ok(Answer::Done(lost(&request.op)));
        }
        Ok(answer)
    }

    /// Takes the pieces of a copied value, many messages at a time, into its place in the wave's words. False if a
    /// piece did not come.
    fn take_pieces(
        &mut self,
        now: Time,
        server: usize,
        at: usize,
        len: usize,
    ) -> Result<bool, Gone> {
        let mut whole = true;
        let mut replied = |client: &mut Self, piece: usize, reply: &[u64]| {
            let value: &mut [u8] = bytemuck::cast_slice_mut(&mut client.wave.words[at..]);
            let place = value[..len].chunks_mut(INLINE_MAX).nth(piece);
            match (ServerReply::decode(reply), place) {
                (Some(ServerReply::Words(bytes)), Some(place)) if bytes.len() == place.len() => {
                    place.copy_from_slice(bytes);
                }
                _ => whole = false,
            }
        };
        for piece in 0..len.div_ceil(INLINE_MAX) {
            let request = ServerRequest::Piece(piece);
            self.send(server, &TimedRequest { now, request }, piece, &mut replied)?;
        }
        self.collect(server, &mut replied)?;
        Ok(whole)
    }

    /// Reads a block into the wave's words; where it begins there.
    pub(super) fn get_block(&mut self, server: usize, pointer: Pointer) -> Result<usize, Gone> {
        let start = self.wave.words.len();
        let len = self.layout.block_words(pointer);
        self.wave.words.resize(start + len, 0);
        let from = self.layout.block(pointer);
        self.fabric
            .get(server, from, &mut self.wave.words[start..])?;
        Ok(start)
    }

    /// A store whose value is too long for a message: it is written into a block that the server reserves.
    pub(super) fn store_large(
        &mut self,
        now: Time,
        server: usize,
        key: &Key<'_>,
        store: &Store<'_>,
    ) -> Result<Answer, Gone> {
        let request = ServerRequest::Reserve(*key, store.value.len());
        let words = self.exchange(server, &TimedRequest { now, request })?;
        let pointer = match ServerReply::decode(&words) {
            Some(ServerReply::Reserved(pointer)) => pointer,
            Some(ServerReply::Reply(refusal, _)) => return Ok(Answer::Done(refusal)),
            _ => {
                self.complain(server);
                return Ok(Answer::Done(lost(&Op::Store(*store))));
            }
        };
        let mut content = std::mem::take(&mut self.block);
        content.clear();
        block::push_bytes(&mut content, &[key.bytes()]);
        block::push_bytes(&mut content, &[store.value]);
        let to = self.layout.block(pointer).plus(KEY);
        let put = self.fabric.put(server, to, &content);
        self.block = content;
        put?;
        // The message is sent behind a fence, so its reader finds the bytes.
        let request = ServerRequest::Commit(*key, *store, store.value.len(), pointer);
        let words = self.exchange(server, &TimedRequest { now, request })?;
        let request = Request {
            key: *key,
            op: Op::Store(*store),
        };
        match self.judge_reply(server, &request, &words) {
            Step::Answered(answer) => Ok(answer),
            _ => unreachable!("a store is answered without a value"),
        }
    }

    /// True if a store's value does not go into a message.
    pub(super) fn is_large(op: &Op<'_>) -> bool {
        matches!(op, Op::Store(store) if store.value.len() > INLINE_MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use nuthatch_engine::{Engine, Leave, Removal};

    use super::*;
    use crate::config::{Config, Operations};
    use crate::store::in_process;

    #[test]
    fn who_reads_a_long_value_that_was_marked_stale_meanwhile_wins() {
        let config = Config {
            operations: Operations::Active,
            ..Config::default()
        };
        let engine = in_process(&config, 1).unwrap();
        let key = Key::new(b"key", engine.hasher());
        let now = Time(1000);
        let mut client = engine.clients[0].lock();
        let value = [7; 2 * INLINE_MAX];
        let stored = client.store_large(now, 0, &key, &Store::set(&value));
        assert!(matches!(stored, Ok(Answer::Done(Reply::Stored(_)))));
        let op = Op::Read(Read {
            may_win: true,
            ..Read::default()
        });
        let request = Request { key, op };
        let exchange = |client: &mut Client<_>, op| {
            let request = ServerRequest::Op(Request { key, op });
            client.exchange(0, &TimedRequest { now, request }).unwrap()
        };
        let words = exchange(&mut client, op);
        let Some(ServerReply::At(item, known)) = ServerReply::decode(&words) else {
            panic!("it is long");
        };
        let leave = Leave::Stale {
            expiry: None,
            new_cas: None,
        };
        let removal = Removal {
            leave,
            ..Removal::default()
        };
        exchange(&mut client, Op::Remove(removal));
        match client.read_large(now, 0, &request, item, known) {
            Ok(Answer::Value { item, .. }) => assert!(item.stale && item.won),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn who_sends_what_is_no_message_is_told_so_and_the_server_goes_on() {
        let engine = in_process(&Config::default(), 2).unwrap();
        let key = Key::new(b"key", engine.hasher());
        let now = Time(1000);
        let op = Op::Store(Store::set(b"value"));
        let request = Request { key, op };
        let mut client = engine.clients[0].lock();
        // The first of two messages is written over before they go out.
        let mut told = Vec::new();
        let mut judge = |client: &mut Client<_>, number: usize, words: &[u64]| {
            told.push((number, client.judge_reply(0, &request, words)));
        };
        let request = ServerRequest::Op(request);
        for (number, spoilt) in [(0, true), (1, false)] {
            TimedRequest { now, request }.encode(&mut client.message);
            if spoilt {
                client.message[2] ^= 1;
            }
            let message = std::mem::take(&mut client.message);
            let fabric = Arc::clone(&client.fabric);
            client.channels[0].sender.stage(&*fabric, &message);
            client.channels[0].waiting.push_back(number);
        }
        client.collect(0, &mut judge).unwrap();
        let [(0, Step::Answered(one)), (1, Step::Answered(other))] = told[..] else {
            panic!("{told:?}");
        };
        assert!(matches!(one, Answer::Done(Reply::OutOfMemory)));
        assert!(matches!(other, Answer::Done(Reply::Stored(_))));
        assert!(client.channels[0].complained);
        // After a message without an end it is unknown where the next one begins.
        let fabric = Arc::clone(&client.fabric);
        client.channels[0].sender.stage(&*fabric, &[0; 9]);
        client.channels[0].waiting.push_back(0);
        let lost = client.collect(0, &mut |_: &mut Client<_>, _, _: &[u64]| {
            panic!("it is none")
        });
        assert_eq!(lost, Err(Gone { pe: 0 }));
        drop(client);
        let mut other = engine.clients[1].lock();
        let request = ServerRequest::Op(Request { key, op: Op::Get });
        let words = other.exchange(0, &TimedRequest { now, request }).unwrap();
        assert!(matches!(
            ServerReply::decode(&words),
            Some(ServerReply::Value(_, _, b"value"))
        ));
    }
}
