//! Sessions that may be in the middle of direct operations which they began before they heard of something: they are
//! watched until they are out of them, while the server goes on serving.
//!
//! Of each session, in this order:
//! 1. Its PE has heard the news (`news`).
//! 2. Its busy word is got. If it is even, the session hears the news before it goes anywhere; if it is odd, it is got
//!    again until it is another.
//!
//! The client stores its busy word and loads the news, the server has the news arrive and reads the busy word, each in
//! that order (with a sequentially consistent fence in between): so one of them sees the other.
//!
//! A Get that is under way is waited for before there is another of the same session, also by who has given up (3): it
//! may have been read at any time before it lands.

use std::sync::atomic::{Ordering, fence};

use nuthatch_fabric::Fabric;

use super::news::News;
use crate::layout::Layout;
use crate::look::{look, seen};

/// A session that is waited for.
struct Waiting {
    session: usize,
    /// Its busy word when it was first read.
    first: Option<u64>,
    /// A Get of it is under way.
    asked: bool,
}

/// A watch over all sessions.
pub struct Watch {
    /// Which of the server's watches it is.
    number: usize,
    /// What they are to have heard.
    news: u64,
    waiting: Vec<Waiting>,
    given_up: bool,
}

impl Watch {
    /// The server's watch of a number, over nobody.
    pub fn new(number: usize) -> Self {
        Self {
            number,
            news: 0,
            waiting: Vec::new(),
            given_up: false,
        }
    }

    /// True if it waits for nobody.
    pub fn is_over(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Waits for all sessions to act on news. It must be over.
    pub fn begin(&mut self, news: u64, sessions: usize) {
        debug_assert!(self.is_over(), "a Get may be under way");
        self.news = news;
        self.given_up = false;
        self.waiting.extend((0..sessions).map(|session| Waiting {
            session,
            first: None,
            asked: false,
        }));
    }

    /// Waits for nobody any more, but for what is under way (3).
    pub fn give_up(&mut self) {
        self.given_up = true;
        self.waiting.retain(|waiting| waiting.asked);
    }

    /// Looks who is out. True if it is over.
    pub fn advance<F: Fabric>(&mut self, fabric: &F, layout: &Layout, news: &News) -> bool {
        if self.is_over() {
            return true;
        }
        // SeqCst: pairs with the one in `Client::enter`. The news arrived before it, busy words are read behind it.
        fence(Ordering::SeqCst);
        let mut waiting = std::mem::take(&mut self.waiting);
        waiting.retain_mut(|session| self.may_be_there(session, fabric, layout, news));
        self.waiting = waiting;
        self.is_over()
    }

    /// True if a session may not have acted on the news.
    fn may_be_there<F: Fabric>(
        &self,
        waiting: &mut Waiting,
        fabric: &F,
        layout: &Layout,
        news: &News,
    ) -> bool {
        let (pe, into) = (
            layout.pe(waiting.session),
            layout.look(self.number, waiting.session),
        );
        if fabric.is_gone(pe) {
            return false;
        }
        if waiting.asked {
            let Some(word) = seen(fabric, into) else {
                return true;
            };
            waiting.asked = false;
            let is_out = word.is_multiple_of(2) || waiting.first.is_some_and(|first| first != word);
            if is_out || self.given_up {
                return false;
            }
            waiting.first = Some(word);
        }
        if !news.has_heard(pe, self.news) {
            return true;
        }
        waiting.asked = look(fabric, pe, layout.busy(waiting.session), into).is_ok();
        // Else it is gone.
        waiting.asked
    }
}
