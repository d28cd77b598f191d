//! The parser of incr and decr.

use crate::command::ValueCommand;
use crate::error::Error;
use crate::key::KeyAndWord;
use crate::number;
use crate::reject::Reject;
use crate::words::Words;

/// `incr <key> <number> [noreply]`, `decr <key> <number> [noreply]`.
pub(crate) fn parse(args: Words<'_>, down: bool) -> Result<ValueCommand<'_>, Reject> {
    let KeyAndWord { key, word, noreply } = KeyAndWord::of(args)?;
    let by = number::unsigned(word).ok_or(Reject::unless(noreply, Error::BAD_DELTA))?;
    Ok(ValueCommand::Delta {
        key,
        down,
        by,
        noreply,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;
    use crate::testing::{accept_value, encoded, reject};

    #[test]
    fn a_number_up_or_down() {
        for (line, down, by, noreply) in [
            (&b"incr k 1\r\n"[..], false, 1, false),
            (b"decr k 0\r\n", true, 0, false),
            (
                b"incr k 18446744073709551615 noreply\r\n",
                false,
                u64::MAX,
                true,
            ),
            (b"decr k 007 x\r\n", true, 7, false),
            (b"decr k 1 noreply x\r\n", true, 1, false),
        ] {
            let key = b"k";
            assert_eq!(
                accept_value(line),
                ValueCommand::Delta {
                    key,
                    down,
                    by,
                    noreply
                }
            );
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let format = "CLIENT_ERROR bad command line format\r\n";
        let delta = "CLIENT_ERROR invalid numeric delta argument\r\n";
        for (line, error) in [
            (&b"incr\r\n"[..], format),
            (b"incr k\r\n", format),
            (b"incr k noreply\r\n", ""),
            (b"incr k x\r\n", delta),
            (b"incr k -1\r\n", delta),
            (b"decr k 18446744073709551616\r\n", delta),
            (b"decr k 99999999999999999999999\r\n", delta),
            (b"decr k 1a noreply\r\n", ""),
            (b"incr \x02 1\r\n", format),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }

    #[test]
    fn the_reply_is_a_line_of_digits() {
        for (number, line) in [(0, "0\r\n"), (u64::MAX, "18446744073709551615\r\n")] {
            assert_eq!(encoded(|out| encode::number_line(out, number)), line);
        }
        assert_eq!(
            encoded(|out| encode::error(out, Error::NON_NUMERIC)),
            "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
        );
    }
}
