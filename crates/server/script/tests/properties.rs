//! Property tests with arbitrary texts, and with texts of the words that scripts are made of.

mod invariants;

use proptest::prelude::*;

const WORDS: [&str; 36] = [
    "if",
    "then",
    "else",
    "elseif",
    "end",
    "return",
    "local",
    "x",
    "=",
    "==",
    "and",
    "or",
    "not",
    "redis.call('get', KEYS[1])",
    "redis.call('incr', KEYS[1])",
    "redis.pcall(",
    "'del'",
    ",",
    ")",
    "(",
    "KEYS[1]",
    "ARGV[1]",
    "ARGV",
    "..",
    "+",
    "#",
    "1",
    "{",
    "}",
    "nil",
    "redis.call('time')",
    "[1]",
    ":sub(1, 2)",
    "string.upper(",
    "= redis.call",
    "redis.replicate_commands()",
];

#[test]
fn scripts_of_clients_hold_them() {
    for text in [
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end",
        "local n = redis.call('incr', KEYS[1]) if n == 1 then redis.call('expire', KEYS[1], ARGV[1]) end return n",
        "redis.replicate_commands() local c = redis.call local t = redis.call('TIME') return {c('get', KEYS[1]), t[1] + t[2],}",
        "return redis.call('getrange', KEYS[1], 0, 2) == string.sub(ARGV[1], 1, 3) and ARGV[2]:upper()",
        "for _, k in ipairs(KEYS) do redis.call('del', k) end return {1, 'x', redis.call('get', KEYS[1])}",
    ] {
        invariants::check(text.as_bytes());
    }
}

proptest! {
    #[test]
    fn any_text_is_a_script_or_none(bytes: Vec<u8>) {
        invariants::check(&bytes);
    }

    #[test]
    fn any_script_ends(words in proptest::collection::vec(0..WORDS.len(), 1..60)) {
        let text: Vec<&str> = words.iter().map(|&at| WORDS[at]).collect();
        invariants::check(text.join(" ").as_bytes());
    }
}
