//! Scripts of Redis' clients. Caches, locks and rate limiters send short programs in Lua that read one key, compare what
//! they find, and change the key: compare-and-delete, compare-and-expire, increment with an expiry, set if absent. This
//! crate reads the part of Lua in which these are written, in whatever spelling, and carries them out.
//!
//! * `lexer`: text to tokens. Comments, blanks, quotes and brackets end here.
//! * `parser`: tokens to a [`Script`]. A text that is anything else is no script.
//! * `run`: a script, its arguments and the key's [`Calls`] to a [`Value`]. The key is whatever the caller makes of it: this crate
//!   knows neither commands nor engines.
//! * [`Library`]: scripts by the SHA-1 of their text, a limited number of them.
//!
//! What is left out is what could run for long or grow: loops (but one over the keys, of which there is one), functions
//! of its own, tables other than an answer's, most libraries. So a script takes as many steps as its text has words, and more for
//! the long texts that it compares or joins ([`Ran::steps`]): beyond a limit it ends, and nothing of it takes
//! effect. No text is copied but by `..`. What is made is in the arena of the run, up to a limit, and an allocation of
//! it may fail.
//!
//! ```
//! use bumpalo::Bump;
//! use nuthatch_script::{Script, Value};
//!
//! let text = b"if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end";
//! let script = Script::read(text).expect("it is one");
//! let mut key = |words: &[&[u8]]| Ok(match words[0].to_ascii_lowercase().as_slice() {
//!     b"get" => Value::Text(b"me"),
//!     _ => Value::Number(1.0),
//! });
//! let arena = Bump::new();
//! let ran = script.run(b"lock", &[b"me"], &arena, &mut key);
//! assert_eq!(ran.value, Ok(Value::Number(1.0)));
//! assert!(Script::read(b"while true do end").is_none());
//! ```

mod lexer;
mod library;
mod number;
mod parser;
mod run;
#[cfg(test)]
mod tests;
mod texts;
mod tree;
mod value;

pub use library::{Library, Name};
pub use number::as_argument;
pub use parser::COMMANDS;
pub use run::{Calls, Failure, Ran};
pub use texts::integer;
pub use tree::Script;
pub use value::Value;

/// The longest text of a script. Those of clients have some hundred bytes.
pub const SCRIPT_LEN_MAX: usize = 4 << 10;
