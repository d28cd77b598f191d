//! Sets the soname of the shared library, and that it is never unloaded.

use std::env;

fn main() {
    // The interface changes with the major version only. scripts/installed.sh says the same.
    let major = env::var("CARGO_PKG_VERSION_MAJOR").expect("cargo sets it");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnuthatch_client.so.{major}");
    // It stays where it is once loaded: clients of a process (`process.rs`) outlive who loaded it.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-z,nodelete");
    println!("cargo:rerun-if-changed=build.rs");
}
