//! Commands that are not about keys and values, and commands that look at an item's internals.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_engine::Inspect;
use nuthatch_resp::{
    Ask, Client, ClientFilter, ClientKind, Commands, Error, Fact, Glob, Hello, Memory, Object,
    ReplyMode, ServerCommand, Values, Version, Writer, described, integer,
};

use crate::answered::status;
use crate::auth::authenticate;
use crate::databases;
use crate::info::{self, REDIS_VERSION, Told};
use crate::phase::Phase;
use crate::spot::{look, read};
use crate::walk::{self, Listed};
use crate::{channels, clients, config, insight, kill, pause, scripts, tracking};

/// The longest text that Redis stores in one allocation with its header.
const EMBEDDED_MAX: usize = 44;

/// Executes `command`, or answers it BUSY.
pub fn command(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    command: ServerCommand<'_>,
) {
    let mut writer = phase.writer(turn);
    match command {
        _ if is_kept(cx, &command) => writer.error(&Error::SCRIPT_BUSY),
        ServerCommand::Ping(words) if phase.is_restricted() => {
            writer.array(2);
            writer.bulk(b"pong");
            writer.bulk(words.unwrap_or_default());
        }
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
            cx.info
                .tell(|told| (told.name, told.user) = Default::default());
            cx.info.set_administrator(false);
            cx.info.set_subscriptions([0; 3]);
            cx.info.set_database(0);
            cx.info.set_version(Version::default().number());
            phase.reset(cx.shared.security.has_passwords());
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
        ServerCommand::Config(command) => config::command(cx, turn, phase, command),
        ServerCommand::Channel(command) => channels::command(cx, turn, phase, command),
        ServerCommand::Insight(command) => insight::command(cx, turn, phase, command),
        ServerCommand::Info(sections) => tell(cx, turn, phase, sections),
        ServerCommand::Memory(memory) => self::memory(cx, turn, phase, memory),
        ServerCommand::Object(object) => self::object(cx, turn, phase, object),
        ServerCommand::Script(scripts) => scripts::command(cx, turn, phase, scripts),
        ServerCommand::Time => time(&mut writer),
    }
}

/// True if a script is in the way of a command that looks at items.
fn is_kept(cx: &Context<'_, '_>, command: &ServerCommand<'_>) -> bool {
    let looks_at_items = matches!(
        command,
        ServerCommand::Keys { .. }
            | ServerCommand::Scan(_)
            | ServerCommand::RandomKey
            | ServerCommand::DbSize
            | ServerCommand::Object(_)
            | ServerCommand::Memory(_)
    );
    looks_at_items && cx.is_script_in_the_way()
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
        Told::After(_) if cx.is_script_in_the_way() => {
            phase.writer(turn).error(&Error::SCRIPT_BUSY);
        }
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
        Some(2) => phase.set_version(Version::Resp2),
        Some(3) => phase.set_version(Version::Resp3),
        _ => {}
    }
    let version = phase.version;
    cx.info.set_version(version.number());
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

/// Bytes that are kept of what a library says of itself: every connection may say it.
const FACT_KEPT: usize = 64;

fn client(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &mut Phase, client: Client<'_>) {
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
        Client::SetInfo(fact, text) => {
            let text: Arc<[u8]> = text[..text.len().min(FACT_KEPT)].into();
            cx.info.tell(|told| match fact {
                Fact::Library => told.library = text,
                Fact::LibraryVersion => told.library_version = text,
            });
            phase.writer(turn).ok();
        }
        Client::NoTouch(on) => {
            phase.session().no_touch = on;
            phase.writer(turn).ok();
        }
        Client::Noted => phase.writer(turn).ok(),
        Client::Reply(ReplyMode::On) => {
            unmute(turn, phase);
            phase.writer(turn).ok();
        }
        Client::Reply(ReplyMode::Off) => phase.session().unwanted.switch_off(),
        Client::Reply(ReplyMode::Skip) => phase.session().unwanted.skip(),
        Client::Info => {
            let line = clients::line(cx.info, cx.now) + "\n";
            phase.writer(turn).text(&line);
        }
        Client::List(which) => phase.begin_walk(walk::list(listed(which))),
        Client::GetRedir => {
            let redirection = tracking::redirection(phase);
            phase.writer(turn).integer(redirection);
        }
        Client::Tracking(asked) => tracking::switch(cx, turn, phase, &asked),
        Client::TrackingInfo => tracking::info(cx, turn, phase),
        Client::Caching(yes) => {
            let outcome = tracking::announce(phase, yes);
            status(turn, phase, outcome);
        }
        Client::Pause(pause) => pause::begin(cx, turn, phase, pause),
        Client::Unpause => pause::end(cx, turn, phase),
        Client::Kill(kill) => kill::kill(cx, turn, phase, &kill),
    }
}

/// CLIENT REPLY ON: all answers are wanted from here on.
fn unmute(turn: &mut Turn, phase: &mut Phase) {
    let session = phase.session();
    session.unwanted.switch_on();
    session.keep_what_follows(turn);
}

fn set_name(cx: &Context<'_, '_>, phase: &mut Phase, name: &[u8]) {
    let name: Arc<[u8]> = name.into();
    phase.session().name = Arc::clone(&name);
    cx.info.tell(|told| told.name = name);
}

/// What a filter selects. It may name thousands, and there may be thousands of connections, so each name is parsed once.
fn listed(which: ClientFilter<'_>) -> Listed {
    match which {
        ClientFilter::All => Listed::All,
        ClientFilter::Kind(ClientKind::Normal) => Listed::Subscribers(false),
        ClientFilter::Kind(ClientKind::PubSub) => Listed::Subscribers(true),
        ClientFilter::Kind(ClientKind::Other) => Listed::Of(HashSet::new()),
        ClientFilter::Of(ids) => {
            let ids = ids.filter_map(|id| u64::try_from(integer(id)?).ok());
            Listed::Of(ids.collect())
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
        Commands::GetKeys(words) => insight::keys(writer, words),
    }
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
        Memory::Stats => insight::memory(cx, &mut phase.writer(turn)),
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
