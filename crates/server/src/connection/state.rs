//! A connection's state. It has four parts, and each moves by itself:
//!
//! ```text
//!  ending   may its client still ask?
//!
//!              +---+  stopped, call: work is left, or none
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
//!  run      is it in the run queue, the list of those whose slice is next?
//!
//!             Idle ---- enqueue ----> Queued ---- dequeue ----> Idle
//! ```
//!
//! They meet in three places: a read that finds the end of the input finishes an open connection, only an open one
//! has work left, and one that begins to linger looks at its input again.

use nuthatch_commands::slice::Stop;
use nuthatch_engine::Time;

/// All of it. Each change is a function, and has the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State {
    input: Input,
    output: Output,
    run: Run,
    ending: Ending,
}

/// What is known of the socket's input. Events come once for what has come, so this has to remember them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// Nothing is there, or an event will come.
    Drained,
    /// An event said that bytes are there, and no read has come back short since.
    Readable,
    /// The client closed its side. Its end is behind what is there, and makes no other event: reads go on
    /// until they find it, though one comes back short.
    Hung,
    /// The same, and a read found nothing at all.
    HungDrained,
}

/// What is known of the socket's room for output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Output {
    /// It has taken all so far. The poll is not asked: it would wake the worker for each reply that a peer takes.
    Open,
    /// It did not take all. The poll tells when it has room.
    Blocked,
    /// It has room again; the poll is still asked, in case this is not enough.
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
    /// When the output is sent it is closed: the client has said all that it will.
    Finished,
    /// When the output is sent it lingers.
    Parting,
    /// All is said. What the client still sends is dropped, until it closes too or this has lasted long
    /// enough: a socket that is closed with input unread resets the connection, and a client that is reset
    /// may lose what it has not read yet.
    Lingering {
        since: Time,
        /// Bytes that are dropped at most.
        left: usize,
    },
}

/// What a slice would find without a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Nothing that is complete.
    Done,
    /// Input that may hold complete requests, or the phase has something to say by itself.
    Left,
}

impl State {
    /// A fresh connection's. Should its first bytes be here already, registering it makes an event of them.
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

    /// True if its next slice needs no read.
    #[inline]
    pub(crate) fn has_work(&self) -> bool {
        self.ending == Ending::Open { work: Work::Left }
    }

    /// True if its next slice begins with a read, should there be something to read.
    #[inline]
    pub(crate) fn needs_input(&self) -> bool {
        self.ending == Ending::Open { work: Work::Done }
    }

    /// True if a read may find something.
    #[inline]
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self.input, Input::Readable | Input::Hung)
    }

    /// True if it need not wait for an event to have another slice.
    #[inline]
    pub(crate) fn has_more(&self) -> bool {
        self.has_work() || self.is_open() && self.is_readable()
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

    /// An event said that there are bytes to read; or nobody knows, and a read shall find out.
    #[inline]
    pub(crate) fn saw_input(&mut self) {
        self.input = match self.input {
            Input::Drained | Input::Readable => Input::Readable,
            Input::Hung | Input::HungDrained => Input::Hung,
        };
    }

    /// An event said that the client closed its side, or that the socket has failed, which a read tells.
    pub(crate) fn saw_hang_up(&mut self) {
        self.input = Input::Hung;
    }

    /// An event said that the socket has room. It says so, too, when others are asked for: an open output stays.
    pub(crate) fn saw_room(&mut self) {
        if self.output == Output::Blocked {
            self.output = Output::Retry;
        }
    }

    /// A read found bytes, and whether it emptied the socket: what comes later makes an event then. The end of the
    /// input may have come before, though, and would make none.
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

    /// A read found the end of the input: what is to be said to it is said, and then it is closed.
    pub(crate) fn read_end(&mut self) {
        debug_assert!(self.needs_input(), "{self:?} reads");
        self.would_block();
        self.ending = Ending::Finished;
    }

    /// The socket took all that there was for it, or not. `Some` if the poll is to tell of room from now on, or no
    /// longer.
    #[inline]
    pub(crate) fn wrote(&mut self, all: bool) -> Option<bool> {
        debug_assert!(!(all && self.output == Output::Blocked), "nobody has tried");
        let was_watched = self.output != Output::Open;
        self.output = if all { Output::Open } else { Output::Blocked };
        (was_watched == all).then_some(!all)
    }

    /// Puts it on the list. True if it was not there: who calls writes it down.
    #[inline]
    #[must_use]
    pub(crate) fn enqueue(&mut self) -> bool {
        let was = std::mem::replace(&mut self.run, Run::Queued);
        was == Run::Idle
    }

    /// Takes it from the list. False if it is not there: the list had its id for one that is closed, or it has
    /// had its slice already.
    #[inline]
    #[must_use]
    pub(crate) fn dequeue(&mut self) -> bool {
        let was = std::mem::replace(&mut self.run, Run::Idle);
        was == Run::Queued
    }

    /// It has something to say by itself. True if it is to be written down on the list; one that is to end says
    /// nothing of its own any more.
    #[must_use]
    pub(crate) fn call(&mut self) -> bool {
        if !self.is_open() {
            return false;
        }
        self.ending = Ending::Open { work: Work::Left };
        self.enqueue()
    }

    /// Its slice is over, and whether that was its last: then nobody looks at what it left.
    #[inline]
    pub(crate) fn stopped(&mut self, stop: Stop, closing: bool) {
        debug_assert!(self.is_open(), "{self:?} had a slice");
        self.ending = match stop {
            _ if closing => Ending::Parting,
            Stop::Yielded | Stop::Full => Ending::Open { work: Work::Left },
            Stop::Batch | Stop::Starved | Stop::Closing => Ending::Open { work: Work::Done },
        };
    }

    /// The server has had enough of it: its last words are in the output.
    pub(crate) fn part(&mut self) {
        debug_assert!(self.is_open(), "{self:?} has parted");
        self.ending = Ending::Parting;
    }

    /// All is sent. From now on what comes is dropped, so many bytes at most. What was sent behind the last request
    /// may be here already, and make no event.
    pub(crate) fn linger(&mut self, since: Time, left: usize) {
        debug_assert!(self.ending == Ending::Parting, "{self:?} lingers");
        self.ending = Ending::Lingering { since, left };
        self.saw_input();
    }

    /// So many bytes are dropped. False if that is as much as is borne.
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
        // Until a read finds nothing; an event makes it worth another.
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
    fn a_slice_that_was_the_last_leaves_no_work() {
        let stops = [
            Stop::Batch,
            Stop::Starved,
            Stop::Yielded,
            Stop::Full,
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
        }
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

    const STEPS: [Step; 21] = [
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

    /// What holds of each step.
    fn judge(before: &State, step: Step, after: &State) {
        // No way leads back, and none from the client's end to lingering.
        assert!(rank(before) <= rank(after));
        assert!(rank(after) < 2 || before.ending != Ending::Finished);
        assert!(has_hung(after) || !has_hung(before), "a hang-up stays");
        assert!(!after.has_work() || after.is_open());
        // What an event said is not forgotten before a read has looked.
        let looks = matches!(step, Step::Read(_) | Step::Nothing | Step::End);
        assert!(looks || after.is_readable() || !before.is_readable());
        // A part moves by its own steps.
        let of_input = matches!(step, Step::Input | Step::HangUp | Step::Linger) || looks;
        assert!(of_input || before.input == after.input);
        let of_output = matches!(step, Step::Room | Step::Wrote(_));
        assert!(of_output || before.output == after.output);
        let of_run = matches!(step, Step::Enqueue | Step::Dequeue | Step::Call);
        assert!(of_run || before.run == after.run);
        // Nor is it forgotten that there is more to do, but by a look, a slice or its end.
        let ends = matches!(step, Step::Stopped(..) | Step::Part);
        assert!(looks || ends || after.has_more() || !before.has_more());
    }

    /// All states that can be reached, by every step from each: there are few.
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
        // Inputs, outputs, in the run queue or not; open with work and without, finished, parting, lingering with 3 bytes to none.
        // Events go on to the end, so every part may be anything beside every other.
        assert_eq!(reached.len(), 4 * 3 * 2 * (2 + 1 + 1 + 4));
    }
}
