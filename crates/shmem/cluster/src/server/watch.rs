//! A watch over sessions that may be in the middle of direct operations which they began before they saw some notices.
//! It lasts until they are out of these operations, and the server goes on serving meanwhile.
//!
//! For each session, in this order:
//! 1. Its PE has received the notices (`notices`).
//! 2. The server gets its busy word. If the word is even, the session sees the notices before its next direct
//!    operation. If it is odd, the server gets it again until it has changed.
//!
//! Client and server are the visitor and the waiter of `sync::quiescence`, which says why one of them sees the other. Its
//! loom models drive the same code.
//!
//! (3) The server waits for a Get that is under way before it starts another for the same session, also after it has
//! given the watch up: the Get may have read the word at any time before it lands.

use nuthatch_base::sync::quiescence::{VisitorWait, notice_given};
use nuthatch_fabric::Fabric;

use super::notices::Notices;
use crate::layout::Layout;
use crate::poll::{begin_poll, polled};

/// A session that is waited for.
struct Waiting {
    session: usize,
    wait: VisitorWait,
    /// A Get of it is under way.
    polling: bool,
}

/// A watch over all sessions.
pub struct Watch {
    /// Which of the server's watches it is.
    number: usize,
    /// The notices that they are to have seen.
    notices: u64,
    waiting: Vec<Waiting>,
    given_up: bool,
}

impl Watch {
    /// The server's watch of a number, over no session.
    pub fn new(number: usize) -> Self {
        Self {
            number,
            notices: 0,
            waiting: Vec::new(),
            given_up: false,
        }
    }

    /// True if it waits for no session.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits for all sessions to act on notices. It must be over.
    pub fn begin(&mut self, notices: u64, sessions: usize) {
        debug_assert!(self.is_over(), "a Get may be under way");
        self.notices = notices;
        self.given_up = false;
        self.waiting.extend((0..sessions).map(|session| Waiting {
            session,
            wait: VisitorWait::default(),
            polling: false,
        }));
    }

    /// Stops waiting, except for Gets that are under way (3).
    pub fn give_up(&mut self) {
        self.given_up = true;
        self.waiting.retain(|waiting| waiting.polling);
    }

    /// Checks which sessions are out. True if the watch is over.
    pub fn advance<F: Fabric>(&mut self, fabric: &F, layout: &Layout, notices: &Notices) -> bool {
        if self.is_over() {
            return true;
        }
        // Notices that arrived before this: busy words are read behind it.
        notice_given();
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain_mut(|session| self.may_be_there(session, fabric, layout, notices));
        self.waiting = waiting;
        self.is_over()
    }

    /// True if a session may not have acted on the notices.
    fn may_be_there<F: Fabric>(
        &self,
        waiting: &mut Waiting,
        fabric: &F,
        layout: &Layout,
        notices: &Notices,
    ) -> bool {
        let (pe, into) = (
            layout.pe(waiting.session),
            layout.polled(self.number, waiting.session),
        );
        if fabric.is_gone(pe) {
            return false;
        }
        if waiting.polling {
            let Some(word) = polled(fabric, into) else {
                return true;
            };
            waiting.polling = false;
            if waiting.wait.is_out(word) || self.given_up {
                return false;
            }
        }
        if !notices.has_received(pe, self.notices) {
            return true;
        }
        waiting.polling = begin_poll(fabric, pe, layout.busy(waiting.session), into).is_ok();
        // If the Get failed, the PE is gone.
        waiting.polling
    }
}
