//! Helpers for the tests of all commands.

use crate::command::{Command, Parsed, Refusal, ServerCommand, ValueCommand};
use crate::encode;
use crate::limits::Limits;
use crate::parse::parse;

pub(crate) const LIMITS: Limits = Limits::of_values(1024);

/// The command that is all of `input`.
#[track_caller]
pub(crate) fn accept(input: &[u8]) -> Command<'_> {
    match parse(input, &LIMITS) {
        Parsed::Command { command, consumed } if consumed == input.len() => command,
        other => panic!("not one command: {other:?}"),
    }
}

/// The command about a key that is all of `input`.
#[track_caller]
pub(crate) fn accept_value(input: &[u8]) -> ValueCommand<'_> {
    match accept(input) {
        Command::Value(command) => command,
        other => panic!("not about a key: {other:?}"),
    }
}

/// The command about the server that is all of `input`.
#[track_caller]
pub(crate) fn accept_server(input: &[u8]) -> ServerCommand<'_> {
    match accept(input) {
        Command::Server(command) => command,
        other => panic!("not about the server: {other:?}"),
    }
}

/// The refusal of the front of `input`.
#[track_caller]
pub(crate) fn refusal(input: &[u8]) -> Refusal {
    match parse(input, &LIMITS) {
        Parsed::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// The error line for the refused front of `input`.
#[track_caller]
pub(crate) fn reject(input: &[u8]) -> String {
    let refusal = refusal(input);
    let mut out = Vec::new();
    if !refusal.quiet {
        encode::error(&mut out, refusal.error);
    }
    String::from_utf8(out).expect("errors are text")
}

/// The text that `write` appends.
pub(crate) fn encoded(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).expect("these replies are text")
}
