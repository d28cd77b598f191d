//! Commands that are not about keys and values, and commands that look at an item's internals.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nuthatch_engine::namespace::DATABASES;
use nuthatch_engine::{Engine, Inspect};
use nuthatch_protocol::resp::{
    Ask, Client, ClientFilter, Commands, Config, Error, Glob, Hello, Memory, Object, ReplyMode,
    ServerCommand, Values, Version, Writer, described, integer,
};
use nuthatch_settings::administration::Action;

use super::auth::authenticate;
use super::databases;
use super::info::{self, REDIS_VERSION, Told};
use super::phase::Phase;
use super::spot::{look, read};
use super::walk;
use crate::context::Context;
use crate::turn::Turn;

/// The longest text that Redis stores in one allocation with its header.
const EMBEDDED_MAX: usize = 44;

/// Executes `command`.
pub fn command(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    command: ServerCommand<'_>,
) {
    let mut writer = phase.writer(turn);
    match command {
        ServerCommand::Ping(None) => writer.status("PONG"),
        ServerCommand::Ping(Some(words)) | ServerCommand::Echo(words) => writer.bulk(words),
        ServerCommand::Keys { .. } | ServerCommand::Scan(_) | ServerCommand::RandomKey
            if !cx.shared.live.load().allow_dump =>
        {
            writer.error(&Error::DUMP_FORBIDDEN);
        }
        ServerCommand::Keys { pattern } => phase.begin_walk(walk::keys(pattern, cx.namespace)),
        ServerCommand::Scan(scan) => walk::scan(cx, turn, phase.version, &scan),
        ServerCommand::RandomKey => random(cx, turn, phase),
        ServerCommand::DbSize => size(cx, turn, phase),
        ServerCommand::Hello(hello) => greet(cx, turn, phase, &hello),
        ServerCommand::Auth(login) => match authenticate(cx, turn, phase, &login) {
            Ok(()) => phase.writer(turn).ok(),
            Err(error) => phase.writer(turn).error(&error),
        },
        ServerCommand::Database(command) => match databases::command(cx, phase, command) {
            Ok(()) => phase.writer(turn).ok(),
            Err(error) => phase.writer(turn).error(&error),
        },
        ServerCommand::Quit => {
            writer.ok();
            turn.quit();
        }
        ServerCommand::Reset => {
            let errors = phase.errors;
            cx.info.set_name(Arc::default());
            cx.info.set_administrator(false);
            cx.info.set_database(0);
            *phase = Phase::new(cx.shared.security.has_passwords());
            phase.errors = errors;
            phase.writer(turn).status("RESET");
        }
        ServerCommand::Client(client) => self::client(cx, turn, phase, client),
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
        ServerCommand::Config(Config::Get(patterns)) => config_get(cx, &mut writer, patterns),
        ServerCommand::Config(Config::Set(pairs)) => config_set(cx, &mut writer, pairs),
        ServerCommand::Config(Config::ResetStat) if !cx.may(Action::ResetStats) => {
            writer.error(&Error::RESET_FORBIDDEN);
        }
        ServerCommand::Config(Config::ResetStat) => {
            cx.shared.reset_stats();
            writer.ok();
        }
        ServerCommand::Info(sections) => tell(cx, turn, phase, sections),
        ServerCommand::Memory(memory) => self::memory(cx, turn, phase, memory),
        ServerCommand::Object(object) => self::object(cx, turn, phase, object),
        ServerCommand::Script(scripts) => super::scripts::command(cx, turn, phase.version, scripts),
        ServerCommand::Time => time(&mut writer),
    }
}

fn random(cx: &Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) {
    match walk::random(cx) {
        Some(walk) => phase.begin_walk(walk),
        None => phase.writer(turn).null(),
    }
}

fn size(cx: &Context<'_, '_>, turn: &mut Turn, phase: &mut Phase) {
    match walk::size(cx) {
        Ok(walk) => phase.begin_walk(walk),
        Err(items) => phase.writer(turn).integer(items as i64),
    }
}

fn tell(cx: &Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, sections: Values<'_>) {
    match info::info(cx, sections) {
        Told::Now(text) => phase.writer(turn).text(&text),
        Told::After(walk) => phase.begin_walk(*walk),
    }
}

fn greet(cx: &Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, hello: &Hello<'_>) {
    if let Some(login) = &hello.login
        && let Err(error) = authenticate(cx, turn, phase, login)
    {
        return phase.writer(turn).error(&error);
    }
    if let Some(name) = hello.name {
        set_name(cx, phase, name);
    }
    match hello.version {
        Some(2) => phase.version = Version::Resp2,
        Some(3) => phase.version = Version::Resp3,
        _ => {}
    }
    let version = phase.version;
    let mut writer = phase.writer(turn);
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
            (_, None) => writer.integer(cx.info.serial() as i64),
        }
    }
    writer.bulk(b"modules");
    writer.array(0);
}

fn client(cx: &Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, client: Client<'_>) {
    match client {
        Client::SetName(name) => {
            set_name(cx, phase, name);
            phase.writer(turn).ok();
        }
        Client::Id => phase.writer(turn).integer(cx.info.serial() as i64),
        Client::GetName => {
            let name = phase
                .session
                .as_ref()
                .map(|session| Arc::clone(&session.name));
            let mut writer = phase.writer(turn);
            match name {
                Some(name) if !name.is_empty() => writer.bulk(&name),
                _ => writer.null(),
            }
        }
        Client::Noted => phase.writer(turn).ok(),
        Client::Reply(ReplyMode::On) => {
            unmute(turn, phase);
            phase.writer(turn).ok();
        }
        Client::Reply(ReplyMode::Off) => phase.session().unwanted.switch_off(),
        Client::Reply(ReplyMode::Skip) => phase.session().unwanted.skip(),
        Client::Info => {
            let line = format!("{} resp={}\n", cx.info.line(cx.now), phase.version.number());
            phase.writer(turn).text(&line);
        }
        Client::List(which) => phase.begin_walk(walk::list(listed(which))),
        Client::GetRedir => phase.writer(turn).integer(-1),
    }
}

/// CLIENT REPLY ON: all answers are wanted from here on.
fn unmute(turn: &mut Turn, phase: &mut Phase) {
    let session = phase.session();
    session.unwanted.switch_on();
    if let Some(mark) = session.muted_from.take() {
        turn.output.cut(mark);
    }
}

fn set_name(cx: &Context<'_, '_>, phase: &mut Phase, name: &[u8]) {
    let name: Arc<[u8]> = name.into();
    phase.session().name = Arc::clone(&name);
    cx.info.set_name(name);
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
fn settings(cx: &Context<'_, '_>) -> Vec<(&'static str, String)> {
    let shared = cx.shared;
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
        ("databases", DATABASES.to_string()),
        ("maxclients", shared.live.load().connections_max.to_string()),
        ("maxmemory", memory.to_string()),
        ("maxmemory-policy", policy.into()),
        ("proto-max-bulk-len", cx.limits.value_max.to_string()),
        ("save", String::new()),
        ("timeout", timeout.to_string()),
    ]
}

fn config_get(cx: &Context<'_, '_>, writer: &mut Writer<'_>, patterns: Values<'_>) {
    let mut left = settings(cx);
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
fn config_set(cx: &Context<'_, '_>, writer: &mut Writer<'_>, pairs: Values<'_>) {
    if !cx.may(Action::MemoryLimit) {
        return writer.error(&Error::CONFIG_FORBIDDEN);
    }
    let words: Vec<&[u8]> = pairs.collect();
    let pairs = words.as_chunks::<2>().0;
    let settings = settings(cx);
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
        if !cx.may_limit_memory_to(bytes) {
            return writer.error(&refused(
                "a limit below the memory in use is not allowed here",
            ));
        }
        if let Err(error) = cx.shared.engine.set_memory_limit(bytes) {
            tracing::warn!(%error, bytes, "CONFIG SET maxmemory");
            return writer.error(&refused("this limit is not possible"));
        }
        cx.shared.follow_memory_limit();
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

fn memory(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &Phase, memory: Memory<'_>) {
    match memory {
        Memory::Usage(key) => {
            let found = look(cx, key);
            let engine = &cx.shared.engine;
            let key_len = cx.key(key).bytes().len();
            let size = found.map(|item| engine.footprint(key_len, item.value_len).size);
            let mut writer = phase.writer(turn);
            match size {
                Some(size) => writer.integer(size as i64),
                None => writer.null(),
            }
        }
        Memory::Doctor => phase.writer(turn).text(
            "This cache keeps to its limit of memory. See INFO memory, and memcached's stats.",
        ),
        Memory::Purge => phase.writer(turn).ok(),
    }
}

fn object(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &Phase, object: Object<'_>) {
    let Object { key, ask } = object;
    let Some(item) = look(cx, key) else {
        return phase.writer(turn).null();
    };
    match ask {
        Ask::Encoding => {
            let value = match item.value_len {
                0..=20 => read(cx, key).and_then(|found| found.value.copy(0).ok()),
                _ => None,
            };
            let encoding: &[u8] = match value {
                Some(value) if integer(&value).is_some() => b"int",
                _ if item.value_len <= EMBEDDED_MAX => b"embstr",
                _ => b"raw",
            };
            phase.writer(turn).bulk(encoding);
        }
        Ask::RefCount => phase.writer(turn).integer(1),
        Ask::IdleTime => phase.writer(turn).integer(item.idle.as_secs() as i64),
        Ask::Freq => phase.writer(turn).error(&Error::NO_FREQUENCY),
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
