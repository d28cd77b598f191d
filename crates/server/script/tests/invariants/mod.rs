//! Invariants of any text as a script. Also the body of the fuzz target.

use bumpalo::Bump;
use nuthatch_script::{Ran, SCRIPT_LEN_MAX, Script, Value};

const KEY: &[u8] = b"key";

const ARGUMENTS: [&[u8]; 3] = [b"1", b"key", b"-2.5"];

/// What TIME answers.
const TIME: [&[u8]; 2] = [b"1700000000", b"250000"];

/// More bytes than a script may make in all.
const MADE_MAX: usize = (1 << 20) + 1024;

/// More bytes than a text of Redis' longest script has, and so more than a script takes steps.
const STEPS_MAX: usize = SCRIPT_LEN_MAX + 1024;

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
    for found in [Value::Bool(false), Value::Text(b"1"), Value::Number(7.0)] {
        let (first, second) = (Bump::new(), Bump::new());
        let once = run(&script, text, &found, &first);
        let again = run(&script, text, &found, &second);
        // Not by ==: a NaN is not equal to itself.
        let (once, again) = (format!("{once:?}"), format!("{again:?}"));
        assert_eq!(once, again, "it depends on something else");
    }
}

/// Carries it out on a key whose commands all have this value. Returns the run and the number of commands.
fn run<'a>(
    script: &'a Script,
    text: &[u8],
    found: &Value<'a>,
    arena: &'a Bump,
) -> (Ran<'a>, usize) {
    let mut calls = 0;
    let mut call = |words: &[&'a [u8]]| {
        if matches!(words, [name] if name.eq_ignore_ascii_case(b"time")) {
            return Ok(Value::List(TIME.map(Value::Text).to_vec()));
        }
        assert!(
            words.len() >= 2 && words[1] == KEY,
            "another key: {words:?}"
        );
        calls += 1;
        Ok(found.clone())
    };
    let ran = script.run(KEY, &ARGUMENTS, arena, &mut call);
    assert!(calls <= text.len(), "{calls} commands");
    assert!(ran.steps <= STEPS_MAX, "{} steps", ran.steps);
    let made = arena.allocated_bytes();
    assert!(made <= 2 * MADE_MAX, "{made} bytes");
    (ran, calls)
}
