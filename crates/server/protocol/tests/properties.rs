//! Property tests of the text protocol's parser with arbitrary, partly valid and valid input, and of replies.

mod invariants;

use nuthatch_protocol::{
    Command, KEY_LEN_MAX, Limits, Parsed, StoreVerb, ValueCommand, encode, parse,
};
use proptest::prelude::*;

/// A key that text commands may use.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![0x21u8..=0x7e, 0x80u8..=0xff];
    proptest::collection::vec(byte, 1..=KEY_LEN_MAX)
}

/// A word between two spaces, often at its right place.
fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::sample::select(vec![
            "get", "gets", "gat", "gats", "set", "add", "replace", "append", "prepend", "cas",
            "delete", "incr", "decr", "touch", "flush_all", "version", "verbosity", "stats",
            "cache_memlimit", "slabs", "lru", "lru_crawler", "watch", "shutdown", "quit", "mg",
            "ms", "md", "ma", "me", "mn", "noreply", "graceful", "HTTP/1.1",
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
        4 => "[0-9]{1,3}|-?[0-9]{1,22}".prop_map(String::into_bytes),
        4 => "[bcCfhklOqstuvENRTxFIMJDPL][0-9A-Z+-]{0,3}".prop_map(String::into_bytes),
        3 => "[a-z]{1,9}|a2V5|[a-z]{249,252}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..9),
    ]
}

/// Words, spaces, line ends and blocks, in an order that is sometimes valid.
fn soup() -> impl Strategy<Value = Vec<u8>> {
    let piece = (
        word(),
        proptest::sample::select(vec![" ", " ", " ", " ", "  ", "\r\n", "\n", ""]),
    );
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| {
        let pieces = pieces.into_iter();
        pieces
            .flat_map(|(word, space)| [word, space.as_bytes().to_vec()].concat())
            .collect()
    })
}

/// A valid command of any kind, with its data block.
fn lawful() -> impl Strategy<Value = Vec<u8>> {
    let value = proptest::collection::vec(any::<u8>(), 0..=invariants::LIMITS.value_max);
    let text = |line: &str, key: &[u8]| match line.split_once('@') {
        Some((before, behind)) => [before.as_bytes(), key, behind.as_bytes()].concat(),
        None => line.as_bytes().to_vec(),
    };
    let line = proptest::sample::select(vec![
        "get @",
        "gets a @ b",
        "gat 10 @",
        "gats -1 @ b",
        "delete @ 0 noreply",
        "incr @ 1",
        "decr @ 18446744073709551615 noreply",
        "touch @ -5",
        "mg @ v t f k Oabc",
        "md @ q I T30",
        "ma @ N0 J13 D2 MD v",
        "me @",
        "mn",
        "flush_all 5 noreply",
        "version",
        "verbosity 1",
        "stats items",
        "cache_memlimit 64",
        "shutdown graceful",
        "quit",
    ]);
    let store = proptest::sample::select(vec![
        "set @ 0 0 #",
        "add @ 1 2 # noreply",
        "replace @ 4294967295 -1 #",
        "append @ 0 0 #",
        "prepend  @  0  0  # ",
        "cas @ 0 0 # 99 noreply",
        "ms @ #",
        "ms @ # T0 F1 c ME q O1 C9 I",
    ]);
    (key(), line, store, value, any::<bool>()).prop_map(move |(key, line, store, value, plain)| {
        if plain {
            return [&text(line, &key)[..], b"\r\n"].concat();
        }
        let store = store.replace('#', &value.len().to_string());
        [&text(&store, &key)[..], b"\r\n", &value, b"\r\n"].concat()
    })
}

proptest! {
    #[test]
    fn arbitrary_bytes_keep_the_invariants(input: Vec<u8>) {
        invariants::check(&input);
    }

    #[test]
    fn half_right_lines_keep_the_invariants(input in soup()) {
        invariants::check(&input);
    }

    #[test]
    fn lawful_commands_are_taken_whole_and_in_order(
        commands in proptest::collection::vec(lawful(), 1..4),
    ) {
        let input = commands.concat();
        invariants::check(&input);
        let mut rest = &input[..];
        for command in &commands {
            match parse(rest, &invariants::LIMITS) {
                Parsed::Command { consumed, .. } => prop_assert_eq!(consumed, command.len()),
                other => prop_assert!(false, "{:?} is {:?}", command, other),
            }
            rest = &rest[command.len()..];
        }
    }

    #[test]
    fn what_is_set_is_what_the_value_reply_says(
        key in key(),
        flags: u32,
        value in proptest::collection::vec(any::<u8>(), 0..300),
        cas in any::<Option<u64>>(),
    ) {
        let mut request = b"set ".to_vec();
        request.extend_from_slice(&key);
        request.extend_from_slice(format!(" {flags} 0 {}\r\n", value.len()).as_bytes());
        request.extend_from_slice(&value);
        request.extend_from_slice(b"\r\n");
        let limits = Limits::of_values(300);
        let Parsed::Command { command: Command::Value(ValueCommand::Store(store)), .. } = parse(&request, &limits)
        else {
            panic!("a lawful set");
        };
        prop_assert_eq!(store.verb, StoreVerb::Set);

        let mut reply = Vec::new();
        encode::value(&mut reply, store.key, store.flags, store.value.len(), cas);
        reply.extend_from_slice(store.value);

        let mut expected = b"VALUE ".to_vec();
        expected.extend_from_slice(&key);
        expected.extend_from_slice(format!(" {flags} {}", value.len()).as_bytes());
        if let Some(cas) = cas {
            expected.extend_from_slice(format!(" {cas}").as_bytes());
        }
        expected.extend_from_slice(b"\r\n");
        expected.extend_from_slice(&value);
        prop_assert_eq!(reply, expected);
    }
}
