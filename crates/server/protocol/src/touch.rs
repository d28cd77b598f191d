//! The parser of touch.

use crate::command::ValueCommand;
use crate::error::Error;
use crate::key::KeyAndWord;
use crate::number;
use crate::reject::Reject;
use crate::words::Words;

/// `touch <key> <exptime> [noreply]`.
pub(crate) fn parse(args: Words<'_>) -> Result<ValueCommand<'_>, Reject> {
    let KeyAndWord { key, word, noreply } = KeyAndWord::of(args)?;
    let exptime = number::exptime(word).ok_or(Reject::unless(noreply, Error::BAD_EXPTIME))?;
    Ok(ValueCommand::Touch {
        key,
        exptime,
        noreply,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Exptime;
    use crate::testing::{accept_value, reject};

    #[test]
    fn an_expiry_of_any_sign() {
        for (line, seconds, noreply) in [
            (&b"touch k 0\r\n"[..], 0, false),
            (b"touch k -1 noreply\r\n", -1, true),
            (b"touch k 2147483647 x\r\n", i32::MAX, false),
            (b"touch k -2147483648 x noreply\r\n", i32::MIN, true),
            (b"touch k -\r\n", 0, false),
        ] {
            let (key, exptime) = (&b"k"[..], Exptime(seconds));
            assert_eq!(
                accept_value(line),
                ValueCommand::Touch {
                    key,
                    exptime,
                    noreply
                }
            );
        }
    }

    #[test]
    fn what_is_no_expiry_is_refused() {
        let format = "CLIENT_ERROR bad command line format\r\n";
        let exptime = "CLIENT_ERROR invalid exptime argument\r\n";
        for (line, error) in [
            (&b"touch\r\n"[..], format),
            (b"touch k\r\n", format),
            (b"touch noreply\r\n", format),
            (b"touch k noreply\r\n", ""),
            (b"touch k x\r\n", exptime),
            (b"touch k 2147483648\r\n", exptime),
            (b"touch k 4294967295\r\n", exptime),
            (b"touch k -2147483649\r\n", exptime),
            (b"touch k 9223372036854775807\r\n", exptime),
            (b"touch k x noreply\r\n", ""),
            (b"touch \x7f 1\r\n", format),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }
}
