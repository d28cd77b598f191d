//! Locked memory.

/// Errors: to lock all would touch all that is reserved, which is more than the machine has.
pub fn lock(_changes_user: bool) -> Result<(), String> {
    Err("only on Linux".to_owned())
}
