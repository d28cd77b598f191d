//! The parser of the text protocol: it finds the end of the line at the front of the input, and its command.

use std::convert::identity;

use memchr::memchr;

use crate::awaited::Awaited;
use crate::command::{Command, Meta, Parsed, Refusal, ServerCommand, ValueCommand};
use crate::error::Error;
use crate::limits::Limits;
use crate::reject::Reject;
use crate::words::{self, Words};
use crate::{admin, binary, delete, delta, get, meta, store, touch};

/// The longest line, its end included. Lines of get, gets, gat and gats may be longer: their keys are taken as they
/// arrive.
pub const LINE_MAX: usize = 2048;

/// The shortest line, its end included. memcached refuses a shorter one, even `mn` and a newline.
const LINE_MIN: usize = 4;

/// Parses the front of `input`. More input never changes a result other than [`Parsed::Incomplete`] and
/// [`Parsed::Body`].
// Called, it costs a get of a pipeline 50 instructions, most of them to hand the command over.
#[inline(always)]
pub fn parse<'a>(input: &'a [u8], limits: &Limits) -> Parsed<'a> {
    match memchr(b'\n', &input[..input.len().min(LINE_MAX)]) {
        _ if input.first() == Some(&binary::MAGIC) => parse_binary(input),
        Some(end) => parse_line(input, end, limits),
        None => parse_without_end(input),
    }
}

/// The bytes that must arrive before [`parse()`], which returned [`Parsed::Incomplete`] for `input`, can return more.
#[cold]
pub fn awaited(input: &[u8]) -> Awaited {
    match input.first() {
        // The first byte tells the protocol.
        None => return Awaited::bytes(1),
        Some(&binary::MAGIC) => return Awaited::bytes(binary::HEADER),
        Some(_) => {}
    }
    Awaited::line(LINE_MAX)
}

/// The bytes that must arrive before [`parse()`] can return more than [`Parsed::Body`], which has these lengths.
#[inline]
pub fn awaited_block(line: usize, value_len: usize) -> Awaited {
    Awaited::bytes(line + value_len + store::BLOCK_END.len())
}

#[cold]
fn parse_binary<'a>(input: &[u8]) -> Parsed<'a> {
    binary::Foreign::parse(input).map_or(Parsed::Incomplete, Parsed::Binary)
}

/// Parses the line that ends at `input[end]`.
#[inline(always)]
fn parse_line<'a>(input: &'a [u8], end: usize, limits: &Limits) -> Parsed<'a> {
    let line = &input[..end];
    let text = line.strip_suffix(b"\r").unwrap_or(line);
    let consumed = end + 1;
    let (name, args) = text.split_at(words::word_len(text));
    let args = Words(args);
    match name {
        b"get" => complete(get::parse(args, false), Command::Get, consumed),
        b"gets" => complete(get::parse(args, true), Command::Get, consumed),
        b"mg" => complete(meta::parse_get(args), meta_command, consumed),
        _ => match store::verb(name) {
            Some(verb) => store::parse(input, consumed, verb, args, limits),
            None if consumed < LINE_MIN => {
                complete(Err(Error::BAD_FORMAT.into()), identity, consumed)
            }
            None => complete(parse_other(name, args), identity, consumed),
        },
    }
}

/// Wraps a parsed command. Parsers of the fast commands return small types of their own: one more move of a whole
/// `Command` costs as much as to parse its line.
#[inline(always)]
fn complete<'a, T>(
    outcome: Result<T, Reject>,
    wrap: impl FnOnce(T) -> Command<'a>,
    consumed: usize,
) -> Parsed<'a> {
    match outcome {
        Ok(parsed) => Parsed::Command {
            command: wrap(parsed),
            consumed,
        },
        Err(reject) => Parsed::Refused(Refusal {
            error: reject.error,
            quiet: reject.quiet,
            consumed,
            swallow: 0,
            close: reject.close,
            forget: None,
        }),
    }
}

/// Commands without a data block that need not be fast.
fn parse_other<'a>(name: &'a [u8], args: Words<'a>) -> Result<Command<'a>, Reject> {
    match name {
        b"gat" => get::parse_touching(args, false).map(Command::Get),
        b"gats" => get::parse_touching(args, true).map(Command::Get),
        b"incr" => delta::parse(args, false).map(Command::Value),
        b"decr" => delta::parse(args, true).map(Command::Value),
        b"touch" => touch::parse(args).map(Command::Value),
        b"delete" => delete::parse(args).map(Command::Value),
        b"md" => meta::parse_delete(args).map(meta_command),
        b"ma" => meta::parse_arithmetic(args).map(meta_command),
        b"me" => meta::parse_debug(args).map(meta_command),
        b"mn" => Ok(meta_command(meta::noop())),
        b"version" => Ok(Command::Server(ServerCommand::Version)),
        b"quit" => Ok(Command::Server(ServerCommand::Quit)),
        b"stats" => Ok(Command::Server(ServerCommand::Stats(args))),
        b"watch" => Ok(Command::Server(ServerCommand::Watch(args))),
        // As in memcached, only the commands of `admin` may have spaces before them.
        b"" => {
            let mut words = args.iter();
            let name = words.next().unwrap_or_default();
            admin::parse(name, words.rest()).map(Command::Server)
        }
        _ => admin::parse(name, args).map(Command::Server),
    }
}

#[inline(always)]
fn meta_command(meta: Meta<'_>) -> Command<'_> {
    Command::Value(ValueCommand::Meta(meta))
}

/// Parses input that has no line end within [`LINE_MAX`].
#[cold]
fn parse_without_end<'a>(input: &'a [u8]) -> Parsed<'a> {
    if input.len() < LINE_MAX {
        return Parsed::Incomplete;
    }
    let front = &input[..LINE_MAX];
    if !is_get(front) {
        return close(input, Error::LINE_TOO_LONG);
    }
    match get::parse_front(front) {
        Ok((get, consumed)) => Parsed::LongGet { get, consumed },
        Err(error) => close(input, error),
    }
}

/// Refuses all input of a client that cannot be parsed any more.
#[cold]
fn close<'a>(input: &[u8], error: Error) -> Parsed<'a> {
    Parsed::Refused(Refusal {
        error,
        quiet: false,
        consumed: input.len(),
        swallow: 0,
        close: true,
        forget: None,
    })
}

/// True if a line begins like a command that may be long.
fn is_get(line: &[u8]) -> bool {
    let name = &line[..words::word_len(line)];
    matches!(name, b"get" | b"gets" | b"gat" | b"gats")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{LIMITS, accept, accept_server, refusal, reject};

    #[test]
    fn a_line_ends_with_a_newline_with_or_without_a_return() {
        for line in [&b"version\r\n"[..], b"version\n", b"version  \r\n"] {
            assert_eq!(accept_server(line), ServerCommand::Version, "{line:?}");
        }
        assert_eq!(reject(b"version\r\r\n"), "ERROR\r\n");
    }

    #[test]
    fn a_command_begins_its_line() {
        for line in [
            &b" version\r\n"[..],
            b" get a\r\n",
            b"  mn\r\n",
            b" stats\r\n",
        ] {
            assert_eq!(reject(line), "ERROR\r\n", "{line:?}");
        }
        assert!(matches!(
            accept_server(b"  flush_all  5 noreply\r\n"),
            ServerCommand::FlushAll { noreply: true, .. }
        ));
    }

    #[test]
    fn a_line_of_less_than_4_bytes_is_malformed() {
        for line in [&b"\r\n"[..], b"\n", b"a\r\n", b"ab\n", b"mn\n", b"mg\n"] {
            let format = "CLIENT_ERROR bad command line format\r\n";
            assert_eq!(reject(line), format, "{line:?}");
            assert_eq!(refusal(line).consumed, line.len());
        }
    }

    #[test]
    fn what_is_no_command_is_told_so_and_dropped() {
        for line in [
            &b"   \r\n"[..],
            b"foo\r\n",
            b"GET a\r\n",
            b"gett a\r\n",
            b"\0\x01\xff\r\n",
            b"foo noreply x\r\n",
        ] {
            assert_eq!(reject(line), "ERROR\r\n", "{line:?}");
            assert_eq!(refusal(line).consumed, line.len());
            assert!(!refusal(line).close);
        }
        assert_eq!(reject(b"foo noreply\r\n"), "");
    }

    #[test]
    fn only_the_first_line_is_looked_at() {
        let Parsed::Command { command, consumed } = parse(b"mn\r\nfoo\r\nget a\r\n", &LIMITS)
        else {
            panic!("mn is complete");
        };
        assert!(matches!(command, Command::Value(ValueCommand::Meta(_))));
        assert_eq!(consumed, 4);
    }

    #[test]
    fn a_line_without_its_end_is_incomplete() {
        for line in [&b""[..], b"g", b"get", b"get a b\r", b"set a 0 0 1", b"   "] {
            assert_eq!(parse(line, &LIMITS), Parsed::Incomplete, "{line:?}");
        }
    }

    #[test]
    fn an_endless_line_closes_the_connection() {
        let line = vec![b'x'; LINE_MAX];
        assert_eq!(parse(&line[1..], &LIMITS), Parsed::Incomplete);
        let refused = refusal(&line);
        assert_eq!(refused.error, Error::LINE_TOO_LONG);
        assert!(refused.close && !refused.quiet);
        assert_eq!(refused.consumed, line.len());
        // That its end arrives later does not save it.
        assert!(refusal(&[&line[..], b"\r\n"].concat()).close);
    }

    #[test]
    fn lines_of_gets_may_be_long() {
        for (start, consumed) in [("get a", 3), ("gets a", 4), ("gat 0 a", 5), ("gats 0 a", 6)] {
            let mut line = start.as_bytes().to_vec();
            while line.len() < LINE_MAX - 2 {
                line.extend_from_slice(b" k");
            }
            line.truncate(LINE_MAX - 2);
            assert_eq!(parse(&line, &LIMITS), Parsed::Incomplete);
            let whole = [&line[..], b"\r\n"].concat();
            assert!(matches!(accept(&whole), Command::Get(_)));
            line.extend_from_slice(b" k\r\n");
            let Parsed::LongGet {
                consumed: taken, ..
            } = parse(&line, &LIMITS)
            else {
                panic!("{start}");
            };
            assert_eq!(taken, consumed);
        }
        let spaces = [&b"gat "[..], &[b' '; LINE_MAX]].concat();
        assert!(refusal(&spaces).close);
    }

    #[test]
    fn the_binary_protocol_is_known_by_its_first_byte_and_told_by_its_header() {
        let input = b"\x80\x01\0\0\0\0\0\0\0\0\0\0\r\nge\0\0\0\0\0\0\0\0\r\nget a\r\n";
        for end in 1..binary::HEADER {
            assert_eq!(parse(&input[..end], &LIMITS), Parsed::Incomplete, "{end}");
        }
        let request = binary::Foreign {
            head: binary::Head {
                opcode: binary::Opcode::SET,
                opaque: *b"\r\nge",
            },
            length: 24,
        };
        assert_eq!(parse(input, &LIMITS), Parsed::Binary(request));
    }

    #[test]
    fn before_the_first_byte_any_protocol_may_come() {
        assert!(awaited(b"").has_come(0, &[binary::MAGIC]));
        assert!(!awaited(&[binary::MAGIC]).has_come(1, b"\n"));
    }

    /// How often `request`, which arrives byte by byte, is parsed if an [`Awaited`] is checked first.
    fn looks(request: &[u8]) -> usize {
        let (mut looks, mut awaits) = (0, Awaited::default());
        for (at, byte) in request.iter().enumerate() {
            if awaits.has_come(at, std::slice::from_ref(byte)) {
                looks += 1;
                awaits = match parse(&request[..=at], &LIMITS) {
                    Parsed::Incomplete => awaited(&request[..=at]),
                    Parsed::Body {
                        line, value_len, ..
                    } => awaited_block(line, value_len),
                    _ => {
                        assert_eq!(at + 1, request.len(), "it was complete before");
                        return looks;
                    }
                };
            }
        }
        panic!("incomplete, and nobody looks");
    }

    #[test]
    fn what_comes_byte_by_byte_is_looked_at_a_few_times() {
        let long = [&b"get"[..], &b" key"[..].repeat(500), b"\r\n"].concat();
        let longer = [&b"get"[..], &b" key"[..].repeat(1000)].concat();
        let set = [b"set k 0 0 60\r\n", &[b'v'; 60][..], b"\r\n"].concat();
        for (request, expected) in [
            (&b"get a\r\n"[..], 2),
            (&long, 2),
            (&longer[..LINE_MAX], 2),
            (&[b'x'; LINE_MAX], 2),
            (&set, 3),
            (&[binary::MAGIC; binary::HEADER], 2),
        ] {
            assert_eq!(looks(request), expected, "{}", request.len());
        }
    }
}
