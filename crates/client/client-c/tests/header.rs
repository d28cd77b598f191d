//! The header in include/ is the one that cbindgen generates from the functions.
//!
//! After a change: `NUTHATCH_WRITE_HEADER=1 cargo test -p nuthatch-client-c --test header`

use std::path::Path;
use std::{env, fs};

#[test]
fn the_header_is_current() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_crate(crate_dir)
        .with_config(config)
        .generate()
        .unwrap();
    let mut made = Vec::new();
    bindings.write(&mut made);
    let made = String::from_utf8(made).unwrap();

    let path = crate_dir.join("include/nuthatch_client.h");
    if env::var_os("NUTHATCH_WRITE_HEADER").is_some() {
        fs::write(&path, &made).unwrap();
    }
    let header = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        header == made,
        "{} is out of date: see the top of this test",
        path.display()
    );
}
