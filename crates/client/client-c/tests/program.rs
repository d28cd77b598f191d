//! A program in C, linked with the library and run against a server.

use std::path::Path;
use std::process::Command;

#[path = "../../../server/cli/tests/running/mod.rs"]
mod running;

use running::Running;

/// What a static library of Rust needs of the system on Linux.
const PRIVATE: [&str; 5] = ["-lgcc_s", "-lutil", "-lpthread", "-lm", "-ldl"];

#[test]
fn a_program_in_c_reaches_a_server() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let built = std::env::current_exe().unwrap();
    let library = built
        .ancestors()
        .nth(1)
        .unwrap()
        .join("libnuthatch_client_c.a");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("test_client");
    let mut compiler = Command::new("cc");
    compiler.args([
        "-std=c11",
        "-g",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Werror",
        "-pthread",
        "-o",
    ]);
    compiler.arg(&program).arg(here.join("tests/test_client.c"));
    compiler
        .arg("-I")
        .arg(here.join("include"))
        .arg(library)
        .args(PRIVATE);
    let output = compiler.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    reaches(&program, |server| format!("tcp://{}", server.address()), "");
    #[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
    {
        let shared = folder.path().join("shared");
        let shared = shared.display();
        reaches(
            &program,
            |_| format!("shm://{shared}"),
            &format!("--shared {shared}"),
        );
    }
}

/// Runs the program against a server with these flags, at an address.
fn reaches(program: &Path, address: impl Fn(&Running) -> String, flags: &str) {
    let server = Running::start(&format!("-l 127.0.0.1 -p 0 -t 1 {flags}"));
    // The discard port, on which nobody listens.
    let words = [address(&server), "tcp://127.0.0.1:9".to_owned()];
    let output = Command::new(program).args(words).output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        env!("CARGO_PKG_VERSION")
    );
}
