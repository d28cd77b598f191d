//! The flow cache for C programs: `include/nuthatch_flow.h` is made from these functions, and their
//! documentation is written for who reads it there.
//!
//! Whatever C passes is looked at before it is used: NULL and numbers that no enumeration has
//! become a [`Status`], and so does a panic, which never crosses into C. What cannot be looked at
//! (that a pointer leads where it should, that nobody else uses a table) each function's Safety
//! section asks of its caller.

mod arrays;
mod cache;
mod config;
mod exact;
mod hash;
mod status;
mod table;

use std::ffi::{CStr, c_char};

pub use config::{Config, Entry, Eviction, InsertAt, Layout, nuthatch_flow_config_default};
pub use exact::{
    Exact, nuthatch_flow_exact_clear, nuthatch_flow_exact_create, nuthatch_flow_exact_destroy,
    nuthatch_flow_exact_forget_value, nuthatch_flow_exact_get_stats, nuthatch_flow_exact_insert,
    nuthatch_flow_exact_lookup, nuthatch_flow_exact_lookup_many, nuthatch_flow_exact_remove,
};
pub use hash::{
    Hasher, Tuple, nuthatch_flow_hash_keys, nuthatch_flow_hash_tuples, nuthatch_flow_hasher_create,
    nuthatch_flow_hasher_destroy, nuthatch_flow_random_seed, nuthatch_flow_widen,
};
pub use status::{Status, nuthatch_flow_error_string};
pub use table::{
    Outcome, Stats, Table, nuthatch_flow_clear, nuthatch_flow_create, nuthatch_flow_create_shared,
    nuthatch_flow_destroy, nuthatch_flow_forget_value, nuthatch_flow_get_stats,
    nuthatch_flow_insert, nuthatch_flow_lookup, nuthatch_flow_lookup_many, nuthatch_flow_remove,
    nuthatch_flow_share,
};

/// The version, with the zero that ends it.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Returns the version of the library that is linked, as "1.2.3". It is not to be freed.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_version() -> *const c_char {
    let version = CStr::from_bytes_with_nul(VERSION.as_bytes());
    version.map_or(c"".as_ptr(), CStr::as_ptr)
}
