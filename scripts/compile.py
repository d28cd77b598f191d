#!/usr/bin/env python3
"""compile.py RUSTC WORD...: what compiles our crates for the checks (scripts/check-env.sh).

Clippy's driver is rustc with more lints; and rustdoc documents what has been compiled, private items too, from the same
libraries. So neither has a build of its own. What both of them say cargo keeps and repeats: scripts/check-lints.sh.

(Not a shell script: a shell drops variables like CARGO_BIN_EXE_nuthatch-lab.)
"""

import subprocess
import sys
import tempfile

# Words with a value behind them that say what comes out, and what is linked.
OUTPUT = ("--out-dir", "-l")


def run(command):
    # Cargo's jobserver is an open file.
    return subprocess.run(command, close_fds=False).returncode


def main(words):
    lint = ["clippy-driver", *words]
    if "staticlib" in words:
        # For scripts/install.sh.
        lint += ["--print", "native-static-libs"]
    status = run(lint)
    name = words[words.index("--crate-name") + 1] if "--crate-name" in words else None
    # Tests, build scripts, and what is asked of the compiler itself, are not documented.
    asked = any(word == "--test" or word.startswith("--print") for word in words)
    if status != 0 or asked or name in (None, "build_script_build"):
        return status
    document = ["rustdoc", "--document-private-items", "-A", "rustdoc::private_intra_doc_links"]
    of_output = False
    for word in words[1:]:
        if not (of_output or word in OUTPUT or word.startswith("--emit=")):
            document.append(word)
        of_output = word in OUTPUT
    with tempfile.TemporaryDirectory() as pages:
        return run([*document, "--out-dir", pages])


sys.exit(main(sys.argv[1:]))
