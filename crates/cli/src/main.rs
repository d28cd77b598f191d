//! The `nuthatch` binary.
fn main() {}
