//! The files that a process may use: all, as [`super::check`] has seen to.

use std::path::Path;

use crate::settings::Settings;

/// Why nothing is given up.
pub const REFUSED: &str = "-o drop_privileges: only on Linux";

/// The files that a confined process may still use: none is confined.
pub struct Confinement;

impl Confinement {
    /// For any server.
    pub fn new(_settings: &Settings, _file: Option<&Path>) -> Self {
        Self
    }

    /// Errors: no file can be given up.
    pub fn files(&self) -> Result<Option<String>, String> {
        Err(REFUSED.to_owned())
    }
}
