//! SASL, by which clients say who they are: PLAIN alone, with the names and passwords of the text protocol.

use nuthatch_protocol::binary::{Command, Head, Status, encode};

use crate::slice::Slice;
use crate::stage::Stage;

/// The ways there are, with a space between.
const MECHANISMS: &[u8] = b"PLAIN";

/// Answers a SASL request, and says whether the client is admitted by it.
pub(super) fn answer(
    stage: &mut Stage<'_, '_>,
    slice: &mut Slice,
    head: Head,
    command: &Command<'_>,
) -> bool {
    let out = slice.output.text();
    if !stage.shared.has_passwords() {
        encode::error(out, head, Status::Unknown);
        return false;
    }
    match command {
        Command::SaslAuth { mechanism, data } => {
            stage.counters.auth_cmds.bump();
            let admitted = *mechanism == MECHANISMS && admits(stage, data);
            if admitted {
                encode::text(out, head, &[], b"Authenticated");
            } else {
                stage.login_failed();
                encode::error(out, head, Status::Unauthenticated);
            }
            admitted
        }
        _ => {
            encode::text(out, head, &[], MECHANISMS);
            false
        }
    }
}

/// PLAIN: whom the client acts for, its name, its password, with a byte 0 between (RFC 4616).
fn admits(stage: &Stage<'_, '_>, data: &[u8]) -> bool {
    let mut parts = data.splitn(3, |&byte| byte == 0);
    match (parts.next(), parts.next(), parts.next()) {
        (Some(_), Some(name), Some(password)) => stage.shared.admits(name, password),
        _ => false,
    }
}
