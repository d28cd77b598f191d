//! Values of scripts as answers.

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
        Value::Status(text) => writer.status_of(text),
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

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_resp::Version;

    #[test]
    fn an_answer_is_what_its_value_says() {
        let text = |it: &str| Value::Text(it.into());
        let values = Value::List(vec![
            Value::Nil,
            Value::Bool(true),
            Value::Integer(-7),
            text("a\r\nb"),
            Value::Status(b"OK\r\n\xff".into()),
            Value::Error(b"ERR x".into()),
            Value::Map(vec![(text("a"), Value::List(vec![]))]),
        ]);
        let mut answer = Vec::new();
        write(&mut Writer::new(&mut answer, Version::Resp3), &values);
        assert!(answer.len() <= len(&values));
        let expected = b"*7\r\n_\r\n#t\r\n:-7\r\n$4\r\na\r\nb\r\n+OK  \xff\r\n-ERR x\r\n%1\r\n$1\r\na\r\n*0\r\n";
        assert_eq!(answer, expected);
    }
}
