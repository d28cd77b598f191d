//! Commands about the server: flush_all, version, verbosity, stats, cache_memlimit, slabs, lru,
//! lru_crawler, watch, shutdown, quit; and lines that are no command.

use crate::command::{Command, Exptime};
use crate::error::Error;
use crate::number;
use crate::parse::Reject;
use crate::words::Words;

/// Parses a command that has no key.
pub(crate) fn parse<'a>(name: &'a [u8], args: Words<'a>) -> Result<Command<'a>, Reject> {
    match name {
        b"version" => Ok(Command::Version),
        b"quit" => Ok(Command::Quit),
        b"stats" => Ok(Command::Stats(args)),
        b"slabs" => Ok(Command::Slabs(args)),
        b"lru" => Ok(Command::Lru(args)),
        b"lru_crawler" => Ok(Command::LruCrawler(args)),
        b"watch" => Ok(Command::Watch(args)),
        b"flush_all" => flush_all(args),
        b"verbosity" => verbosity(args),
        b"cache_memlimit" => cache_memlimit(args),
        b"shutdown" => shutdown(args),
        _ => Err(unknown(name, args)),
    }
}

/// `flush_all [<delay>] [noreply]`.
fn flush_all(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (words, count) = args.collect::<2>().ok_or(Error::Unknown)?;
    let (delay, noreply) = match words[..count] {
        [] => (None, false),
        [b"noreply"] => (None, true),
        [delay] => (Some(delay), false),
        [delay, last, ..] => (Some(delay), last == b"noreply"),
    };
    let delay = match delay {
        None => Exptime(0),
        Some(delay) => number::exptime(delay).ok_or(Reject::unless(noreply, Error::BAD_EXPTIME))?,
    };
    Ok(Command::FlushAll { delay, noreply })
}

/// `verbosity <level> [noreply]`.
fn verbosity(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (level, noreply) = number_and_noreply(args)?;
    let level = number::unsigned_32(level).ok_or(Reject::unless(noreply, Error::BAD_FORMAT))?;
    Ok(Command::Verbosity { level, noreply })
}

/// `cache_memlimit <megabytes> [noreply]`.
fn cache_memlimit(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (megabytes, noreply) = number_and_noreply(args)?;
    let megabytes = number::unsigned_32(megabytes)
        .ok_or(Reject::unless(noreply, Error::Unknown))?
        .into();
    Ok(Command::MemoryLimit { megabytes, noreply })
}

/// The first of one word or two, and whether the last is noreply.
fn number_and_noreply(args: Words<'_>) -> Result<(&[u8], bool), Reject> {
    let (words, count) = args.collect::<2>().ok_or(Error::Unknown)?;
    let last = words[..count].last().ok_or(Error::Unknown)?;
    Ok((words[0], *last == b"noreply"))
}

/// `shutdown [graceful]`.
fn shutdown(args: Words<'_>) -> Result<Command<'_>, Reject> {
    let (words, count) = args.collect::<1>().ok_or(Error::BAD_SHUTDOWN)?;
    match words[..count] {
        [] => Ok(Command::Shutdown { graceful: false }),
        [b"graceful"] => Ok(Command::Shutdown { graceful: true }),
        _ => Err(Error::BAD_SHUTDOWN.into()),
    }
}

/// No command. A line that ends like that of an HTTP request comes from a browser or a proxy that
/// was lured here: what follows its headers must not be carried out, so nothing more is read.
fn unknown(name: &[u8], args: Words<'_>) -> Reject {
    let last = args.iter().last().unwrap_or(name);
    let http = last.starts_with(b"HTTP/");
    Reject {
        error: Error::Unknown,
        quiet: http,
        close: http,
    }
}
