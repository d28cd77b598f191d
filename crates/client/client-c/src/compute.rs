//! Values that a function of the caller's computes, once for all.

use std::ffi::{c_int, c_void};
use std::ptr;

use nuthatch_client::{Error, Keep, Leased, Outcome};

use crate::calls::{Client, keep};
use crate::lease::how;
use crate::memory::{array, borrow, put};
use crate::status::{Failure, Status, catch};
use crate::value::Value;

/// Computes a value: writes where its bytes lie and how many they are, and returns 0; or returns another number if it cannot. The
/// bytes stay there until the call that it is for has returned.
pub type Function = Option<
    unsafe extern "C" fn(context: *mut c_void, data: *mut *const u8, length: *mut usize) -> c_int,
>;

/// Gets the value under a key; if there is none, `compute(context, …)` computes it, and it is stored for so many milliseconds,
/// rounded up to seconds, or without an end if they are negative. Of all clients that ask at a time one computes, and the others
/// wait, as nuthatch_client_lease() says. Returns
///
/// * 0: there is a value, which has to be freed, with its flags. If no server could be asked, or took it, it was computed and is
///   not stored.
/// * NUTHATCH_CLIENT_STATUS_NOT_COMPUTED: `compute` returned another number than 0, which nuthatch_client_error() says. One of
///   those that wait computes.
/// * Another failure: an argument is invalid.
///
/// `compute` may call the client. If it takes longer than the lease, another client computes, too.
///
/// # Safety
/// `client` is a client. So many bytes as said lie at the pointers, and `value` may be written to. `compute` does what its type
/// says, and always returns: it neither throws nor jumps.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_get_or_compute(
    client: *const Client,
    key: *const u8,
    key_length: usize,
    lifetime_ms: i64,
    flags: u32,
    lease_ms: u64,
    early_ms: i64,
    compute: Function,
    context: *mut c_void,
    value: *mut Value,
) -> c_int {
    catch(|| {
        // SAFETY: the caller's promise.
        unsafe { put(value, Value::NONE) }?;
        // SAFETY: the caller's promise.
        let client = &unsafe { borrow(client) }?.0;
        // SAFETY: the caller's promise.
        let key = unsafe { array(key, key_length) }?;
        let compute = compute.ok_or(Failure::NullPointer)?;
        let computed = || {
            let (mut data, mut length) = (ptr::null(), 0);
            // SAFETY: the caller's promise.
            match unsafe { compute(context, &raw mut data, &raw mut length) } {
                // SAFETY: the caller's promise.
                0 => unsafe { array(data, length) }.map(<[u8]>::to_vec),
                number => Err(Failure::NotComputed(number)),
            }
        };
        let (bytes, flags) = match client.lease(key, how(lease_ms, early_ms)) {
            Ok(Leased::Value(bytes, flags)) => (bytes, flags),
            Ok(Leased::Mine { cas, old }) => {
                let is_new = old.is_none();
                let keep = keep(lifetime_ms, flags);
                (stored(client, key, cas, is_new, keep, computed)?, flags)
            }
            Err(error @ Error::Key { .. }) => return Err(error.into()),
            Err(_) => (computed()?, flags),
        };
        // SAFETY: the caller's promise.
        unsafe { put(value, Value::flagged(Some((bytes, flags)))) }?;
        Ok(Status::Done)
    })
}

/// The value that this client is to compute, which it stores under this number. Without an old one others wait for it: if it is
/// not stored, they need not.
fn stored(
    client: &nuthatch_client::Client,
    key: &[u8],
    cas: Option<u64>,
    is_new: bool,
    keep: Keep,
    computed: impl FnOnce() -> Result<Vec<u8>, Failure>,
) -> Result<Vec<u8>, Failure> {
    let bytes = computed();
    let Some(cas) = cas else { return bytes };
    let is_stored = match &bytes {
        Ok(bytes) => client.cas(key, bytes, keep, cas) == Ok(Outcome::Done),
        Err(_) => false,
    };
    if is_new && !is_stored {
        let _ = client.delete_cas(key, cas);
    }
    bytes
}
