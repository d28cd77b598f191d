# Sourced by the checks of scripts/test-*.sh: how they build, and what a check that has passed depends on.

# Everything is built once: what would make a second build of it faster is not worth its time.
export CARGO_INCREMENTAL=0
# Lints and documentation need no build of their own (scripts/compile.rs), and the programs of all checks come from one.
if command -v clippy-driver >/dev/null; then
    RUSTC_WORKSPACE_WRAPPER=$PWD/target/compile
    if ! [ "$RUSTC_WORKSPACE_WRAPPER" -nt scripts/compile.rs ]; then
        mkdir -p target
        # Others may be at it, too.
        rustc --edition 2024 -o "$RUSTC_WORKSPACE_WRAPPER.$$" scripts/compile.rs
        mv "$RUSTC_WORKSPACE_WRAPPER.$$" "$RUSTC_WORKSPACE_WRAPPER"
    fi
    export RUSTC_WORKSPACE_WRAPPER
fi

# build_shared WORD...: compiles what the words choose (--bin NAME, --lib) with the features of the tests, so that whichever
# check comes first does it for all. With other features a crate, and all that depend on it, would be compiled again.
build_shared() {
    # Several words.
    # shellcheck disable=SC2046
    cargo build --quiet --workspace "$@" $(scripts/features.sh)
}

# choose_server WORD...: NUTHATCH is the program that a check tries. If nobody has said which, it is compiled, with what else the
# words choose: with checked arithmetic and assertions.
choose_server() {
    [ -z "${NUTHATCH:-}" ] || return 0
    build_shared --bin nuthatch "$@"
    NUTHATCH=$(realpath "${CARGO_TARGET_DIR:-target}")/debug/nuthatch
    export NUTHATCH
}

# choose_client_library FOLDER: the library for C is in FOLDER/lib by its soname, and for programs that are started: the one that
# NUTHATCH_CLIENT_LIBRARY names, or else one that is installed there as for users. Sets `soname` and NUTHATCH_VERSION.
choose_client_library() {
    rm -rf "$1"
    mkdir -p "$1/lib"
    NUTHATCH_VERSION=$(. scripts/installed.sh && echo "$version")
    soname=$(. scripts/installed.sh && echo "$client_soname")
    if [ -n "${NUTHATCH_CLIENT_LIBRARY:-}" ]; then
        ln -s "$(realpath "$NUTHATCH_CLIENT_LIBRARY")" "$1/lib/$soname"
    else
        PROFILE=dev PREFIX=/usr LIBDIR=/lib DESTDIR="$1" scripts/install.sh client
    fi
    unset NUTHATCH_CLIENT_LIBRARY
    export NUTHATCH_VERSION LD_LIBRARY_PATH="$1/lib"
}

# For scripts/test-once.sh: all files of the project but Rust's sources, which are in the programs.
if ! git rev-parse --git-dir >/dev/null 2>&1; then
    # Nothing says which these are.
    export AGAIN=1
elif [ -z "${CHECKED_FILES:-}" ]; then
    CHECKED_FILES=$(git ls-files -z --cached --others --exclude-standard ':!:*.rs' | xargs -0 sha256sum 2>/dev/null |
        sha256sum | cut -d ' ' -f 1)
    export CHECKED_FILES
fi
