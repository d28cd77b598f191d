//! Models of a visitor and one that waits for it, like a client and a server of the distributed store before a page
//! changes its class: every interleaving, and every value that a relaxed load may return (`scripts/loom.sh`).
#![cfg(loom)]

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use nuthatch_base::sync::quiescence::{Visitor, VisitorWait, notice_given};
use nuthatch_base::sync::shim::{AtomicU64, Ordering};

/// What both share. Loom reports a visit that the change of the page does not follow or precede.
struct Shared {
    busy: AtomicU64,
    notice: AtomicU64,
    page: UnsafeCell<u64>,
}

type Enter = fn(&mut Visitor, &AtomicU64);

/// A session that accesses a page in each of `visits` visits, unless it sees the notice; `again` has the waiter load the
/// busy word until the visitor is out.
fn page_changes_alone(visits: usize, enter: Enter, again: bool) {
    loom::model(move || {
        let shared = Arc::new(Shared {
            busy: AtomicU64::new(0),
            notice: AtomicU64::new(0),
            page: UnsafeCell::new(0),
        });
        let session = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let mut visitor = Visitor::default();
                for _ in 0..visits {
                    enter(&mut visitor, &shared.busy);
                    if shared.notice.load(Ordering::Acquire) == 0 {
                        // SAFETY: loom checks that no other thread accesses it now.
                        shared.page.with_mut(|page| unsafe { *page += 1 });
                    }
                    visitor.leave(&shared.busy);
                }
            })
        };
        // Relaxed: the fence orders it before the loads.
        shared.notice.store(1, Ordering::Relaxed);
        notice_given();
        let mut wait = VisitorWait::default();
        while !wait.is_out(shared.busy.load(Ordering::Acquire)) && again {
            thread::yield_now();
        }
        // SAFETY: as above.
        shared.page.with_mut(|page| unsafe { *page = 100 });
        session.join().unwrap();
    });
}

#[test]
fn a_page_changes_while_no_session_is_there() {
    page_changes_alone(1, Visitor::enter, true);
    page_changes_alone(2, Visitor::enter, true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn canary_a_visitor_without_a_fence() {
    // Stores the next word, as `enter` does, and has no fence behind it.
    page_changes_alone(1, Visitor::leave, true);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn canary_a_visitor_is_not_waited_for() {
    page_changes_alone(1, Visitor::enter, false);
}
