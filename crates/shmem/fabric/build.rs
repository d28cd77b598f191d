//! Compiles the C that stands between OpenSHMEM and Rust, if the feature `openshmem` asks for it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    #[cfg(feature = "openshmem")]
    openshmem::build();
}

#[cfg(feature = "openshmem")]
mod openshmem {
    use std::path::Path;
    use std::process::Command;

    pub fn build() {
        let shim = "src/openshmem/shim.c";
        println!("cargo:rerun-if-changed={shim}");
        println!("cargo:rerun-if-env-changed=OSHCC");
        let mut shim_build = cc::Build::new();
        shim_build
            .file(shim)
            .std("c11")
            .warnings_into_errors(true)
            .extra_warnings(true);
        for flag in ask("--showme:compile") {
            // A system's header: its warnings are not ours.
            match flag.strip_prefix("-I") {
                Some(directory) => shim_build.flag("-isystem").flag(directory),
                None => shim_build.flag(flag),
            };
        }
        shim_build.compile("nuthatch_fabric_openshmem");
        let flags = ask("--showme:link");
        for flag in &flags {
            link(flag);
        }
        link_hidden(&flags);
    }

    /// Passes one of the linker's flags to cargo.
    fn link(flag: &str) {
        if let Some(directory) = flag.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={directory}");
        } else if let Some(library) = flag.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={library}");
        } else {
            println!("cargo:rustc-link-arg={flag}");
        }
    }

    /// Debian's liboshmem uses two libraries that it does not name, and rust's linker wants every name to be there.
    fn link_hidden(flags: &[String]) {
        let directories = flags.iter().filter_map(|flag| flag.strip_prefix("-L"));
        for library in ["open-rte", "open-pal"] {
            let mut there = directories
                .clone()
                .map(|directory| Path::new(directory).join(format!("lib{library}.so")));
            if there.any(|path| path.exists()) {
                println!("cargo:rustc-link-lib=dylib={library}");
            }
        }
    }

    /// The words that OpenSHMEM's compiler would give to a C compiler.
    fn ask(question: &str) -> Vec<String> {
        let compiler = std::env::var("OSHCC").unwrap_or_else(|_| "oshcc".into());
        let answer = Command::new(&compiler).arg(question).output();
        let advice = "the feature `openshmem` needs Open MPI's OpenSHMEM (Debian: openmpi-bin libopenmpi-dev), or \
                      its oshcc in the variable OSHCC";
        match answer {
            Ok(answer) if answer.status.success() => String::from_utf8_lossy(&answer.stdout)
                .split_whitespace()
                .map(String::from)
                .collect(),
            Ok(answer) => panic!("{compiler} {question}: {}: {advice}", answer.status),
            Err(error) => panic!("{compiler}: {error}: {advice}"),
        }
    }
}
