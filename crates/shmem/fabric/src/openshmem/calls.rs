//! The shim's functions (`shim.c`). Nearly each is the OpenSHMEM call of nearly the same name.

use std::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    pub fn nuthatch_fabric_set_default(name: *const c_char, value: *const c_char);
    pub fn nuthatch_fabric_start(level: c_int) -> c_int;
    pub safe fn nuthatch_fabric_is_open_mpi_4_1() -> c_int;
    pub safe fn nuthatch_fabric_level() -> c_int;
    pub fn nuthatch_fabric_finalize();
    pub safe fn nuthatch_fabric_exit(status: c_int);
    pub safe fn nuthatch_fabric_pe() -> c_int;
    pub safe fn nuthatch_fabric_pes() -> c_int;

    pub fn nuthatch_fabric_align(alignment: usize, bytes: usize) -> *mut c_void;
    pub fn nuthatch_fabric_free(memory: *mut c_void);
    pub fn nuthatch_fabric_ptr(at: *const c_void, pe: c_int) -> *mut c_void;
    pub fn nuthatch_fabric_map(at: *const c_void, bytes: usize);

    pub fn nuthatch_fabric_put(to: *mut u64, from: *const u64, words: usize, pe: c_int);
    pub fn nuthatch_fabric_get(into: *mut u64, from: *const u64, words: usize, pe: c_int);
    pub fn nuthatch_fabric_put_nbi(to: *mut u64, from: *const u64, words: usize, pe: c_int);
    pub fn nuthatch_fabric_get_nbi(into: *mut u64, from: *const u64, words: usize, pe: c_int);

    pub fn nuthatch_fabric_compare_swap(at: *mut u64, expected: u64, word: u64, pe: c_int) -> u64;
    pub fn nuthatch_fabric_fetch_add(at: *mut u64, by: u64, pe: c_int) -> u64;
    pub fn nuthatch_fabric_swap(at: *mut u64, word: u64, pe: c_int) -> u64;
    pub fn nuthatch_fabric_fetch(at: *const u64, pe: c_int) -> u64;
    pub fn nuthatch_fabric_set(at: *mut u64, word: u64, pe: c_int);

    pub safe fn nuthatch_fabric_fence();
    pub safe fn nuthatch_fabric_quiet();
    pub safe fn nuthatch_fabric_barrier_all();
}
