//! set, add, replace, append, prepend, cas, ms: the commands with a data block.

use crate::command::{Command, Forget, Limits, MetaMode, Parsed, Refusal, Store, StoreVerb};
use crate::error::Error;
use crate::key;
use crate::meta_flags;
use crate::number;
use crate::words::Words;

/// `\r\n` behind a data block.
const BLOCK_END: &[u8] = b"\r\n";

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

/// A refused line, and how long its data block is where that is known.
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
        Ok((store, value_len)) if value_len <= limits.value_max as u64 => {
            // It fits: it is at most `value_max`, which is a `usize`.
            attach(input, line, store, value_len as usize)
        }
        Ok((store, value_len)) => {
            let mut refusal = refuse(line, Error::TOO_LARGE, store.noreply);
            refusal.swallow = block_len(value_len);
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

/// Puts the value and its command together, if the whole data block is here.
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
        command: Command::Store(store),
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

/// True if the store would have replaced whatever is there.
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
fn parse_text(verb: StoreVerb, args: Words<'_>) -> Result<(Store<'_>, u64), Reject> {
    let fixed = if let StoreVerb::Cas(_) = verb { 5 } else { 4 };
    let Some((words, count)) = args.collect::<6>() else {
        return Err(Reject::blind(Error::Unknown, false));
    };
    if count < fixed || count > fixed + 1 {
        return Err(Reject::blind(Error::Unknown, false));
    }
    let noreply = words[count - 1] == b"noreply";
    let Some(value_len) = number::unsigned(words[3]) else {
        return Err(Reject::blind(Error::BAD_FORMAT, noreply));
    };
    let fields = (
        key::check(words[0]),
        number::unsigned_32(words[1]),
        number::exptime(words[2]),
        text_verb(verb, words[4]),
    );
    let (Ok(key), Some(flags), Some(exptime), Some(verb)) = fields else {
        return Err(Reject {
            error: Error::BAD_FORMAT,
            quiet: noreply,
            block: Some(value_len),
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

/// `verb`, with the cas that stands in the fifth word if it is a cas.
#[inline]
fn text_verb(verb: StoreVerb, fifth: &[u8]) -> Option<StoreVerb> {
    match verb {
        StoreVerb::Cas(_) => number::unsigned(fifth).map(StoreVerb::Cas),
        verb => Some(verb),
    }
}

/// `<key> <bytes> <flag>*`, with the length of the value. Errors are told even with `q`.
#[inline]
fn parse_meta(args: Words<'_>) -> Result<(Store<'_>, u64), Reject> {
    let mut words = args.iter();
    let Some(key) = words.next() else {
        return Err(Reject::blind(Error::Unknown, false));
    };
    let Some(value_len) = words.next().and_then(number::unsigned) else {
        return Err(Reject::blind(Error::BAD_FORMAT, false));
    };
    let flags = match meta_flags::parse_store(key, words.rest()) {
        Ok(flags) => flags,
        Err(error) => {
            return Err(Reject {
                error,
                quiet: false,
                block: Some(value_len),
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
    /// Nobody knows how long the data block is.
    fn blind(error: Error, quiet: bool) -> Self {
        Self {
            error,
            quiet,
            block: None,
        }
    }
}
