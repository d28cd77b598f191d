//! The known scripts, each as one operation on one key, and SCRIPT.

use nuthatch_engine::Expiry;
use nuthatch_protocol::resp::{Error, LockChange, Owned, Scripts, is_script};

use super::Phase;
use super::expiry::{expiry, later};
use super::spot::{Found, take_if};
use super::values::{add, rewrite};
use crate::slice::Slice;
use crate::stage::Stage;

/// Adds to a number that exists. `None` if it does not exist.
pub fn increment_present(
    stage: &mut Stage<'_, '_>,
    key: &[u8],
    by: i64,
) -> Result<Option<i64>, Error<'static>> {
    add(stage, key, by, false)
}

/// Changes a lock for its owner. False if the token is not the owner's.
pub fn owned(stage: &mut Stage<'_, '_>, owned: &Owned<'_>) -> Result<bool, Error<'static>> {
    let Owned { key, token, then } = *owned;
    let is_his = |found: &Found| found.value.is(token);
    if then == LockChange::NoMore {
        let released = take_if(stage, key, is_his)?.is_some();
        stage.counters.count_delete(released);
        return Ok(released);
    }
    let (present, clock) = (stage.present(), stage.shared.clock);
    rewrite(stage, key, |found| {
        let until = match (then, found.item.expiry) {
            (LockChange::Until(moment), _) => moment,
            (LockChange::Longer { millis }, Expiry::At(end)) => later(end, millis, present),
            // The lock has no expiry that could be extended.
            _ => return None,
        };
        is_his(found).then(|| expiry(until, present, &clock))
    })
}

/// SCRIPT. The known scripts always exist: nothing is loaded, and nothing is flushed.
pub fn command(slice: &mut Slice, phase: &Phase, scripts: Scripts<'_>) {
    let mut writer = phase.writer(slice);
    match scripts {
        Scripts::Exist(names) => {
            writer.array(names.len());
            for name in names {
                writer.flag(is_script(name));
            }
        }
        Scripts::Load(name) => writer.bulk(name.as_bytes()),
        Scripts::Flush => writer.ok(),
    }
}
