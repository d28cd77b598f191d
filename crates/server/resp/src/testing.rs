//! Helpers for the tests of all commands.

use nuthatch_protocol::Limits;

use crate::command::{Command, Parsed, ServerCommand, ValueCommand};
use crate::encode::{Version, Writer};
use crate::error::Error;
use crate::names::described;
use crate::parse::parse;

const LIMITS: Limits = Limits::of_values(1024);

/// Words with one space between two of them as a request. It is leaked, so that commands may borrow it.
fn request(line: &str) -> &'static [u8] {
    let words: Vec<&str> = line.split(' ').collect();
    let mut request = format!("*{}\r\n", words.len());
    for word in words {
        request += &format!("${}\r\n{word}\r\n", word.len());
    }
    request.into_bytes().leak()
}

/// The command of these words.
#[track_caller]
pub(super) fn accept(line: &str) -> Command<'static> {
    let request = request(line);
    match parse(request, &LIMITS) {
        Parsed::Command { command, consumed } if consumed == request.len() => command,
        other => panic!("not one command: {other:?}"),
    }
}

/// The command about keys and values of these words.
#[track_caller]
pub(super) fn value(line: &str) -> ValueCommand<'static> {
    match accept(line) {
        Command::Value(command) => command,
        other => panic!("not about values: {other:?}"),
    }
}

/// The command about the server of these words.
#[track_caller]
pub(super) fn server(line: &str) -> ServerCommand<'static> {
    match accept(line) {
        Command::Server(command) => command,
        other => panic!("not about the server: {other:?}"),
    }
}

/// The error line for a request of these words.
#[track_caller]
pub(super) fn refused(line: &str) -> String {
    let request = request(line);
    match parse(request, &LIMITS) {
        Parsed::Refused(mut refusal) => {
            let behind = &request[refusal.consumed..];
            assert_eq!(refusal.rest.pass(behind), Ok(behind.len()));
            assert!(refusal.rest.is_over() && !refusal.close);
            let mut out = Vec::new();
            Writer::new(&mut out, Version::Resp2).error(&refusal.error);
            String::from_utf8(out).expect("errors are text")
        }
        other => panic!("not refused: {other:?}"),
    }
}

/// Class of bug: a command that COMMAND lists, but no parser takes.
#[test]
fn every_command_that_has_a_name_has_a_parser() {
    for described in described() {
        let arguments = described.arity.unsigned_abs() as usize - 1;
        let parsed = parse(
            request(&(described.name.to_owned() + &" 1".repeat(arguments))),
            &LIMITS,
        );
        if let Parsed::Refused(refusal) = parsed {
            let is_absent = matches!(refusal.error, Error::NotHere(_));
            assert!(!is_absent, "no arm of `parse`: {}", described.name);
        }
    }
}

#[test]
fn commands_that_do_not_exist_are_told_with_their_arguments() {
    assert_eq!(
        refused("foo a bc"),
        "-ERR unknown command 'foo', with args beginning with: 'a' 'bc' \r\n"
    );
    let long = format!("foo {} b", "a".repeat(200));
    let expected = format!(
        "-ERR unknown command 'foo', with args beginning with: '{}' \r\n",
        "a".repeat(128)
    );
    assert_eq!(refused(&long), expected);
    assert_eq!(
        refused("GET"),
        "-ERR wrong number of arguments for 'get' command\r\n"
    );
    assert_eq!(
        refused("MSET a b c"),
        "-ERR wrong number of arguments for 'mset' command\r\n"
    );
    let words = refused("LPUSH a b");
    assert!(
        words.starts_with("-ERR 'lpush' is not supported"),
        "{words}"
    );
}
