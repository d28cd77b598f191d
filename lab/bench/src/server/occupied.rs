//! The check that a server is empty. A load stores items, replaces those of the same keys, and evicts others. So a
//! server that holds items already is refused, whatever its protocol; one that cannot report it too.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;

use nuthatch_program::Failure;

use super::binary;
use super::scan::Protocol;
use super::stream::{Answer, ask};

/// Parses a server's answer: how many items it holds.
type Counting = fn(Answer) -> Result<u64, String>;

/// Refuses a server that holds items, or that does not say whether it does.
pub fn refuse(target: SocketAddr, protocol: Protocol, tls: bool) -> Result<(), Failure> {
    let (request, items_in): (&[u8], Counting) = match protocol {
        Protocol::Memcached => (b"stats\r\n", in_text),
        Protocol::Binary => (&binary::STATS, in_binary),
        Protocol::Redis => (b"*1\r\n$6\r\nDBSIZE\r\n", in_resp),
        Protocol::Cpserver | Protocol::CpserverExtended => {
            let words = "CPServer's protocol does not tell whether a server holds items, which the \
                         load would replace or evict; --overwrite goes on without knowing";
            return Err(Failure::usage(words));
        }
    };
    let answer = ask(target, request, tls).map_err(|error| error.to_string());
    match answer.and_then(items_in) {
        Ok(0) => Ok(()),
        Ok(items) => Err(Failure::Run(format!(
            "{target} holds {items} items, which the load would replace or evict; \
             --overwrite allows that"
        ))),
        Err(error) => Err(Failure::Run(format!(
            "{target} does not say whether it holds items ({error}); --overwrite goes on \
             without knowing"
        ))),
    }
}

fn number(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("it says that it holds {text:?}"))
}

fn closed() -> String {
    "it closed the connection".to_owned()
}

fn in_text(answer: Answer) -> Result<u64, String> {
    for line in BufReader::new(answer).lines() {
        let line = line.map_err(|error| error.to_string())?;
        let mut words = line.split_whitespace();
        match (words.next(), words.next(), words.next()) {
            (Some("STAT"), Some("curr_items"), Some(items)) => return number(items),
            (Some("STAT"), ..) => {}
            _ => return Err(format!("it answers {line:?} to stats")),
        }
    }
    Err(closed())
}

fn in_binary(mut answer: Answer) -> Result<u64, String> {
    loop {
        match binary::statistic(&mut answer)? {
            Some((name, items)) if name == "curr_items" => return number(&items),
            Some(_) => {}
            None => return Err("its statistics have no curr_items".to_owned()),
        }
    }
}

fn in_resp(answer: Answer) -> Result<u64, String> {
    let mut line = String::new();
    let read = BufReader::new(answer.take(1 << 10)).read_line(&mut line);
    read.map_err(|error| error.to_string())?;
    match line.trim_end().strip_prefix(':') {
        Some(items) => number(items),
        None if line.is_empty() => Err(closed()),
        None => Err(format!("it answers {line:?} to DBSIZE")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(bytes: &[u8]) -> Answer {
        Box::new(std::io::Cursor::new(bytes.to_vec()))
    }

    #[test]
    fn the_items_are_found_in_every_protocol() {
        assert_eq!(
            in_text(answer(b"STAT pid 1\r\nSTAT curr_items 7\r\n")),
            Ok(7)
        );
        assert_eq!(in_resp(answer(b":7\r\n")), Ok(7));
        let mut stats = Vec::new();
        for (name, value) in [("pid", "1"), ("curr_items", "7"), ("", "")] {
            let body = (name.len() + value.len()) as u32;
            stats.extend_from_slice(&[0x81, 0x10, 0, name.len() as u8, 0, 0, 0, 0]);
            stats.extend_from_slice(&body.to_be_bytes());
            stats.extend_from_slice(&[0; 12]);
            stats.extend_from_slice(format!("{name}{value}").as_bytes());
        }
        assert_eq!(in_binary(answer(&stats)), Ok(7));
        // Cut short, or without the number.
        assert!(in_binary(answer(&stats[..40])).is_err());
        assert!(in_binary(answer(&stats[stats.len() - 24..])).is_err());
    }

    #[test]
    fn what_is_no_such_answer_says_nothing() {
        for bytes in [
            &b""[..],
            b"ERROR\r\n",
            b"STAT curr_items many\r\n",
            b"-NOAUTH Authentication required.\r\n",
            b":\r\n",
            // A header that promises more than a statistic has.
            b"\x81\x10\xff\xff\0\0\0\0\xff\xff\xff\xff\0\0\0\0\0\0\0\0\0\0\0\0",
            // The status of a server that wants a password.
            b"\x81\x10\0\0\0\0\0\x20\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ] {
            for items_in in [in_text, in_binary, in_resp] {
                assert!(items_in(answer(bytes)).is_err(), "{bytes:?}");
            }
        }
    }
}
