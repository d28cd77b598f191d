//! Carries a script out.

use std::rc::Rc;

use crate::number::{DIGITS_OF_ARGUMENT, DIGITS_OF_TEXT};
use crate::tree::{
    Answer, Binary, Block, Expression, Field, Function, List, Script, Statement, Unary,
};
use crate::value::Value;

/// The most bytes that a script may make or pass to commands, all together, apart from its arguments, which it may pass
/// twice: a text that is joined with itself again and again must not fill the memory, and a long one that is stored
/// again and again must not keep others waiting.
const BYTES_MAX: usize = 1 << 20;

/// Why a script has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// It ends with this error, as in Redis: what it changed before stays changed.
    Error(Vec<u8>),
    /// It does what no known script does, such as to call a command with another key. Nothing of it may take effect.
    Unknown,
}

impl Failure {
    fn says(words: &str) -> Self {
        Self::Error(format!("ERR the script fails: {words}").into_bytes())
    }
}

/// What carries out a script's commands.
pub trait Calls {
    /// Carries out a command, whose second word is the script's key.
    fn call(&mut self, words: &[&[u8]]) -> Result<Value, Failure>;
}

impl<F: FnMut(&[&[u8]]) -> Result<Value, Failure>> Calls for F {
    fn call(&mut self, words: &[&[u8]]) -> Result<Value, Failure> {
        self(words)
    }
}

impl Script {
    /// Runs the script with one key and these arguments.
    pub fn run(
        &self,
        key: &[u8],
        arguments: &[&[u8]],
        calls: &mut dyn Calls,
    ) -> Result<Value, Failure> {
        let arguments: Vec<Rc<[u8]>> = arguments.iter().map(|&one| one.into()).collect();
        let given: usize = arguments.iter().map(|one| one.len()).sum();
        let mut run = Run {
            key,
            arguments,
            calls,
            locals: Vec::new(),
            left: BYTES_MAX + 2 * given,
        };
        Ok(run.block(&self.body)?.unwrap_or(Value::Nil))
    }
}

struct Run<'r> {
    key: &'r [u8],
    arguments: Vec<Rc<[u8]>>,
    calls: &'r mut dyn Calls,
    locals: Vec<Value>,
    /// Bytes that it may still make or pass.
    left: usize,
}

impl Run<'_> {
    /// Carries out statements. The value if one of them returned.
    fn block(&mut self, block: &Block) -> Result<Option<Value>, Failure> {
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

    fn statement(&mut self, statement: &Statement) -> Result<Option<Value>, Failure> {
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
                let key = Value::text(self.key);
                self.locals.extend([Value::Number(1.0), key]);
                let returned = self.block(block);
                self.locals.truncate(outer);
                return returned;
            }
            Statement::Return(None) => return Ok(Some(Value::Nil)),
            Statement::Return(Some(Answer::One(value))) => return self.value(value).map(Some),
            Statement::Return(Some(Answer::List(values))) => {
                return Ok(Some(Value::List(self.values(values)?)));
            }
        }
        Ok(None)
    }

    fn values(&mut self, expressions: &[Expression]) -> Result<Vec<Value>, Failure> {
        expressions.iter().map(|one| self.value(one)).collect()
    }

    fn value(&mut self, expression: &Expression) -> Result<Value, Failure> {
        Ok(match expression {
            Expression::Nil => Value::Nil,
            Expression::Bool(is) => Value::Bool(*is),
            Expression::Number(number) => Value::Number(*number),
            Expression::Text(text) => self.made_text(text)?,
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
                (Value::Status(_) | Value::Error(_) | Value::Text(_), _) => Value::Nil,
                (other, _) => {
                    let words = format!("attempt to index a {} value", other.kind());
                    return Err(Failure::says(&words));
                }
            },
            Expression::Call(function, arguments) => {
                let values = self.values(arguments)?;
                self.call(*function, &values)?
            }
        })
    }

    /// Accounts for some bytes.
    fn pay(&mut self, bytes: usize) -> Result<(), Failure> {
        let too_many = || Failure::says("its texts are too long");
        self.left = self.left.checked_sub(bytes).ok_or_else(too_many)?;
        Ok(())
    }

    fn made_text(&mut self, text: &[u8]) -> Result<Value, Failure> {
        self.pay(text.len())?;
        Ok(Value::text(text))
    }

    fn element(&self, list: List, index: &Value) -> Value {
        let index = match index {
            Value::Number(index) if *index >= 1.0 && index.fract() == 0.0 => *index as usize - 1,
            _ => return Value::Nil,
        };
        match list {
            List::Keys if index == 0 => Value::text(self.key),
            List::Keys => Value::Nil,
            List::Arguments => {
                let argument = self.arguments.get(index);
                argument.map_or(Value::Nil, |text| Value::Text(Rc::clone(text)))
            }
        }
    }

    fn binary(
        &mut self,
        operator: Binary,
        left: &Expression,
        right: &Expression,
    ) -> Result<Value, Failure> {
        let left = self.value(left)?;
        match operator {
            Binary::And if !left.is_true() => return Ok(left),
            Binary::Or if left.is_true() => return Ok(left),
            _ => {}
        }
        let right = self.value(right)?;
        Ok(match operator {
            Binary::And | Binary::Or => right,
            Binary::Equal => Value::Bool(left == right),
            Binary::Unequal => Value::Bool(left != right),
            Binary::Less => Value::Bool(is_less(&left, &right)?),
            Binary::LessOrEqual => Value::Bool(is_less_or_equal(&left, &right)?),
            Binary::Greater => Value::Bool(is_less(&right, &left)?),
            Binary::GreaterOrEqual => Value::Bool(is_less_or_equal(&right, &left)?),
            Binary::Join => {
                let sides = (left.written(DIGITS_OF_TEXT), right.written(DIGITS_OF_TEXT));
                let (Some(front), Some(back)) = sides else {
                    let odd = if left.written(DIGITS_OF_TEXT).is_none() {
                        left
                    } else {
                        right
                    };
                    let words = format!("attempt to concatenate a {} value", odd.kind());
                    return Err(Failure::says(&words));
                };
                self.pay(front.len() + back.len())?;
                Value::Text([front, back].concat().into())
            }
            _ => arithmetic(operator, &left, &right)?,
        })
    }

    fn call(&mut self, function: Function, values: &[Value]) -> Result<Value, Failure> {
        let first = values.first().unwrap_or(&Value::Nil);
        Ok(match function {
            Function::Command => self.command(values)?,
            Function::CommandOrError => match self.command(values) {
                Err(Failure::Error(text)) => Value::Error(text.into()),
                other => other?,
            },
            Function::Status => Value::Status(text_of(first)?),
            Function::Error => Value::Error(text_of(first)?),
            Function::ToNumber => first.number().map_or(Value::Nil, Value::Number),
            Function::ToText => match (first, first.written(DIGITS_OF_TEXT)) {
                (_, Some(text)) => Value::Text(text),
                (Value::Nil, _) => Value::text(b"nil"),
                (Value::Bool(is), _) => Value::text(is.to_string().as_bytes()),
                // It would be an address.
                _ => return Err(Failure::Unknown),
            },
            Function::Kind => Value::text(first.kind().as_bytes()),
            Function::Floor => Value::Number(number_of(first)?.floor()),
            Function::Ceil => Value::Number(number_of(first)?.ceil()),
            Function::Max => Value::Number(folded(values, f64::max)?),
            Function::Min => Value::Number(folded(values, f64::min)?),
        })
    }

    fn command(&mut self, values: &[Value]) -> Result<Value, Failure> {
        let words: Option<Vec<Rc<[u8]>>> = values
            .iter()
            .map(|value| value.written(DIGITS_OF_ARGUMENT))
            .collect();
        let Some(words) = words else {
            let words = "ERR Lua redis lib command arguments must be strings or integers";
            return Err(Failure::Error(words.into()));
        };
        // The key is the only one that the script may touch.
        if *words[1] != *self.key {
            return Err(Failure::Unknown);
        }
        self.pay(words.iter().map(|word| word.len()).sum())?;
        let words: Vec<&[u8]> = words.iter().map(|word| &**word).collect();
        self.calls.call(&words)
    }
}

fn text_of(value: &Value) -> Result<Rc<[u8]>, Failure> {
    match value {
        Value::Text(text) => Ok(Rc::clone(text)),
        _ => Err(Failure::Error(
            b"ERR wrong number or type of arguments".into(),
        )),
    }
}

fn number_of(value: &Value) -> Result<f64, Failure> {
    let words = || format!("number expected, got {}", value.kind());
    value.number().ok_or_else(|| Failure::says(&words()))
}

fn folded(values: &[Value], fold: fn(f64, f64) -> f64) -> Result<f64, Failure> {
    let mut numbers = values.iter().map(number_of);
    let first = numbers.next().unwrap_or(Ok(0.0))?;
    numbers.try_fold(first, |folded, number| Ok(fold(folded, number?)))
}

fn unary(operator: Unary, value: &Value) -> Result<Value, Failure> {
    Ok(match (operator, value) {
        (Unary::Not, value) => Value::Bool(!value.is_true()),
        (Unary::Length, Value::Text(text)) => Value::Number(text.len() as f64),
        (Unary::Length, other) => {
            let words = format!("attempt to get length of a {} value", other.kind());
            return Err(Failure::says(&words));
        }
        (Unary::Minus, value) => Value::Number(-operand(value)?),
    })
}

fn arithmetic(operator: Binary, left: &Value, right: &Value) -> Result<Value, Failure> {
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

fn operand(value: &Value) -> Result<f64, Failure> {
    let words = || format!("attempt to perform arithmetic on a {} value", value.kind());
    value.number().ok_or_else(|| Failure::says(&words()))
}

fn is_less(left: &Value, right: &Value) -> Result<bool, Failure> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left < right),
        (Value::Text(left), Value::Text(right)) => Ok(left < right),
        _ => Err(not_comparable(left, right)),
    }
}

fn is_less_or_equal(left: &Value, right: &Value) -> Result<bool, Failure> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left <= right),
        (Value::Text(left), Value::Text(right)) => Ok(left <= right),
        _ => Err(not_comparable(left, right)),
    }
}

fn not_comparable(left: &Value, right: &Value) -> Failure {
    let (left, right) = (left.kind(), right.kind());
    match left == right {
        true => Failure::says(&format!("attempt to compare two {left} values")),
        false => Failure::says(&format!("attempt to compare {left} with {right}")),
    }
}
