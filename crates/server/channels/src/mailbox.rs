//! A mailbox: the letters that wait for one connection.
//!
//! Invariants:
//! 1. A letter that was put in is taken out, in order, or the connection ends: the mailbox is full, or it is closed. Then it
//!    holds nothing any more, however long others keep it. Keys that have changed never fill it: what has no room is told
//!    as a change of all keys, in the place of all such letters before. Where all mailboxes together have no room, the
//!    fullest gives it: so who does not read ends nobody who does.
//! 2. While letters wait, the worker is called, or has been called and has not taken them: the bell is answered before the
//!    letters are looked at, and rung after a letter is put in.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_base::sync::mutex::{Mutex, MutexGuard};
use nuthatch_resp::Version;

use crate::bell::Bell;
use crate::bounds::Bounds;
use crate::letter::{Letter, Text};

/// Bytes of memory that a letter takes beside its text: a queue may have twice the places that it needs.
const LETTER_OVERHEAD: usize = 2 * size_of::<Letter>();

/// An empty mailbox keeps room for so many letters.
const ROOM_KEPT: usize = 16;

/// What waits for a connection.
pub struct Mailbox {
    /// The number of its connection, which no other has or had.
    pub serial: u64,
    bell: Bell,
    bounds: Arc<Bounds>,
    queue: Mutex<Queue>,
    /// The client speaks RESP3. Relaxed: its own worker changes it, between two requests.
    is_resp3: AtomicBool,
    /// The client has subscribed to channels. Relaxed: the same.
    is_subscribed: AtomicBool,
}

#[derive(Default)]
struct Queue {
    letters: VecDeque<Letter>,
    bytes: usize,
    /// One of the letters says that all keys may have changed, and whether keys of redirections are among them.
    all_changed: Option<AllChanged>,
    /// The connection ends, or a letter found no room, so that it will: no more letters.
    closed: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct AllChanged {
    redirected: bool,
}

impl Queue {
    fn push(&mut self, letter: Letter, bounds: &Bounds) {
        self.bytes += letter.len() + LETTER_OVERHEAD;
        bounds.add(LETTER_OVERHEAD);
        self.letters.push_back(letter);
    }

    fn pop(&mut self, bounds: &Bounds) -> Option<Letter> {
        let letter = self.letters.pop_front()?;
        self.note_gone(&letter, bounds);
        if let Letter::AllChanged { .. } = letter {
            self.all_changed = None;
        }
        Some(letter)
    }

    fn note_gone(&mut self, letter: &Letter, bounds: &Bounds) {
        self.bytes -= letter.len() + LETTER_OVERHEAD;
        bounds.give_back(LETTER_OVERHEAD);
    }

    fn has_room(&self, letter: &Letter, bounds: &Bounds) -> bool {
        self.bytes + letter.len() + LETTER_OVERHEAD <= bounds.one_max()
    }

    fn tells_changes(&self) -> bool {
        let mut letters = self.letters.iter();
        letters.any(|letter| matches!(letter, Letter::Changed { .. }))
    }

    /// All keys may have changed: so single ones need not be told.
    fn change_all(&mut self, mut redirected: bool, bounds: &Bounds) {
        let letters = std::mem::take(&mut self.letters);
        for letter in letters {
            match letter {
                Letter::Changed {
                    redirected: its, ..
                } => {
                    redirected |= its;
                    self.note_gone(&letter, bounds);
                }
                _ => self.letters.push_back(letter),
            }
        }
        self.all_changed = Some(AllChanged { redirected });
        self.push(Letter::AllChanged { redirected }, bounds);
    }

    /// True if it is told already that all keys may have changed. A client of RESP2 is told of redirections only, and
    /// this one may speak RESP2 when it is told: so the letter says if one of them is meant.
    fn tells_all(&mut self, redirected: bool) -> bool {
        let Some(told) = &mut self.all_changed else {
            return false;
        };
        if redirected && !told.redirected {
            told.redirected = true;
            for letter in &mut self.letters {
                if let Letter::AllChanged { redirected } = letter {
                    *redirected = true;
                }
            }
        }
        true
    }

    fn close(&mut self, bounds: &Bounds) {
        while self.pop(bounds).is_some() {}
        self.letters = VecDeque::new();
        self.closed = true;
    }
}

/// What became of a letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Put {
    /// It waits.
    Waits,
    /// It has no room: the worker is to end the connection.
    Overflows,
    /// The connection is ending already.
    Ends,
}

impl Mailbox {
    /// An empty one, of the connection with this number.
    pub fn new(serial: u64, bell: Bell, bounds: Arc<Bounds>, version: Version) -> Arc<Self> {
        let mailbox = Arc::new(Self {
            serial,
            bell,
            bounds,
            queue: Mutex::default(),
            is_resp3: AtomicBool::new(version == Version::Resp3),
            is_subscribed: AtomicBool::new(false),
        });
        mailbox.bounds.enter(&mailbox);
        mailbox
    }

    /// True if the client has subscribed to channels.
    pub fn is_subscribed(&self) -> bool {
        self.is_subscribed.load(Ordering::Relaxed)
    }

    /// Notes whether the client has subscribed to channels.
    pub fn set_subscribed(&self, is_one: bool) {
        self.is_subscribed.store(is_one, Ordering::Relaxed);
    }

    /// The protocol's version of its client.
    pub fn version(&self) -> Version {
        match self.is_resp3.load(Ordering::Relaxed) {
            true => Version::Resp3,
            false => Version::Resp2,
        }
    }

    /// The client changes the protocol's version.
    pub fn set_version(&self, version: Version) {
        self.is_resp3
            .store(version == Version::Resp3, Ordering::Relaxed);
    }

    /// The limits that it keeps to.
    pub(crate) fn bounds(&self) -> &Arc<Bounds> {
        &self.bounds
    }

    /// Puts a letter in, and calls the worker. If there is no room for it, the worker ends the connection.
    pub(crate) fn put(&self, letter: Letter) -> Put {
        // One that never has room ends no other.
        let has_room = letter.len() <= self.bounds.one_max() && self.make_room();
        let mut queue = self.queue.lock();
        if queue.closed {
            return Put::Ends;
        }
        if !has_room || !queue.has_room(&letter, &self.bounds) {
            self.overflow(queue);
            return Put::Overflows;
        }
        queue.push(letter, &self.bounds);
        drop(queue);
        self.bell.ring();
        Put::Waits
    }

    /// Makes room in all mailboxes together: the fullest loses what it holds, until there is room. False if that is this one.
    fn make_room(&self) -> bool {
        // The text of the letter to come is among what waits already.
        while !self.bounds.has_room(LETTER_OVERHEAD) {
            match self.bounds.fullest() {
                Some(fullest) if std::ptr::eq(&*fullest, self) => return false,
                Some(fullest) => fullest.relieve(),
                // It is a text on its way that has no room, and none that waits.
                None => return true,
            }
        }
        true
    }

    /// It is the fullest: keys that have changed are told as all keys. If it holds none of them, the connection ends.
    fn relieve(&self) {
        let mut queue = self.queue.lock();
        match queue.tells_changes() {
            true => queue.change_all(false, &self.bounds),
            false if queue.closed => {}
            false => self.overflow(queue),
        }
    }

    fn overflow(&self, mut queue: MutexGuard<'_, Queue>) {
        queue.close(&self.bounds);
        drop(queue);
        self.bell.end(self.serial);
    }

    /// Puts in that a key has changed, of which this is the text, or that all may have, and calls the worker.
    pub(crate) fn put_change(&self, key: Option<&Text>, redirected: bool) {
        let has_room = key.is_none() || self.make_room();
        let mut queue = self.queue.lock();
        if queue.closed || queue.tells_all(redirected) {
            return;
        }
        let letter = key.map(|key| Letter::Changed {
            key: key.clone(),
            redirected,
        });
        match letter.filter(|letter| has_room && queue.has_room(letter, &self.bounds)) {
            Some(letter) => queue.push(letter, &self.bounds),
            None => queue.change_all(redirected, &self.bounds),
        }
        drop(queue);
        self.bell.ring();
    }

    /// Moves letters into an output until that has so many bytes. True if no letter is left.
    pub fn take(&self, out: &mut Vec<u8>, out_max: usize) -> bool {
        self.bell.answer();
        let (version, is_subscribed) = (self.version(), self.is_subscribed());
        let mut queue = self.queue.lock();
        while out.len() < out_max {
            let Some(letter) = queue.pop(&self.bounds) else {
                queue.letters.shrink_to(ROOM_KEPT);
                return true;
            };
            letter.write(out, version, is_subscribed);
        }
        queue.letters.is_empty()
    }

    /// True if nothing waits. The worker is called when something does.
    pub fn is_empty(&self) -> bool {
        self.bell.answer();
        self.queue.lock().letters.is_empty()
    }

    /// The connection ends: nothing waits any more.
    pub fn close(&self) {
        self.queue.lock().close(&self.bounds);
    }

    /// Bytes of memory of what waits.
    pub fn memory(&self) -> usize {
        self.queue.lock().bytes
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.close();
        self.bounds.leave(self.serial);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::Call;
    use crate::letter::{self, Subscription};

    /// Records the calls.
    #[derive(Default)]
    pub(crate) struct Calls(Mutex<Vec<usize>>, Mutex<Vec<u64>>);

    impl Call for Calls {
        fn call(&self, connection: usize) {
            self.0.lock().push(connection);
        }

        fn end(&self, _: usize, serial: u64) {
            self.1.lock().push(serial);
        }
    }

    impl Calls {
        pub(crate) fn ended(&self) -> Vec<u64> {
            std::mem::take(&mut *self.1.lock())
        }

        pub(crate) fn take(&self) -> Vec<usize> {
            std::mem::take(&mut *self.0.lock())
        }
    }

    pub(crate) fn mailbox(id: usize, calls: &Arc<Calls>, bounds: &Arc<Bounds>) -> Arc<Mailbox> {
        let bell = Bell::new(Arc::clone(calls) as Arc<dyn Call>, id);
        Mailbox::new(id as u64, bell, Arc::clone(bounds), Version::Resp2)
    }

    /// What is sent, in one line.
    pub(crate) fn said(mailbox: &Mailbox) -> String {
        let mut out = Vec::new();
        assert!(mailbox.take(&mut out, usize::MAX));
        String::from_utf8(out).unwrap().replace("\r\n", " ")
    }

    /// A message of one part.
    fn put(mailbox: &Arc<Mailbox>, part: &[u8]) -> Put {
        let text = Text::new(letter::message(&[part]), mailbox.bounds());
        mailbox.put(Letter::Message(
            text,
            Subscription::new(Arc::clone(mailbox)),
        ))
    }

    fn change(mailbox: &Mailbox, key: &[u8]) {
        let text = Text::new(letter::key(key), mailbox.bounds());
        mailbox.put_change(Some(&text), false);
    }

    fn world(each_max: usize) -> (Arc<Calls>, Arc<Bounds>) {
        let (calls, bounds): (Arc<Calls>, Arc<Bounds>) = Default::default();
        bounds.set_each_max(each_max);
        (calls, bounds)
    }

    #[test]
    fn letters_come_in_order_and_the_worker_is_called_once() {
        let (calls, bounds) = world(1000);
        let mailbox = mailbox(3, &calls, &bounds);
        for text in [&b"one"[..], b"two", b"three"] {
            assert_eq!(put(&mailbox, text), Put::Waits);
        }
        assert_eq!(calls.take(), [3]);
        let mut out = Vec::new();
        assert!(!mailbox.take(&mut out, 14));
        assert_eq!(out, b"*1\r\n$3\r\none\r\n*1\r\n$3\r\ntwo\r\n");
        assert_eq!(said(&mailbox), "*1 $5 three ");
        assert_eq!(bounds.waiting(), 0);
        assert_eq!(put(&mailbox, b"four"), Put::Waits);
        assert_eq!(calls.take(), [3]);
        drop(mailbox);
    }

    #[test]
    fn one_that_is_not_emptied_overflows_once() {
        let (calls, bounds) = world(150);
        let mailbox = mailbox(1, &calls, &bounds);
        let part = [b'x'; 40];
        assert_eq!(put(&mailbox, &part), Put::Waits);
        assert_eq!(put(&mailbox, &part), Put::Overflows);
        assert_eq!(put(&mailbox, &part), Put::Ends);
        assert_eq!(calls.ended(), [1]);
        assert_eq!((mailbox.memory(), bounds.waiting()), (0, 0));
    }

    #[test]
    fn a_closed_one_holds_nothing() {
        let (calls, bounds) = world(1000);
        let mailbox = mailbox(1, &calls, &bounds);
        assert_eq!(put(&mailbox, b"x"), Put::Waits);
        mailbox.close();
        assert_eq!(put(&mailbox, b"x"), Put::Ends);
        change(&mailbox, b"k");
        assert_eq!((mailbox.memory(), bounds.waiting()), (0, 0));
        assert_eq!(calls.ended(), [0; 0]);
    }

    /// A text counts once, however many it is sent to.
    #[test]
    fn all_together_have_a_limit() {
        let (calls, bounds) = world(1 << 20);
        bounds.suit(0);
        let part = vec![b'x'; 100_000];
        let all: Vec<_> = (0..20).map(|id| mailbox(id, &calls, &bounds)).collect();
        let text = Text::new(letter::message(&[&part]), &bounds);
        for mailbox in &all {
            let subscription = Subscription::new(Arc::clone(mailbox));
            let letter = Letter::Message(text.clone(), subscription);
            assert_eq!(mailbox.put(letter), Put::Waits);
        }
        drop(text);
        let one_each = bounds.waiting();
        assert!((100_000..110_000).contains(&one_each), "{one_each}");
        for mailbox in &all {
            assert_eq!(put(mailbox, &part), Put::Waits);
            assert!(bounds.waiting() <= 1 << 20, "{}", bounds.waiting());
        }
        assert_eq!(calls.ended().len(), 11, "the fullest each time");
        all.iter().for_each(|mailbox| mailbox.close());
        assert_eq!(bounds.waiting(), 0);
    }

    /// Class of fault: a limit on all, filled by few, is felt by the others.
    #[test]
    fn who_does_not_read_ends_nobody_who_does() {
        let (calls, bounds) = world(8 << 20);
        bounds.suit(0);
        let (stuck, reads) = (mailbox(1, &calls, &bounds), mailbox(2, &calls, &bounds));
        let part = vec![b'x'; 100_000];
        for _ in 0..30 {
            let text = Text::new(letter::message(&[&part]), &bounds);
            for mailbox in [&stuck, &reads] {
                let subscription = Subscription::new(Arc::clone(mailbox));
                mailbox.put(Letter::Message(text.clone(), subscription));
            }
            drop(text);
            assert!(said(&reads).len() > part.len());
        }
        assert_eq!(calls.ended(), [1]);
        assert_eq!((stuck.memory(), bounds.waiting()), (0, 0));
    }

    #[test]
    fn who_does_not_read_changes_is_told_all_keys_for_others() {
        let (calls, bounds) = world(8 << 20);
        bounds.suit(0);
        let (stuck, reads) = (mailbox(1, &calls, &bounds), mailbox(2, &calls, &bounds));
        stuck.set_version(Version::Resp3);
        for _ in 0..9 {
            change(&stuck, &[b'k'; 100_000]);
        }
        assert_eq!(put(&stuck, b"m"), Put::Waits);
        for _ in 0..3 {
            assert_eq!(put(&reads, &[b'x'; 60_000]), Put::Waits);
        }
        assert_eq!(calls.ended(), [0; 0]);
        assert_eq!(said(&stuck), ">1 $1 m >2 $10 invalidate _ ");
    }

    #[test]
    fn a_key_without_room_is_told_as_all_keys() {
        let (calls, bounds) = world(300);
        let mailbox = mailbox(1, &calls, &bounds);
        mailbox.set_version(Version::Resp3);
        change(&mailbox, b"a");
        assert_eq!(put(&mailbox, b"m"), Put::Waits);
        change(&mailbox, &[b'k'; 300]);
        change(&mailbox, b"b");
        assert_eq!(said(&mailbox), ">1 $1 m >2 $10 invalidate _ ");
        assert_eq!((calls.ended(), bounds.waiting()), (vec![], 0));
        change(&mailbox, b"c");
        assert_eq!(said(&mailbox), ">2 $10 invalidate *1 $1 c ");
    }

    /// Class of fault: a letter that stands for others is written to fewer clients than they are.
    #[test]
    fn a_redirected_change_is_told_also_behind_one_of_its_own() {
        let (calls, bounds) = world(300);
        let mailbox = mailbox(1, &calls, &bounds);
        let long = Text::new(letter::key(&[b'k'; 300]), &bounds);
        let short = Text::new(letter::key(b"k"), &bounds);
        let told = "*3 $7 message $20 __redis__:invalidate $-1 ";
        for changes in [
            [(&long, false), (&short, true)],
            [(&short, true), (&long, false)],
        ] {
            mailbox.set_version(Version::Resp3);
            for (text, redirected) in changes {
                mailbox.put_change(Some(text), redirected);
            }
            mailbox.set_version(Version::Resp2);
            mailbox.set_subscribed(true);
            assert_eq!(said(&mailbox), told);
        }
    }

    #[test]
    fn a_letter_has_the_form_of_the_moment_when_it_is_sent() {
        let (calls, bounds) = world(1000);
        let mailbox = mailbox(1, &calls, &bounds);
        let text = || Text::new(letter::key(b"k"), &bounds);
        let put_all = || {
            assert_eq!(put(&mailbox, b"m"), Put::Waits);
            mailbox.put_change(Some(&text()), true);
            mailbox.put_change(Some(&text()), false);
            assert_eq!(mailbox.put(Letter::Broken(7)), Put::Waits);
        };
        mailbox.set_version(Version::Resp3);
        put_all();
        mailbox.set_version(Version::Resp2);
        mailbox.set_subscribed(true);
        let told = "*3 $7 message $20 __redis__:invalidate *1 $1 k ";
        assert_eq!(said(&mailbox), format!("*1 $1 m {told}"));
        put_all();
        mailbox.set_subscribed(false);
        assert_eq!(said(&mailbox), "*1 $1 m ");
        put_all();
        mailbox.set_version(Version::Resp3);
        let told = ">2 $10 invalidate *1 $1 k ";
        let broken = ">2 $21 tracking-redir-broken :7 ";
        assert_eq!(said(&mailbox), format!(">1 $1 m {told}{told}{broken}"));
    }

    #[test]
    fn an_empty_one_gives_its_room_back() {
        let (calls, bounds) = world(1 << 20);
        let mailbox = mailbox(1, &calls, &bounds);
        for _ in 0..5000 {
            assert_eq!(put(&mailbox, b""), Put::Waits);
        }
        assert!(!said(&mailbox).is_empty());
        assert!(mailbox.queue.lock().letters.capacity() <= ROOM_KEPT);
    }
}
