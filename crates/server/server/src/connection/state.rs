//! A connection's state, as a state machine. It has four parts, and each has transitions of its own:
//!
//! ```text
//!  ending   may its client still ask?
//!
//!              +---+  stopped, call: work is left, or none, or another thread has to call first
//!              |   v
//!              Open ------- read_end -------> Finished ---- all is sent ----> closed
//!                |                                                              ^
//!                | stopped (closing), part                                      | the client closed, sent
//!                v                                                              | too much, or took too long
//!             Parting -- all is sent: linger --> Lingering ---------------------+
//!
//!  input    is it worth a read?
//!
//!             Drained ------- saw_input, linger ------> Readable --+
//!                |    <- has_read (emptied), would_block --        |
//!                |                                                 |
//!                +------- saw_hang_up, from anywhere --------------+---> Hung
//!                                                                        |  ^
//!                                                            would_block |  | saw_input, linger, has_read
//!                                                                        v  |
//!                                                                     HungDrained
//!
//!  output   does the socket take bytes, and does the poll tell when it does?
//!
//!             Open --- wrote (not all): the poll is asked ---> Blocked ---- saw_room ----> Retry
//!               ^                                                 ^                        |  |
//!               |                                                 +--- wrote (not all) ----+  |
//!               +------------- wrote (all): the poll is asked no longer ----------------------+
//!
//!  run      is it in the run queue, the list of those whose turn is next?
//!
//!             Idle ---- enqueue ----> Queued ---- dequeue ----> Idle
//! ```
//!
//! The parts depend on each other in three places: a read that finds the end of the input finishes an open connection,
//! only an open connection has work left, and a connection that begins to linger looks at its input again.

use nuthatch_commands::turn::Stop;
use nuthatch_engine::Time;

/// The whole state. Each change is a function that tells its reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    input: Input,
    output: Output,
    run: Run,
    ending: Ending,
}

/// What the worker knows of the socket's input. The poll reports input once (events are edge-triggered), so this has to
/// remember the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Nothing is there, or an event will come.
    Drained,
    /// An event said that bytes are there, and no read has come back short since.
    Readable,
    /// The client closed its side. The end of the stream is behind the bytes that are there, and makes no other event:
    /// reads go on until they find the end, even if a read comes back short.
    Hung,
    /// The same, and a read found nothing at all.
    HungDrained,
}

/// What the worker knows of the socket's room for output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// The socket has taken all output so far. The poll does not watch for room: it would wake the worker for each
    /// reply that a peer takes.
    Open,
    /// The socket did not take all. The poll watches for room.
    Blocked,
    /// The socket has room again. The poll still watches, in case the room is not enough.
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Run {
    Idle,
    Queued,
}

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It does.
    Open { work: Work },
    /// The client has sent everything. The connection closes as soon as its output is sent.
    Finished,
    /// The connection lingers as soon as its output is sent.
    Parting,
    /// All output is sent. The worker drops what the client still sends, until the client closes too or the time limit
    /// is over: closing a socket with unread input resets the connection, and a client may then lose replies that it
    /// has not read yet.
    Lingering {
        since: Time,
        /// The most bytes that the worker still drops.
        left: usize,
    },
}

/// What a turn would find without a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing that is complete.
    Done,
    /// Input that may hold complete requests, or output that the phase makes by itself.
    Left,
    /// Nothing before another thread has called, and no input is read until then.
    Called,
}

impl State {
    /// The state of a fresh connection. If its first bytes have arrived already, its registration with the poll makes
    /// an event.
    pub(crate) fn new() -> Self {
        Self {
            input: Input::Drained,
            output: Output::Open,
            run: Run::Idle,
            ending: Ending::Open { work: Work::Done },
        }
    }

    pub(crate) fn ending(&self) -> Ending {
        self.ending
    }

    /// True if it goes on.
    #[inline]
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.ending, Ending::Open { .. })
    }

    /// True if its next turn needs no read.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.ending == Ending::Open { work: Work::Left }
    }

    /// True if none of its requests that were read is left, or it is ending.
    pub(crate) fn is_done(&self) -> bool {
        let works = [Work::Left, Work::Called];
        !works
            .map(|work| Ending::Open { work })
            .contains(&self.ending)
    }

    /// True if it does nothing before it is called.
    pub(crate) fn waits_for_call(&self) -> bool {
        self.ending == Ending::Open { work: Work::Called }
    }

    /// True if its next turn begins with a read, if there is something to read.
    #[inline]
    pub(crate) fn needs_input(&self) -> bool {
        self.ending == Ending::Open { work: Work::Done }
    }

    /// True if a read may find something.
    #[inline]
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self.input, Input::Readable | Input::Hung)
    }

    /// True if it can have another turn without waiting for an event.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.has_work() || self.needs_input() && self.is_readable()
    }

    /// True if the socket may take output.
    #[inline]
    pub(crate) fn is_writable(&self) -> bool {
        self.output != Output::Blocked
    }

    /// When it began to linger, if it does.
    pub(crate) fn lingers_since(&self) -> Option<Time> {
        match self.ending {
            Ending::Lingering { since, .. } => Some(since),
            Ending::Open { .. } | Ending::Finished | Ending::Parting => None,
        }
    }

    /// An event said that there are bytes to read, or the worker wants a read to find out.
    #[inline]
    pub(crate) fn saw_input(&mut self) {
        self.input = match self.input {
            Input::Drained | Input::Readable => Input::Readable,
            Input::Hung | Input::HungDrained => Input::Hung,
        };
    }

    /// An event said that the client closed its side, or that the socket has failed. A read tells which.
    pub(crate) fn saw_hang_up(&mut self) {
        self.input = Input::Hung;
    }

    /// An event said that the socket has room. Events that the poll watches for other reasons say so too: an open
    /// output stays open.
    pub(crate) fn saw_room(&mut self) {
        if self.output == Output::Blocked {
            self.output = Output::Retry;
        }
    }

    /// A read found bytes. If it `emptied` the socket, later bytes make a new event. The end of the input may have
    /// arrived before that, though, and would make no event.
    #[inline]
    pub(crate) fn has_read(&mut self, emptied: bool) {
        self.input = match self.input {
            Input::Drained | Input::Readable if emptied => Input::Drained,
            Input::Drained | Input::Readable => Input::Readable,
            Input::Hung | Input::HungDrained => Input::Hung,
        };
    }

    /// A read found nothing.
    pub(crate) fn would_block(&mut self) {
        self.input = match self.input {
            Input::Drained | Input::Readable => Input::Drained,
            Input::Hung | Input::HungDrained => Input::HungDrained,
        };
    }

    /// A read found the end of the input: the rest of the output is sent, and then the connection is closed.
    pub(crate) fn read_end(&mut self) {
        debug_assert!(self.needs_input(), "{self:?} reads");
        self.would_block();
        self.ending = Ending::Finished;
    }

    /// The socket took all output, or not. `Some(true)` if the poll is to watch for room from now on, `Some(false)` if
    /// it is to watch no longer.
    #[inline]
    pub(crate) fn wrote(&mut self, all: bool) -> Option<bool> {
        debug_assert!(!(all && self.output == Output::Blocked), "nobody has tried");
        let was_watched = self.output != Output::Open;
        self.output = if all { Output::Open } else { Output::Blocked };
        (was_watched == all).then_some(!all)
    }

    /// True if it is in the run queue.
    pub(crate) fn is_queued(&self) -> bool {
        self.run == Run::Queued
    }

    /// Marks it as queued. True if it was not queued: then the caller adds it to the run queue.
    #[inline]
    #[must_use]
    pub(crate) fn enqueue(&mut self) -> bool {
        let was = std::mem::replace(&mut self.run, Run::Queued);
        was == Run::Idle
    }

    /// Marks it as no longer queued. False if it was not queued: the run queue's id was that of an earlier connection,
    /// now closed, or this one has had its turn already.
    #[inline]
    #[must_use]
    pub(crate) fn dequeue(&mut self) -> bool {
        let was = std::mem::replace(&mut self.run, Run::Idle);
        was == Run::Queued
    }

    /// The connection has output to make by itself. True if the caller is to add it to the run queue. A connection that
    /// is ending makes no more output by itself.
    #[must_use]
    pub(crate) fn call(&mut self) -> bool {
        if !self.is_open() {
            return false;
        }
        self.ending = Ending::Open { work: Work::Left };
        self.enqueue()
    }

    /// Its turn is over. If `closing`, it was the last one, and the input that it left is ignored.
    #[inline]
    pub(crate) fn stopped(&mut self, stop: Stop, closing: bool) {
        debug_assert!(self.is_open(), "{self:?} had a turn");
        self.ending = match stop {
            _ if closing => Ending::Parting,
            Stop::Yielded | Stop::Full => Ending::Open { work: Work::Left },
            Stop::Called => Ending::Open { work: Work::Called },
            Stop::Batch | Stop::Starved | Stop::Closing | Stop::Panicked => {
                Ending::Open { work: Work::Done }
            }
        };
    }

    /// The server ends the connection: the last message to the client is in the output.
    pub(crate) fn part(&mut self) {
        debug_assert!(self.is_open(), "{self:?} has parted");
        self.ending = Ending::Parting;
    }

    /// All output is sent. From now on the worker drops input, `left` bytes at most. Bytes that the client sent behind
    /// its last request may have arrived already, and make no event.
    pub(crate) fn linger(&mut self, since: Time, left: usize) {
        debug_assert!(self.ending == Ending::Parting, "{self:?} lingers");
        self.ending = Ending::Lingering { since, left };
        self.saw_input();
    }

    /// The worker dropped this many bytes. False if the limit is reached.
    #[must_use]
    pub(crate) fn drops(&mut self, count: usize) -> bool {
        let Ending::Lingering { left, .. } = &mut self.ending else {
            debug_assert!(false, "{self:?} drops input");
            return false;
        };
        *left = left.saturating_sub(count);
        *left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SINCE: Time = Time(7);

    #[test]
    fn who_hung_up_stays_readable_after_a_short_read() {
        let mut state = State::new();
        state.saw_input();
        state.has_read(true);
        assert!(!state.is_readable());
        state.saw_hang_up();
        state.has_read(true);
        assert!(state.is_readable());
        // It is readable until a read finds nothing. Then an event makes it readable again.
        state.would_block();
        assert!(!state.is_readable());
        state.saw_input();
        state.has_read(true);
        assert!(state.is_readable());
    }

    #[test]
    fn a_full_read_is_followed_by_another() {
        let mut state = State::new();
        state.saw_input();
        state.has_read(false);
        assert!(state.is_readable() && state.has_more());
    }

    #[test]
    fn the_poll_is_asked_for_room_while_output_is_stuck() {
        let mut state = State::new();
        assert_eq!(state.wrote(true), None);
        state.saw_room();
        assert_eq!(state.wrote(false), Some(true));
        assert!(!state.is_writable());
        assert_eq!(state.wrote(false), None);
        state.saw_room();
        assert!(state.is_writable());
        assert_eq!(state.wrote(false), None, "it is asked already");
        state.saw_room();
        assert_eq!(state.wrote(true), Some(false));
        assert_eq!(state.wrote(true), None);
    }

    #[test]
    fn a_connection_is_on_the_list_once() {
        let mut state = State::new();
        assert!(state.enqueue() && !state.enqueue());
        assert!(state.dequeue() && !state.dequeue());
        assert!(state.enqueue());
    }

    #[test]
    fn a_call_is_for_who_goes_on() {
        let mut state = State::new();
        assert!(state.call() && state.has_work());
        assert!(!state.call(), "it is on the list");
        assert!(state.dequeue());
        state.part();
        let parting = state;
        assert!(!state.call());
        assert_eq!(state, parting);
    }

    #[test]
    fn a_turn_that_was_the_last_leaves_no_work() {
        let stops = [
            Stop::Batch,
            Stop::Starved,
            Stop::Yielded,
            Stop::Full,
            Stop::Called,
            Stop::Closing,
        ];
        for stop in stops {
            let mut state = State::new();
            state.stopped(stop, true);
            assert_eq!(state.ending(), Ending::Parting);
            let mut state = State::new();
            state.stopped(stop, false);
            assert!(state.is_open());
            let is_left = matches!(stop, Stop::Yielded | Stop::Full);
            assert_eq!(state.has_work(), is_left, "{stop:?}");
            let is_done = !is_left && stop != Stop::Called;
            assert_eq!(state.is_done(), is_done, "{stop:?}");
        }
    }

    /// Otherwise what a client sends meanwhile would fill the read buffer.
    #[test]
    fn who_waits_for_a_call_reads_nothing() {
        let mut state = State::new();
        state.saw_input();
        state.has_read(false);
        state.stopped(Stop::Called, false);
        assert!(!state.has_more() && !state.needs_input() && !state.has_work());
        assert!(state.call() && state.has_work());
        state.stopped(Stop::Starved, false);
        assert!(state.has_more());
    }

    #[test]
    fn who_lingers_looks_at_its_input_again_and_knows_that_the_client_hung_up() {
        let mut state = State::new();
        state.saw_hang_up();
        state.would_block();
        state.part();
        state.linger(SINCE, 10);
        assert_eq!(state.lingers_since(), Some(SINCE));
        assert!(state.is_readable() && !state.has_more());
        assert!(state.drops(4) && state.drops(5));
        state.has_read(true);
        assert!(state.is_readable(), "the end is still to come");
        assert!(!state.drops(1), "it sends as much as is borne");
    }

    /// What a worker may do to a state.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Step {
        Input,
        HangUp,
        Room,
        Read(bool),
        Nothing,
        End,
        Wrote(bool),
        Enqueue,
        Dequeue,
        Call,
        Stopped(Stop, bool),
        Part,
        Linger,
        Drop,
    }

    const STEPS: [Step; 22] = [
        Step::Input,
        Step::HangUp,
        Step::Room,
        Step::Read(false),
        Step::Read(true),
        Step::Nothing,
        Step::End,
        Step::Wrote(false),
        Step::Wrote(true),
        Step::Enqueue,
        Step::Dequeue,
        Step::Call,
        Step::Stopped(Stop::Starved, false),
        Step::Stopped(Stop::Yielded, false),
        Step::Stopped(Stop::Full, false),
        Step::Stopped(Stop::Called, false),
        Step::Stopped(Stop::Closing, true),
        Step::Stopped(Stop::Yielded, true),
        Step::Stopped(Stop::Batch, true),
        Step::Part,
        Step::Linger,
        Step::Drop,
    ];

    impl Step {
        /// True if the worker does it in such a state.
        fn is_possible(self, state: &State) -> bool {
            match self {
                Self::Input | Self::HangUp | Self::Room | Self::Enqueue => true,
                Self::Dequeue | Self::Call => true,
                Self::Read(_) | Self::Nothing => {
                    state.needs_input() || state.lingers_since().is_some()
                }
                Self::End => state.needs_input(),
                Self::Wrote(all) => !all || state.is_writable(),
                Self::Stopped(..) | Self::Part => state.is_open(),
                Self::Linger => state.ending == Ending::Parting,
                Self::Drop => state.lingers_since().is_some(),
            }
        }

        /// Does it, and checks what it returns.
        fn take(self, state: &mut State) {
            let before = *state;
            match self {
                Self::Input => state.saw_input(),
                Self::HangUp => state.saw_hang_up(),
                Self::Room => state.saw_room(),
                Self::Read(emptied) => state.has_read(emptied),
                Self::Nothing => state.would_block(),
                Self::End => state.read_end(),
                Self::Wrote(all) => {
                    let told = state.wrote(all);
                    let change = is_watched(&before) != is_watched(state);
                    assert_eq!(told, change.then(|| is_watched(state)));
                }
                Self::Enqueue => assert_eq!(state.enqueue(), before.run == Run::Idle),
                Self::Dequeue => assert_eq!(state.dequeue(), before.run == Run::Queued),
                Self::Call => {
                    let is_new = before.run == Run::Idle && before.is_open();
                    assert_eq!(state.call(), is_new);
                }
                Self::Stopped(stop, closing) => state.stopped(stop, closing),
                Self::Part => state.part(),
                Self::Linger => state.linger(SINCE, 3),
                Self::Drop => {
                    let is_borne = state.drops(1);
                    let left = |state: &State| match state.ending {
                        Ending::Lingering { left, .. } => left,
                        _ => unreachable!("{state:?}"),
                    };
                    assert_eq!(left(state), left(&before).saturating_sub(1));
                    assert_eq!(is_borne, left(state) > 0);
                }
            }
        }
    }

    fn is_watched(state: &State) -> bool {
        state.output != Output::Open
    }

    fn has_hung(state: &State) -> bool {
        matches!(state.input, Input::Hung | Input::HungDrained)
    }

    /// How far it is on the way to its end.
    fn rank(state: &State) -> usize {
        match state.ending {
            Ending::Open { .. } => 0,
            Ending::Finished | Ending::Parting => 1,
            Ending::Lingering { .. } => 2,
        }
    }

    /// The properties of each step.
    fn judge(before: &State, step: Step, after: &State) {
        // No step leads back, and none leads from `Finished` to lingering.
        assert!(rank(before) <= rank(after));
        assert!(rank(after) < 2 || before.ending != Ending::Finished);
        assert!(has_hung(after) || !has_hung(before), "a hang-up stays");
        assert!(!after.has_work() || after.is_open());
        // A state stays readable until a read has looked.
        let looks = matches!(step, Step::Read(_) | Step::Nothing | Step::End);
        assert!(looks || after.is_readable() || !before.is_readable());
        // The input changes by its own steps only.
        let of_input = matches!(step, Step::Input | Step::HangUp | Step::Linger) || looks;
        assert!(of_input || before.input == after.input);
        let of_output = matches!(step, Step::Room | Step::Wrote(_));
        assert!(of_output || before.output == after.output);
        let of_run = matches!(step, Step::Enqueue | Step::Dequeue | Step::Call);
        assert!(of_run || before.run == after.run);
        // `has_more` stays true until a read, the end of a turn, or the end of the connection.
        let ends = matches!(step, Step::Stopped(..) | Step::Part);
        assert!(looks || ends || after.has_more() || !before.has_more());
    }

    /// Takes every step from every state that can be reached: there are few.
    #[test]
    fn every_step_from_every_state_keeps_what_is_said_of_it() {
        let mut reached = vec![State::new()];
        let mut next = 0;
        while let Some(&before) = reached.get(next) {
            next += 1;
            for step in STEPS {
                if !step.is_possible(&before) {
                    continue;
                }
                let mut after = before;
                step.take(&mut after);
                judge(&before, step, &after);
                if !reached.contains(&after) {
                    reached.push(after);
                }
            }
        }
        // Inputs, outputs, in the run queue or not; open with work, without, and before a call, finished, parting, lingering with 3 bytes to none.
        // Events go on to the end, so every part may be anything beside every other.
        assert_eq!(reached.len(), 4 * 3 * 2 * (3 + 1 + 1 + 4));
    }
}
