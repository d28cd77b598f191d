//! One connection for threads, which send and read by themselves (`roles.rs`).

use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::call::{Call, Waiter};
use crate::input::{Input, said};
use crate::options::WhenFull;
use crate::queue::{Queue, State};
use crate::roles::Handover;
use crate::sync::{Mutex, park};
use crate::transport::{Ready, Transport};
use crate::wire::{Reply, Request};
use crate::{CarriedOut, Error, Options};

/// How often one thread goes on to send what others have added. Then another one has to.
const ROUNDS: usize = 16;
/// How long who reads waits for the socket before it looks for something else to do. Only a full socket makes that necessary.
const LOOK: Duration = Duration::from_millis(100);
/// How long a thread waits for room in the socket before it looks for something else to do.
const BLOCKED: Duration = Duration::from_millis(10);
/// Who uses a connection after so long looks first whether it is over: more often would be a system call for most calls.
const IDLE: Duration = Duration::from_millis(100);
/// A buffer that held large values is not kept for ever.
const KEPT: usize = 4 << 20;

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    queue: Queue,
    transport: Transport,
    /// Of who sends.
    outgoing: Mutex<Outgoing>,
    /// Of who reads.
    input: Mutex<Input>,
    options: Arc<Options>,
}

/// Bytes that were taken from the queue, of which the first were sent.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

/// What sending came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// There is nothing left.
    Through,
    /// The socket takes no more.
    Blocked,
    /// Others add as fast as this one sends.
    More,
}

/// What a thread waits for. All of it happens under the queue's lock, so that who leaves is never taken for one that waits.
trait Goal {
    type Found;
    /// What it waits for, if it is there.
    fn reach(&mut self, state: &mut State) -> Option<Self::Found>;
    /// It sleeps until it is woken.
    fn register(&self, state: &mut State);
    /// It is awake: who is registered sleeps, or was woken and looks next.
    fn unregister(&self, state: &mut State);
}

/// Room for a call.
struct Room<'a> {
    queue: &'a Queue,
    requests: &'a [Request<'a>],
    when_full: WhenFull,
}

/// A call's replies.
struct Replies<'a>(&'a Call);

impl Goal for Room<'_> {
    type Found = Result<Arc<Call>, Error>;

    fn reach(&mut self, state: &mut State) -> Option<Self::Found> {
        let entered = self.queue.enter(state, self.requests, Instant::now());
        match entered.transpose() {
            None if self.when_full == WhenFull::Fail => Some(Err(Error::Full)),
            other => other,
        }
    }

    fn register(&self, state: &mut State) {
        state.wait_for_room(Waiter::here());
    }

    fn unregister(&self, state: &mut State) {
        state.forget_room(&Waiter::here());
    }
}

impl Goal for Replies<'_> {
    type Found = Result<Vec<Reply>, Error>;

    fn reach(&mut self, _: &mut State) -> Option<Self::Found> {
        self.0.take()
    }

    fn register(&self, _: &mut State) {
        self.0.wait(Waiter::here());
    }

    fn unregister(&self, _: &mut State) {
        self.0.wait_no_longer();
    }
}

/// What a thread does next that waits.
enum Next<T> {
    /// It leaves, with what it waited for if that was there; and if nobody else can, it first sends what is left.
    Leave(Option<T>, bool),
    Send,
    Read(Ready),
    Sleep,
}

impl Connection {
    pub fn new(transport: Transport, options: Arc<Options>) -> Self {
        Self {
            queue: Queue::new(options.requests_max, options.bytes_max),
            transport,
            outgoing: Mutex::default(),
            input: Mutex::new(Input::new(options.value_max)),
            options,
        }
    }

    /// What waits on it.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.queue.lock().is_dead()
    }

    /// The same, if the server has closed it while nobody used it: nobody has read that. A call need not fail for it.
    pub fn has_ended_idle(&self) -> bool {
        let state = self.queue.lock();
        // Under the lock: what is sent meanwhile would be answered.
        let is_closed = state.is_idle(Instant::now(), IDLE) && self.transport.is_over();
        drop(state);
        if is_closed {
            self.end("the server closed the connection");
        }
        self.is_over()
    }

    /// Ends it.
    pub fn end(&self, reason: &str) {
        self.queue.die(reason);
        // Who waits for the socket looks again.
        self.transport.shut_down();
    }

    /// Adds a call and sends it, unless somebody else will. Then [`Connection::finish`] has to follow.
    pub fn start(&self, requests: &[Request<'_>], deadline: Instant) -> Result<Arc<Call>, Error> {
        let room = Room {
            queue: &self.queue,
            requests,
            when_full: self.options.when_full,
        };
        let entered = self.wait(deadline, room).unwrap_or(Err(Error::Timeout {
            carried_out: CarriedOut::No,
        }));
        let call = entered.inspect_err(|_| self.end_if_late())?;
        if self.takes_over_sending() {
            self.send(None);
        }
        Ok(call)
    }

    /// Waits for the call's replies.
    pub fn finish(&self, call: &Arc<Call>, deadline: Instant) -> Result<Vec<Reply>, Error> {
        if let Some(outcome) = self.wait(deadline, Replies(call)) {
            return outcome;
        }
        self.queue.abandon(call);
        if self.takes_over_sending() {
            self.send(None);
        }
        self.end_if_late();
        Err(Error::Timeout {
            carried_out: CarriedOut::Maybe,
        })
    }

    /// Ends it if its oldest reply is too late. Who fails asks for that: else nobody would notice while there is no room.
    fn end_if_late(&self) {
        if let Some(reason) = self.queue.too_late(&self.options) {
            self.end(&reason);
        }
    }

    /// Waits until the goal is reached, and works for all meanwhile. None: it was not until the deadline. What has come by then
    /// counts: who begins to wait late, because another server took all the time, still looks once.
    fn wait<G: Goal>(&self, deadline: Instant, mut goal: G) -> Option<G::Found> {
        let mut reads = false;
        let mut has_looked = false;
        let mut may_send_first = true;
        loop {
            // What this thread has not looked for may be there, unless another one looks.
            let is_over = |others_read| (has_looked || others_read) && Instant::now() >= deadline;
            let (next, woken) = self.next(&mut reads, may_send_first, is_over, &mut goal);
            if let Some(waiter) = woken {
                waiter.wake();
            }
            match next {
                Next::Leave(found, sends) => {
                    if sends {
                        self.send(None);
                    }
                    return found;
                }
                Next::Send => {
                    self.send(Some(deadline));
                    // Once for what was left to it; who goes on adding finds somebody else to send it.
                    may_send_first = false;
                }
                Next::Read(wanted) => {
                    self.read(wanted, deadline);
                    (may_send_first, has_looked) = (true, true);
                }
                Next::Sleep => park(deadline),
            }
        }
    }

    /// What this thread is to do, decided under the lock; and who is to be woken for it.
    fn next<G: Goal>(
        &self,
        reads: &mut bool,
        may_send_first: bool,
        is_over: impl FnOnce(bool) -> bool,
        goal: &mut G,
    ) -> (Next<G::Found>, Option<Waiter>) {
        let mut state = self.queue.lock();
        goal.unregister(&mut state);
        let is_to_send = state.is_to_send(*reads) && !state.is_dead();
        if *reads && is_to_send && may_send_first {
            state.roles.is_sending = true;
            return (Next::Send, None);
        }
        let found = goal.reach(&mut state);
        if found.is_some() || is_over(state.roles.is_reading && !*reads) {
            let (sends, woken) = state.leave(*reads);
            return (Next::Leave(found, sends), woken);
        }
        if is_to_send {
            state.roles.is_sending = true;
            return (Next::Send, None);
        }
        if *reads || !state.roles.is_reading {
            *reads = true;
            state.begin_to_read(self.transport.tells_of_room());
            let wanted = Ready {
                to_read: true,
                to_write: state.roles.watches_room,
            };
            return (Next::Read(wanted), None);
        }
        goal.register(&mut state);
        (Next::Sleep, None)
    }

    fn takes_over_sending(&self) -> bool {
        let mut state = self.queue.lock();
        let is_to_send = state.is_to_send(false) && !state.roles.is_blocked;
        state.roles.is_sending |= is_to_send;
        is_to_send
    }

    /// Sends for all; this thread has taken that over. If there is a deadline, it waits a little for a socket that takes no bytes.
    fn send(&self, deadline: Option<Instant>) {
        let mut outgoing = self.outgoing.lock().unwrap_or_else(PoisonError::into_inner);
        let was_blocked = self.queue.lock().roles.is_blocked;
        let ready = match deadline {
            // No longer: who reads may leave meanwhile, and this thread is the one that is woken for it.
            Some(deadline) if was_blocked => self.transport.wait(
                Ready {
                    to_read: false,
                    to_write: true,
                },
                deadline.min(Instant::now() + BLOCKED),
            ),
            _ => Ok(Ready::default()),
        };
        if let Err(error) = ready {
            return self.end(&said(error));
        }
        loop {
            let sending = match outgoing.send(&self.transport, &self.queue, ROUNDS) {
                Ok(sending) => sending,
                Err(error) => return self.end(&said(error)),
            };
            let woken = self.queue.lock().have_sent(sending == Sending::Blocked);
            match woken {
                Handover::Done => return,
                Handover::To(waiter) => return waiter.wake(),
                Handover::Nobody => {}
            }
        }
    }

    /// Waits for the socket, reads and hands out; this thread has taken that over.
    fn read(&self, wanted: Ready, deadline: Instant) {
        // Now and then it looks whether others have left it something, though nobody has bytes to read for it.
        let received = match self
            .transport
            .wait(wanted, deadline.min(Instant::now() + LOOK))
        {
            Ok(ready) => {
                let mut state = self.queue.lock();
                state.roles.is_sleeping = false;
                state.roles.is_blocked &= !ready.to_write;
                drop(state);
                if ready.to_read {
                    let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
                    input.receive(&self.transport, &self.queue)
                } else {
                    Ok(())
                }
            }
            Err(error) => Err(said(error)),
        };
        if let Err(reason) = received {
            self.end(&reason);
        }
    }
}

impl Outgoing {
    /// Sends what is left, and what has been added, in so many rounds at most. If it ends with [`Sending::Through`], it has seen
    /// the queue empty.
    pub fn send(
        &mut self,
        transport: &Transport,
        queue: &Queue,
        rounds: usize,
    ) -> std::io::Result<Sending> {
        for _ in 0..rounds {
            if self.bytes.is_empty() {
                let mut state = queue.lock();
                if !state.has_output() {
                    drop(state);
                    return Ok(if transport.flush()? {
                        Sending::Through
                    } else {
                        Sending::Blocked
                    });
                }
                state.take_output(&mut self.bytes);
            }
            while self.sent < self.bytes.len() {
                match transport.send(&self.bytes[self.sent..])? {
                    0 => return Ok(Sending::Blocked),
                    length => self.sent += length,
                }
            }
            self.sent = 0;
            self.bytes.clear();
            if self.bytes.capacity() > KEPT {
                self.bytes = Vec::new();
            }
        }
        Ok(Sending::More)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;

    use proptest::prelude::*;

    use super::*;
    use crate::operation;
    use crate::transport::Socket;
    use crate::{key::Key, options};

    /// A server that answers each get with its key, some at a time, until the connection ends.
    fn echo(socket: UnixStream) {
        let mut lines = BufReader::new(socket.try_clone().unwrap());
        let (mut line, mut out) = (String::new(), Vec::new());
        while lines.read_line(&mut line).is_ok_and(|length| length > 0) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let (key, number) = (words[1], words[words.len() - 1]);
            write!(out, "VA {} {number}\r\n{key}\r\n", key.len()).unwrap();
            if lines.buffer().is_empty() {
                // Who gave up on the last replies may be gone.
                if (&socket).write_all(&out).is_err() {
                    return;
                }
                out.clear();
            }
            line.clear();
        }
    }

    fn connection(options: Options) -> (Connection, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        #[cfg(feature = "tls")]
        let transport = Transport::new(Socket::Unix(ours), None);
        #[cfg(not(feature = "tls"))]
        let transport = Transport::new(Socket::Unix(ours));
        (
            Connection::new(transport.unwrap(), Arc::new(options)),
            theirs,
        )
    }

    fn get(
        connection: &Connection,
        key: &str,
        patience: Duration,
    ) -> Result<Option<Vec<u8>>, Error> {
        let operation = operation::get(Key::new(key.as_bytes())?);
        let deadline = options::deadline(patience);
        let call = connection.start(&[operation.request], deadline)?;
        operation.read(connection.finish(&call, deadline)?)
    }

    /// The kinds of fault are a thread that nobody wakes, two that send or read at a time, and a reply that goes to another call.
    #[test]
    fn threads_send_and_read_for_each_other() {
        for requests_max in [1, 2, 5, 4096] {
            let options = Options {
                requests_max,
                ..Options::default()
            };
            let (connection, theirs) = connection(options);
            thread::scope(|scope| {
                scope.spawn(|| echo(theirs));
                thread::scope(|scope| {
                    for id in 0..8 {
                        let connection = &connection;
                        scope.spawn(move || {
                            for number in 0..100 {
                                let key = format!("{id}-{number}");
                                // Some run out of time, anywhere on their way.
                                let is_hasty = (id + number) % 5 == 0;
                                let patience = if is_hasty {
                                    Duration::from_micros(20)
                                } else {
                                    Duration::from_secs(600)
                                };
                                match get(connection, &key, patience) {
                                    Ok(found) => assert_eq!(found.as_deref(), Some(key.as_bytes())),
                                    Err(error) => assert!(
                                        is_hasty && matches!(error, Error::Timeout { .. }),
                                        "{error}"
                                    ),
                                }
                            }
                        });
                    }
                });
                drop(connection);
            });
        }
    }

    #[test]
    fn calls_that_wait_fail_when_the_connection_ends() {
        let (connection, theirs) = connection(Options::default());
        thread::scope(|scope| {
            for _ in 0..8 {
                let get = || get(&connection, "k", Duration::from_secs(600));
                scope.spawn(move || assert!(matches!(get(), Err(Error::Lost { .. }))));
            }
            let mut first = [0];
            std::io::Read::read_exact(&mut &theirs, &mut first).unwrap();
            drop(theirs);
        });
        assert!(connection.is_over());
        let late = get(&connection, "k", Duration::from_secs(600)).unwrap_err();
        assert_eq!(late.carried_out(), CarriedOut::No);
    }

    /// Pieces of what a server may say.
    fn piece() -> impl Strategy<Value = Vec<u8>> {
        let words: Vec<&'static [u8]> = vec![
            b"VA 1 O0\r\na\r\n",
            b"VA 1 O1\r\nb\r\n",
            b"VA 1 O2\r\nc\r\n",
            b"EN\r\n",
            b"HD O0\r\n",
            b"NF\r\n",
            b"MN\r\n",
            b"OK\r\n",
            b"SERVER_ERROR busy\r\n",
            b"ERROR\r\n",
            b"VA 3",
            b"\r\n",
            b"x",
            b"VA 999999999999\r\n",
        ];
        prop::sample::select(words).prop_map(<[u8]>::to_vec)
    }

    proptest! {
        /// The kinds of fault are a call that never ends, and a value that the server did not send for it.
        #[test]
        fn whatever_a_server_says_each_call_ends(pieces in prop::collection::vec(piece(), 0..8)) {
            let (connection, mut theirs) = connection(Options::default());
            let said = pieces.concat();
            let expected: [&[u8]; 3] = [b"a", b"b", b"c"];
            thread::scope(|scope| {
                let calls: Vec<_> = expected.iter().map(|expected| {
                    let request = operation::get(Key::new(b"k").unwrap()).request;
                    (expected, connection.start(&[request], options::deadline(Duration::from_secs(600))))
                }).collect();
                scope.spawn(move || {
                    // The client may have had enough.
                    let _ = theirs.write_all(&said);
                });
                for (expected, call) in calls {
                    let deadline = options::deadline(Duration::from_secs(600));
                    let replies = call.and_then(|call| connection.finish(&call, deadline));
                    if let Ok(Some(value)) = replies.and_then(|replies| operation::get(Key::new(b"k").unwrap()).read(replies)) {
                        assert_eq!(&value, expected);
                    }
                }
            });
        }
    }
}
