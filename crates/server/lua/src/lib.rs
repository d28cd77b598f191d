//! Lua 5.1 for the scripts of Redis' clients, in a sandbox: a script sees texts, tables, numbers, and the commands of its
//! server, nothing else.
//!
//! * [`Interpreter`]: a state of Lua, in which one script runs after the other.
//! * [`Host`]: the server's part of `redis.call`. This crate knows neither commands nor engines.
//! * [`Library`]: scripts by the SHA-1 of their text.
//! * `library.lua`: what scripts see of Lua. `host`: the functions behind it that are not written in Lua.
//! * `meter`: steps, and how a script is ended. `pattern`: patterns that count steps.
//!
//! A script ends after a number of steps in any case. A step is an instruction of Lua, or what takes about as long: a
//! step of a pattern, 64 bytes that are copied. Its memory is bounded, too. What it returns is copied before its state is
//! used again.
//!
//! ```
//! use nuthatch_lua::{Allowance, Answer, Host, Interpreter, Limits, Source, Value};
//!
//! struct Server(i64);
//!
//! impl Host for Server {
//!     fn call(&mut self, words: &[&[u8]], _resp: u8, _: Allowance) -> Answer {
//!         self.0 += words.len() as i64;
//!         Answer { bytes: format!(":{}\r\n", self.0).into_bytes(), steps: 0 }
//!     }
//! }
//!
//! let limits = Limits { memory: 1 << 20, steps: 1_000_000 };
//! let mut lua = Interpreter::new(limits, ("7.4.0", 0x0007_0400), Default::default()).expect("there is memory");
//! let script = Source::read(b"return redis.call('incr', KEYS[1]) + 1").expect("it is one");
//! let ran = lua.run(&script, &[b"k"], &[], &mut Server(5));
//! assert_eq!(ran.value, Ok(Value::Integer(8)));
//! ```

mod answer;
mod convert;
mod course;
mod host;
mod interpreter;
mod json;
mod library;
mod meter;
mod pattern;
mod random;
mod shebang;
#[cfg(test)]
mod tests;
mod value;

pub use course::{Course, Stopped};
pub use interpreter::{Allowance, Answer, Failure, Host, Interpreter, Limits, Ran};
pub use library::{Library, Source};
pub use shebang::Flags;
pub use value::Value;
