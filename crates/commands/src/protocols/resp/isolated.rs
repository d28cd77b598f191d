//! EXEC with watched keys: executes the queued requests at once, while the engine executes nothing for other clients.

use super::{Phase, replay};
use crate::batch::BatchBuffers;
use crate::executing::execute;
use crate::slice::Slice;
use crate::stage::Stage;

/// The most commands that are executed before other clients are served again. Each key of MSET and the like counts as
/// one.
const COMMANDS_MAX: u32 = 1000;

/// The most bytes of requests, and of answers, before other clients are served again.
const BYTES_MAX: usize = 1 << 20;

/// Requests of a batch.
const BATCH: usize = 64;

/// Executes the connection's queued requests, up to the limit. The rest stays queued, like the queued requests of any
/// connection.
pub fn carry_out(stage: &mut Stage<'_, '_>, slice: &mut Slice, phase: &mut Phase) {
    let mut batch = BatchBuffers::default().take(BATCH);
    let limit = Limit::of(stage, slice);
    let share = std::mem::replace(&mut slice.commands_left, u32::MAX);
    while phase.session().has_replay() && !slice.closing && !limit.is_reached(stage, slice) {
        let mut own = stage.with_batch(&mut batch);
        replay(&mut own, slice, phase);
        finish(&mut own, slice);
    }
    let used = u32::MAX - slice.commands_left;
    slice.commands_left = share.saturating_sub(used).max(1);
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
        stage.inbox,
        stage.handle,
        slices,
        stage.batch,
        stage.now,
        numbers,
    );
    stage.inbox.hot.look(&stage.batch.requests, stage.hasher);
    stage.batch.clear();
    slice.in_batch = 0;
}

/// The limit at which other clients have waited long enough.
struct Limit {
    decoded: usize,
    answered: usize,
}

impl Limit {
    fn of(stage: &Stage<'_, '_>, slice: &Slice) -> Self {
        Self {
            decoded: stage.decoded.allocated_bytes() + BYTES_MAX,
            answered: slice.output.len() + BYTES_MAX,
        }
    }

    fn is_reached(&self, stage: &Stage<'_, '_>, slice: &Slice) -> bool {
        u32::MAX - slice.commands_left >= COMMANDS_MAX
            || slice.output.len() >= self.answered
            || stage.decoded.allocated_bytes() >= self.decoded
    }
}
