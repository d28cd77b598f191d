//! Property tests of the parser of Redis' protocol with arbitrary, partly valid and valid input.

mod invariants;

use invariants::{LIMITS, check};
use nuthatch_resp::{ARGUMENTS_LEN_MAX, Command, Parsed, ValueCommand, parse};
use proptest::prelude::*;

/// A word that often is a command's, an option's, a key or a number.
fn word() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => proptest::sample::select(vec![
            "GET", "set", "MGET", "MSET", "MSETNX", "SETEX", "SETNX", "GETSET", "GETDEL", "GETEX", "APPEND", "STRLEN",
            "GETRANGE", "SETRANGE", "INCR", "INCRBY", "INCRBYFLOAT", "DEL", "EXISTS", "EXPIRE", "PTTL", "SCAN",
            "HELLO", "AUTH", "CLIENT", "CONFIG", "INFO", "MULTI", "EXEC", "LPUSH", "foo", "OBJECT", "COMMAND",
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
        3 => proptest::sample::select(vec![
            "EX", "px", "NX", "XX", "GET", "KEEPTTL", "EXAT", "GT", "LT", "MATCH", "COUNT", "TYPE", "SETNAME", "ID",
            "ENCODING", "2", "3", "10", "-1", "0", "1.5", "*",
        ])
        .prop_map(|word| word.as_bytes().to_vec()),
        3 => "[a-z]{0,3}|[a-z]{60,70}|k{249,252}".prop_map(String::into_bytes),
        1 => proptest::collection::vec(any::<u8>(), 0..90),
    ]
}

/// A request, sometimes with a length that is wrong.
fn request() -> impl Strategy<Value = Vec<u8>> {
    let odd = prop_oneof![12 => Just(0_i64), 1 => -2..3_i64];
    (proptest::collection::vec((word(), odd.clone()), 0..7), odd).prop_map(|(words, odd)| {
        let mut request = format!("*{}\r\n", words.len() as i64 + odd).into_bytes();
        for (word, odd) in words {
            request.extend(format!("${}\r\n", word.len() as i64 + odd).bytes());
            request.extend(word);
            request.extend(b"\r\n");
        }
        request
    })
}

fn inline() -> impl Strategy<Value = Vec<u8>> {
    "[A-Za-z \"'\\\\x0-9]{0,30}\r?\n".prop_map(String::into_bytes)
}

#[test]
fn what_is_announced_is_not_awaited_whole() {
    check(b"*1000001\r\n$6\r\nMSETNX\r\n$1\r\na\r\n$1\r\nb\r\n$1\r\n");
    check(b"*2147483647\r\n$4\r\nINFO\r\n$1\r\n");
}

/// Behind a value of this length, the arguments that are announced, or that arrive, just reach 64 KiB, or just do not.
#[test]
fn arguments_behind_a_value_in_pieces_have_the_same_limit() {
    let value = [b'x'; 40];
    let front = [
        &b"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$40\r\n"[..],
        &value,
        b"\r\n$2\r\nEX\r\n",
    ]
    .concat();
    let (key, line) = (b"k".len(), b"$65000\r\n".len());
    let longest = ARGUMENTS_LEN_MAX - (front.len() - key - value.len()) - line;
    for len in [longest - 1, longest, longest + 1, 400_000_000] {
        let announced = [&front[..], format!("${len}\r\n").as_bytes()].concat();
        check(&announced);
        let fits = len <= longest;
        assert_eq!(
            matches!(parse(&announced, &LIMITS), Parsed::Incomplete(_)),
            fits,
            "{len}"
        );
        if len < 100_000 {
            check(&[&announced[..], &vec![b'1'; len]].concat());
        }
    }
}

proptest! {
    #[test]
    fn any_bytes(input in proptest::collection::vec(any::<u8>(), 0..200)) {
        check(&input);
    }

    #[test]
    fn nearly_requests(
        requests in proptest::collection::vec(prop_oneof![5 => request(), 1 => inline()], 0..6),
    ) {
        check(&requests.concat());
    }

    #[test]
    fn what_is_written_is_understood(
        key in proptest::collection::vec(any::<u8>(), 1..=250),
        value in proptest::collection::vec(any::<u8>(), 0..=LIMITS.value_max),
        behind: Vec<u8>,
    ) {
        let mut input = b"*3\r\n$3\r\nSET\r\n".to_vec();
        for word in [&key, &value] {
            input.extend(format!("${}\r\n", word.len()).bytes());
            input.extend(word);
            input.extend(b"\r\n");
        }
        let end = input.len();
        input.extend(behind);
        match parse(&input, &LIMITS) {
            Parsed::Command { command: Command::Value(ValueCommand::Set(set)), consumed } => {
                prop_assert_eq!((set.key, set.value, consumed), (&key[..], &value[..], end));
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}
