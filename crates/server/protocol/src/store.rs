//! The parsers of the commands with a data block: set, add, replace, append, prepend, cas, ms.

use crate::command::{Command, Forget, MetaMode, Parsed, Refusal, Store, StoreVerb, ValueCommand};
use crate::error::Error;
use crate::limits::Limits;
use crate::words::{FirstWords, Words};
use crate::{key, meta_flags, number};

/// `\r\n` behind a data block.
pub(crate) const BLOCK_END: &[u8] = b"\r\n";

/// The storage command of this name. A cas demands 0 until its line is parsed.
#[inline]
pub(crate) fn verb(name: &[u8]) -> Option<StoreVerb> {
    match name {
        b"set" => Some(StoreVerb::Set),
        b"ms" => Some(StoreVerb::Meta),
        b"add" => Some(StoreVerb::Add),
        b"cas" => Some(StoreVerb::Cas(0)),
        b"append" => Some(StoreVerb::Append),
        b"prepend" => Some(StoreVerb::Prepend),
        b"replace" => Some(StoreVerb::Replace),
        _ => None,
    }
}

/// A refused line, and the length of its data block if that is known.
struct Reject {
    error: Error,
    quiet: bool,
    block: Option<u64>,
}

/// Parses a storage command whose line takes `line` bytes of `input`.
#[inline]
pub(crate) fn parse<'a>(
    input: &'a [u8],
    line: usize,
    verb: StoreVerb,
    args: Words<'a>,
    limits: &Limits,
) -> Parsed<'a> {
    let parsed = match verb {
        StoreVerb::Meta => parse_meta(args),
        _ => parse_text(verb, args),
    };
    match parsed {
        Ok((store, value_len)) if value_len as usize <= limits.value_max => {
            attach(input, line, store, value_len as usize)
        }
        Ok((store, value_len)) => {
            let mut refusal = refuse(line, Error::TOO_LARGE, store.noreply);
            refusal.swallow = block_len(value_len.into());
            refusal.forget = is_plain_set(&store).then(|| forget(input, &store));
            Parsed::Refused(refusal)
        }
        Err(reject) => {
            let mut refusal = refuse(line, reject.error, reject.quiet);
            refusal.swallow = reject.block.map_or(0, block_len);
            Parsed::Refused(refusal)
        }
    }
}

/// Bytes of a data block with its end.
fn block_len(value_len: u64) -> u64 {
    value_len.saturating_add(BLOCK_END.len() as u64)
}

/// Adds the value to its command, if the whole data block has arrived.
#[inline]
fn attach<'a>(input: &'a [u8], line: usize, mut store: Store<'a>, value_len: usize) -> Parsed<'a> {
    let block = &input[line..];
    if block.len().saturating_sub(BLOCK_END.len()) < value_len || block.len() < BLOCK_END.len() {
        return Parsed::Body {
            store,
            line,
            value_len,
        };
    }
    let (value, rest) = block.split_at(value_len);
    let consumed = line + value_len + BLOCK_END.len();
    if !rest.starts_with(BLOCK_END) {
        return Parsed::Refused(refuse(consumed, Error::BAD_DATA_CHUNK, store.noreply));
    }
    store.value = value;
    Parsed::Command {
        command: Command::Value(ValueCommand::Store(store)),
        consumed,
    }
}

#[cold]
fn refuse(consumed: usize, error: Error, quiet: bool) -> Refusal {
    Refusal {
        error,
        quiet,
        consumed,
        swallow: 0,
        close: false,
        forget: None,
    }
}

/// True if the store would have replaced any existing value.
fn is_plain_set(store: &Store<'_>) -> bool {
    match &store.meta {
        Some(flags) => {
            matches!(flags.mode, None | Some(MetaMode::Set)) && flags.compare_cas.is_none()
        }
        None => store.verb == StoreVerb::Set,
    }
}

fn forget(input: &[u8], store: &Store<'_>) -> Forget {
    Forget {
        start: store.key.as_ptr() as usize - input.as_ptr() as usize,
        len: store.key.len(),
        base64: store.meta.is_some_and(|flags| flags.base64),
    }
}

/// `<key> <flags> <exptime> <bytes> [<cas>] [noreply]`, with the length of the value.
#[inline]
fn parse_text(verb: StoreVerb, args: Words<'_>) -> Result<(Store<'_>, u32), Reject> {
    let FirstWords { words, noreply, .. } = args.first::<5>();
    // Without a valid length, noreply is ignored.
    let value_len = number::block_len(words[3]).ok_or(Reject::WITHOUT_LENGTH)?;
    let fields = (
        key::check(words[0]),
        number::client_flags(words[1]),
        number::stored_exptime(words[2]),
        text_verb(verb, words[4]),
    );
    let (Ok(key), Some(flags), Some(exptime), Some(verb)) = fields else {
        return Err(Reject {
            error: Error::BAD_FORMAT,
            quiet: noreply,
            block: Some(value_len.into()),
        });
    };
    let store = Store {
        verb,
        key,
        flags,
        exptime,
        value: &[],
        noreply,
        meta: None,
    };
    Ok((store, value_len))
}

/// `verb`. If it is a cas, the fifth word is its number.
#[inline]
fn text_verb(verb: StoreVerb, fifth: &[u8]) -> Option<StoreVerb> {
    match verb {
        StoreVerb::Cas(_) => number::unsigned(fifth).map(StoreVerb::Cas),
        verb => Some(verb),
    }
}

/// `<key> <bytes> <flag>*`, with the length of the value. Errors are reported even with `q`.
#[inline]
fn parse_meta(args: Words<'_>) -> Result<(Store<'_>, u32), Reject> {
    let mut words = args.iter();
    let key = words.next().unwrap_or_default();
    let len = words.next().unwrap_or_default();
    let value_len = number::block_len(len).ok_or(Reject::WITHOUT_LENGTH)?;
    let flags = match meta_flags::parse_store(key, words.rest()) {
        Ok(flags) => flags,
        Err(error) => {
            return Err(Reject {
                error,
                quiet: false,
                block: Some(value_len.into()),
            });
        }
    };
    let store = Store {
        verb: StoreVerb::Meta,
        key,
        flags: flags.client_flags.unwrap_or_default(),
        exptime: flags.ttl.unwrap_or_default(),
        value: &[],
        noreply: false,
        meta: Some(flags),
    };
    Ok((store, value_len))
}

impl Reject {
    /// The refusal of a word that is no valid length of a data block. As in memcached the next line is a command: a
    /// client that waits for the error sends no block, and would wait for ever if one were dropped.
    const WITHOUT_LENGTH: Self = Self {
        error: Error::BAD_FORMAT,
        quiet: false,
        block: None,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Exptime, MetaFlags};
    use crate::parse::parse;
    use crate::testing::{LIMITS, accept_value, refusal, reject};

    #[test]
    fn every_verb_takes_its_value() {
        for (line, verb) in [
            (&b"set k 5 -1 3\r\na\nb\r\n"[..], StoreVerb::Set),
            (b"add k 5 -1 3 \na\nb\r\n", StoreVerb::Add),
            (b"replace  k  5  -1  3\r\na\nb\r\n", StoreVerb::Replace),
            (b"append k 5 -1 3 some more\r\na\nb\r\n", StoreVerb::Append),
            (b"append k +5 4294967295 3\r\na\nb\r\n", StoreVerb::Append),
            (
                b"add k 4294967301 +9223372036854775807 3\r\na\nb\r\n",
                StoreVerb::Add,
            ),
            (b"prepend k 5 -1 03\r\na\nb\r\n", StoreVerb::Prepend),
            (b"cas k 5 -1 3 9\r\na\nb\r\n", StoreVerb::Cas(9)),
        ] {
            let expected = Store {
                verb,
                key: b"k",
                flags: 5,
                exptime: Exptime(-1),
                value: b"a\nb",
                noreply: false,
                meta: None,
            };
            assert_eq!(
                accept_value(line),
                ValueCommand::Store(expected),
                "{line:?}"
            );
        }
    }

    #[test]
    fn noreply_stands_last() {
        for line in [
            &b"set k 0 0 0 noreply\r\n\r\n"[..],
            b"add k 0 0 0 noreply\r\n\r\n",
            b"cas k 0 0 0 1 noreply\r\n\r\n",
            b"cas k 0 0 0 1 x noreply\r\n\r\n",
            b"set k 0 0 -0 x y noreply\r\n\r\n",
        ] {
            let ValueCommand::Store(store) = accept_value(line) else {
                panic!("not a store");
            };
            assert!(store.noreply && store.value.is_empty());
        }
    }

    #[test]
    fn a_block_may_be_on_its_way() {
        let whole = b"set k 0 0 2\r\nab\r\n";
        let line = b"set k 0 0 2\r\n".len();
        for end in line..whole.len() {
            let Parsed::Body {
                store,
                line: taken,
                value_len,
            } = parse(&whole[..end], &LIMITS)
            else {
                panic!("incomplete at {end}");
            };
            assert_eq!((store.key, store.value), (&b"k"[..], &b""[..]));
            assert_eq!((taken, value_len), (line, 2));
        }
        let end = [&b"set k 0 0 1024\r\n"[..], &[b'x'; 1024], b"\r\n"].concat();
        assert!(matches!(accept_value(&end), ValueCommand::Store(_)));
    }

    #[test]
    fn a_block_without_its_end_is_dropped_as_long_as_it_was_announced() {
        for (input, quiet) in [
            (&b"set k 0 0 3\r\nabcdef\r\n"[..], false),
            (b"set k 0 0 3\r\nabc\nget a\r\n", false),
            (b"set k 0 0 3 noreply\r\nabc\r\r\n", true),
            (b"ms k 3 q\r\nabcdef\r\n", false),
        ] {
            let refused = refusal(input);
            assert_eq!(
                (refused.error, refused.quiet),
                (Error::BAD_DATA_CHUNK, quiet)
            );
            let line = input
                .iter()
                .position(|&byte| byte == b'\n')
                .expect("a line")
                + 1;
            assert_eq!((refused.consumed, refused.swallow), (line + 5, 0));
            assert!(!refused.close && refused.forget.is_none());
        }
    }

    #[test]
    fn a_value_over_the_limit_is_swallowed() {
        let forget = |start, len, base64| Some(Forget { start, len, base64 });
        for (input, quiet, len, forgotten) in [
            (
                &b"set key 0 0 1025\r\nxx"[..],
                false,
                1025,
                forget(4, 3, false),
            ),
            (
                b"set key 0 0 1025 noreply\r\n",
                true,
                1025,
                forget(4, 3, false),
            ),
            (b"add key 0 0 1025\r\n", false, 1025, None),
            (b"cas key 0 0 1025 1\r\n", false, 1025, None),
            (
                b"append key 0 0 2147483645 noreply\r\n",
                true,
                2_147_483_645,
                None,
            ),
            (b"ms  key 1025 q\r\n", false, 1025, forget(4, 3, false)),
            (b"ms a2V5 1025 b MS\r\n", false, 1025, forget(3, 4, true)),
            (b"ms key 1025 ME\r\n", false, 1025, None),
            (b"ms key 1025 C1\r\n", false, 1025, None),
        ] {
            let refused = refusal(input);
            assert_eq!((refused.error, refused.quiet), (Error::TOO_LARGE, quiet));
            assert_eq!(refused.swallow, len + 2);
            assert_eq!(refused.forget, forgotten, "{input:?}");
            assert!(input[..refused.consumed].ends_with(b"\r\n") && !refused.close);
        }
        let most = refusal(b"set k 0 0 18446744073709551615\r\n");
        assert_eq!((most.error, most.swallow), (Error::BAD_FORMAT, 0));
        assert_eq!(
            reject(b"set k 0 0 1025\r\n"),
            "SERVER_ERROR object too large for cache\r\n"
        );
    }

    #[test]
    fn a_bad_line_drops_its_block_where_the_length_is_known() {
        let format = "CLIENT_ERROR bad command line format\r\n";
        let long = [b"set ", &[b'k'; 251][..], b" 0 0 7\r\n"].concat();
        for (line, error, swallow) in [
            (&b"set\r\n"[..], format, 0),
            (b"set k 0 0\r\n", format, 0),
            (b"set k 0 0 noreply\r\n", format, 0),
            (b"cas k 0 0 7\r\n", format, 9),
            (b"cas k 0 0 7 noreply\r\n", "", 9),
            (b"set k 0 0 -1\r\n", format, 0),
            (b"set k 0 0 x\r\n", format, 0),
            (b"set k 0 0 x noreply\r\n", format, 0),
            (b"set k 0 0 2147483646 noreply\r\n", format, 0),
            (b"add k 0 0 2147483647\r\n", format, 0),
            (b"cas k 0 0 4294967299 5\r\n", format, 0),
            (b"set k 0 0 000000000007\r\n", format, 0),
            (b"set k 0 0 18446744073709551616\r\n", format, 0),
            (b"set k x 0 7\r\n", format, 9),
            (b"set k -1 0 7\r\n", format, 9),
            (b"set k 18446744073709551616 0 7\r\n", format, 9),
            (b"set k 0 x 7\r\n", format, 9),
            (b"set k 0 9223372036854775808 7\r\n", format, 9),
            (b"set k x 0 7 noreply\r\n", "", 9),
            (b"cas k 0 0 7 x\r\n", format, 9),
            (b"cas k 0 0 7 18446744073709551616\r\n", format, 9),
            (b"set a\x01 0 0 7\r\n", format, 9),
            (&long, format, 9),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
            let refused = refusal(line);
            assert_eq!(
                (refused.consumed, refused.swallow),
                (line.len(), swallow),
                "{line:?}"
            );
            assert!(!refused.close);
        }
    }

    #[test]
    fn ms_takes_its_flags() {
        let expected = Store {
            verb: StoreVerb::Meta,
            key: b"k",
            flags: 5,
            exptime: Exptime(60),
            value: b"ab",
            noreply: false,
            meta: Some(MetaFlags {
                raw: Words(b" T60 F5 ME I c"),
                ttl: Some(Exptime(60)),
                client_flags: Some(5),
                mode: Some(MetaMode::Add),
                invalidate: true,
                ..MetaFlags::default()
            }),
        };
        assert_eq!(
            accept_value(b"ms k 2 T60 F5 ME I c\r\nab\r\n"),
            ValueCommand::Store(expected)
        );
    }

    #[test]
    fn ms_refuses_what_memcached_refuses() {
        for (line, error, swallow) in [
            (
                &b"ms\r\n"[..],
                "CLIENT_ERROR bad command line format\r\n",
                0,
            ),
            (b"ms k\r\n", "CLIENT_ERROR bad command line format\r\n", 0),
            (
                b"ms k -1\r\n",
                "CLIENT_ERROR bad command line format\r\n",
                0,
            ),
            (
                b"ms k 2147483647\r\n",
                "CLIENT_ERROR bad command line format\r\n",
                0,
            ),
            (
                b"ms k S7\r\n",
                "CLIENT_ERROR bad command line format\r\n",
                0,
            ),
            (
                b"ms k\x01 7\r\n",
                "CLIENT_ERROR bad command line format\r\n",
                9,
            ),
            (b"ms k 7 b\r\n", "CLIENT_ERROR error decoding key\r\n", 9),
            (b"ms k 7 q c c\r\n", "CLIENT_ERROR duplicate flag\r\n", 9),
            (b"ms k 7 S1\r\n", "CLIENT_ERROR invalid flag\r\n", 9),
            (
                b"ms k 7 MX\r\n",
                "CLIENT_ERROR invalid mode for ms M token\r\n",
                9,
            ),
            (
                b"ms k 7 MI\r\n",
                "CLIENT_ERROR invalid mode for ms M token\r\n",
                9,
            ),
            (
                b"ms k 7 M\r\n",
                "CLIENT_ERROR invalid mode for ms M token\r\n",
                9,
            ),
            (
                b"ms k 7 !\r\n",
                "CLIENT_ERROR bad command line format\r\n",
                9,
            ),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
            assert_eq!(refusal(line).swallow, swallow, "{line:?}");
        }
    }
}
