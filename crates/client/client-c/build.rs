//! Sets the soname of the shared library.

use std::env;

fn main() {
    // The interface changes with the major version only. scripts/installed.sh says the same.
    let major = env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnuthatch_client.so.{major}");
    println!("cargo:rerun-if-changed=build.rs");
}
