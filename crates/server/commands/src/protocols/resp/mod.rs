//! Redis' protocol, RESP2 and RESP3: the commands that programs use for a cache.
//!
//! * [`request`]: the request at the front of the input, and commands that join the batch.
//! * [`many`]: MGET, MSET, DEL and the like, whose keys come one by one.
//! * [`upload`]: values that arrive piece by piece.
//! * [`values`]: commands that read, decide and write, and retry if another client was faster; [`edit`]: those that copy a
//!   long value, piece by piece.
//! * [`transaction`]: MULTI, EXEC, WATCH; [`isolated`]: an EXEC without other clients' requests in between.
//! * [`queue`]: its requests until they are executed.
//! * [`walk`]: KEYS, SCAN, RANDOMKEY, DBSIZE, CLIENT LIST.
//! * [`scripts`]: EVAL and SCRIPT; [`slot`]: the item of one key while a script works on it.
//! * [`login`]: how clients log in.
//! * [`manage`], [`info`]: CLIENT, CONFIG, COMMAND, INFO...
//! * [`spot`]: requests to the engine outside of the batch.
//! * [`muted`]: CLIENT REPLY.
//! * [`expiry`]: how clients write an item's expiry.
//! * [`answers`]: its answers. [`log`]: its lines in the log of commands.
//!
//! The items that these commands store have flags of 0. A store that fails leaves the old value, as in Redis.

mod answers;
mod edit;
mod expiry;
mod info;
mod isolated;
pub mod log;
mod login;
mod manage;
mod many;
mod muted;
mod queue;
mod request;
mod scripts;
mod session;
mod slot;
mod spot;
mod transaction;
mod upload;
mod values;
mod walk;

use nuthatch_base::memory::reserve::spare;
use nuthatch_protocol::resp::{Error, Rest, Version, Writer};
use nuthatch_security::login::Login;
use nuthatch_state::account::AWAITED_MAX;

use self::edit::Edit;
use self::many::Run;
use self::session::Session;
use self::transaction::Collected;
use self::upload::Upload;
use self::walk::Walk;
use crate::partial::PartialValue;
use crate::slice::Slice;
use crate::stage::{Flow, Stage};
use crate::work::Work;
pub use answers::Style;

/// The first byte of a request, unless it is a line typed by hand.
pub const MARK: u8 = b'*';

/// The refusal of a connection above the limit.
pub fn too_many(crowd: super::Crowd) -> &'static [u8] {
    match crowd {
        super::Crowd::OfServer => b"-ERR max number of clients reached\r\n",
        super::Crowd::OfAddress => b"-ERR max number of clients of this address reached\r\n",
    }
}

/// The reply to a client that uses TLS on a port without it.
const NO_TLS: &[u8] = b"-ERR this port does not speak TLS\r\n";

/// The last reply to a client whose connection is closed because it holds too much.
pub const OUT_OF_MEMORY: &[u8] = b"-ERR out of memory reading request\r\n";

/// The state of a connection.
#[derive(Default)]
pub struct Phase {
    version: Version,
    state: State,
    /// The client has to log in first.
    login: bool,
    /// The client's errors at the login, counted also after it is admitted.
    errors: Login,
    /// The state that most connections do not need.
    session: Option<Box<Session>>,
}

/// What the next byte of input means.
#[derive(Default)]
enum State {
    /// It begins a request.
    #[default]
    Requests,
    /// It belongs to a request that was refused.
    Drop(Rest),
    /// It begins an argument of a command of many keys.
    Many(Run),
    /// It belongs to a large value, or to what comes behind it.
    Upload(Box<Upload>),
    /// It belongs to a request of a transaction.
    Collect(Box<Collected>),
    /// It has to wait: a walk is in progress.
    Walk(Box<Walk>),
    /// It has to wait: a long value is being copied.
    Edit(Box<Edit>),
}

impl Phase {
    /// The first phase. `login` is true if the client has to log in first.
    pub fn new(login: bool) -> Self {
        Self {
            login,
            ..Self::default()
        }
    }

    /// True if the next byte begins a request.
    pub fn is_at_request(&self) -> bool {
        matches!(self.state, State::Requests)
    }

    /// True if its client has logged in, or need not.
    pub fn is_admitted(&self) -> bool {
        !self.login
    }

    /// True if the request that is under way gets no answer.
    fn is_muted(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.unwanted.is_muted())
    }

    /// Bytes still to come of a value that goes straight to the engine.
    #[inline]
    pub fn missing(&self) -> usize {
        match &self.state {
            State::Upload(upload) => upload.missing(),
            _ => 0,
        }
    }

    /// The value under way that goes straight to the engine, if there is one.
    pub fn partial(&mut self) -> Option<&mut PartialValue> {
        match &mut self.state {
            State::Upload(upload) => upload.partial(),
            _ => None,
        }
    }

    /// Bytes of memory that it holds and that depend on a client's input.
    #[inline]
    pub fn memory(&self) -> usize {
        let state = match &self.state {
            State::Upload(upload) => upload.memory(),
            State::Collect(collected) => collected.memory(),
            State::Walk(walk) => walk.memory(),
            State::Edit(edit) => edit.memory(),
            State::Requests | State::Drop(_) | State::Many(_) => 0,
        };
        state + self.session.as_ref().map_or(0, |session| session.memory())
    }

    fn session(&mut self) -> &mut Session {
        self.session.get_or_insert_default()
    }

    /// A writer to the output of the slice.
    #[inline]
    fn writer<'o>(&self, slice: &'o mut Slice) -> Writer<'o> {
        Writer::new(slice.output.text(), self.version)
    }
}

/// Unused input, and how much of it a step used.
struct RequestReader<'a> {
    input: &'a [u8],
    used: usize,
}

impl<'a> RequestReader<'a> {
    #[inline]
    fn left(&self) -> &'a [u8] {
        &self.input[self.used..]
    }
}

/// Takes a request, or a piece of one.
#[inline(always)]
pub fn step<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    if let Some(session) = &phase.session
        && !session.is_plain()
    {
        return step_of_session(stage, slice, phase, input);
    }
    let mut reader = RequestReader {
        input: &input[slice.position..],
        used: 0,
    };
    let flow = advance(stage, slice, phase, &mut reader);
    slice.position += reader.used;
    flow
}

/// Like [`step`], for a connection that has queued requests, or whose client does not want all answers.
#[cold]
fn step_of_session<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    if phase.session().has_replay() {
        return replay(stage, slice, phase);
    }
    phase.session().unwanted.begin();
    let mut reader = RequestReader {
        input: &input[slice.position..],
        used: 0,
    };
    let flow = muted::advance_unheard(stage, slice, phase, &mut reader);
    slice.position += reader.used;
    flow
}

/// Bytes of a queued request that a step copies first: enough for the longest value that is not taken in pieces, and
/// for what precedes it. Otherwise each step would copy the whole of a request of many keys again.
const REPLAYED: usize = AWAITED_MAX + (4 << 10);

/// Like [`step`], for a queued request: one of a transaction, or one that arrived as a line. A copy of its front lives
/// as long as the batch that borrows from it.
#[cold]
fn replay(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase) -> Flow {
    // The request must not be in the queue while it is executed: it may be an EXEC, which queues other requests and may
    // execute them at once.
    let mut queue = std::mem::take(&mut phase.session().replay);
    phase.session().more = queue.len() > 1;
    let left = queue.front().map_or(0, <[u8]>::len);
    let mut shown = REPLAYED.min(left);
    let (flow, used) = loop {
        let part = &queue.front().unwrap_or_default()[..shown];
        slice.spend(Work::of_bytes(part.len()));
        let Ok(copy) = spare(|| stage.decoded.try_alloc_slice_copy(part)) else {
            phase.writer(slice).error(&Error::OUT_OF_MEMORY);
            slice.closing = true;
            return Flow::Next;
        };
        let mut reader = RequestReader {
            input: copy,
            used: 0,
        };
        let flow = muted::advance_unheard(stage, slice, phase, &mut reader);
        if flow != Flow::Starved || reader.used > 0 || shown == left {
            break (flow, reader.used);
        }
        shown = (2 * shown).min(left);
    };
    let is_starved = flow == Flow::Starved;
    // An EXEC that was typed has put its transaction's requests in the place of this queue. One of them may be under way,
    // but the EXEC is done.
    let over = used == left && (phase.is_at_request() || phase.session().has_replay());
    // A queued request is complete, so it cannot starve when all of it is shown. If it did, it would starve for ever.
    let stuck = is_starved && shown == left && !over;
    debug_assert!(!stuck);
    match over || stuck {
        true => queue.pop(),
        false => queue.advance(used),
    }
    if !queue.is_empty() {
        phase.session().replay = queue;
    }
    if let Some(session) = &mut phase.session {
        session.more = false;
    }
    match is_starved {
        true => Flow::Next,
        false => flow,
    }
}

#[inline(always)]
fn advance<'a>(
    stage: &mut Stage<'_, 'a>,
    slice: &mut Slice,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    match &mut phase.state {
        State::Requests if phase.login => login::take(stage, slice, phase, reader),
        State::Requests => request::take(stage, slice, phase, reader),
        State::Drop(_) => drop_rest(slice, phase, reader),
        State::Many(_) => many::go_on(stage, slice, phase, reader),
        State::Upload(_) => upload::go_on(stage, slice, phase, reader),
        State::Collect(_) => transaction::collect(stage, slice, phase, reader),
        State::Walk(_) => walk::go_on(stage, slice, phase),
        State::Edit(_) => edit::go_on(stage, slice, phase),
    }
}

/// True if the client uses TLS: then this refuses it and ends its connection.
#[cold]
fn refused_tls(slice: &mut Slice, reader: &mut RequestReader<'_>) -> bool {
    let speaks = super::speaks_tls(reader.left());
    if speaks {
        super::refuse_tls(slice, NO_TLS);
        reader.used = reader.input.len();
    }
    speaks
}

/// Drops the rest of a refused request.
fn drop_rest(slice: &mut Slice, phase: &mut Phase, reader: &mut RequestReader<'_>) -> Flow {
    let State::Drop(rest) = &mut phase.state else {
        return Flow::Next;
    };
    match rest.pass(reader.left()) {
        Ok(passed) => {
            reader.used += passed;
            if !rest.is_over() {
                return Flow::Starved;
            }
            phase.state = State::Requests;
            Flow::Next
        }
        Err(error) => {
            if slice.in_batch > 0 {
                return Flow::Barrier;
            }
            phase.writer(slice).error(&error);
            slice.closing = true;
            Flow::Next
        }
    }
}
