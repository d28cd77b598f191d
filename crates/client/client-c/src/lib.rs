//! The C interface of the client. `include/nuthatch_client.h` is generated from these functions, and their documentation is
//! written for readers of the header.
//!
//! What C passes is checked before it is used: NULL pointers become a [`Status`], and so does a panic, which never unwinds into
//! C. What cannot be checked (that a pointer is valid) is in the Safety section of each function.

mod calls;
mod cancel;
mod compute;
mod lease;
mod many;
mod memory;
mod process;
mod status;
mod value;

pub use calls::{
    Client, nuthatch_client_add, nuthatch_client_append, nuthatch_client_cas,
    nuthatch_client_connect, nuthatch_client_decr, nuthatch_client_delete,
    nuthatch_client_delete_cas, nuthatch_client_destroy, nuthatch_client_flush_all,
    nuthatch_client_get, nuthatch_client_get_item, nuthatch_client_get_local, nuthatch_client_incr,
    nuthatch_client_prepend, nuthatch_client_replace, nuthatch_client_set, nuthatch_client_touch,
};
pub use compute::{Function, nuthatch_client_get_or_compute};
pub use lease::nuthatch_client_lease;
pub use many::{
    nuthatch_client_delete_many, nuthatch_client_get_many, nuthatch_client_get_many_items,
    nuthatch_client_set_many,
};
pub use process::nuthatch_client_of_process;
pub use status::{Status, nuthatch_client_error};
pub use value::{Entry, Key, Value, nuthatch_client_value_free};

use std::ffi::{CStr, c_char};

/// The version as a C string.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Returns the version of the library that is linked, as "1.2.3". The caller must not free it.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_client_version() -> *const c_char {
    let version = CStr::from_bytes_with_nul(VERSION.as_bytes());
    version.map_or(c"".as_ptr(), CStr::as_ptr)
}
