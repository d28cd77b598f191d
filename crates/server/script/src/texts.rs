//! The functions that look into a text.

use crate::run::{Failure, number_of};
use crate::tree::Function;
use crate::value::Value;

/// What these functions find in a text. Nothing is copied.
pub fn looked_up<'a>(
    function: Function,
    text: &'a [u8],
    places: &[Value<'_>],
) -> Result<Value<'a>, Failure> {
    let number = |at: usize, other: f64| places.get(at).map_or(Ok(other), number_of);
    let len = text.len() as i64;
    // Negative ones count from the end.
    let counted = |place: f64| match integer(place) {
        at @ ..0 => at.saturating_add(len + 1).max(0),
        at => at,
    };
    Ok(match function {
        Function::Part => {
            let (from, to) = (counted(number(0, 1.0)?), counted(number(1, -1.0)?));
            let (from, to) = (from.max(1) as usize, to.min(len) as usize);
            Value::Text(text.get(from - 1..to).unwrap_or_default())
        }
        Function::Byte => {
            let at = counted(number(0, 1.0)?);
            let byte = usize::try_from(at - 1).ok().and_then(|at| text.get(at));
            byte.map_or(Value::Nil, |byte| Value::Number(f64::from(*byte)))
        }
        // Length, the only one left.
        _ => Value::Number(len as f64),
    })
}

/// A number without its fraction, as C converts it: the least integer is for what does not fit, and for what is no
/// number.
pub fn integer(number: f64) -> i64 {
    /// 2^63, the first number that is too large.
    const END: f64 = 9_223_372_036_854_775_808.0;
    match number < END {
        true => number as i64,
        false => i64::MIN,
    }
}
