//! The audit of a log: it recounts the state that the log keeps of its pages. Nothing else may run meanwhile.

use std::collections::HashSet;

use nuthatch_base::sync::shim::Ordering;
use nuthatch_engine::AuditError;

use super::walk::PageWalk;
use super::{Log, Queue};
use crate::memory::arena::Address;
use crate::store::Store;

impl Log {
    /// Checks that each page is listed once, and recounts what it holds. Checks the ghosts.
    pub fn audit(&self, store: &Store<Log>) -> Result<(), AuditError> {
        self.history.ghosts.audit()?;
        self.close_all_runs();
        let mut listed = HashSet::new();
        let queues = self.queues.lock();
        let cleaned = self.cleanings.iter().filter_map(|cleaning| {
            let cleaning = *cleaning.lock();
            cleaning.map(|cleaning| (cleaning.queue, cleaning.page))
        });
        let cleaned: Vec<(Queue, u32)> = cleaned.collect();
        let queued = [Queue::Probation, Queue::Main]
            .into_iter()
            .flat_map(|queue| {
                let pages = queues.pages[queue as usize].iter();
                pages.map(move |&page| (queue, page))
            });
        for (queue, page) in queued.chain(cleaned) {
            if !listed.insert(page) {
                return Err(format!("log: page {page} is in two places").into());
            }
            if self.pages.queue(page) != queue {
                return Err(format!("log: page {page} is in {queue:?}, and says otherwise").into());
            }
            if self.pages.sequence(page) == 0 {
                return Err(format!("log 4: page {page} is listed, but has left").into());
            }
            self.audit_page(store, page)?;
        }
        let counted = store.pool().used_pages();
        if counted != listed.len() {
            return Err(format!(
                "log: {} pages are listed, the pool counts {counted}",
                listed.len()
            )
            .into());
        }
        Ok(())
    }

    fn audit_page(&self, store: &Store<Log>, page: u32) -> Result<(), AuditError> {
        let held = self.pages.held(page);
        let mut words = 0;
        let mut end = 0;
        let start = u64::from(page) * self.page_words() as u64;
        let walked = self.records(
            store,
            page,
            self.pages.sequence(page),
            0,
            usize::MAX,
            |address, header| {
                let record = header.record_words(store.cut());
                end = (address.0 - start) as usize + record;
                if header.is_item() || header.piece_of().is_some() {
                    words += record;
                }
            },
        );
        if walked != PageWalk::End || end != self.pages.end(page) {
            let should = self.pages.end(page);
            return Err(
                format!("log 1: the records of page {page} end at {end}, not at {should}").into(),
            );
        }
        // While nobody uses the engine, only reservations have records that are not linked.
        let lost = held.private();
        // Relaxed: it is not changed meanwhile.
        if lost != 0 && store.reserved.load(Ordering::Relaxed) == 0 {
            return Err(format!(
                "log 3: page {page} has {lost} private records, which are nobody's"
            )
            .into());
        }
        if lost == 0 && held.words() != words {
            let counted = held.words();
            return Err(
                format!("log 2: page {page} holds {words} words, {counted} counted").into(),
            );
        }
        Ok(())
    }

    /// How many records are items, or pieces of them.
    pub(crate) fn records_held(&self, store: &Store<Log>) -> usize {
        let mut count = 0;
        for page in 0..store.pages_taken() {
            let sequence = self.pages.sequence(page);
            if sequence == 0 {
                continue;
            }
            self.records(
                store,
                page,
                sequence,
                0,
                usize::MAX,
                |_: Address, header| {
                    count += usize::from(header.is_item() || header.piece_of().is_some());
                },
            );
        }
        count
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::eviction::log::LogPolicyKind;
    use crate::log::{Purpose, Stream};
    use crate::memory::sizes::Sizes;

    #[test]
    fn a_record_that_is_nobodys_is_seen() {
        const LIMIT: usize = 4 << 20;
        let sizes = Sizes::for_log(LIMIT, 48, 1.25);
        let store = Store::<Log>::new(LIMIT, LIMIT, sizes, LogPolicyKind::default_kind()).unwrap();
        let log = store.log();
        let append = || log.append(&store, Stream::New, 1000, None, Purpose::New);
        let record = append().unwrap().address;
        let why = log.audit(&store).unwrap_err().to_string();
        assert!(why.contains("nobody's"), "{why}");
        store.free_private(record);
        log.audit(&store).unwrap();
    }
}
