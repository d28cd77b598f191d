//! The C interface of the flow cache. `include/nuthatch_flow.h` is generated from these functions, and
//! their documentation is written for readers of the header.
//!
//! What C passes is checked before it is used: NULL pointers and numbers that are in no enumeration
//! become a [`Status`], and so does a panic, which never unwinds into C. What cannot be checked (that
//! a pointer is valid, that no other thread uses a table) is in the Safety section of each function.
//!
//! A table has two parts: one that a single thread uses, behind an `UnsafeCell`, and one that does not
//! change and that any thread may read, for statistics and new handles.

mod arrays;
mod cache;
mod config;
mod exact;
mod hash;
mod stats;
mod status;
mod strided;
mod table;

use std::ffi::{CStr, c_char};

pub use config::{
    Config, Entry, Eviction, InsertAt, Layout, nuthatch_flow_config_default,
    nuthatch_flow_entry_from_name, nuthatch_flow_entry_name, nuthatch_flow_eviction_from_name,
    nuthatch_flow_eviction_name, nuthatch_flow_insert_at_from_name, nuthatch_flow_insert_at_name,
    nuthatch_flow_layout_from_name, nuthatch_flow_layout_name,
};
pub use exact::{
    Exact, nuthatch_flow_exact_clear, nuthatch_flow_exact_create, nuthatch_flow_exact_destroy,
    nuthatch_flow_exact_forget_value, nuthatch_flow_exact_get_stats, nuthatch_flow_exact_insert,
    nuthatch_flow_exact_lookup, nuthatch_flow_exact_lookup_many, nuthatch_flow_exact_remove,
};
pub use hash::{
    Hasher, Tuple, nuthatch_flow_hash_keys, nuthatch_flow_hash_tuples, nuthatch_flow_hasher_create,
    nuthatch_flow_hasher_destroy, nuthatch_flow_random_seed, nuthatch_flow_widen,
};
pub use stats::Stats;
pub use status::{Status, nuthatch_flow_error_string};
pub use table::{
    Outcome, Table, nuthatch_flow_clear, nuthatch_flow_create, nuthatch_flow_create_shared,
    nuthatch_flow_destroy, nuthatch_flow_forget_value, nuthatch_flow_get_stats,
    nuthatch_flow_insert, nuthatch_flow_lookup, nuthatch_flow_lookup_many,
    nuthatch_flow_lookup_strided, nuthatch_flow_prefetch, nuthatch_flow_prefetch_many,
    nuthatch_flow_prefetch_strided, nuthatch_flow_remove, nuthatch_flow_share,
};

/// The version as a C string.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// Returns the version of the library that is linked, as "1.2.3". The caller must not free it.
#[unsafe(no_mangle)]
pub extern "C" fn nuthatch_flow_version() -> *const c_char {
    let version = CStr::from_bytes_with_nul(VERSION.as_bytes());
    version.map_or(c"".as_ptr(), CStr::as_ptr)
}
