//! What a request says of the script that it means.

use nuthatch_commands::context::Context;
use nuthatch_commands::work::Work;
use nuthatch_resp::ScriptName;
use nuthatch_script::{Name, SCRIPT_LEN_MAX};

/// So many bytes of a script's text are hashed and parsed while a command about one key is executed.
const TEXT_OF_COMMAND: usize = 32;

/// A script as a request names it. Its text is hashed once.
pub struct Named<'a> {
    /// `None`: what was sent names none, or the text is too long for one.
    pub name: Option<Name>,
    /// `None`: the name was sent.
    pub text: Option<&'a [u8]>,
}

impl<'a> Named<'a> {
    /// The script that a request sends or names.
    pub fn of(cx: &mut Context<'_, '_>, script: ScriptName<'a>) -> Self {
        match script {
            ScriptName::Text(text) => Self::by_text(cx, text),
            ScriptName::Sha1(digits) => Self {
                name: Name::read(digits),
                text: None,
            },
        }
    }

    /// The script of a text.
    pub fn by_text(cx: &mut Context<'_, '_>, text: &'a [u8]) -> Self {
        cx.work.add(Work::of_commands(text.len() / TEXT_OF_COMMAND));
        // Only Lua takes long ones. Without it no client can make the server hash 64 KiB.
        let is_read = cx.shared.config.lua || text.len() <= SCRIPT_LEN_MAX;
        Self {
            name: is_read.then(|| Name::of(text)),
            text: Some(text),
        }
    }
}
