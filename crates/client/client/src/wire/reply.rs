//! Bytes to replies.

use std::time::Duration;

/// The longest line of a reply, in bytes.
pub(crate) const LINE_MAX: usize = 2048;
/// The most digits of a value's length.
const DIGITS_MAX: usize = 10;

/// The most bytes of a reply with statistics.
const STATS_MAX: usize = 1 << 20;

/// A whole reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub code: Code,
    pub details: Details,
}

/// What a reply says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// `HD`: done.
    Done,
    /// `VA`: a value.
    Value(Vec<u8>),
    /// `EN`: a get found nothing.
    Miss,
    /// `NF`: no such item.
    NotFound,
    /// `NS`: the item was not stored.
    NotStored,
    /// `EX`: the item has another number.
    Changed,
    /// `MN`: the reply to a request for nothing.
    Nothing,
    /// `SERVER_ERROR`, `CLIENT_ERROR` or `ERROR` with their words.
    Refused(String),
    /// Lines of `STAT NAME VALUE` up to `END`.
    Stats(Vec<(String, String)>),
    /// A line of the older commands: `OK`, `STORED`, `VERSION …`, `RESET`, `ERROR`.
    Line(String),
}

impl Reply {
    /// The number of the place that the server keeps for who asked, if it found no item there ([`super::Request::place`]).
    pub fn place(&self) -> Option<u64> {
        let is_empty = matches!(&self.code, Code::Value(value) if value.is_empty());
        let is_kept = is_empty && self.details.won && !self.details.stale;
        is_kept.then_some(self.details.cas).flatten()
    }
}

impl Code {
    /// Whether the server did not know the command.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Line(line) if line == "ERROR")
    }

    /// It in words, which are short, whatever the server sent.
    pub fn in_words(&self) -> String {
        match self {
            // It would be long, and is nobody else's business.
            Self::Value(value) => format!("a value of {} bytes", value.len()),
            Self::Stats(stats) => format!("{} statistics", stats.len()),
            other => format!("{other:?}"),
        }
    }
}

/// What is wrong with a server that knows no meta command.
pub(crate) const NO_META: &str = "ERROR: the server does not know the meta commands";

/// What a reply says beside.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Details {
    pub flags: u32,
    pub cas: Option<u64>,
    /// The time that is left.
    pub left: Option<Left>,
    /// The request's number.
    pub opaque: Option<u16>,
    /// This client is to renew the item.
    pub won: bool,
    /// The item is stale.
    pub stale: bool,
    /// Another client is to renew the item.
    pub taken: bool,
    /// Bytes of the value.
    pub size: Option<usize>,
    /// It had been read before.
    pub is_read_before: bool,
    /// The time since it was used last.
    pub idle: Option<Duration>,
}

/// How long an item has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// It has no end.
    Forever,
    /// So long, in whole seconds.
    Time(Duration),
}

/// The first reply in these bytes, and how long it is. None: more bytes are needed. An error: this is no reply, and nothing
/// that follows can be believed.
///
/// It asks for no more than a line of [`LINE_MAX`] bytes and a value of `value_max`.
pub(crate) fn parse(bytes: &[u8], value_max: usize) -> Result<Option<(Reply, usize)>, String> {
    let Some(end) = memchr::memchr(b'\n', &bytes[..bytes.len().min(LINE_MAX)]) else {
        return if bytes.len() < LINE_MAX {
            Ok(None)
        } else {
            Err(format!("a line of over {LINE_MAX} bytes"))
        };
    };
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let next = end + 1;
    let (word, rest) = match memchr::memchr(b' ', line) {
        Some(space) => (&line[..space], &line[space + 1..]),
        None => (line, &b""[..]),
    };
    let code = match word {
        b"VA" => return value(bytes, line, rest, next, value_max),
        b"HD" => Code::Done,
        b"EN" => Code::Miss,
        b"NF" => Code::NotFound,
        b"NS" => Code::NotStored,
        b"EX" => Code::Changed,
        b"MN" => Code::Nothing,
        b"SERVER_ERROR" | b"CLIENT_ERROR" => return Ok(Some((words(rest, true), next))),
        b"STAT" | b"END" => return stats(bytes),
        // Some say more, as that there are too many connections. Alone it says that the command is unknown.
        b"ERROR" if !rest.is_empty() => return Ok(Some((words(rest, true), next))),
        b"OK" | b"STORED" | b"VERSION" | b"RESET" | b"ERROR" => {
            return Ok(Some((words(line, false), next)));
        }
        _ => return Err(odd(line)),
    };
    let details = details(rest).ok_or_else(|| odd(line))?;
    Ok(Some((Reply { code, details }, next)))
}

/// A reply with a value of `LENGTH FLAG*`, whose bytes begin at `from`.
fn value(
    bytes: &[u8],
    line: &[u8],
    rest: &[u8],
    from: usize,
    value_max: usize,
) -> Result<Option<(Reply, usize)>, String> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let length: usize = match digits {
        1..=DIGITS_MAX => number(&rest[..digits]).ok_or_else(|| odd(line))?,
        _ => return Err(odd(line)),
    };
    if length > value_max {
        return Err(format!(
            "a value of {length} bytes, where at most {value_max} are expected"
        ));
    }
    let details = match &rest[digits..] {
        b"" => Details::default(),
        [b' ', flags @ ..] => details(flags).ok_or_else(|| odd(line))?,
        _ => return Err(odd(line)),
    };
    let until = from + length;
    match bytes.get(until..until + 2) {
        Some(b"\r\n") => {
            let code = Code::Value(bytes[from..until].to_vec());
            Ok(Some((Reply { code, details }, until + 2)))
        }
        Some(_) => Err(format!("a value of {length} bytes has another length")),
        None => Ok(None),
    }
}

/// A reply of lines `STAT NAME VALUE`, which ends with `END`.
fn stats(bytes: &[u8]) -> Result<Option<(Reply, usize)>, String> {
    let Some(length) = length_of_stats(&bytes[..bytes.len().min(STATS_MAX)])? else {
        return match bytes.len() < STATS_MAX {
            true => Ok(None),
            false => Err(format!("statistics of over {STATS_MAX} bytes")),
        };
    };
    let lines = String::from_utf8_lossy(&bytes[..length]);
    let stat = |line: &str| {
        let stat = line.strip_prefix("STAT ")?;
        let (name, value) = stat.split_once(' ').unwrap_or((stat, ""));
        Some((name.to_owned(), value.to_owned()))
    };
    let code = Code::Stats(lines.lines().filter_map(stat).collect());
    let details = Details::default();
    Ok(Some((Reply { code, details }, length)))
}

/// How long statistics are, up to the end of `END`. None: more bytes are needed. It takes no memory, because it looks at the first
/// lines again with each read that brings more.
fn length_of_stats(bytes: &[u8]) -> Result<Option<usize>, String> {
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'\n', &bytes[at..]) {
        let line = &bytes[at..at + length];
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        at += length + 1;
        match line {
            b"END" => return Ok(Some(at)),
            line if line.starts_with(b"STAT ") => {}
            line => return Err(odd(line)),
        }
    }
    Ok(None)
}

/// Flags of a reply, of which unknown ones are passed over. None: one of them is malformed.
fn details(flags: &[u8]) -> Option<Details> {
    let mut details = Details::default();
    for flag in flags.split(|&byte| byte == b' ') {
        let Some((&name, token)) = flag.split_first() else {
            continue;
        };
        match name {
            b'f' => details.flags = number(token)?,
            b'c' => details.cas = Some(number(token)?),
            b't' => details.left = Some(left(token)?),
            b'O' => details.opaque = Some(hexadecimal(token)?),
            b'W' => details.won = true,
            b'X' => details.stale = true,
            b'Z' => details.taken = true,
            b's' => details.size = Some(number(token)?),
            b'h' => details.is_read_before = token == b"1",
            b'l' => details.idle = Some(Duration::from_secs(number(token)?)),
            _ => {}
        }
    }
    Some(details)
}

fn left(token: &[u8]) -> Option<Left> {
    match token {
        b"-1" => Some(Left::Forever),
        _ => Some(Left::Time(Duration::from_secs(number(token)?))),
    }
}

fn number<N: std::str::FromStr>(token: &[u8]) -> Option<N> {
    // A sign is no digit.
    if !token.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(token).ok()?.parse().ok()
}

fn hexadecimal(token: &[u8]) -> Option<u16> {
    if !token.first()?.is_ascii_hexdigit() {
        return None;
    }
    u16::from_str_radix(std::str::from_utf8(token).ok()?, 16).ok()
}

fn words(line: &[u8], is_refusal: bool) -> Reply {
    let line = String::from_utf8_lossy(line).into_owned();
    Reply {
        code: if is_refusal {
            Code::Refused(line)
        } else {
            Code::Line(line)
        },
        details: Details::default(),
    }
}

fn odd(line: &[u8]) -> String {
    let shown = String::from_utf8_lossy(&line[..line.len().min(80)]);
    format!("{shown:?} is no reply")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reply of these bytes, which is whole with the last of them.
    fn parsed(bytes: &str) -> Reply {
        let bytes = bytes.as_bytes();
        for cut in 0..bytes.len() {
            assert_eq!(parse(&bytes[..cut], 100), Ok(None), "cut at {cut}");
        }
        let (reply, length) = parse(&[bytes, b"HD\r\n"].concat(), 100).unwrap().unwrap();
        assert_eq!(length, bytes.len());
        reply
    }

    fn bare(code: Code) -> Reply {
        Reply {
            code,
            details: Details::default(),
        }
    }

    #[test]
    fn replies_are_whole_with_their_last_byte() {
        for (bytes, code) in [
            ("HD\r\n", Code::Done),
            ("HD\n", Code::Done),
            ("EN\r\n", Code::Miss),
            ("NF\r\n", Code::NotFound),
            ("NS \r\n", Code::NotStored),
            ("END\r\n", Code::Stats(vec![])),
            (
                "STAT pid 7\r\nSTAT a b c\r\nEND\r\n",
                Code::Stats(vec![
                    ("pid".to_owned(), "7".to_owned()),
                    ("a".to_owned(), "b c".to_owned()),
                ]),
            ),
            ("EX\r\n", Code::Changed),
            ("MN\r\n", Code::Nothing),
            ("VA 0\r\n\r\n", Code::Value(vec![])),
            ("VA 4\r\na\r\nb\r\n", Code::Value(b"a\r\nb".to_vec())),
            (
                "SERVER_ERROR out of memory\r\n",
                Code::Refused("out of memory".to_owned()),
            ),
            ("CLIENT_ERROR \r\n", Code::Refused(String::new())),
            (
                "ERROR Too many open connections\r\n",
                Code::Refused("Too many open connections".to_owned()),
            ),
            ("OK\r\n", Code::Line("OK".to_owned())),
            ("ERROR\r\n", Code::Line("ERROR".to_owned())),
            (
                "VERSION 1.6.18\r\n",
                Code::Line("VERSION 1.6.18".to_owned()),
            ),
        ] {
            assert_eq!(parsed(bytes), bare(code), "{bytes:?}");
        }
    }

    #[test]
    fn details_are_read_and_unknown_ones_passed_over() {
        let reply = parsed("VA 1 f7 c99 t-1 Oab kkey s1 h1 l9 W X Z y\r\nv\r\n");
        let all = Details {
            flags: 7,
            cas: Some(99),
            left: Some(Left::Forever),
            opaque: Some(0xab),
            won: true,
            stale: true,
            taken: true,
            size: Some(1),
            is_read_before: true,
            idle: Some(Duration::from_secs(9)),
        };
        assert_eq!(reply.details, all);
        let left = parsed("HD t5\r\n").details.left;
        assert_eq!(left, Some(Left::Time(Duration::from_secs(5))));
    }

    /// The kind of fault is a server that lies.
    #[test]
    fn what_is_no_reply_is_an_error() {
        let long = "x".repeat(LINE_MAX);
        for bytes in [
            "\r\n",
            "HELLO\r\n",
            "VALUE k 0 1\r\n",
            "STAT a 1\r\nHD\r\n",
            "VA\r\n",
            "VA -1\r\n",
            "VA +1\r\n",
            "VA x\r\n",
            "VA 1x\r\n",
            "VA 101\r\n",
            "VA 99999999999999999999\r\n",
            "VA 1\r\nabc",
            "VA 1 fx\r\na\r\n",
            "HD c-1\r\n",
            "HD t\r\n",
            "HD O+1\r\n",
            "HD O12345\r\n",
            "HD f4294967296\r\n",
            &long,
        ] {
            let found = parse(bytes.as_bytes(), 100);
            assert!(found.is_err(), "{bytes:?}: {found:?}");
        }
    }
}
