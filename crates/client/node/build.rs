//! What the linker has to know of a file that Node.js loads.

fn main() {
    napi_build::setup();
}
