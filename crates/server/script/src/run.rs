//! Carries a script out.

use bumpalo::Bump;
use nuthatch_base::memory::reserve::spare;

use crate::number::{as_argument, as_text};
use crate::texts::looked_up;
use crate::tree::{
    Answer, Binary, Block, Expression, Field, Function, List, Script, Statement, Unary,
};
use crate::value::Value;

/// The most bytes of texts that a script may make, all together, apart from its arguments, which it may join twice: a text
/// that is joined with itself again and again must not fill the memory.
const MADE_MAX: usize = 1 << 20;

/// The most bytes that a script may answer, apart from the longest of its values: a list may name one value many times.
const ANSWER_MAX: usize = 1 << 20;

/// The longest text of a status or of an error: it is a line.
const LINE_MAX: usize = 4 << 10;

/// The most steps that a script may take, apart from those that its arguments and the key's value need to be looked at
/// twice: the text of no script has so many nodes, but each may look at a long text.
const STEPS_MAX: usize = 4 << 10;

/// So many bytes are looked at, or are copied, in a step.
const BYTES_OF_STEP: usize = 1 << 10;

/// Why a script has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It ends with this error, as in Redis: what it changed before stays changed.
    Error(Vec<u8>),
    /// It does what no known script does, such as to call a command with another key. Nothing of it may take effect.
    Unknown,
    /// It takes too many steps, or its texts or its answer are too long. Nothing of it may take effect.
    TooLong,
    /// There is no memory for a text that it makes. Nothing of it may take effect.
    OutOfMemory,
}

impl Failure {
    fn says(words: &str) -> Self {
        Self::Error(format!("ERR the script fails: {words}").into_bytes())
    }
}

/// What carries out a script's commands.
pub trait Calls<'a> {
    /// Carries out a command, whose second word is the script's key, or TIME, which has none.
    fn call(&mut self, words: &[&'a [u8]]) -> Result<Value<'a>, Failure>;
}

impl<'a, F: FnMut(&[&'a [u8]]) -> Result<Value<'a>, Failure>> Calls<'a> for F {
    fn call(&mut self, words: &[&'a [u8]]) -> Result<Value<'a>, Failure> {
        self(words)
    }
}

/// A run that is over.
#[derive(Debug, PartialEq)]
pub struct Ran<'a> {
    /// The script's value.
    pub value: Result<Value<'a>, Failure>,
    /// What it took: one for each node of the script, and one for each KiB that was compared or joined.
    pub steps: usize,
}

impl Script {
    /// Runs the script with one key and these arguments. What texts it makes are in the arena.
    pub fn run<'a>(
        &'a self,
        key: &'a [u8],
        arguments: &'a [&'a [u8]],
        arena: &'a Bump,
        calls: &mut dyn Calls<'a>,
    ) -> Ran<'a> {
        let given = arguments.iter().map(|one| one.len()).sum();
        let mut run = Run {
            key,
            arguments,
            arena,
            calls,
            locals: Vec::new(),
            steps: 0,
            given,
            longest: 0,
            room: MADE_MAX.saturating_add(2 * given),
        };
        let value = run.block(&self.body);
        Ran {
            value: value.map(|value| value.unwrap_or(Value::Nil)),
            steps: run.steps,
        }
    }
}

struct Run<'a, 'c> {
    key: &'a [u8],
    arguments: &'a [&'a [u8]],
    arena: &'a Bump,
    calls: &'c mut dyn Calls<'a>,
    locals: Vec<Value<'a>>,
    steps: usize,
    /// Bytes of all arguments.
    given: usize,
    /// Bytes of the longest text that a command answered.
    longest: usize,
    /// Bytes of texts that it may still make.
    room: usize,
}

impl<'a> Run<'a, '_> {
    /// Carries out statements. The value if one of them returned.
    fn block(&mut self, block: &'a Block) -> Result<Option<Value<'a>>, Failure> {
        let outer = self.locals.len();
        let mut returned = None;
        for statement in block {
            returned = self.statement(statement)?;
            if returned.is_some() {
                break;
            }
        }
        self.locals.truncate(outer);
        Ok(returned)
    }

    fn statement(&mut self, statement: &'a Statement) -> Result<Option<Value<'a>>, Failure> {
        self.step(0)?;
        match statement {
            Statement::Local { names, values } => {
                let before = self.locals.len();
                // All values come before the first variable.
                let values = self.values(values)?;
                self.locals.extend(values);
                self.locals.resize(before + names, Value::Nil);
            }
            Statement::Assign { place, value } => self.locals[*place] = self.value(value)?,
            Statement::Call(call) => {
                self.value(call)?;
            }
            Statement::If(branches) => {
                for (condition, block) in branches {
                    if self.value(condition)?.is_true() {
                        return self.block(block);
                    }
                }
            }
            Statement::Do(block) => return self.block(block),
            Statement::EachKey(block) => {
                let outer = self.locals.len();
                let key = Value::Text(self.key);
                self.locals.extend([Value::Number(1.0), key]);
                let returned = self.block(block);
                self.locals.truncate(outer);
                return returned;
            }
            Statement::Return(None) => return Ok(Some(Value::Nil)),
            Statement::Return(Some(Answer::One(value))) => return self.value(value).map(Some),
            Statement::Return(Some(Answer::List(values))) => {
                let values = self.values(values)?;
                check_answer(&values)?;
                return Ok(Some(Value::List(values)));
            }
        }
        Ok(None)
    }

    fn values(&mut self, expressions: &'a [Expression]) -> Result<Vec<Value<'a>>, Failure> {
        expressions.iter().map(|one| self.value(one)).collect()
    }

    fn value(&mut self, expression: &'a Expression) -> Result<Value<'a>, Failure> {
        self.step(0)?;
        Ok(match expression {
            Expression::Nil => Value::Nil,
            Expression::Bool(is) => Value::Bool(*is),
            Expression::Number(number) => Value::Number(*number),
            Expression::Text(text) => Value::Text(text),
            Expression::Local(place) => self.locals[*place].clone(),
            Expression::Count(List::Keys) => Value::Number(1.0),
            Expression::Count(List::Arguments) => Value::Number(self.arguments.len() as f64),
            Expression::Element(list, index) => {
                let index = self.value(index)?;
                self.element(*list, &index)
            }
            Expression::Unary(operator, value) => {
                let value = self.value(value)?;
                unary(*operator, &value)?
            }
            Expression::Binary(operator, sides) => self.binary(*operator, &sides.0, &sides.1)?,
            Expression::Field(value, field) => match (self.value(value)?, field) {
                (Value::Status(text), Field::Ok) | (Value::Error(text), Field::Err) => {
                    Value::Text(text)
                }
                (Value::Status(_) | Value::Error(_) | Value::List(_) | Value::Text(_), _) => {
                    Value::Nil
                }
                (other, _) => return Err(no_index(&other)),
            },
            Expression::Item(sides) => {
                let list = self.value(&sides.0)?;
                let index = self.value(&sides.1)?;
                item(list, &index)?
            }
            Expression::Call(function, arguments) => {
                let values = self.values(arguments)?;
                self.call(*function, &values)?
            }
            Expression::Method(function, arguments) => {
                let values = self.values(arguments)?;
                match values.first() {
                    Some(Value::Text(_)) => self.call(*function, &values)?,
                    other => return Err(no_index(other.unwrap_or(&Value::Nil))),
                }
            }
        })
    }

    /// Accounts for a step that looks at this many bytes of texts.
    fn step(&mut self, bytes: usize) -> Result<(), Failure> {
        self.steps += 1 + bytes / BYTES_OF_STEP;
        let twice = 2 * (self.given + self.longest) / BYTES_OF_STEP;
        match self.steps <= STEPS_MAX + twice {
            true => Ok(()),
            false => Err(Failure::TooLong),
        }
    }

    /// A text of these pieces.
    fn made(&mut self, pieces: [&[u8]; 2]) -> Result<&'a [u8], Failure> {
        let made = self.space(pieces[0].len() + pieces[1].len())?;
        let (front, back) = made.split_at_mut(pieces[0].len());
        front.copy_from_slice(pieces[0]);
        back.copy_from_slice(pieces[1]);
        Ok(made)
    }

    /// Room for a text that is made.
    fn space(&mut self, len: usize) -> Result<&'a mut [u8], Failure> {
        self.step(len)?;
        self.room = self.room.checked_sub(len).ok_or(Failure::TooLong)?;
        let arena = self.arena;
        let made = spare(|| arena.try_alloc_slice_fill_copy(len, 0));
        made.map_err(|_| Failure::OutOfMemory)
    }

    /// The text that a value is, or that its number is written as.
    fn written(
        &mut self,
        value: &Value<'a>,
        by: fn(f64) -> String,
    ) -> Result<Option<&'a [u8]>, Failure> {
        Ok(match value {
            Value::Number(number) => Some(self.made([by(*number).as_bytes(), b""])?),
            Value::Text(text) => Some(text),
            _ => None,
        })
    }

    fn element(&self, list: List, index: &Value<'a>) -> Value<'a> {
        let Value::Number(index) = index else {
            return Value::Nil;
        };
        let Some(index) = place(*index) else {
            return Value::Nil;
        };
        match list {
            List::Keys if index == 0 => Value::Text(self.key),
            List::Keys => Value::Nil,
            List::Arguments => {
                let argument = self.arguments.get(index);
                argument.map_or(Value::Nil, |text| Value::Text(text))
            }
        }
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: &'a Expression,
        right: &'a Expression,
    ) -> Result<Value<'a>, Failure> {
        let left = self.value(left)?;
        match operator {
            Binary::And if !left.is_true() => return Ok(left),
            Binary::Or if left.is_true() => return Ok(left),
            _ => {}
        }
        let right = self.value(right)?;
        let is_comparison = !matches!(operator, Binary::And | Binary::Or | Binary::Join);
        if is_comparison {
            // Texts of different lengths are not equal.
            self.step(left.len().min(right.len()))?;
        }
        Ok(match operator {
            Binary::And | Binary::Or => right,
            // Each answer is a list of its own: what is in it does not matter.
            Binary::Equal | Binary::Unequal
                if matches!((&left, &right), (Value::List(_), Value::List(_))) =>
            {
                return Err(Failure::Unknown);
            }
            Binary::Equal => Value::Bool(left == right),
            Binary::Unequal => Value::Bool(left != right),
            Binary::Less => Value::Bool(is_less(&left, &right)?),
            Binary::LessOrEqual => Value::Bool(is_less_or_equal(&left, &right)?),
            Binary::Greater => Value::Bool(is_less(&right, &left)?),
            Binary::GreaterOrEqual => Value::Bool(is_less_or_equal(&right, &left)?),
            Binary::Join => Value::Text(self.joined(&left, &right)?),
            _ => arithmetic(operator, &left, &right)?,
        })
    }

    fn joined(&mut self, left: &Value<'a>, right: &Value<'a>) -> Result<&'a [u8], Failure> {
        let mut side = |value| {
            let odd = || {
                Failure::says(&format!(
                    "attempt to concatenate a {} value",
                    Value::kind(value)
                ))
            };
            self.written(value, as_text)?.ok_or_else(odd)
        };
        let sides = [side(left)?, side(right)?];
        self.made(sides)
    }

    fn call(&mut self, function: Function, values: &[Value<'a>]) -> Result<Value<'a>, Failure> {
        let first = values.first().unwrap_or(&Value::Nil);
        Ok(match function {
            Function::Command => self.command(values)?,
            Function::CommandOrError => match self.command(values) {
                Err(Failure::Error(text)) => Value::Error(self.made([&text, b""])?),
                other => other?,
            },
            Function::Status => Value::Status(line_of(first)?),
            Function::Error => Value::Error(self.error_of(line_of(first)?)?),
            Function::Failed => Value::Error(line_of(first)?),
            Function::Replicate => Value::Bool(true),
            Function::ToNumber => first.number().map_or(Value::Nil, Value::Number),
            Function::ToText => match (first, self.written(first, as_text)?) {
                (_, Some(text)) => Value::Text(text),
                (Value::Nil, _) => Value::Text(b"nil"),
                (Value::Bool(true), _) => Value::Text(b"true"),
                (Value::Bool(false), _) => Value::Text(b"false"),
                // It would be an address.
                _ => return Err(Failure::Unknown),
            },
            Function::Kind => Value::Text(first.kind().as_bytes()),
            Function::Floor => Value::Number(number_of(first)?.floor()),
            Function::Ceil => Value::Number(number_of(first)?.ceil()),
            Function::Max => Value::Number(folded(values, |most, number| number > most)?),
            Function::Min => Value::Number(folded(values, |least, number| number < least)?),
            Function::Length | Function::Part | Function::Byte => {
                let text = self.text_of(first)?;
                looked_up(function, text, &values[1..])?
            }
            Function::Lower => Value::Text(self.cased(first, u8::to_ascii_lowercase)?),
            Function::Upper => Value::Text(self.cased(first, u8::to_ascii_uppercase)?),
        })
    }

    /// An error of this text: a word that tells its kind, and others. A text without a kind gets `ERR`.
    fn error_of(&mut self, text: &'a [u8]) -> Result<&'a [u8], Failure> {
        let text = text.strip_prefix(b"-").unwrap_or(text);
        match text.contains(&b' ') {
            true => Ok(text),
            false => self.made([b"ERR ", text]),
        }
    }

    /// The text that a function of texts is about.
    fn text_of(&mut self, value: &Value<'a>) -> Result<&'a [u8], Failure> {
        let odd = || Failure::says(&format!("string expected, got {}", value.kind()));
        self.written(value, as_text)?.ok_or_else(odd)
    }

    fn cased(&mut self, value: &Value<'a>, case: fn(&u8) -> u8) -> Result<&'a [u8], Failure> {
        let text = self.text_of(value)?;
        let made = self.space(text.len())?;
        for (to, from) in made.iter_mut().zip(text) {
            *to = case(from);
        }
        Ok(made)
    }

    fn command(&mut self, values: &[Value<'a>]) -> Result<Value<'a>, Failure> {
        let words = "ERR Lua redis lib command arguments must be strings or integers";
        let mut word = |value| {
            let no_word = || Failure::Error(words.into());
            self.written(value, as_argument)?.ok_or_else(no_word)
        };
        let words = values
            .iter()
            .map(&mut word)
            .collect::<Result<Vec<_>, _>>()?;
        // The key is the only one that the script may touch. TIME has none.
        if words.get(1).is_some_and(|key| *key != self.key) {
            return Err(Failure::Unknown);
        }
        let answer = self.calls.call(&words)?;
        self.longest = self.longest.max(answer.len());
        Ok(answer)
    }
}

/// Checks that the values of an answer are not too long.
fn check_answer(values: &[Value<'_>]) -> Result<(), Failure> {
    let lens = || values.iter().map(Value::len);
    let (all, longest) = (lens().sum::<usize>(), lens().max().unwrap_or(0));
    match all - longest <= ANSWER_MAX {
        true => Ok(()),
        false => Err(Failure::TooLong),
    }
}

/// The text of a status or of an error.
fn line_of<'a>(value: &Value<'a>) -> Result<&'a [u8], Failure> {
    match value {
        Value::Text(text) if text.len() > LINE_MAX => Err(Failure::TooLong),
        Value::Text(text) => Ok(text),
        _ => Err(Failure::Error(
            b"ERR wrong number or type of arguments".into(),
        )),
    }
}

fn no_index(value: &Value<'_>) -> Failure {
    Failure::says(&format!("attempt to index a {} value", value.kind()))
}

/// `value[index]`. What is no list has no elements.
fn item<'a>(value: Value<'a>, index: &Value<'_>) -> Result<Value<'a>, Failure> {
    match (value, index) {
        (Value::List(mut values), Value::Number(at)) => {
            let at = place(*at).filter(|at| *at < values.len());
            Ok(at.map_or(Value::Nil, |at| values.swap_remove(at)))
        }
        // It may be the name of a field.
        (Value::List(_) | Value::Status(_) | Value::Error(_) | Value::Text(_), Value::Text(_)) => {
            Err(Failure::Unknown)
        }
        (Value::List(_) | Value::Status(_) | Value::Error(_) | Value::Text(_), _) => Ok(Value::Nil),
        (other, _) => Err(no_index(&other)),
    }
}

/// The place of an element that Lua counts from one on.
fn place(index: f64) -> Option<usize> {
    (index >= 1.0 && index.fract() == 0.0).then(|| index as usize - 1)
}

pub fn number_of(value: &Value<'_>) -> Result<f64, Failure> {
    let words = || format!("number expected, got {}", value.kind());
    value.number().ok_or_else(|| Failure::says(&words()))
}

/// The first of these numbers that is beyond all before it. NaN is beyond none, and none is beyond NaN.
fn folded(values: &[Value<'_>], is_beyond: fn(f64, f64) -> bool) -> Result<f64, Failure> {
    let mut numbers = values.iter().map(number_of);
    let first = numbers.next().unwrap_or(Ok(0.0))?;
    numbers.try_fold(first, |folded, number| {
        let number = number?;
        Ok(if is_beyond(folded, number) {
            number
        } else {
            folded
        })
    })
}

fn unary(operator: Unary, value: &Value<'_>) -> Result<Value<'static>, Failure> {
    Ok(match (operator, value) {
        (Unary::Not, value) => Value::Bool(!value.is_true()),
        (Unary::Length, Value::Text(text)) => Value::Number(text.len() as f64),
        (Unary::Length, Value::List(values)) => Value::Number(values.len() as f64),
        (Unary::Length, other) => {
            let words = format!("attempt to get length of a {} value", other.kind());
            return Err(Failure::says(&words));
        }
        (Unary::Minus, value) => Value::Number(-operand(value)?),
    })
}

fn arithmetic(
    operator: Binary,
    left: &Value<'_>,
    right: &Value<'_>,
) -> Result<Value<'static>, Failure> {
    let (left, right) = (operand(left)?, operand(right)?);
    Ok(Value::Number(match operator {
        Binary::Add => left + right,
        Binary::Subtract => left - right,
        Binary::Multiply => left * right,
        Binary::Divide => left / right,
        // Modulo, the only one left.
        _ => left - (left / right).floor() * right,
    }))
}

fn operand(value: &Value<'_>) -> Result<f64, Failure> {
    let words = || format!("attempt to perform arithmetic on a {} value", value.kind());
    value.number().ok_or_else(|| Failure::says(&words()))
}

fn is_less(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Failure> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left < right),
        (Value::Text(left), Value::Text(right)) => Ok(left < right),
        _ => Err(not_comparable(left, right)),
    }
}

fn is_less_or_equal(left: &Value<'_>, right: &Value<'_>) -> Result<bool, Failure> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left <= right),
        (Value::Text(left), Value::Text(right)) => Ok(left <= right),
        _ => Err(not_comparable(left, right)),
    }
}

fn not_comparable(left: &Value<'_>, right: &Value<'_>) -> Failure {
    let (left, right) = (left.kind(), right.kind());
    match left == right {
        true => Failure::says(&format!("attempt to compare two {left} values")),
        false => Failure::says(&format!("attempt to compare {left} with {right}")),
    }
}
