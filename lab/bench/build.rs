//! Tells the benches what they were built with: the compiler, and the rivals' versions from the lock file.

use std::process::Command;
use std::{env, fs};

/// The rivals in process, as `Cargo.lock` has them.
const RIVALS: [&str; 4] = ["lru", "moka", "papaya", "quick_cache"];

fn main() {
    let compiler = compiler().unwrap_or_default();
    let unoptimised = match env::var_os("PROFILE") {
        Some(profile) if profile == "release" => "",
        _ => ", not optimised: figures mean nothing",
    };
    println!("cargo:rustc-env=BUILT_BY={compiler}{unoptimised}");
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock");
    println!("cargo:rerun-if-changed={lock}");
    println!("cargo:rerun-if-changed=build.rs");
    let locked = fs::read_to_string(lock).unwrap_or_default();
    for rival in RIVALS {
        let version = version(&locked, rival).unwrap_or("of an unknown version");
        println!("cargo:rustc-env=VERSION_OF_{rival}={version}");
    }
}

/// The compiler's name and version, as it says it itself.
fn compiler() -> Option<String> {
    let output = Command::new(env::var_os("RUSTC")?)
        .arg("-V")
        .output()
        .ok()?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The version in a lock file of the first package of this name.
fn version<'l>(locked: &'l str, package: &str) -> Option<&'l str> {
    let (_, from) = locked.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    from.split('"').next()
}
