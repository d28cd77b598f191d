//! A connection's turn in an iteration: the turn parses its input request by request. Requests join the iteration's
//! batch, and everything else is executed at once.
//!
//! A command that is executed at once must follow the requests before it. So it stops the turn while the batch holds
//! requests of its connection. After the batch the turn parses it again, and then no request is before it. That costs
//! such commands a second parse, and the others nothing.

use nuthatch_base::memory::reserve::spare;
use nuthatch_engine::AnyValue;
use nuthatch_protocol::Awaited;
use nuthatch_state::buffers::TurnLimits;

use crate::output::Output;
use crate::partial::PartialValue;
use crate::work::Work;

/// Where the input of a turn lies.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    /// In the worker's read buffer, from here to there.
    Buffer(usize, usize),
    /// In input that the connection had kept: an index into the iteration's kept inputs, and the position in that
    /// input.
    Kept(usize, usize),
}

/// One connection's part in an iteration.
pub struct Turn {
    /// The connection's number at its worker.
    pub id: usize,
    /// Where its input is.
    pub source: Source,
    /// Bytes of the input that are used up.
    pub position: usize,
    /// Where in the input the last request of a Redis client begins.
    pub last_request: Option<usize>,
    /// The replies to its client.
    pub output: Output<AnyValue>,
    /// The position of the first byte of output that is not logged yet. Used if the log shows replies.
    pub logged: usize,
    /// The limits of this turn.
    pub limits: TurnLimits,
    /// Requests that it has in the batch now.
    pub in_batch: usize,
    /// The most requests that it may have in a batch. The lengths of replies are not known before, so this begins low
    /// and adapts to the replies so far. So one batch never makes much more output than the limits' cap.
    pub in_batch_max: usize,
    /// The work that it may still do before other connections get their turn, in commands: see [`Work`].
    pub commands_left: u32,
    /// It has run. Otherwise the turns before it have filled the iteration, and it comes first in the next.
    pub has_run: bool,
    /// Why it stopped last.
    pub stop: Stop,
    /// The bytes that must arrive, if it stopped with an incomplete request.
    pub awaited: Awaited,
    /// Close when the output is sent.
    pub closing: bool,
    /// Its client has asked for that. Otherwise `closing` is the end of an error.
    pub has_quit: bool,
}

/// Why a turn stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Goes on when the batch has been executed.
    Batch,
    /// Needs more input.
    Starved,
    /// Did its share of work.
    Yielded,
    /// Needs what another thread does, which then calls the worker.
    Called,
    /// The client must take some output first.
    Full,
    /// The connection will be closed.
    Closing,
    /// A command of it has panicked: the connection is closed without another reply.
    Panicked,
}

/// How a turn goes on after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// With the next input.
    Next,
    /// With the same input, when the batch has been executed.
    Barrier,
    /// When more input has arrived.
    Starved,
    /// When another thread has called the worker.
    Called,
}

impl Turn {
    /// A turn of the connection with this number at its worker, with this input from its start on. It may have as many
    /// requests in a batch, and do as much work, as the limits allow.
    #[inline]
    pub fn new(
        id: usize,
        source: Source,
        output: Output<AnyValue>,
        limits: TurnLimits,
        commands_left: u32,
    ) -> Self {
        let position = match source {
            Source::Buffer(..) => 0,
            Source::Kept(_, start) => start,
        };
        Self {
            id,
            source,
            position,
            last_request: None,
            logged: output.end(),
            output,
            limits,
            in_batch: 0,
            in_batch_max: limits.requests_max,
            commands_left,
            has_run: false,
            stop: Stop::Batch,
            awaited: Awaited::default(),
            closing: false,
            has_quit: false,
        }
    }

    /// A turn without a connection, whose output nobody is sent as it is.
    pub fn apart(limits: TurnLimits) -> Self {
        Self {
            in_batch_max: usize::MAX,
            has_run: true,
            ..Self::new(0, Source::Buffer(0, 0), Output::default(), limits, u32::MAX)
        }
    }

    /// The client asks the server to close.
    pub fn quit(&mut self) {
        (self.closing, self.has_quit) = (true, true);
    }

    /// A command of it has panicked, outside of the engine. Replies may be half written.
    #[cold]
    pub fn give_up(&mut self) {
        self.output = Output::default();
        self.logged = 0;
        self.in_batch = 0;
        self.closing = true;
        self.stop = Stop::Panicked;
    }

    /// Makes room for an answer of so many bytes, which may be long, and the marks around it. False: there is no memory for it.
    pub fn makes_room(&mut self, len: usize) -> bool {
        const MARKS_MAX: usize = 64;
        spare(|| self.output.text().try_reserve(len + MARKS_MAX)).is_ok()
    }

    /// Takes work off its share. A step of a command may take more than is left, and the next step is in the next turn.
    #[inline(always)]
    pub fn spend(&mut self, work: Work) {
        self.commands_left = self.commands_left.saturating_sub(work.commands());
    }

    /// Takes work off its share that its requests in a batch have caused, and that was not known before. If that is all of the
    /// share, the next batch has fewer of its requests.
    pub fn spend_behind(&mut self, work: Work) {
        self.spend(work);
        if self.commands_left == 0 {
            self.in_batch_max = (self.in_batch_max / 4).max(1);
        }
    }

    /// Called after a batch: allows more or fewer of this turn's requests in the next.
    #[inline]
    pub fn adapt(&mut self) {
        let cap = self.limits.output_cap;
        if self.output.len() > cap {
            self.in_batch_max = (self.in_batch_max / 4).max(1);
        } else if self.in_batch >= self.in_batch_max && self.output.len() <= cap / 2 {
            self.in_batch_max = (self.in_batch_max * 2).min(self.limits.requests_max);
        }
        self.in_batch = 0;
    }

    /// Drops input, `left` more bytes of it.
    pub fn skip(&mut self, left: &mut u64, input: &[u8]) -> Flow {
        let here = (input.len() - self.position) as u64;
        let dropped = here.min(*left);
        *left -= dropped;
        self.position += dropped as usize;
        match dropped == here {
            true => Flow::Starved,
            false => Flow::Next,
        }
    }

    /// Passes the bytes of a large value that have arrived to the engine. True if the value is complete.
    pub fn receive(&mut self, value: &mut PartialValue, input: &[u8]) -> bool {
        let here = &input[self.position..];
        let of_value = here.len().min(value.missing());
        value.write(&here[..of_value]);
        self.position += of_value;
        value.missing() == 0
    }
}
