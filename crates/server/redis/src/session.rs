//! The state of a connection that uses more than single commands.

use std::sync::Arc;

use nuthatch_commands::output::Mark;
use nuthatch_commands::turn::Turn;

use crate::mail::Mail;
use crate::muted::Unwanted;
use crate::queue::Queue;
use crate::transaction::{Transaction, Watched};

/// The user if a client names none.
pub const DEFAULT_USER: &[u8] = b"default";

/// The connection's name, its transaction, and its queued requests.
#[derive(Default)]
pub struct Session {
    /// The same name as in its line of CLIENT LIST.
    pub name: Arc<[u8]>,
    /// The user who has logged in. Empty: the default one.
    pub user: Box<[u8]>,
    /// The requests since MULTI.
    pub transaction: Option<Transaction>,
    pub watched: Vec<Watched>,
    pub unwanted: Unwanted,
    /// What it is sent unasked.
    pub mail: Option<Box<Mail>>,
    /// Where the output ends for a client that does not want the answer that is being written.
    pub muted_from: Option<Mark>,
    /// Queued requests, which are executed before any input is parsed.
    pub replay: Queue,
    /// CLIENT NO-TOUCH: what it reads does not become recent by that.
    pub no_touch: bool,
    /// Others are queued behind the one that is being executed.
    pub more: bool,
    /// It is closed when its queued requests are executed.
    pub ends: bool,
}

impl Session {
    pub fn memory(&self) -> usize {
        let transaction = self.transaction.as_ref().map_or(0, Transaction::memory);
        let mail = self.mail.as_ref().map_or(0, |mail| mail.memory());
        let watched: usize = self.watched.iter().map(Watched::memory).sum();
        self.name.len() + self.user.len() + transaction + self.replay.memory() + watched + mail
    }

    /// True if input is parsed next, what it asks is answered as usual, and nothing else is sent.
    #[inline]
    pub fn is_plain(&self) -> bool {
        !self.has_replay() && self.unwanted.is_nothing() && self.mail.is_none() && !self.no_touch
    }

    #[inline]
    pub fn has_replay(&self) -> bool {
        !self.replay.is_empty()
    }

    /// What the request under way writes from here on is sent, whatever its client says of answers.
    pub fn keep_what_follows(&mut self, turn: &mut Turn) {
        if let Some(mark) = self.muted_from.take() {
            turn.output.cut(mark);
        }
    }
}
