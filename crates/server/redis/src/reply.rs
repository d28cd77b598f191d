//! Answers of commands as values of scripts, and the other way.

use nuthatch_lua::Value;
use nuthatch_resp::{Error, Writer};

/// Bytes that a value takes in an answer, at most.
pub fn len(value: &Value) -> usize {
    const MARKS: usize = 32;
    MARKS
        + match value {
            Value::Nil | Value::Bool(_) | Value::Integer(_) | Value::Double(_) => 0,
            Value::Text(text)
            | Value::Status(text)
            | Value::Error(text)
            | Value::BigNumber(text)
            | Value::Verbatim { text, .. } => text.len(),
            Value::List(items) | Value::Set(items) => items.iter().map(len).sum(),
            Value::Map(pairs) => pairs.iter().map(|(name, item)| len(name) + len(item)).sum(),
        }
}

/// Answers a value.
pub fn write(writer: &mut Writer<'_>, value: &Value) {
    match value {
        Value::Nil => writer.null(),
        Value::Bool(it) => writer.boolean(*it),
        Value::Integer(it) => writer.integer(*it),
        Value::Double(it) => writer.double(*it),
        Value::Text(text) => writer.bulk(text),
        Value::Status(text) => {
            writer.status(&String::from_utf8_lossy(text).replace(['\r', '\n'], " "));
        }
        Value::Error(text) => writer.error(&Error::Script(text)),
        Value::BigNumber(digits) => writer.big_number(digits),
        Value::Verbatim { format, text } => writer.verbatim(*format, text),
        Value::List(items) => {
            writer.array(items.len());
            items.iter().for_each(|item| write(writer, item));
        }
        Value::Set(items) => {
            writer.set(items.len());
            items.iter().for_each(|item| write(writer, item));
        }
        Value::Map(pairs) => {
            writer.map(pairs.len());
            for (name, item) in pairs {
                write(writer, name);
                write(writer, item);
            }
        }
    }
}

/// The value of an answer of this server. `None` if it is not whole.
pub fn read(answer: &[u8]) -> Option<Value> {
    let mut left = answer;
    value(&mut left)
}

fn value(left: &mut &[u8]) -> Option<Value> {
    let line = line(left)?;
    let (kind, rest) = line.split_first()?;
    let number = || std::str::from_utf8(rest).ok()?.parse::<i64>().ok();
    Some(match kind {
        b'+' => Value::Status(rest.to_vec()),
        b'-' => Value::Error(rest.to_vec()),
        b':' => Value::Integer(number()?),
        b'_' => Value::Nil,
        b'#' => Value::Bool(rest == b"t"),
        b',' => Value::Double(std::str::from_utf8(rest).ok()?.parse().ok()?),
        b'$' | b'=' | b'(' => match number()? {
            ..0 => Value::Nil,
            len => {
                let text = left.split_off(..len as usize)?;
                left.split_off(..2)?;
                Value::Text(text.to_vec())
            }
        },
        b'*' | b'~' | b'>' => match number()? {
            ..0 => Value::Nil,
            count => {
                let items = (0..count).map(|_| value(left));
                let items = items.collect::<Option<_>>()?;
                match kind {
                    b'~' => Value::Set(items),
                    _ => Value::List(items),
                }
            }
        },
        b'%' => {
            let pairs = (0..number()?).map(|_| Some((value(left)?, value(left)?)));
            Value::Map(pairs.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn line<'a>(left: &mut &'a [u8]) -> Option<&'a [u8]> {
    let end = left.windows(2).position(|pair| pair == b"\r\n")?;
    let line = left.split_off(..end)?;
    left.split_off(..2)?;
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_resp::Version;

    #[test]
    fn a_value_is_what_its_answer_says() {
        let text = |it: &str| Value::Text(it.into());
        let values = Value::List(vec![
            Value::Nil,
            Value::Bool(true),
            Value::Integer(-7),
            text("a\r\nb"),
            Value::Status(b"OK".into()),
            Value::Error(b"ERR x".into()),
            Value::Map(vec![(text("a"), Value::List(vec![]))]),
        ]);
        let mut answer = Vec::new();
        write(&mut Writer::new(&mut answer, Version::Resp3), &values);
        assert!(answer.len() <= len(&values));
        assert_eq!(read(&answer), Some(values));
        for end in 0..answer.len() {
            assert_eq!(read(&answer[..end]), None);
        }
    }
}
