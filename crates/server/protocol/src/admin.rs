//! Commands about the server, which may have spaces before them: flush_all, verbosity, cache_memlimit, slabs, lru,
//! lru_crawler, shutdown. Also the refusal of lines that are no command.

use crate::command::{Exptime, ServerCommand};
use crate::error::Error;
use crate::number;
use crate::reject::Reject;
use crate::words::{FirstWords, Words};

/// Parses a command of this name.
pub(crate) fn parse<'a>(name: &'a [u8], args: Words<'a>) -> Result<ServerCommand<'a>, Reject> {
    match name {
        b"slabs" => Ok(ServerCommand::Slabs(args)),
        b"lru" => Ok(ServerCommand::Lru(args)),
        b"lru_crawler" => Ok(ServerCommand::LruCrawler(args)),
        b"shutdown" => Ok(ServerCommand::Shutdown(args)),
        b"refresh_certs" => Ok(ServerCommand::RefreshCerts),
        b"flush_all" => flush_all(args),
        b"verbosity" => verbosity(args),
        b"cache_memlimit" => cache_memlimit(args),
        _ => Err(unknown(name, args)),
    }
}

/// `flush_all [<delay>] [noreply]`.
fn flush_all(args: Words<'_>) -> Result<ServerCommand<'_>, Reject> {
    let FirstWords {
        words: [delay],
        count,
        noreply,
    } = args.first::<1>();
    let delay = if count == usize::from(noreply) {
        Exptime(0)
    } else {
        number::exptime(delay).ok_or(Reject::unless(noreply, Error::BAD_EXPTIME))?
    };
    Ok(ServerCommand::FlushAll { delay, noreply })
}

/// `verbosity <level> [noreply]`.
fn verbosity(args: Words<'_>) -> Result<ServerCommand<'_>, Reject> {
    let FirstWords {
        words: [level],
        noreply,
        ..
    } = args.first::<1>();
    let level = number::unsigned_32(level).ok_or(Reject::unless(noreply, Error::BAD_FORMAT))?;
    Ok(ServerCommand::Verbosity { level, noreply })
}

/// `cache_memlimit <megabytes> [noreply]`.
fn cache_memlimit(args: Words<'_>) -> Result<ServerCommand<'_>, Reject> {
    let FirstWords {
        words: [megabytes],
        noreply,
        ..
    } = args.first::<1>();
    let megabytes = number::unsigned_32(megabytes)
        .ok_or(Reject::unless(noreply, Error::Unknown))?
        .into();
    Ok(ServerCommand::MemoryLimit { megabytes, noreply })
}

/// The refusal of a line that is no command. A line that ends like the first line of an HTTP request comes from a
/// browser or a proxy that was lured to this port: the body behind its headers must not be executed, so nothing more is
/// read.
fn unknown(name: &[u8], args: Words<'_>) -> Reject {
    let noreply = args.first::<0>().noreply || name == b"noreply" && args.iter().next().is_none();
    let http = args
        .iter()
        .last()
        .is_some_and(|last| last.starts_with(b"HTTP/"));
    Reject {
        error: Error::Unknown,
        quiet: noreply || http,
        close: http,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;
    use crate::testing::{accept_server, encoded, refusal, reject};

    #[test]
    fn flush_all_takes_a_delay() {
        let exptime = "CLIENT_ERROR invalid exptime argument\r\n";
        for (line, delay, noreply) in [
            (&b"flush_all\r\n"[..], 0, false),
            (b"flush_all noreply\r\n", 0, true),
            (b"flush_all 10\r\n", 10, false),
            (b"flush_all -1\r\n", -1, false),
            (b"flush_all 10 noreply\r\n", 10, true),
            (b"flush_all 10 x y\r\n", 10, false),
            (b"flush_all 2147483647\r\n", i32::MAX, false),
        ] {
            let delay = Exptime(delay);
            assert_eq!(
                accept_server(line),
                ServerCommand::FlushAll { delay, noreply }
            );
        }
        for (line, error) in [
            (&b"flush_all x\r\n"[..], exptime),
            (b"flush_all noreply x\r\n", exptime),
            (b"flush_all 2147483648\r\n", exptime),
            (b"flush_all -2147483649\r\n", exptime),
            (b"flush_all x noreply\r\n", ""),
            (b"flush_all noreply noreply\r\n", ""),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }

    #[test]
    fn verbosity_takes_a_level() {
        let format = "CLIENT_ERROR bad command line format\r\n";
        for (line, level, noreply) in [
            (&b"verbosity 1\r\n"[..], 1, false),
            (b"verbosity 0 noreply\r\n", 0, true),
            (b"verbosity 1 foo bar\r\n", 1, false),
        ] {
            assert_eq!(
                accept_server(line),
                ServerCommand::Verbosity { level, noreply }
            );
        }
        for (line, error) in [
            (&b"verbosity\r\n"[..], format),
            (b"verbosity foo bar my\r\n", format),
            (b"verbosity x\r\n", format),
            (b"verbosity 4294967296\r\n", format),
            (b"verbosity noreply\r\n", ""),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }

    #[test]
    fn cache_memlimit_takes_megabytes() {
        for (line, megabytes, noreply) in [
            (&b"cache_memlimit 64\r\n"[..], 64, false),
            (b"cache_memlimit 64 x y\r\n", 64, false),
            (
                b"cache_memlimit 4294967295 noreply\r\n",
                4_294_967_295,
                true,
            ),
        ] {
            assert_eq!(
                accept_server(line),
                ServerCommand::MemoryLimit { megabytes, noreply }
            );
        }
        for (line, error) in [
            (&b"cache_memlimit\r\n"[..], "ERROR\r\n"),
            (b"cache_memlimit x\r\n", "ERROR\r\n"),
            (b"cache_memlimit 4294967296\r\n", "ERROR\r\n"),
            (b"cache_memlimit noreply\r\n", ""),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }

    #[test]
    fn version_and_quit_ignore_what_follows() {
        for line in [
            &b"version\r\n"[..],
            b"version foo bar\r\n",
            b"version noreply\r\n",
        ] {
            assert_eq!(accept_server(line), ServerCommand::Version);
        }
        for line in [&b"quit\r\n"[..], b"quit noreply\r\n"] {
            assert_eq!(accept_server(line), ServerCommand::Quit);
        }
        assert_eq!(
            encoded(|out| encode::version(out, "1.2")),
            "VERSION 1.2\r\n"
        );
    }

    #[test]
    fn words_are_handed_on_as_they_are() {
        assert_eq!(
            accept_server(b"stats\r\n"),
            ServerCommand::Stats(Words(b""))
        );
        let ServerCommand::Stats(words) = accept_server(b"stats  detail on \r\n") else {
            panic!("stats are stats");
        };
        assert_eq!(words.iter().collect::<Vec<_>>(), [&b"detail"[..], b"on"]);
        let args = Words(b" x y");
        for (line, command) in [
            (&b"slabs x y\r\n"[..], ServerCommand::Slabs(args)),
            (b"lru x y\r\n", ServerCommand::Lru(args)),
            (b"lru_crawler x y\r\n", ServerCommand::LruCrawler(args)),
            (b"watch x y\r\n", ServerCommand::Watch(args)),
            (b"shutdown x y\r\n", ServerCommand::Shutdown(args)),
        ] {
            assert_eq!(accept_server(line), command);
        }
    }

    #[test]
    fn statistics_are_lines() {
        assert_eq!(
            encoded(|out| encode::stat(out, "pid", "x y")),
            "STAT pid x y\r\n"
        );
        assert_eq!(
            encoded(|out| encode::stat_number(out, "n", 12)),
            "STAT n 12\r\n"
        );
    }

    #[test]
    fn a_request_of_http_closes_without_a_word() {
        for line in [
            &b"GET / HTTP/1.1\r\n"[..],
            b"POST /a?b HTTP/1.0\n",
            b"post x HTTP/2 \r\n",
            b" / HTTP/1.1\r\n",
        ] {
            let refused = refusal(line);
            assert!(refused.close && refused.quiet, "{line:?}");
        }
        assert!(!refusal(b"foo HTTP/1.1 x\r\n").close);
        assert!(!refusal(b"HTTP/1.1\r\n").close);
    }
}
