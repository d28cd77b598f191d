//! The operations of the CPHash paper's benchmark ([`nuthatch_bench::working_set`]), carried out by one thread, piece
//! by piece: another program records the accesses of each piece.

use std::sync::Arc;

use nuthatch_bench::engine::{Items, Load, Operations, Ours, Subject, Worker, preload};
use nuthatch_bench::working_set::{ELEMENT, WORD};
use nuthatch_engine::Engine;

/// What one thread does.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Bytes of the working set, as the paper's table counts them.
    pub working_set: usize,
    /// The share of inserts; the rest are lookups.
    pub insert_ratio: f64,
    /// Operations at a time.
    pub batch: usize,
    /// Operations of a piece.
    pub piece: usize,
    /// How many pieces.
    pub pieces: usize,
}

/// A moment of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// A piece begins.
    Begin,
    /// Its last operation is done.
    Done,
}

impl Plan {
    /// Keys of the working set.
    pub fn keys(&self) -> usize {
        (self.working_set / ELEMENT).max(1)
    }

    /// Fills the engine, then carries out the pieces, and tells of each moment. It is filled twice: in a table that has been
    /// in use, each partition has replaced elements and freed lines.
    pub fn run<E: Engine>(
        &self,
        engine: &Arc<E>,
        mut at: impl FnMut(Moment),
    ) -> Result<(), String> {
        let items = Items::alike(self.keys() as u64, WORD, WORD);
        let subject = Ours::new(Arc::clone(engine), self.batch);
        for _ in 0..2 {
            preload(&subject, &items)?;
        }
        let load = Load::new(1.0 - self.insert_ratio, Default::default());
        let list = Operations::random(&items, self.piece * self.pieces, &load, 0);
        let mut worker = subject.worker();
        for piece in 0..self.pieces {
            at(Moment::Begin);
            let tally = worker.requests(&list, piece * self.piece, (piece + 1) * self.piece);
            at(Moment::Done);
            if tally.wrong > 0 {
                return Err(format!("{}: {} wrong answers", engine.name(), tally.wrong));
            }
        }
        Ok(())
    }
}
