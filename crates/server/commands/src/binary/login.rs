//! Login by SASL: PLAIN only, with the names and passwords of the text protocol.

use nuthatch_protocol::binary::{Head, Sasl, Status, encode};
use nuthatch_security::guesses::Credentials;

use crate::context::Context;
use crate::turn::Turn;

/// The mechanisms, with a space between.
const MECHANISMS: &[u8] = b"PLAIN";

/// Answers a SASL request. True if it admits the client.
pub fn answer(cx: &mut Context<'_, '_>, turn: &mut Turn, head: Head, sasl: &Sasl<'_>) -> bool {
    if !cx.shared.security.has_passwords() {
        encode::error(turn.output.text(), head, Status::Unknown);
        return false;
    }
    let Sasl::Auth { mechanism, data } = sasl else {
        encode::text(turn.output.text(), head, &[], MECHANISMS);
        return false;
    };
    let said = match *mechanism == MECHANISMS {
        true => name_and_password(data),
        false => None,
    };
    let admitted = cx.login(turn, said);
    let out = turn.output.text();
    match admitted {
        true => encode::text(out, head, &[], b"Authenticated"),
        false => encode::error(out, head, Status::Unauthenticated),
    }
    admitted
}

/// PLAIN: the identity that the client acts for, its name and its password, with a byte 0 between (RFC 4616).
fn name_and_password(data: &[u8]) -> Credentials<'_> {
    let mut parts = data.splitn(3, |&byte| byte == 0);
    let _acts_for = parts.next()?;
    Some((parts.next()?, parts.next()?))
}
