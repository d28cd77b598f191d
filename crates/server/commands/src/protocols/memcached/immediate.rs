//! Commands that are executed at once, and lines that are refused. All earlier requests of their connection have been
//! answered by then.

use nuthatch_engine::{Engine, Reply};
use nuthatch_protocol::binary::Foreign;
use nuthatch_protocol::{
    Command, Exptime, KEY_ROOM, Limits, Parsed, Refusal, Words, decode_key, encode, parse,
};
use nuthatch_state::administration::Action;
use nuthatch_state::config::{By, MEMCACHED_VERSION};
use nuthatch_state::refreshes::Outcome;
use nuthatch_state::telemetry::watch::Kinds;

use super::phase::Phase;
use super::store::store_op;
use super::{admin, stats};
use crate::expiry::memcached::flush_time;
use crate::slice::Slice;
use crate::stage::Stage;

/// Executes a command that is not about keys.
#[cold]
pub fn command(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    command: Command<'_>,
) {
    let out = slice.output.text();
    if stage.info.peer().is_udp() && needs_connection(&command) {
        return out.extend_from_slice(NOT_OVER_UDP);
    }
    let (words, noreply): (&[u8], bool) = match command {
        Command::FlushAll { delay, noreply } => (flush_all(stage, delay), noreply),
        Command::Version => return encode::version(out, MEMCACHED_VERSION),
        Command::Verbosity { level, noreply } => (verbosity(stage, level), noreply),
        Command::MemoryLimit { megabytes, noreply } => (memory_limit(stage, megabytes), noreply),
        Command::Stats(words) => match words.iter().next().and_then(admin::absent) {
            Some(refusal) => (refusal, false),
            None => return stats::command(stage, slice, phase, words),
        },
        Command::Slabs(words) => admin::slabs(words),
        Command::Lru(words) => admin::lru(words),
        Command::LruCrawler(words) => return admin::lru_crawler(stage, slice, phase, words),
        Command::Watch(words) => (watch(stage, slice.id, phase, words), false),
        Command::RefreshCerts => (refresh_certs(stage, slice.id, phase), false),
        Command::Shutdown(words) => return shutdown(stage, slice, words),
        Command::Quit => return slice.quit(),
        Command::Get(_)
        | Command::Store(_)
        | Command::Delete { .. }
        | Command::Delta { .. }
        | Command::Touch { .. }
        | Command::Meta(_) => unreachable!("commands about keys go to the batch"),
    };
    if !noreply {
        out.extend_from_slice(words);
    }
}

/// The refusal of a command that datagrams may not send: their sender can be forged.
const NOT_OVER_UDP: &[u8] = b"CLIENT_ERROR not over UDP: this needs a connection\r\n";

/// True if a command changes the server or walks its items: a client with a forged address must not use it.
fn needs_connection(command: &Command<'_>) -> bool {
    match command {
        Command::Version | Command::Quit => false,
        Command::Stats(words) => {
            !nuthatch_state::reports::is_for_datagrams(words.iter().next().unwrap_or_default())
        }
        _ => true,
    }
}

/// watch: the connection gets the server's events from now on.
fn watch(
    stage: &Stage<'_, '_>,
    connection: usize,
    phase: &mut Phase,
    words: Words<'_>,
) -> &'static [u8] {
    if !stage.shared.config.allow_watch {
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
    match stage
        .shared
        .watch
        .watch(kinds, stage.worker.clone(), connection)
    {
        Some(watching) => {
            *phase = Phase::Watch(watching);
            encode::OK
        }
        None => b"WATCHER_TOO_MANY log watcher limit reached\r\n",
    }
}

fn flush_all(stage: &Stage<'_, '_>, delay: Exptime) -> &'static [u8] {
    stage.counters.cmd_flush.bump();
    if !stage.may(Action::Flush) {
        return b"CLIENT_ERROR flush_all not allowed\r\n";
    }
    let at = flush_time(delay.0.into(), stage.now, &stage.shared.clock);
    stage.flush(at);
    encode::OK
}

fn verbosity(stage: &Stage<'_, '_>, level: u32) -> &'static [u8] {
    if !stage.may(Action::Verbosity) {
        return b"CLIENT_ERROR verbosity not allowed\r\n";
    }
    stage.shared.set_verbosity(level, By::Client);
    encode::OK
}

fn memory_limit(stage: &Stage<'_, '_>, megabytes: u64) -> &'static [u8] {
    if !stage.may(Action::MemoryLimit) {
        return b"CLIENT_ERROR cache_memlimit not allowed\r\n";
    }
    if megabytes < 8 {
        return b"MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n";
    }
    if megabytes > 1_000_000_000 {
        return b"MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes\r\n";
    }
    let bytes = usize::try_from(megabytes << 20).unwrap_or(usize::MAX);
    if !stage.may_limit_memory_to(bytes) {
        return b"CLIENT_ERROR cache_memlimit below the memory in use not allowed\r\n";
    }
    match stage.shared.engine.set_memory_limit(bytes) {
        Ok(()) => {
            stage.shared.follow_memory_limit();
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
fn refresh_certs(stage: &Stage<'_, '_>, connection: usize, phase: &mut Phase) -> &'static [u8] {
    let shared = stage.shared;
    if !stage.may(Action::RefreshCertificates) {
        return b"CLIENT_ERROR refresh_certs not allowed\r\n";
    }
    if shared.tls.is_none() {
        // memcached's text, with its upper and lower case.
        return b"Error TLS not enabled\r\n";
    }
    let worker = stage.worker.clone();
    let waiting = shared.refreshes.ask(&shared.shutdown, worker, connection);
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
fn shutdown(stage: &Stage<'_, '_>, slice: &mut Slice, words: Words<'_>) {
    let mut after = words.iter();
    let known = matches!(
        (after.next(), after.next()),
        (None | Some(b"graceful"), None)
    );
    let allowed = stage.may(Action::Shutdown);
    if allowed && known {
        slice.quit();
        stage.shared.shutdown.request();
    } else if words.iter().last() != Some(b"noreply") {
        let words: &[u8] = if allowed {
            b"CLIENT_ERROR invalid shutdown mode\r\n"
        } else {
            b"SERVER_ERROR: shutdown not enabled\r\n"
        };
        slice.output.text().extend_from_slice(words);
    }
}

/// No limit, to parse the line of a value of any length.
const NO_LIMITS: Limits = Limits {
    value_max: usize::MAX,
};

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
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    front: &[u8],
    refusal: &Refusal,
) {
    if refusal.error == nuthatch_protocol::Error::TOO_LARGE {
        stage.counters.count_failure(&Reply::TooLarge);
        // Parse the line alone, without the part of the block that has arrived.
        if let Parsed::Body { store, .. } = parse(&front[..refusal.consumed], &NO_LIMITS) {
            let base64 = store.meta.is_some_and(|flags| flags.base64);
            if let Some(key) = decoded(store.key, base64, &mut [0; KEY_ROOM]) {
                stage.tell_refused(key, &store_op(stage, &store), &Reply::TooLarge);
            }
        }
    }
    if let Some(at) = refusal.forget {
        let written = &front[at.start..][..at.len];
        if let Some(key) = decoded(written, at.base64, &mut [0; KEY_ROOM]) {
            stage.forget(key);
        }
    }
    if !refusal.quiet {
        match (refusal.error, admin::absent(front)) {
            (nuthatch_protocol::Error::Unknown, Some(words)) => {
                slice.output.text().extend_from_slice(words);
            }
            (error, _) => encode::error(slice.output.text(), error),
        }
    }
    slice.position += refusal.consumed;
    slice.closing |= refusal.close;
    if refusal.swallow > 0 {
        *phase = Phase::Swallow(refusal.swallow);
    }
}

/// Answers a request of the binary protocol, because its client reads only answers of that protocol. Also answers the
/// binary requests behind it: a client may have sent several before it read. Then the connection closes, and the rest
/// of the input is dropped.
#[cold]
pub fn refuse_binary(slice: &mut Slice, front: &[u8], request: &Foreign) {
    request.refuse(slice.output.text());
    let end = usize::try_from(request.length).unwrap_or(usize::MAX);
    let rest = front.get(end..).unwrap_or_default();
    slice.closing = Foreign::parse(rest).is_none();
    slice.position += front.len() - rest.len();
}
