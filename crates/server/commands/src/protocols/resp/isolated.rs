//! EXEC with watched keys: executes the queued requests at once, while the engine executes nothing for other clients.

use super::{Phase, replay};
use crate::batch::BatchBuffers;
use crate::executing::execute;
use crate::slice::Slice;
use crate::stage::Stage;
use crate::work::Work;

/// The work that is done before other clients are served again, in commands. What a transaction has beyond that is
/// executed like the queued requests of any connection, with other clients' requests in between.
const COMMANDS_MAX: u32 = 1000;

/// Requests of a batch.
const BATCH: usize = 64;

/// Executes the connection's queued requests, up to the limit. The rest stays queued.
pub fn carry_out(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase) {
    let mut batch = BatchBuffers::default().take(BATCH);
    let share = std::mem::replace(&mut slice.commands_left, COMMANDS_MAX);
    while phase.session().has_replay() && !slice.closing && slice.commands_left > 0 {
        let mut own = stage.with_batch(&mut batch);
        let before = slice.output.copied();
        replay(&mut own, slice, phase);
        finish(&mut own, slice);
        slice.spend(Work::of_bytes(slice.output.copied().saturating_sub(before)));
    }
    let used = COMMANDS_MAX - slice.commands_left;
    slice.commands_left = share.saturating_sub(used);
}

/// Executes a batch of this slice alone.
pub fn finish(stage: &mut Stage<'_, '_>, slice: &mut Slice) {
    if stage.batch.is_empty() {
        return;
    }
    let numbers: &[_] = match stage.shared.watch.wanted().is_empty() {
        true => &[],
        false => &[stage.shared.number_of(stage.info)],
    };
    let slices = std::slice::from_mut(slice);
    execute(
        stage.shared,
        stage.worker,
        stage.handle,
        slices,
        stage.batch,
        stage.now,
        numbers,
    );
    stage.worker.hot.look(&stage.batch.requests, stage.hasher);
    stage.batch.clear();
    slice.in_batch = 0;
}
