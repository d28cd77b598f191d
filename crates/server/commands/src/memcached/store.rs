//! The engine's operation for a storage command, and what follows from it.

use nuthatch_engine::{Condition, Store as StoreOp, StoreMode};
use nuthatch_protocol::{MetaFlags, MetaMode, Store, StoreVerb};

use crate::answers::memcached::StoreKind;
use crate::context::Context;

pub fn store_kind(verb: StoreVerb) -> StoreKind {
    match verb {
        StoreVerb::Set => StoreKind::Set,
        StoreVerb::Cas(_) => StoreKind::Cas,
        _ => StoreKind::Other,
    }
}

/// True if this ms replaces any existing value without conditions.
pub fn is_plain_set(flags: &MetaFlags<'_>) -> bool {
    matches!(flags.mode, None | Some(MetaMode::Set)) && flags.compare_cas.is_none()
}

/// The engine's operation for a storage command.
#[inline]
pub fn store_op<'v>(cx: &Context<'_, '_>, command: &Store<'v>) -> StoreOp<'v> {
    let mut op = StoreOp::set(command.value);
    op.flags = command.flags;
    op.expiry = cx.expiry(command.exptime.0);
    match command.verb {
        StoreVerb::Set => {}
        StoreVerb::Add => op.mode = StoreMode::Add,
        StoreVerb::Replace => op.mode = StoreMode::Replace,
        StoreVerb::Append => op.mode = StoreMode::Append,
        StoreVerb::Prepend => op.mode = StoreMode::Prepend,
        StoreVerb::Cas(cas) => op.condition = Condition::Cas(cas),
        StoreVerb::Meta => {}
    }
    if let Some(flags) = &command.meta {
        op.mode = match flags.mode {
            Some(MetaMode::Add) => StoreMode::Add,
            Some(MetaMode::Replace) => StoreMode::Replace,
            Some(MetaMode::Append) => StoreMode::Append,
            Some(MetaMode::Prepend) => StoreMode::Prepend,
            _ => StoreMode::Set,
        };
        op.condition = match (flags.compare_cas, op.mode) {
            // memcached's add ignores a cas, and for append and prepend a cas of 0 sets no condition.
            (None, _) | (_, StoreMode::Add) => Condition::None,
            (Some(0), StoreMode::Append | StoreMode::Prepend) => Condition::None,
            // No cas is older than 0.
            (Some(cas), _) if flags.invalidate && cas > 0 => Condition::CasOrStale(cas),
            (Some(cas), _) => Condition::Cas(cas),
        };
        op.new_cas = flags.new_cas;
        op.vivify = flags.vivify.map(|exptime| cx.expiry(exptime.0));
    }
    op
}
