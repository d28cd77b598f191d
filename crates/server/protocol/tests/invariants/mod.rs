//! Invariants of the text protocol for every input, however bad. The property tests and the fuzzer check them.

use nuthatch_protocol::{
    Awaited, Command, KEY_LEN_MAX, KEY_ROOM, LINE_MAX, Limits, MetaVerb, NextKey, Parsed, Refusal,
    Store, ValueCommand, awaited, awaited_block, binary, decode_key, next_key, parse,
};

pub const LIMITS: Limits = Limits::of_values(64);

/// Checks all of it for `input`.
pub fn check(input: &[u8]) {
    check_front(input);
    check_prefixes(input);
    let whole = outcomes(&[input]);
    for size in [1, 7, 50] {
        let pieces: Vec<&[u8]> = input.chunks(size).collect();
        assert_eq!(outcomes(&pieces), whole, "in pieces of {size}: {input:?}");
    }
}

/// The command at the front is well formed, and does not depend on the input behind it.
fn check_front(input: &[u8]) {
    match parse(input, &LIMITS) {
        Parsed::Incomplete => assert!(input.len() < LINE_MAX),
        Parsed::Command { command, consumed } => {
            assert!(0 < consumed && consumed <= input.len());
            check_command(&command);
            let alone = parse(&input[..consumed], &LIMITS);
            assert_eq!(alone, Parsed::Command { command, consumed });
        }
        Parsed::Body {
            store,
            line,
            value_len,
        } => {
            check_store_key(&store);
            assert!(store.value.is_empty() && value_len <= LIMITS.value_max);
            assert!(line <= input.len() && input.len() < line + value_len + 2);
        }
        Parsed::LongGet { get, consumed } => {
            assert!(LINE_MAX <= input.len() && 0 < consumed && consumed < LINE_MAX);
            let alone = parse(&input[..LINE_MAX], &LIMITS);
            assert_eq!(alone, Parsed::LongGet { get, consumed });
        }
        Parsed::Refused(refusal) => check_refusal(input, refusal),
        Parsed::Binary(request) => {
            assert!(input[0] == binary::MAGIC && request.length >= binary::HEADER as u64);
            let alone = parse(&input[..binary::HEADER], &LIMITS);
            assert_eq!(alone, Parsed::Binary(request));
        }
    }
}

fn check_refusal(input: &[u8], refusal: Refusal) {
    assert!(0 < refusal.consumed && refusal.consumed <= input.len());
    if !refusal.close {
        let alone = parse(&input[..refusal.consumed], &LIMITS);
        assert_eq!(alone, Parsed::Refused(refusal));
    }
    if let Some(forget) = refusal.forget {
        assert!(refusal.swallow > LIMITS.value_max as u64);
        let key = &input[forget.start..][..forget.len];
        check_key(key, forget.base64);
    }
}

fn check_command(command: &Command<'_>) {
    match command {
        Command::Get(get) => {
            let keys: Vec<&[u8]> = get.keys.iter().collect();
            assert!(!keys.is_empty());
            keys.iter().for_each(|key| check_key(key, false));
        }
        Command::Value(command) => check_value_command(command),
        Command::Server(_) => {}
    }
}

fn check_value_command(command: &ValueCommand<'_>) {
    match command {
        ValueCommand::Store(store) => {
            check_store_key(store);
            assert!(store.value.len() <= LIMITS.value_max);
        }
        ValueCommand::Delete { key, .. }
        | ValueCommand::Delta { key, .. }
        | ValueCommand::Touch { key, .. } => check_key(key, false),
        ValueCommand::Meta(meta) if meta.verb == MetaVerb::Noop => assert!(meta.key.is_empty()),
        ValueCommand::Meta(meta) => check_key(meta.key, meta.flags.base64),
    }
}

fn check_store_key(store: &Store<'_>) {
    check_key(store.key, store.meta.is_some_and(|flags| flags.base64));
}

fn check_key(key: &[u8], base64: bool) {
    let mut room = [0; KEY_ROOM];
    if base64 {
        let key = decode_key(key, &mut room).expect("a parsed key decodes");
        assert!((1..=KEY_LEN_MAX).contains(&key.len()));
    } else {
        assert!((1..=KEY_LEN_MAX).contains(&key.len()));
        assert!(key.iter().all(|&byte| byte > b' ' && byte != 0x7f));
    }
}

/// A cut-off command is never another command, nor a refusal.
fn check_prefixes(input: &[u8]) {
    let end = match parse(input, &LIMITS) {
        Parsed::Incomplete => input.len(),
        Parsed::Command { consumed, .. } => consumed,
        Parsed::Body { .. } => input.len(),
        Parsed::LongGet { .. } => LINE_MAX,
        Parsed::Refused(refusal) if refusal.close && !refusal.quiet => return,
        Parsed::Refused(refusal) => refusal.consumed,
        Parsed::Binary(_) => binary::HEADER,
    };
    // Every cut of a short command, some of a long one.
    for cut in (0..end).step_by(end / 256 + 1) {
        match parse(&input[..cut], &LIMITS) {
            Parsed::Incomplete | Parsed::Body { .. } => {}
            other => panic!("cut at {cut}, {input:?} is {other:?}"),
        }
    }
}

/// The outcomes of a connection that receives these pieces, in order.
fn outcomes(pieces: &[&[u8]]) -> Vec<String> {
    let mut outcomes = Vec::new();
    let mut input = Vec::new();
    let mut swallow: u64 = 0;
    let mut awaits = Awaited::default();
    // In the line of a long get.
    let mut is_long_get = false;
    for piece in pieces {
        let worth_a_look = awaits.has_come(input.len(), piece);
        input.extend_from_slice(piece);
        if !worth_a_look {
            continue;
        }
        loop {
            let dropped = swallow.min(input.len() as u64);
            input.drain(..dropped as usize);
            swallow -= dropped;
            if is_long_get {
                let (next, consumed) = next_key(&input);
                let is_incomplete = next == NextKey::Incomplete;
                match next {
                    NextKey::Key(key) => {
                        check_key(key, false);
                        outcomes.push(format!("{key:?}"));
                    }
                    NextKey::End => is_long_get = false,
                    NextKey::Incomplete => assert!(input.len() - consumed <= KEY_LEN_MAX + 1),
                    NextKey::Refused(error) => {
                        outcomes.push(format!("{error:?}"));
                        return outcomes;
                    }
                }
                input.drain(..consumed);
                if is_incomplete {
                    awaits = Awaited::default();
                    break;
                }
                continue;
            }
            let consumed = match parse(&input, &LIMITS) {
                Parsed::Incomplete => {
                    awaits = awaited(&input);
                    break;
                }
                Parsed::Body {
                    line, value_len, ..
                } => {
                    awaits = awaited_block(line, value_len);
                    break;
                }
                Parsed::LongGet { get, consumed } => {
                    outcomes.push(format!("{get:?}"));
                    is_long_get = true;
                    consumed
                }
                Parsed::Binary(request) => {
                    outcomes.push(format!("{request:?}"));
                    return outcomes;
                }
                Parsed::Command { command, consumed } => {
                    outcomes.push(format!("{command:?}"));
                    consumed
                }
                Parsed::Refused(refusal) => {
                    outcomes.push(format!("{:?} {}", refusal.error, refusal.quiet));
                    if refusal.close {
                        return outcomes;
                    }
                    swallow = refusal.swallow;
                    refusal.consumed
                }
            };
            input.drain(..consumed);
        }
    }
    outcomes
}
