//! The parser of delete.

use crate::command::ValueCommand;
use crate::error::Error;
use crate::key;
use crate::reject::Reject;
use crate::words::{FirstWords, Words};

/// `delete <key> [noreply]`. Other words have no meaning, such as the zero that old clients send.
pub(crate) fn parse(args: Words<'_>) -> Result<ValueCommand<'_>, Reject> {
    let FirstWords {
        words: [key],
        noreply,
        ..
    } = args.first::<1>();
    if key.is_empty() {
        return Err(Error::BAD_FORMAT.into());
    }
    let key = key::check(key).map_err(|error| Reject::unless(noreply, error))?;
    Ok(ValueCommand::Delete { key, noreply })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{accept_value, reject};

    #[test]
    fn a_key_is_enough() {
        for (line, noreply) in [
            (&b"delete k\r\n"[..], false),
            (b"delete k 0\r\n", false),
            (b"delete k 5 x y z\r\n", false),
            (b"delete k noreply x\r\n", false),
            (b"delete k noreply\r\n", true),
            (b"delete  k  0  noreply \n", true),
        ] {
            assert_eq!(
                accept_value(line),
                ValueCommand::Delete { key: b"k", noreply }
            );
        }
        let key = b"noreply";
        let noreply = true;
        assert_eq!(
            accept_value(b"delete noreply\r\n"),
            ValueCommand::Delete { key, noreply }
        );
    }

    #[test]
    fn no_key_is_refused() {
        let format = "CLIENT_ERROR bad command line format\r\n";
        for (line, error) in [
            (&b"delete\r\n"[..], format),
            (b"delete  \r\n", format),
            (b"delete a\x01\r\n", format),
            (b"delete a\x01 noreply\r\n", ""),
        ] {
            assert_eq!(reject(line), error, "{line:?}");
        }
    }
}
