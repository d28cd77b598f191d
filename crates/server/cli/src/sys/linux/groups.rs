//! The groups of a user.

pub use nix::unistd::initgroups as join;
