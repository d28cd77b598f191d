//! Values that one client computes for all.

use std::ffi::c_int;
use std::time::Duration;

use nuthatch_client::{Compute, Leased};

use crate::calls::{Client, got};
use crate::status::Status;
use crate::value::Value;

/// For how long others wait for who computes, and how early that begins.
pub(crate) fn how(lease_ms: u64, early_ms: i64) -> Compute {
    let how = Compute::new(None).lease(Duration::from_millis(lease_ms));
    let early = u64::try_from(early_ms).ok().map(Duration::from_millis);
    Compute { early, ..how }
}

/// Gets the value under a key, or the task to compute it, of all clients that ask at a time for one. Returns
///
/// * 0: there is a value; while another client computes it anew, the old one.
/// * NUTHATCH_CLIENT_STATUS_COMPUTE: the caller is to compute it, and to store it by nuthatch_client_cas() with `value->cas`, or
///   not at all if that is 0. If it is not computed, and `value` is none, nuthatch_client_delete_cas() lets the next client
///   compute; else `value` is the old one.
/// * A failure: the value is to be computed, and not stored.
///
/// If another client computes and there is no old value, this waits for it, `lease_ms` at most, rounded up to seconds. Then
/// another client computes, for which this waits as long. A value that has no more than `early_ms` left, if that is 0 or more,
/// is computed anew. `value` has its flags, and has to be freed in each case.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_lease(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    lease_ms: u64,
    early_ms: i64,
    value: *mut Value,
) -> c_int {
    let lease = |client: &nuthatch_client::Client, key: &[u8]| {
        Ok(match client.lease(key, how(lease_ms, early_ms))? {
            Leased::Value(bytes, flags) => (Status::Done, Value::flagged(Some((bytes, flags)))),
            Leased::Mine { cas, old } => {
                let old = Value::flagged(old);
                let cas = cas.unwrap_or_default();
                (Status::Compute, Value { cas, ..old })
            }
        })
    };
    // SAFETY: the caller's promise.
    unsafe { got(client, (key, key_length), value, lease) }
}
