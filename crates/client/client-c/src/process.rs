//! Clients that a process keeps to its end.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::OnceLock;

use crate::calls::Client;
use crate::memory::{check_place, put};
use crate::status::{Failure, Status, catch, string};

/// How many addresses a process may have clients of.
const MOST: usize = 64;

/// A client and its address.
type Kept = (String, Client);

/// The clients of this process. A place is taken once and for all, so that nobody waits for a lock, which a child of a fork
/// would find held for ever.
static CLIENTS: [OnceLock<Kept>; MOST] = [const { OnceLock::new() }; MOST];

/// The client of an address, which is made if there is none.
fn kept(address: &str) -> Result<&'static Client, Failure> {
    let mut made: Option<Kept> = None;
    for place in &CLIENTS {
        if place.get().is_none() {
            let new = match made.take() {
                Some(new) => new,
                None => {
                    let client = nuthatch_client::Client::connect(address)?;
                    (address.to_owned(), Client(client))
                }
            };
            // Another thread may have come first, even with the same address.
            made = place.set(new).err();
        }
        if let Some((known, client)) = place.get()
            && known == address
        {
            return Ok(client);
        }
    }
    Err(Failure::Full)
}

/// Gives this process' client of the servers at an address, as nuthatch_client_connect() makes it, and makes it if there is
/// none. It lasts as long as the process, and the caller must not destroy it: for callers that begin anew again and again. A
/// process has 64 of them at most. After a failure `client` is NULL.
///
/// # Safety
/// `address` ends with a zero byte. `client` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_of_process(
    address: *const c_char,
    client: *mut *const Client,
) -> c_int {
    catch(|| {
        check_place(client)?;
        // SAFETY: the caller's promise.
        let kept = unsafe { string(address) }.and_then(kept);
        let found = kept.as_ref().map_or(ptr::null(), |client| *client);
        // SAFETY: the caller's promise.
        unsafe { put(client, found) }?;
        kept.map(|_| Status::Done)
    })
}
