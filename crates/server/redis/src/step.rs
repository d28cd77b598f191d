//! A step of a connection: the request at the front of its input, or a piece of one, or one that is queued. What is
//! executed apart from the iteration's batch (EXEC with watched keys, scripts of Lua, requests without an answer) is here,
//! too, since it takes steps of its own.

use bumpalo::Bump;
use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::batch::BatchBuffers;
use nuthatch_commands::context::Context;
use nuthatch_commands::executing::execute;
use nuthatch_commands::output::Output;
use nuthatch_commands::turn::{Flow, Turn};
use nuthatch_commands::work::Work;
use nuthatch_engine::{AnyValue, Op, Read};
use nuthatch_lua::Allowance;
use nuthatch_resp::{Error, writes};
use nuthatch_state::buffers::AWAITED_MAX;

use crate::phase::{Phase, State};
use crate::reader::RequestReader;
use crate::transaction::Exec;
use crate::{busy, collect, delivery, keyed, login, lua, many, receive, request, tracking};

/// The first byte of a request, unless it is a line typed by hand.
pub const MARK: u8 = b'*';

/// Takes a request, or a piece of one.
#[inline(always)]
pub fn step<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    if let Some(session) = &phase.session
        && !session.is_plain()
    {
        return step_of_session(cx, turn, phase, input);
    }
    let mut reader = RequestReader::new(&input[turn.position..]);
    let flow = advance(cx, turn, phase, &mut reader);
    turn.position += reader.used;
    if flow == Flow::Starved {
        note_request(cx, turn, input);
    }
    flow
}

/// The input is used up: notes the last request for CLIENT LIST.
fn note_request(cx: &Context<'_, '_>, turn: &Turn, input: &[u8]) {
    if let Some(last) = turn.last_request {
        cx.info.request().note(&input[last..]);
    }
}

/// Like [`step`], for a connection that has queued requests, that is sent something unasked, or whose client does not
/// want all answers.
#[cold]
fn step_of_session<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    if let Some(flow) = delivery::deliver(turn, phase) {
        return flow;
    }
    tracking::begin(cx, phase);
    let from = cx.batch.requests.len();
    let flow = request_of_session(cx, turn, phase, input);
    leave_recency(cx, phase, from);
    tracking::end(cx, phase, from, flow);
    flow
}

/// CLIENT NO-TOUCH: reads of the batch from index `from` on do not make their items recent.
fn leave_recency(cx: &mut Context<'_, '_>, phase: &Phase, from: usize) {
    if !phase.session.as_ref().is_some_and(|it| it.no_touch) {
        return;
    }
    let from = from.min(cx.batch.requests.len());
    for request in &mut cx.batch.requests[from..] {
        if let Op::Get = request.op {
            request.op = Op::Read(Read {
                bump: false,
                ..Read::default()
            });
        }
    }
}

/// Takes its request, or a piece of one.
fn request_of_session<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    input: &'a [u8],
) -> Flow {
    if phase.session().has_replay() {
        return replay(cx, turn, phase);
    }
    phase.session().unwanted.begin();
    let mut reader = RequestReader::new(&input[turn.position..]);
    let flow = match delivery::refuse(turn, phase, &mut reader) {
        Some(flow) => flow,
        None => advance_muted(cx, turn, phase, &mut reader),
    };
    turn.position += reader.used;
    if flow == Flow::Starved {
        note_request(cx, turn, input);
    }
    flow
}

/// Bytes of a queued request that a step copies first: enough for the longest value that is not taken in pieces, and
/// for what precedes it. Otherwise each step would copy the whole of a request of many keys again.
const REPLAYED: usize = AWAITED_MAX + (4 << 10);

/// Like [`step`], for a queued request: one of a transaction, or one that arrived as a line. A copy of its front lives
/// as long as the batch that borrows from it.
#[cold]
fn replay(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) -> Flow {
    // The request must not be in the queue while it is executed: it may be an EXEC, which queues other requests and may
    // execute them at once.
    let mut queue = std::mem::take(&mut phase.session().replay);
    phase.session().more = queue.len() > 1;
    // The copies are no part of the turn's input.
    let last_request = turn.last_request;
    let left = queue.front().map_or(0, <[u8]>::len);
    let mut shown = REPLAYED.min(left);
    let (flow, used) = loop {
        let part = &queue.front().unwrap_or_default()[..shown];
        turn.spend(Work::of_bytes(part.len()));
        let Ok(copy) = spare(|| cx.decoded.try_alloc_slice_copy(part)) else {
            phase.writer(turn).error(&Error::OUT_OF_MEMORY);
            turn.closing = true;
            return Flow::Next;
        };
        let mut reader = RequestReader::new(copy);
        let flow = advance_muted(cx, turn, phase, &mut reader);
        if flow != Flow::Starved || reader.used > 0 || shown == left {
            break (flow, reader.used);
        }
        shown = (2 * shown).min(left);
    };
    turn.last_request = last_request;
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
        turn.closing |= session.ends && !session.has_replay();
    }
    match is_starved {
        true => Flow::Next,
        false => flow,
    }
}

#[inline(always)]
fn advance<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    let has_transaction = phase.has_transaction();
    cx.namespace = cx.shared.databases.namespace(phase.database.into());
    match &mut phase.state {
        State::Requests if reader.left().is_empty() => Flow::Starved,
        State::Requests if phase.login => login::take(cx, turn, phase, reader),
        State::Requests if cx.holds_writes && writes(reader.left()) => match turn.in_batch {
            0 => Flow::Called,
            _ => Flow::Barrier,
        },
        State::Requests if has_transaction => collect::take(cx, turn, phase, reader),
        State::Requests => request::take(cx, turn, phase, reader),
        State::Drop(_) => drop_rest(turn, phase, reader),
        State::Collect(_) => collect::go_on(cx, turn, phase, reader),
        State::Walk(walk) if walk.is_beside_items() => walk_on(cx, turn, phase),
        // What follows waits for the engine.
        _ if turn.in_batch == 0 && busy::puts_off(cx, turn) => Flow::Next,
        State::Many(_) => many::go_on(cx, turn, phase, reader),
        State::Upload(_) => receive::go_on(cx, turn, phase, reader),
        State::Walk(_) => walk_on(cx, turn, phase),
        State::Edit(_) => edit_on(cx, turn, phase),
        State::Transfer(_) => carry_on(cx, turn, phase),
        State::Exec(_) => exec(cx, turn, phase),
        State::Lua(_) => run_lua(cx, turn, phase),
    }
}

/// Drops the rest of a refused request.
fn drop_rest(turn: &mut Turn, phase: &mut Phase, reader: &mut RequestReader<'_>) -> Flow {
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
            if turn.in_batch > 0 {
                return Flow::Barrier;
            }
            phase.writer(turn).error(&error);
            turn.closing = true;
            Flow::Next
        }
    }
}

/// Takes a step of the walk under way.
fn walk_on(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) -> Flow {
    let State::Walk(mut walk) = std::mem::take(&mut phase.state) else {
        return Flow::Next;
    };
    let over = walk.step(cx, phase.version);
    cx.charge(turn);
    match over {
        Ok(true) => walk.answer(cx, turn, phase.version),
        Ok(false) => phase.state = State::Walk(walk),
        Err(_) => phase.writer(turn).error(&Error::OUT_OF_MEMORY),
    }
    Flow::Next
}

/// Takes a step of the change under way.
fn edit_on(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) -> Flow {
    let State::Edit(mut edit) = std::mem::take(&mut phase.state) else {
        return Flow::Next;
    };
    match edit.step(cx) {
        Ok(None) => phase.state = State::Edit(edit),
        Ok(Some(len)) => phase.writer(turn).integer(len as i64),
        Err(error) => phase.writer(turn).error(&error),
    }
    cx.charge(turn);
    Flow::Next
}

/// Takes a step of the item under way.
fn carry_on(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) -> Flow {
    if let State::Transfer(transfer) = std::mem::take(&mut phase.state) {
        keyed::carry_on(cx, turn, phase, transfer);
        cx.charge(turn);
    }
    Flow::Next
}

/// The work that is done before other clients are served again, in commands. What a transaction has beyond that is
/// executed like the queued requests of any connection, with other clients' requests in between.
const COMMANDS_MAX: u32 = 1000;

/// Requests of a batch of a connection alone.
const BATCH: usize = 64;

/// EXEC with watched keys. The client bases its writes on what it has read: no other client's write may come between the
/// check of these keys and the writes. So the engine executes nothing for other clients meanwhile.
#[cold]
fn exec(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) -> Flow {
    let Ok(_isolation) = busy::isolate(cx) else {
        busy::put_off(turn);
        return Flow::Next;
    };
    let State::Exec(exec) = std::mem::take(&mut phase.state) else {
        return Flow::Next;
    };
    let Exec { requests, watched } = *exec;
    let changed = watched.iter().any(|watched| watched.has_changed(cx));
    cx.charge(turn);
    if changed {
        phase.writer(turn).null_array();
        return Flow::Next;
    }
    phase.writer(turn).array(requests.len());
    // No other request is queued: one that was typed by hand is taken out of the queue while it is executed.
    debug_assert!(!phase.session().has_replay());
    phase.session().replay = requests;
    carry_out(cx, turn, phase);
    Flow::Next
}

/// Executes the connection's queued requests, up to the limit. The rest stays queued.
fn carry_out(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) {
    let mut batch = BatchBuffers::default().take(BATCH);
    let share = std::mem::replace(&mut turn.commands_left, COMMANDS_MAX);
    while phase.session().has_replay() && !turn.closing && turn.commands_left > 0 {
        // The request before may have begun to track.
        tracking::begin(cx, phase);
        let mut own = cx.with_batch(&mut batch);
        // The transaction has begun, and nobody else has a turn before its end.
        own.holds_writes = false;
        let before = turn.output.copied();
        replay(&mut own, turn, phase);
        leave_recency(&mut own, phase, 0);
        finish(&mut own, turn);
        turn.spend(Work::of_bytes(turn.output.copied().saturating_sub(before)));
    }
    let used = COMMANDS_MAX - turn.commands_left;
    turn.commands_left = share.saturating_sub(used);
}

/// Executes a batch of this turn alone.
fn finish(cx: &mut Context<'_, '_>, turn: &mut Turn) {
    if cx.batch.is_empty() {
        return;
    }
    tracking::remember(cx, 0);
    let number = cx.shared.number_of(cx.info);
    let turns = std::slice::from_mut(turn);
    execute(
        cx.shared,
        cx.worker,
        cx.handle,
        turns,
        cx.batch,
        cx.now,
        |_| vec![number],
    );
    cx.worker.hot.look(&cx.batch.requests, cx.hasher);
    cx.batch.clear();
    turn.in_batch = 0;
}

/// Runs a script in Lua, whose commands are executed as those of a transaction.
#[cold]
fn run_lua(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) -> Flow {
    let State::Lua(call) = std::mem::take(&mut phase.state) else {
        return Flow::Next;
    };
    if let Err(error) = lua::run(cx, turn, phase, &call, carry_out_apart) {
        phase.writer(turn).error(&error);
    }
    cx.charge(turn);
    Flow::Next
}

/// Executes a request of a script, beside its connection.
fn carry_out_apart(
    cx: &mut Context<'_, '_>,
    call: &mut lua::Call,
    request: &[u8],
    allowed: Allowance,
) -> Result<Output<AnyValue>, Error<'static>> {
    let decoded = Bump::new();
    let mut batch = call.buffers.take(BATCH);
    let mut own = cx.apart(&mut batch, &decoded);
    let mut turn = Turn::apart(call.limits);
    let mut reader = RequestReader::new(request);
    let mut said = Ok(());
    while !turn.closing && said.is_ok() {
        let flow = advance(&mut own, &mut turn, &mut call.phase, &mut reader);
        let is_over = reader.left().is_empty() && call.phase.is_at_request();
        if flow == Flow::Barrier || is_over || own.batch_is_full(&turn) {
            leave_recency(&mut own, &call.phase, 0);
            finish(&mut own, &mut turn);
        }
        own.charge(&mut turn);
        said = call.goes_on(&own, &turn, allowed);
        // It is complete, and waits for nobody.
        if is_over || matches!(flow, Flow::Starved | Flow::Called) {
            break;
        }
    }
    call.phase.state = State::Requests;
    call.buffers.give(batch);
    said.map(|()| turn.output)
}

/// Like [`advance`], and drops the answer if the client does not want it.
#[cold]
fn advance_muted<'a>(
    cx: &mut Context<'_, 'a>,
    turn: &mut Turn,
    phase: &mut Phase,
    reader: &mut RequestReader<'a>,
) -> Flow {
    if !phase.is_muted() {
        return advance(cx, turn, phase, reader);
    }
    if turn.in_batch > 0 {
        return Flow::Barrier;
    }
    let mark = turn.output.mark();
    // An EXEC executes the other requests of its transaction, and began to answer before them.
    let outer = phase.session().muted_from;
    phase.session().muted_from = outer.or(Some(mark));
    let mut batch = BatchBuffers::default().take(BATCH);
    let mut own = cx.with_batch(&mut batch);
    let flow = advance(&mut own, turn, phase, reader);
    let before = turn.output.end();
    leave_recency(&mut own, phase, 0);
    finish(&mut own, turn);
    // What is dropped was made all the same.
    turn.spend(Work::of_bytes(turn.output.end() - before));
    // CLIENT REPLY ON has cut off what was before it, and is answered itself. RESET, which is answered too, ends the
    // session.
    if let Some(session) = &mut phase.session
        && session.muted_from.is_some()
    {
        turn.output.cut(mark);
        session.muted_from = outer;
    }
    // A transaction's requests, and one that was typed by hand, are queued, and belong to the request that is under
    // way.
    if flow == Flow::Next
        && !reader.was_nothing
        && phase.is_at_request()
        && let Some(session) = &mut phase.session
        && !session.has_replay()
        && !session.more
    {
        session.unwanted.end();
    }
    flow
}
