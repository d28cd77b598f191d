//! Commands that are executed at once, and lines that are refused. All earlier requests of their connection have been
//! answered by then.

use nuthatch_engine::{Engine, Reply};
use nuthatch_protocol::binary::Foreign;
use nuthatch_protocol::{
    Exptime, KEY_ROOM, Limits, Parsed, Refusal, ServerCommand, Store, Words, decode_key, encode,
    parse,
};
use nuthatch_settings::administration::Action;
use nuthatch_settings::config::{By, MEMCACHED_VERSION};
use nuthatch_state::refreshes::Outcome;
use nuthatch_state::telemetry::watch::Kinds;

use super::phase::Phase;
use super::store::store_op;
use super::{admin, stats};
use crate::context::Context;
use crate::counting::{self, Kind};
use crate::expiry::memcached::flush_time;
use crate::turn::{Flow, Turn};
use crate::work::Work;

/// Takes a command about the server of `consumed` bytes, once all requests before it have been answered.
#[cold]
pub fn command(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    command: ServerCommand<'_>,
    consumed: usize,
) -> Flow {
    if turn.in_batch > 0 {
        return Flow::Barrier;
    }
    let before = turn.output.end();
    execute(cx, turn, phase, command);
    cx.charge(turn);
    turn.spend(Work::of_bytes(turn.output.end() - before));
    turn.position += consumed;
    turn.spend(Work::COMMAND);
    Flow::Next
}

fn execute(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    command: ServerCommand<'_>,
) {
    let out = turn.output.text();
    if cx.info.peer().is_udp() && needs_connection(&command) {
        return out.extend_from_slice(NOT_OVER_UDP);
    }
    let (words, noreply): (&[u8], bool) = match command {
        ServerCommand::FlushAll { delay, noreply } => (flush_all(cx, delay), noreply),
        ServerCommand::Version => return encode::version(out, MEMCACHED_VERSION),
        ServerCommand::Verbosity { level, noreply } => (verbosity(cx, level), noreply),
        ServerCommand::MemoryLimit { megabytes, noreply } => (memory_limit(cx, megabytes), noreply),
        ServerCommand::Stats(words) => match words.iter().next().and_then(admin::absent) {
            Some(refusal) => (refusal, false),
            None => return stats::command(cx, turn, phase, words),
        },
        ServerCommand::Slabs(words) => admin::slabs(words),
        ServerCommand::Lru(words) => admin::lru(words),
        ServerCommand::LruCrawler(words) => return admin::lru_crawler(cx, turn, phase, words),
        ServerCommand::Watch(words) => (watch(cx, turn.id, phase, words), false),
        ServerCommand::RefreshCerts => (refresh_certs(cx, turn.id, phase), false),
        ServerCommand::Shutdown(words) => return shutdown(cx, turn, words),
        ServerCommand::Quit => return turn.quit(),
    };
    if !noreply {
        out.extend_from_slice(words);
    }
}

/// The refusal of a command that datagrams may not send: their sender can be forged.
const NOT_OVER_UDP: &[u8] = b"CLIENT_ERROR not over UDP: this needs a connection\r\n";

/// True if a command changes the server or walks its items: a client with a forged address must not use it.
fn needs_connection(command: &ServerCommand<'_>) -> bool {
    match command {
        ServerCommand::Version | ServerCommand::Quit => false,
        ServerCommand::Stats(words) => {
            !nuthatch_state::reports::is_for_datagrams(words.iter().next().unwrap_or_default())
        }
        _ => true,
    }
}

/// watch: the connection gets the server's events from now on.
fn watch(
    cx: &Context<'_, '_>,
    connection: usize,
    phase: &mut Phase,
    words: Words<'_>,
) -> &'static [u8] {
    if !cx.shared.config.allow_watch {
        return b"CLIENT_ERROR watch commands not allowed\r\n";
    }
    let mut kinds = Kinds::default();
    let mut words = words.into_iter().peekable();
    if words.peek().is_none() {
        kinds.add(b"fetchers");
    }
    for word in words {
        if !kinds.add(word) {
            return admin::absent(word).unwrap_or(b"ERROR\r\n");
        }
    }
    match cx
        .shared
        .telemetry
        .watchers
        .watch(kinds, cx.worker.clone(), connection)
    {
        Some(watching) => {
            *phase = Phase::Watch(watching);
            encode::OK
        }
        None => b"WATCHER_TOO_MANY log watcher limit reached\r\n",
    }
}

fn flush_all(cx: &mut Context<'_, '_>, delay: Exptime) -> &'static [u8] {
    cx.counters.cmd_flush.bump();
    if !cx.may(Action::Flush) {
        return b"CLIENT_ERROR flush_all not allowed\r\n";
    }
    let at = flush_time(delay.0.into(), cx.now, &cx.shared.clock);
    match cx.flush(at) {
        Ok(()) => encode::OK,
        Err(_) => b"SERVER_ERROR a server behind this cache does not answer: its items are still there\r\n",
    }
}

fn verbosity(cx: &Context<'_, '_>, level: u32) -> &'static [u8] {
    if !cx.may(Action::Verbosity) {
        return b"CLIENT_ERROR verbosity not allowed\r\n";
    }
    cx.shared.set_verbosity(level, By::Client);
    encode::OK
}

fn memory_limit(cx: &Context<'_, '_>, megabytes: u64) -> &'static [u8] {
    if !cx.may(Action::MemoryLimit) {
        return b"CLIENT_ERROR cache_memlimit not allowed\r\n";
    }
    if megabytes < 8 {
        return b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
    }
    if megabytes > 1_000_000_000 {
        return b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
    }
    let bytes = usize::try_from(megabytes << 20).unwrap_or(usize::MAX);
    if !cx.may_limit_memory_to(bytes) {
        return b"CLIENT_ERROR cache_memlimit below the memory in use not allowed\r\n";
    }
    match cx.shared.engine.set_memory_limit(bytes) {
        Ok(()) => {
            cx.shared.follow_memory_limit();
            encode::OK
        }
        Err(error) => {
            tracing::warn!(%error, megabytes, "cache_memlimit");
            b"MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n"
        }
    }
}

/// refresh_certs: the connection waits until the files have been read. What is answered at once is the refusal, if there
/// is one.
fn refresh_certs(cx: &Context<'_, '_>, connection: usize, phase: &mut Phase) -> &'static [u8] {
    let shared = cx.shared;
    if !cx.may(Action::RefreshCertificates) {
        return b"CLIENT_ERROR refresh_certs not allowed\r\n";
    }
    if shared.security.tls.is_none() {
        // memcached's text, with its upper and lower case.
        return b"Error TLS not enabled\r\n";
    }
    let worker = cx.worker.clone();
    let waiting = shared
        .security
        .refreshes
        .ask(&shared.shutdown, worker, connection);
    *phase = Phase::Refresh(waiting);
    b""
}

/// The answer to a refresh_certs that has ended like this.
pub fn refreshed(outcome: Outcome) -> &'static [u8] {
    match outcome {
        Outcome::Refreshed => encode::OK,
        Outcome::Failed => b"SERVER_ERROR the certificates cannot be read: see the log\r\n",
        Outcome::Stopped => b"SERVER_ERROR the server stops\r\n",
    }
}

/// `shutdown` and `shutdown graceful`: both stop this server gracefully.
fn shutdown(cx: &Context<'_, '_>, turn: &mut Turn, words: Words<'_>) {
    let mut after = words.iter();
    let known = matches!(
        (after.next(), after.next()),
        (None | Some(b"graceful"), None)
    );
    let allowed = cx.may(Action::Shutdown);
    if allowed && known {
        turn.quit();
        cx.shared.shutdown.request();
    } else if words.iter().last() != Some(b"noreply") {
        let words: &[u8] = if allowed {
            b"CLIENT_ERROR invalid shutdown mode\r\n"
        } else {
            b"SERVER_ERROR: shutdown not enabled\r\n"
        };
        turn.output.text().extend_from_slice(words);
    }
}

/// No limit, to parse the line of a value of any length.
const NO_LIMITS: Limits = Limits::of_values(usize::MAX);

/// The bytes of a key, decoded from how the client wrote it.
fn decoded<'k>(written: &'k [u8], base64: bool, room: &'k mut [u8; KEY_ROOM]) -> Option<&'k [u8]> {
    match base64 {
        true => decode_key(written, room),
        false => Some(written),
    }
}

/// Refuses a line that cannot be executed. `front` is the input from that line on.
#[cold]
pub fn refuse(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    front: &[u8],
    refusal: &Refusal,
) {
    if refusal.error == nuthatch_protocol::Error::TOO_LARGE {
        cx.counters.count_failure(&Reply::TooLarge);
        // Parse the line alone, without the part of the block that has arrived.
        if let Parsed::Body { store, .. } = parse(&front[..refusal.consumed], &NO_LIMITS) {
            let base64 = store.meta.is_some_and(|flags| flags.base64);
            if let Some(key) = decoded(store.key, base64, &mut [0; KEY_ROOM]) {
                cx.notify_refused(key, &store_op(cx, &store), &Reply::TooLarge);
            }
        }
    }
    count_refused(cx, front, refusal);
    if let Some(at) = refusal.forget {
        let written = &front[at.start..][..at.len];
        if let Some(key) = decoded(written, at.base64, &mut [0; KEY_ROOM]) {
            cx.forget(key);
        }
    }
    if !refusal.quiet {
        match (refusal.error, admin::absent(front)) {
            (nuthatch_protocol::Error::Unknown, Some(words)) => {
                turn.output.text().extend_from_slice(words);
            }
            (error, _) => encode::error(turn.output.text(), error),
        }
    }
    turn.position += refusal.consumed;
    turn.closing |= refusal.close;
    if refusal.swallow > 0 {
        *phase = Phase::Swallow(refusal.swallow);
    }
}

/// Counts a line that memcached counts before it refuses it.
fn count_refused(cx: &Context<'_, '_>, front: &[u8], refusal: &Refusal) {
    let error = refusal.error;
    if error == nuthatch_protocol::Error::BAD_DATA_CHUNK {
        let line = front.iter().position(|&byte| byte == b'\n');
        let line = &front[..line.map_or(front.len(), |end| end + 1)];
        // Without its block it is a store, unless its length is bad.
        if let Parsed::Body {
            store, value_len, ..
        } = parse(line, &NO_LIMITS)
        {
            count_bad_chunk(cx, &store, value_len);
        }
    } else if error == nuthatch_protocol::Error::BAD_EXPTIME
        && Words(front).iter().next() == Some(b"flush_all")
    {
        cx.counters.cmd_flush.bump();
    }
}

/// Counts a store whose data block has no end, as one that was refused.
pub fn count_bad_chunk(cx: &Context<'_, '_>, store: &Store<'_>, value_len: usize) {
    let base64 = store.meta.is_some_and(|flags| flags.base64);
    if let Some(key) = decoded(store.key, base64, &mut [0; KEY_ROOM]) {
        let request = counting::Request::replied(key, value_len, &Reply::NotStored);
        cx.count(Kind::Store { is_cas: false }, request);
    }
}

/// Answers a request of the binary protocol, because its client reads only answers of that protocol. Also answers the
/// binary requests behind it: a client may have sent several before it read. Then the connection closes, and the rest
/// of the input is dropped.
#[cold]
pub fn refuse_binary(turn: &mut Turn, front: &[u8], request: &Foreign) {
    request.refuse(turn.output.text());
    let end = usize::try_from(request.length).unwrap_or(usize::MAX);
    let rest = front.get(end..).unwrap_or_default();
    turn.closing = Foreign::parse(rest).is_none();
    turn.position += front.len() - rest.len();
}
