//! What holds for any text as a script. The fuzz target `lua` checks the same.

use std::cell::RefCell;

use nuthatch_lua::{Allowance, Answer, Host, Interpreter, Limits, Source, Value};

const LIMITS: Limits = Limits {
    memory: 2 << 20,
    steps: 20_000,
};

/// Answers with the words that it is called with.
struct Echo;

impl Host for Echo {
    fn call(&mut self, words: &[&[u8]], _resp: u8, _: Allowance) -> Answer {
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend(format!("${}\r\n", word.len()).into_bytes());
            bytes.extend_from_slice(word);
            bytes.extend(b"\r\n");
        }
        Answer { bytes, steps: 0 }
    }
}

fn interpreter() -> Interpreter {
    Interpreter::new(LIMITS, ("8.0.0", 0), Default::default()).expect("there is memory")
}

thread_local! {
    static LUA: RefCell<Interpreter> = RefCell::new(interpreter());
}

/// A text, whatever it is, ends, and the next script finds the state as it was.
pub fn check(text: &[u8]) {
    LUA.with_borrow_mut(|lua| {
        if let Ok(source) = Source::read(text) {
            lua.run(&source, &[b"k"], &[b"1", b"a"], &mut Echo);
        }
        if lua.is_spent() {
            *lua = interpreter();
        }
        let next = Source::read(AFTER).expect("it is a script");
        let said = lua.run(&next, &[], &[], &mut Echo).value;
        assert_eq!(said, Ok(Value::Text(b"397 0 0 b:x".to_vec())));
    });
}

/// It sees what a script could have changed.
const AFTER: &[u8] = b"return math.random(1000) .. ' ' .. #KEYS .. ' ' .. #ARGV .. ' ' .. \
    ('a:x'):gsub('a', 'b'):sub(1, 3) .. redis.call('')[1]";
