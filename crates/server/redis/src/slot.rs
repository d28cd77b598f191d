//! The item of one key while a script works on it: commands change this state, and its commit changes the item. No value
//! is copied for that: the state refers to the bytes of the item, of the script's arguments, or of its arena.

use std::time::Duration;

use bumpalo::Bump;
use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::answers::resp::failure;
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::{Change, Kind};
use nuthatch_commands::expiry::resp as expiry;
use nuthatch_engine::semantics::may_touch;
use nuthatch_engine::{
    Clock, Condition, Expiry, Item, Op, Present, Removal, Reply, Store, StoreMode, Time, TouchIf,
};
use nuthatch_protocol::Limits;
use nuthatch_resp::{
    Command, Decimal, Error, Lifetime, Many, Set, SetAnswer, StoreCondition, Understood,
    ValueCommand, Version, Writer, integer, parse_words, range,
};
use nuthatch_script::{Calls, Failure, Value};

use crate::compare;
use crate::spot::{ask, touch};

/// The state of a key.
pub struct Slot<'a> {
    value: Option<&'a [u8]>,
    expiry: Expiry,
    flags: u32,
    /// The cas of the item that there was.
    cas: Option<u64>,
    changed: Changed,
    /// From which the lifetimes count that the script sets.
    present: Present,
    now: Time,
    clock: &'a Clock,
    /// The time since 1970, once the script has asked for it.
    unix: Option<Duration>,
    limits: Limits,
    /// The memory for values that commands make.
    arena: &'a Bump,
}

/// What commands have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Changed {
    Nothing,
    Expiry,
    Value,
}

impl<'a> Slot<'a> {
    /// The state of a key whose item was found, with these bytes, or was not.
    pub fn new(
        found: Option<(Item, &'a [u8])>,
        arena: &'a Bump,
        present: Present,
        now: Time,
        clock: &'a Clock,
        limits: Limits,
    ) -> Self {
        let (item, value) = found.unzip();
        Self {
            value,
            expiry: item.map_or(Expiry::Never, |item| item.expiry),
            flags: item.map_or(0, |item| item.flags),
            cas: item.map(|item| item.cas),
            changed: Changed::Nothing,
            present,
            now,
            clock,
            unix: None,
            limits,
            arena,
        }
    }

    /// Makes the item what the state is. False if another client has changed it since it was found.
    pub fn commit(&self, cx: &mut Context<'_, '_>, key: &[u8]) -> Result<bool, Error<'static>> {
        let op = match (self.changed, self.value, self.cas) {
            (Changed::Nothing, ..) | (_, None, None) => return Ok(true),
            (_, None, Some(cas)) => Op::Remove(Removal {
                condition: Condition::Cas(cas),
                ..Removal::default()
            }),
            (Changed::Expiry, Some(_), Some(cas)) => touch(self.expiry, TouchIf::Cas(cas)),
            (_, Some(value), cas) => {
                let mut store = Store::set(value);
                store.flags = self.flags;
                store.expiry = self.expiry;
                match cas {
                    Some(cas) => store.condition = Condition::Cas(cas),
                    None => store.mode = StoreMode::Add,
                }
                Op::Store(store)
            }
        };
        let reply = ask(cx, key, op, Kind::Change(Change::Store));
        match reply {
            Reply::Removed | Reply::Stored(_) | Reply::Found(_) => Ok(true),
            reply if reply.is_failure() => Err(failure(&reply)),
            _ => Ok(false),
        }
    }

    fn set_value(&mut self, value: &'a [u8]) {
        self.value = Some(value);
        self.changed = Changed::Value;
    }

    /// Sets a value that a command has made.
    fn set_made(&mut self, value: &[u8]) -> Result<&'a [u8], Failure> {
        let kept = spare(|| self.arena.try_alloc_slice_copy(value));
        let kept = kept.map_err(|_| Failure::OutOfMemory)?;
        self.set_value(kept);
        Ok(kept)
    }

    fn remove(&mut self) {
        self.value = None;
        (self.expiry, self.flags) = (Expiry::Never, 0);
        self.changed = Changed::Value;
    }

    fn set_expiry(&mut self, expiry: Expiry) {
        if expiry.is_past(self.now) {
            return self.remove();
        }
        self.expiry = expiry;
        self.changed = self.changed.max(Changed::Expiry);
    }

    fn live(&mut self, lifetime: Lifetime) {
        match lifetime {
            Lifetime::Keep => {}
            Lifetime::Forever => self.set_expiry(Expiry::Never),
            Lifetime::Until(moment) => {
                self.set_expiry(expiry::expiry(moment, self.present, self.clock));
            }
        }
    }

    /// The value for a script, false if there is none.
    fn script_value(&self) -> Value<'a> {
        self.value.map_or(Value::Bool(false), Value::Text)
    }

    fn set(&mut self, set: &Set<'a>) -> Value<'a> {
        let old = self.script_value();
        let there = self.value.is_some();
        let stores = match set.when {
            StoreCondition::Always => true,
            StoreCondition::Absent => !there,
            StoreCondition::Present => there,
            StoreCondition::Compared(when) => compare::holds_of(&when, self.value),
        };
        if stores {
            self.set_value(set.value);
            self.flags = 0;
            self.live(set.lifetime);
        }
        match set.answer {
            SetAnswer::Old => old,
            SetAnswer::Number => flag(stores),
            SetAnswer::Status if stores => Value::Status(b"OK"),
            SetAnswer::Status => Value::Bool(false),
        }
    }

    fn add(&mut self, by: i64) -> Result<Value<'a>, Failure> {
        let number = match self.value {
            Some(value) => integer(value).ok_or_else(|| failed(&Error::NOT_INTEGER))?,
            None => 0,
        };
        let sum = number.checked_add(by);
        let sum = sum.ok_or_else(|| failed(&Error::OVERFLOW))?;
        self.set_made(sum.to_string().as_bytes())?;
        Ok(Value::Number(sum as f64))
    }

    fn add_decimal(&mut self, by: Decimal) -> Result<Value<'a>, Failure> {
        let number = match self.value {
            Some(value) => Decimal::parse(value).ok_or_else(|| failed(&Error::NOT_FLOAT))?,
            None => Decimal::default(),
        };
        let sum = number.checked_add(by);
        let sum = sum.ok_or_else(|| failed(&Error::NOT_FINITE))?;
        let mut text = Vec::new();
        sum.write(&mut text);
        self.set_made(&text).map(Value::Text)
    }

    /// Seconds since 1970, and microseconds: the same at each call, as if the script took no time.
    fn time(&mut self) -> Result<Value<'a>, Failure> {
        let clock = self.clock;
        let unix = *self.unix.get_or_insert_with(|| clock.wall().unix());
        let text = |number: u64| {
            let kept = spare(|| self.arena.try_alloc_str(&number.to_string()));
            let kept = kept.map_err(|_| Failure::OutOfMemory)?;
            Ok(Value::Text(kept.as_bytes()))
        };
        let parts = [unix.as_secs(), unix.subsec_micros().into()];
        parts
            .map(text)
            .into_iter()
            .collect::<Result<_, _>>()
            .map(Value::List)
    }

    /// Carries out a command about this key.
    fn command(&mut self, command: &ValueCommand<'a>) -> Result<Value<'a>, Failure> {
        let there = self.value.is_some();
        Ok(match *command {
            ValueCommand::Get { .. } => self.script_value(),
            ValueCommand::Set(set) => self.set(&set),
            ValueCommand::GetDel { .. } => {
                let old = self.script_value();
                self.remove();
                old
            }
            ValueCommand::GetEx { lifetime, .. } => {
                let value = self.script_value();
                if there {
                    self.live(lifetime);
                }
                value
            }
            ValueCommand::StrLen { .. } => {
                let len = self.value.map_or(0, <[u8]>::len);
                Value::Number(len as f64)
            }
            ValueCommand::GetRange { start, end, .. } => {
                let value = self.value.unwrap_or_default();
                Value::Text(&value[range(value.len(), start, end)])
            }
            ValueCommand::IncrBy { by, .. } => self.add(by)?,
            ValueCommand::IncrByFloat { by, .. } => self.add_decimal(by)?,
            ValueCommand::Type { .. } => Value::Status(if there { b"string" } else { b"none" }),
            ValueCommand::Expire { moment, which, .. } => {
                let new = expiry::expiry(moment, self.present, self.clock);
                // A script names no cas.
                let changes = there && may_touch(expiry::condition(which), 0, self.expiry, new);
                if changes {
                    self.set_expiry(new);
                }
                flag(changes)
            }
            ValueCommand::Persist { .. } => {
                let changes = self.expiry != Expiry::Never;
                if changes {
                    self.set_expiry(Expiry::Never);
                }
                flag(changes)
            }
            ValueCommand::Ttl { form, .. } => {
                let left = expiry::shown(self.expiry, form, self.clock);
                Value::Number(if there { left as f64 } else { -2.0 })
            }
            _ => return Err(Failure::Unknown),
        })
    }
}

impl<'a> Calls<'a> for Slot<'a> {
    fn call(&mut self, words: &[&'a [u8]]) -> Result<Value<'a>, Failure> {
        // The only command without a key.
        if matches!(words, [name] if name.eq_ignore_ascii_case(b"time")) {
            return self.time();
        }
        let understood = parse_words(words, &self.limits).map_err(|error| failed(&error))?;
        match understood {
            Some(Understood::Command(Command::Value(command))) => self.command(&command),
            Some(Understood::Many(verb @ (Many::Del | Many::Exists))) if words.len() == 2 => {
                let there = self.value.is_some();
                if verb == Many::Del {
                    self.remove();
                }
                Ok(flag(there))
            }
            // Several keys: the script is for one.
            Some(Understood::Many(_) | Understood::Command(_)) | None => Err(Failure::Unknown),
        }
    }
}

fn flag(is: bool) -> Value<'static> {
    Value::Number(f64::from(u8::from(is)))
}

/// An error as a script sees it: without its mark and its line end.
fn failed(error: &Error<'_>) -> Failure {
    let mut line = Vec::new();
    Writer::new(&mut line, Version::Resp2).error(error);
    let text = line.trim_ascii_end();
    Failure::Error(text.strip_prefix(b"-").unwrap_or(text).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot<'a>(clock: &'a Clock, arena: &'a Bump) -> Slot<'a> {
        let limits = Limits::of_values(64);
        Slot::new(None, arena, clock.present(), clock.now(), clock, limits)
    }

    /// Every command that a script may call is one that this carries out, and of one key.
    #[test]
    fn every_command_of_a_script_is_carried_out() {
        let (clock, arena) = (Clock::start(), Bump::new());
        for name in nuthatch_script::COMMANDS {
            let arguments: &[&[u8]] = match name {
                b"set" | b"setnx" | b"getset" | b"incrby" | b"decrby" | b"incrbyfloat"
                | b"expire" | b"pexpire" | b"expireat" | b"pexpireat" => &[b"5"],
                b"setex" | b"psetex" | b"getrange" | b"substr" => &[b"5", b"5"],
                _ => &[],
            };
            let words = [&[name, b"k"], arguments].concat();
            let answer = slot(&clock, &arena).call(&words);
            assert!(answer.is_ok(), "{}: {answer:?}", name.escape_ascii());
        }
        for words in [
            &[&b"del"[..], b"k", b"l"][..],
            &[b"mget", b"k"],
            &[b"flushall"],
        ] {
            let answer = slot(&clock, &arena).call(words);
            let is_refused = words[0] == b"mget" || answer == Err(Failure::Unknown);
            assert!(is_refused, "{words:?}: {answer:?}");
        }
    }

    #[test]
    fn time_stands_still_for_a_script() {
        let (clock, arena) = (Clock::start(), Bump::new());
        let mut slot = slot(&clock, &arena);
        let before = clock.wall().unix();
        let told = slot.call(&[b"time"]).unwrap();
        let Value::List(parts) = &told else {
            panic!("{told:?}");
        };
        let number = |part: &Value<'_>| match part {
            Value::Text(text) => String::from_utf8_lossy(text).parse::<u64>().unwrap(),
            other => panic!("{other:?}"),
        };
        let micros = Duration::from_micros(number(&parts[0]) * 1_000_000 + number(&parts[1]));
        let while_told = before - Duration::from_micros(1)..=clock.wall().unix();
        assert!(while_told.contains(&micros), "{micros:?}");
        while clock.wall().unix() < micros + Duration::from_micros(10) {}
        assert_eq!(slot.call(&[b"time"]), Ok(told));
    }

    #[test]
    fn commands_see_what_those_before_them_changed() {
        let (clock, arena) = (Clock::start(), Bump::new());
        let mut slot = slot(&clock, &arena);
        let mut call = |line: &'static str| {
            let words: Vec<_> = line.split(' ').map(str::as_bytes).collect();
            slot.call(&words)
        };
        let number = |number: i32| Ok(Value::Number(f64::from(number)));
        let text = |text: &'static str| Ok(Value::Text(text.as_bytes()));
        for (line, answer) in [
            ("get k", Ok(Value::Bool(false))),
            ("pttl k", number(-2)),
            ("expire k 5", number(0)),
            ("set k 5 ex 10", Ok(Value::Status(b"OK"))),
            ("set k 6 nx", Ok(Value::Bool(false))),
            ("ttl k", number(10)),
            ("incrby k 2", number(7)),
            ("expire k 5 gt", number(0)),
            ("expire k 20 gt", number(1)),
            ("pttl k", number(20_000)),
            ("persist k", number(1)),
            ("persist k", number(0)),
            ("ttl k", number(-1)),
            ("getset k x", text("7")),
            ("type k", Ok(Value::Status(b"string"))),
            (
                "incr k",
                Err(Failure::Error(
                    b"ERR value is not an integer or out of range".into(),
                )),
            ),
            ("set k y z", Err(Failure::Error(b"ERR syntax error".into()))),
            ("getex k px 5000", text("x")),
            ("strlen k", number(1)),
            ("getrange k 0 -1", text("x")),
            ("substr k 1 5", text("")),
            ("exists k", number(1)),
            ("pexpire k -1", number(1)),
            ("exists k", number(0)),
            ("setnx k 1", number(1)),
            ("incrbyfloat k 0.5", text("1.5")),
            ("del k", number(1)),
            ("unlink k", number(0)),
        ] {
            assert_eq!(call(line), answer, "{line}");
        }
    }
}
