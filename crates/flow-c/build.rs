//! Names the shared library as programs that were linked with it will look for it.

fn main() {
    // The interface may change while the major version is 0, and with it this number.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libnuthatch_flow.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
