# What an installation is made of and where it goes: read by install.sh and uninstall.sh, which say
# `. scripts/installed.sh` with PREFIX, LIBDIR and DESTDIR in the environment or not.
#
# PREFIX is where things will be looked for. DESTDIR goes in front of it while they are put there,
# for packagers.

prefix=${PREFIX:-/usr/local}
libdir=${LIBDIR:-$prefix/lib}
destdir=${DESTDIR:-}
case $prefix:$libdir in
    /*:/*) ;;
    *) echo "PREFIX and LIBDIR are to be absolute paths" >&2; exit 2 ;;
esac
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml)
# As crates/flow/flow-c/build.rs names it: changes with what programs linked before cannot live with.
soname=libnuthatch_flow.so.${version%%.*}

programs="nuthatch nuthatch-lab nuthatch-pe"
# The server's, which have manual pages of their own.
commands="serve top ping completions man"
binaries=$destdir$prefix/bin
manuals=$destdir$prefix/share/man/man1
example=$destdir$prefix/share/doc/nuthatch/nuthatch.toml
bash=$destdir$prefix/share/bash-completion/completions
zsh=$destdir$prefix/share/zsh/site-functions
fish=$destdir$prefix/share/fish/vendor_completions.d
header=$destdir$prefix/include/nuthatch_flow.h
static=$destdir$libdir/libnuthatch_flow.a
shared=$destdir$libdir/libnuthatch_flow.so.$version
links="$destdir$libdir/$soname $destdir$libdir/libnuthatch_flow.so"
pkgconfig=$destdir$libdir/pkgconfig/nuthatch-flow.pc

# The client for C programs, whose build.rs names it likewise.
client_soname=libnuthatch_client.so.${version%%.*}
client_header=$destdir$prefix/include/nuthatch_client.h
client_static=$destdir$libdir/libnuthatch_client.a
client_shared=$destdir$libdir/libnuthatch_client.so.$version
client_links="$destdir$libdir/$client_soname $destdir$libdir/libnuthatch_client.so"
client_pkgconfig=$destdir$libdir/pkgconfig/nuthatch-client.pc

# The distributed store for OpenSHMEM programs: where OpenSHMEM is, as its own program.
shmem_soname=libnuthatch_shmem.so.${version%%.*}
shmem_header=$destdir$prefix/include/nuthatch_shmem.h
shmem_static=$destdir$libdir/libnuthatch_shmem.a
shmem_shared=$destdir$libdir/libnuthatch_shmem.so.$version
shmem_links="$destdir$libdir/$shmem_soname $destdir$libdir/libnuthatch_shmem.so"
shmem_pkgconfig=$destdir$libdir/pkgconfig/nuthatch-shmem.pc
