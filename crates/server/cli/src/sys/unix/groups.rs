//! The groups of a user.

#[cfg(not(target_vendor = "apple"))]
pub use nix::unistd::initgroups as join;

/// Gives the process all groups of this user, and this one.
#[cfg(target_vendor = "apple")]
#[allow(unsafe_code)]
pub fn join(user: &std::ffi::CStr, group: nix::unistd::Gid) -> nix::Result<()> {
    // SAFETY: the name ends with a zero, and the call reads no other memory.
    let status = unsafe { nix::libc::initgroups(user.as_ptr(), group.as_raw() as i32) };
    nix::errno::Errno::result(status).map(drop)
}
