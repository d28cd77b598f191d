//! Commands that are not about keys and values, and commands that look at an item's internals.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nuthatch_engine::{Engine, Inspect};
use nuthatch_protocol::resp::{
    Ask, Client, ClientFilter, Commands, Config, Error, Glob, Hello, Memory, Object, ReplyMode,
    ServerCommand, Values, Version, Writer, described, integer,
};
use nuthatch_state::administration::Action;

use super::auth::authenticate;
use super::info::{self, REDIS_VERSION};
use super::phase::Phase;
use super::spot::{look, read};
use super::walk;
use crate::slice::Slice;
use crate::stage::Stage;

/// The longest text that Redis stores in one allocation with its header.
const EMBEDDED_MAX: usize = 44;

/// Executes `command`.
pub fn command(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    phase: &mut Phase,
    command: ServerCommand<'_>,
) {
    let mut writer = phase.writer(slice);
    match command {
        ServerCommand::Ping(None) => writer.status("PONG"),
        ServerCommand::Ping(Some(words)) | ServerCommand::Echo(words) => writer.bulk(words),
        ServerCommand::Keys { .. } | ServerCommand::Scan(_) | ServerCommand::RandomKey
            if !stage.shared.live.load().allow_dump =>
        {
            writer.error(&Error::DUMP_FORBIDDEN);
        }
        ServerCommand::Keys { pattern } => phase.begin_walk(walk::keys(pattern)),
        ServerCommand::Scan(scan) => walk::scan(stage, slice, phase.version, &scan),
        ServerCommand::RandomKey => random(stage, slice, phase),
        ServerCommand::DbSize => size(stage, slice, phase),
        ServerCommand::FlushAll => flush(stage, &mut writer),
        ServerCommand::Hello(hello) => greet(stage, slice, phase, &hello),
        ServerCommand::Auth(login) => match authenticate(stage, slice, phase, &login) {
            Ok(()) => phase.writer(slice).ok(),
            Err(error) => phase.writer(slice).error(&error),
        },
        ServerCommand::Select(0) => writer.ok(),
        ServerCommand::Select(_) => writer.error(&Error::DATABASE),
        ServerCommand::Quit => {
            writer.ok();
            slice.quit();
        }
        ServerCommand::Reset => {
            let errors = phase.errors;
            stage.info.set_name(Arc::default());
            stage.info.set_administrator(false);
            *phase = Phase::new(stage.shared.has_passwords());
            phase.errors = errors;
            phase.writer(slice).status("RESET");
        }
        ServerCommand::Client(client) => self::client(stage, slice, phase, client),
        ServerCommand::Help {
            command,
            subcommands,
        } => {
            writer.array(2);
            let words = "<subcommand> [<arg> [value] [opt] ...]. Subcommands are:";
            writer.status(&format!("{command} {words}"));
            writer.status(subcommands);
        }
        ServerCommand::Command(commands) => self::commands(&mut writer, commands),
        ServerCommand::Config(Config::Get(patterns)) => config_get(stage, &mut writer, patterns),
        ServerCommand::Config(Config::Set(pairs)) => config_set(stage, &mut writer, pairs),
        ServerCommand::Config(Config::ResetStat) if !stage.may(Action::ResetStats) => {
            writer.error(&Error::RESET_FORBIDDEN);
        }
        ServerCommand::Config(Config::ResetStat) => {
            stage.shared.reset_stats();
            writer.ok();
        }
        ServerCommand::Info(sections) => writer.text(&info::info(stage, sections)),
        ServerCommand::Memory(memory) => self::memory(stage, slice, phase, memory),
        ServerCommand::Object(object) => self::object(stage, slice, phase, object),
        ServerCommand::Script(scripts) => {
            super::scripts::command(stage, slice, phase.version, scripts)
        }
        ServerCommand::Time => time(&mut writer),
    }
}

fn random(stage: &Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase) {
    match walk::random(stage) {
        Some(walk) => phase.begin_walk(walk),
        None => phase.writer(slice).null(),
    }
}

fn size(stage: &Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase) {
    match walk::size(stage) {
        Ok(walk) => phase.begin_walk(walk),
        Err(items) => phase.writer(slice).integer(items as i64),
    }
}

fn flush(stage: &Stage<'_, '_>, writer: &mut Writer<'_>) {
    stage.counters.cmd_flush.bump();
    if !stage.may(Action::Flush) {
        return writer.error(&Error::FLUSH_FORBIDDEN);
    }
    stage.flush(stage.now);
    writer.ok();
}

fn greet(stage: &Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase, hello: &Hello<'_>) {
    if let Some(login) = &hello.login
        && let Err(error) = authenticate(stage, slice, phase, login)
    {
        return phase.writer(slice).error(&error);
    }
    if let Some(name) = hello.name {
        set_name(stage, phase, name);
    }
    match hello.version {
        Some(2) => phase.version = Version::Resp2,
        Some(3) => phase.version = Version::Resp3,
        _ => {}
    }
    let version = phase.version;
    let mut writer = phase.writer(slice);
    writer.map(7);
    for (name, value) in [
        ("server", Some("redis")),
        ("version", Some(REDIS_VERSION)),
        ("proto", None),
        ("id", None),
        ("mode", Some("standalone")),
        ("role", Some("master")),
    ] {
        writer.bulk(name.as_bytes());
        match (name, value) {
            (_, Some(value)) => writer.bulk(value.as_bytes()),
            ("proto", None) => writer.integer(version.number().into()),
            (_, None) => writer.integer(stage.info.serial() as i64),
        }
    }
    writer.bulk(b"modules");
    writer.array(0);
}

fn client(stage: &Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase, client: Client<'_>) {
    match client {
        Client::SetName(name) => {
            set_name(stage, phase, name);
            phase.writer(slice).ok();
        }
        Client::Id => phase.writer(slice).integer(stage.info.serial() as i64),
        Client::GetName => {
            let name = phase
                .session
                .as_ref()
                .map(|session| Arc::clone(&session.name));
            let mut writer = phase.writer(slice);
            match name {
                Some(name) if !name.is_empty() => writer.bulk(&name),
                _ => writer.null(),
            }
        }
        Client::Noted => phase.writer(slice).ok(),
        Client::Reply(ReplyMode::On) => {
            unmute(slice, phase);
            phase.writer(slice).ok();
        }
        Client::Reply(ReplyMode::Off) => phase.session().unwanted.switch_off(),
        Client::Reply(ReplyMode::Skip) => phase.session().unwanted.skip(),
        Client::Info => {
            let line = format!(
                "{} resp={}\n",
                stage.info.line(stage.now),
                phase.version.number()
            );
            phase.writer(slice).text(&line);
        }
        Client::List(which) => phase.begin_walk(walk::list(listed(which))),
        Client::GetRedir => phase.writer(slice).integer(-1),
    }
}

/// CLIENT REPLY ON: all answers are wanted from here on.
fn unmute(slice: &mut Slice, phase: &mut Phase) {
    let session = phase.session();
    session.unwanted.switch_on();
    if let Some(mark) = session.unheard.take() {
        slice.output.cut(mark);
    }
}

fn set_name(stage: &Stage<'_, '_>, phase: &mut Phase, name: &[u8]) {
    let name: Arc<[u8]> = name.into();
    phase.session().name = Arc::clone(&name);
    stage.info.set_name(name);
}

/// The serials that a filter selects; `None` is all. It may name thousands, and there may be thousands of connections,
/// so each name is parsed once.
fn listed(which: ClientFilter<'_>) -> Option<HashSet<u64>> {
    match which {
        ClientFilter::All => None,
        ClientFilter::None => Some(HashSet::new()),
        ClientFilter::Of(ids) => {
            let ids = ids.filter_map(|id| u64::try_from(integer(id)?).ok());
            Some(ids.collect())
        }
    }
}

fn commands(writer: &mut Writer<'_>, commands: Commands<'_>) {
    match commands {
        Commands::All => {
            writer.array(described().len());
            for command in described() {
                writer.command(command);
            }
        }
        Commands::Count => writer.integer(described().len() as i64),
        Commands::List(pattern) => {
            let pattern = pattern.map(Glob::new);
            let wanted = |name: &&[u8]| pattern.as_ref().is_none_or(|it| it.matches(name));
            let names = described().iter().map(|command| command.name.as_bytes());
            let names: Vec<_> = names.filter(wanted).collect();
            writer.array(names.len());
            for name in names {
                writer.bulk(name);
            }
        }
        Commands::Nothing => writer.array(0),
        Commands::Info(names) => {
            writer.array(names.len());
            for name in names {
                let mut all = described().iter();
                match all.find(|command| name.eq_ignore_ascii_case(command.name.as_bytes())) {
                    Some(command) => writer.command(command),
                    None => writer.null(),
                }
            }
        }
        // This server has no documentation of commands.
        Commands::Docs => writer.map(0),
    }
}

/// The settings that CONFIG GET shows, in alphabetical order.
fn settings(stage: &Stage<'_, '_>) -> Vec<(&'static str, String)> {
    let shared = stage.shared;
    let policy = match shared.engine.evicts() {
        true => "allkeys-lru",
        false => "noeviction",
    };
    let timeout = shared
        .live
        .load()
        .idle_timeout
        .map_or(0, |limit| limit.as_secs());
    let memory = shared.engine.stats().memory_limit;
    vec![
        ("appendonly", "no".into()),
        ("databases", "1".into()),
        ("maxclients", shared.live.load().connections_max.to_string()),
        ("maxmemory", memory.to_string()),
        ("maxmemory-policy", policy.into()),
        ("proto-max-bulk-len", stage.limits.value_max.to_string()),
        ("save", String::new()),
        ("timeout", timeout.to_string()),
    ]
}

fn config_get(stage: &Stage<'_, '_>, writer: &mut Writer<'_>, patterns: Values<'_>) {
    let mut left = settings(stage);
    let mut found = Vec::new();
    for pattern in patterns {
        let pattern = Glob::new(&pattern.to_ascii_lowercase());
        found.extend(left.extract_if(.., |(name, _)| pattern.matches(name.as_bytes())));
        if left.is_empty() {
            break;
        }
    }
    found.sort_unstable_by_key(|(name, _)| *name);
    writer.map(found.len());
    for (name, value) in found {
        writer.bulk(name.as_bytes());
        writer.bulk(value.as_bytes());
    }
}

/// CONFIG SET. Only the memory limit can be changed. Any other setting must be given the value that it has.
fn config_set(stage: &Stage<'_, '_>, writer: &mut Writer<'_>, pairs: Values<'_>) {
    if !stage.may(Action::MemoryLimit) {
        return writer.error(&Error::CONFIG_FORBIDDEN);
    }
    let words: Vec<&[u8]> = pairs.collect();
    let pairs = words.as_chunks::<2>().0;
    let settings = settings(stage);
    let mut limit = None;
    for (at, [word, value]) in pairs.iter().enumerate() {
        let name = word.to_ascii_lowercase();
        let why = |why| Error::Config { name: word, why };
        let Some((_, now)) = settings.iter().find(|(known, _)| known.as_bytes() == name) else {
            return writer.error(&Error::ConfigUnknown(word));
        };
        if pairs[..at]
            .iter()
            .any(|[before, _]| before.eq_ignore_ascii_case(word))
        {
            return writer.error(&why("duplicate parameter"));
        }
        if name == b"maxmemory" {
            match bytes(value) {
                Some(bytes) => limit = Some(bytes),
                None => return writer.error(&why("argument must be a memory value")),
            }
        } else if now.as_bytes() != *value {
            return writer.error(&why("only maxmemory can be changed here"));
        }
    }
    if let Some(bytes) = limit {
        let refused = |why| Error::Config {
            name: b"maxmemory",
            why,
        };
        if !stage.may_limit_memory_to(bytes) {
            return writer.error(&refused(
                "a limit below the memory in use is not allowed here",
            ));
        }
        if let Err(error) = stage.shared.engine.set_memory_limit(bytes) {
            tracing::warn!(%error, bytes, "CONFIG SET maxmemory");
            return writer.error(&refused("this limit is not possible"));
        }
        stage.shared.follow_memory_limit();
    }
    writer.ok();
}

/// A size as Redis reads it: `100mb`, `1g`, `4096`.
fn bytes(text: &[u8]) -> Option<usize> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, unit) = text.split_at(digits);
    let unit: usize = match unit.to_ascii_lowercase().as_slice() {
        b"" | b"b" => 1,
        b"k" => 1000,
        b"kb" => 1 << 10,
        b"m" => 1_000_000,
        b"mb" => 1 << 20,
        b"g" => 1_000_000_000,
        b"gb" => 1 << 30,
        _ => return None,
    };
    usize::try_from(integer(number)?).ok()?.checked_mul(unit)
}

fn memory(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &Phase, memory: Memory<'_>) {
    match memory {
        Memory::Usage(key) => {
            let found = look(stage, key);
            let engine = &stage.shared.engine;
            let size = found.map(|item| engine.footprint(key.len(), item.value_len).size);
            let mut writer = phase.writer(slice);
            match size {
                Some(size) => writer.integer(size as i64),
                None => writer.null(),
            }
        }
        Memory::Doctor => phase.writer(slice).text(
            "This cache keeps to its limit of memory. See INFO memory, and memcached's stats.",
        ),
        Memory::Purge => phase.writer(slice).ok(),
    }
}

fn object(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &Phase, object: Object<'_>) {
    let Object { key, ask } = object;
    let Some(item) = look(stage, key) else {
        return phase.writer(slice).null();
    };
    match ask {
        Ask::Encoding => {
            let value = match item.value_len {
                0..=20 => read(stage, key).and_then(|found| found.value.copy(0).ok()),
                _ => None,
            };
            let encoding: &[u8] = match value {
                Some(value) if integer(&value).is_some() => b"int",
                _ if item.value_len <= EMBEDDED_MAX => b"embstr",
                _ => b"raw",
            };
            phase.writer(slice).bulk(encoding);
        }
        Ask::RefCount => phase.writer(slice).integer(1),
        Ask::IdleTime => phase.writer(slice).integer(item.idle.as_secs() as i64),
        Ask::Freq => phase.writer(slice).error(&Error::NO_FREQUENCY),
    }
}

#[expect(clippy::disallowed_methods, reason = "TIME tells the moment")]
fn time(writer: &mut Writer<'_>) {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    writer.array(2);
    writer.bulk(now.as_secs().to_string().as_bytes());
    writer.bulk(now.subsec_micros().to_string().as_bytes());
}

#[cfg(test)]
mod tests {
    use super::bytes;

    #[test]
    fn sizes_are_written_as_in_redis() {
        for (text, expected) in [
            (&b"4096"[..], Some(4096)),
            (b"64mb", Some(64 << 20)),
            (b"1G", Some(1_000_000_000)),
            (b"2kB", Some(2048)),
            (b"x", None),
            (b"1tb", None),
            (b"", None),
        ] {
            assert_eq!(bytes(text), expected, "{text:?}");
        }
    }
}
