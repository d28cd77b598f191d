//! The sweep of a log: it takes expired and flushed items out before anything alive leaves.
//!
//! Pages [record](crate::log::due) when it pays to sweep them. While a page is due, a thread that needs memory sweeps,
//! in proportion to what it appends, and cleans only pages that have gaps enough for it. So expired items keep no more
//! memory than a cleaning for gaps does not pay for: a quarter of a page. How long one store sweeps is bounded; what is
//! not swept by then makes room like anything else.

use super::clean::{Cleaner, PageRecord, RUN, Relocate};
use crate::count::Count;
use crate::log::due::{Dead, Swept};
use crate::log::{Need, Plan};
use crate::reclaim::PerThread;

/// Words swept for each word appended.
const SWEPT_PER_APPENDED: usize = 8;

/// Pages that a thread sweeps for one piece of memory, at most, before items that are alive leave for it.
pub(super) const SWEPT_PAGES_MAX: usize = 8;

impl<E: Relocate> Cleaner<'_, E> {
    /// Sweeps in proportion to what was appended, and sets for what need pages are cleaned meanwhile.
    pub(super) fn sweep_for(&mut self, appended: usize) {
        let due = self.sweep_words(SWEPT_PER_APPENDED * appended);
        self.spare_the_living(due, Need::Room);
    }

    /// While pages are due, only dead items make room. `otherwise` is the need if none is.
    pub(super) fn spare_the_living(&mut self, due: bool, otherwise: Need) {
        if self.engine.evicts() {
            let need = if due { Need::Dead } else { otherwise };
            self.plan = Plan { need, evicts: true };
        }
    }

    /// Sweeps about `words` words of pages that are due. True if there are more of them, or other threads are at it.
    pub(super) fn sweep_words(&mut self, words: usize) -> bool {
        let timestamps = self.engine.timestamps();
        if !timestamps.may_have_dead() {
            return false;
        }
        let dead = Dead {
            now: self.now,
            bar: timestamps.bar(),
        };
        let mut looked = 0;
        while self.log.is_due(&dead) {
            if looked >= words {
                return true;
            }
            match self.sweep_run(&dead) {
                Swept::Looked(run) => looked += run,
                Swept::Elsewhere => return true,
                Swept::Nothing => return false,
            }
        }
        false
    }

    /// Sweeps some neighbouring records: the buckets of those that are dead are loaded side by side.
    fn sweep_run(&mut self, dead: &Dead) -> Swept {
        let (engine, store) = (self.engine, self.engine.store());
        let mut run = [None; RUN];
        let mut met = 0;
        let swept = self.log.sweep_due(store, dead, RUN, |address, header| {
            if let Some(key) = store.copy_key(address) {
                let hash = engine.hasher().hash(key.bytes());
                engine.prefetch_hash(hash);
                run[met] = Some(PageRecord {
                    address,
                    header: *header,
                    hash,
                });
                met += 1;
            }
        });
        for record in run.iter().flatten() {
            self.remove_dead(record);
        }
        self.local.counters().add(Count::Swept as usize, RUN as u64);
        swept
    }
}
