//! Invariants of any text as a script. Also the body of the fuzz target.

use nuthatch_script::{Failure, SCRIPT_LEN_MAX, Script, Value};

const KEY: &[u8] = b"key";

const ARGUMENTS: [&[u8]; 3] = [b"1", b"key", b"-2.5"];

/// More bytes than a script may pass to commands in all.
const PASSED_MAX: usize = (1 << 20) + 1024;

/// The most bytes of a text that its own words decide. Behind them a text may have anything.
const DECIDED: usize = SCRIPT_LEN_MAX - 16;

/// Checks all of it for `text`.
pub fn check(text: &[u8]) {
    let script = Script::read(text);
    assert!(script.is_none() || text.len() <= SCRIPT_LEN_MAX);
    let Some(script) = script else {
        return;
    };
    if text.len() <= DECIDED {
        let other = [b"--[[]]\n", text, b"\n;--\n"].concat();
        assert_eq!(Script::read(&other).as_ref(), Some(&script), "blanks");
    }
    for found in [Value::Bool(false), Value::text(b"1"), Value::Number(7.0)] {
        let once = run(&script, text, &found);
        assert_eq!(
            once,
            run(&script, text, &found),
            "it depends on something else"
        );
    }
}

/// Carries it out on a key whose commands all have this value. Returns the answer and the number of commands.
fn run(script: &Script, text: &[u8], found: &Value) -> (Result<Value, Failure>, usize) {
    let (mut calls, mut passed) = (0, 0);
    let mut call = |words: &[&[u8]]| {
        assert!(
            words.len() >= 2 && words[1] == KEY,
            "another key: {words:?}"
        );
        calls += 1;
        passed += words.iter().map(|word| word.len()).sum::<usize>();
        Ok(found.clone())
    };
    let answer = script.run(KEY, &ARGUMENTS, &mut call);
    assert!(calls <= text.len(), "{calls} commands");
    assert!(passed <= PASSED_MAX, "{passed} bytes");
    (answer, calls)
}
