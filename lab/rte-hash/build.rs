//! Compiles the C beside this file and links libdpdk, if the feature `rte-hash` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "rte-hash")]
    dpdk();
}

#[cfg(feature = "rte-hash")]
fn dpdk() {
    println!("cargo:rerun-if-changed=c");
    // Link words by hand: all of DPDK would be loaded with the program, when three parts are used.
    let library = pkg_config::Config::new()
        .cargo_metadata(false)
        .probe("libdpdk")
        .unwrap_or_else(|error| panic!("libdpdk (Debian: libdpdk-dev) is not there: {error}"));
    cc::Build::new()
        .files(["c/bounded.c", "c/environment.c"])
        .includes(&library.include_paths)
        // As `pkg-config --cflags libdpdk` says: DPDK's headers need both.
        .flag("-include")
        .flag("rte_config.h")
        .flag_if_supported(if cfg!(target_arch = "x86_64") {
            "-march=corei7"
        } else {
            "-O2"
        })
        .warnings_into_errors(true)
        .extra_warnings(true)
        .compile("nuthatch_rte_hash");
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for part in ["rte_hash", "rte_ring", "rte_eal"] {
        println!("cargo:rustc-link-lib=dylib={part}");
    }
}
