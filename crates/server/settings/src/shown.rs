//! How values are shown in `stats settings`.

use std::num::NonZeroUsize;
use std::path::Path;

use crate::about::Now;
use crate::administration::Actions;
use crate::config::{ListenAddress, Protocol};

/// The unix socket of memcached's clients, and its permissions.
fn unix<'s>(now: &Now<'s>) -> Option<(&'s Path, u32)> {
    let mut all = now.config.listeners.iter();
    all.find_map(|listen| match &listen.address {
        ListenAddress::Unix { path, mode } => Some((path.as_path(), *mode)),
        _ => None,
    })
}

pub fn unix_socket(now: &Now<'_>) -> String {
    unix(now).map_or_else(null, |(path, _)| path.display().to_string())
}

pub fn unix_mask(now: &Now<'_>) -> String {
    let mode = unix(now).map_or(0o700, |(_, mode)| mode);
    format!("{mode:o}")
}

pub fn auth_file(now: &Now<'_>) -> String {
    let file = now.config.auth_file.as_ref();
    file.map_or_else(|| "no".to_owned(), |path| path.display().to_string())
}

pub fn memory_file(now: &Now<'_>) -> String {
    let file = now.config.persistence.restart.as_ref();
    file.map_or_else(null, |path| path.display().to_string())
}

pub fn idle_timeout(now: &Now<'_>) -> String {
    let limit = now.live.idle_timeout;
    limit.map_or(0, |limit| limit.as_secs()).to_string()
}

pub fn address_connections_max(now: &Now<'_>) -> String {
    let most = now.live.address_connections_max;
    most.map_or(0, NonZeroUsize::get).to_string()
}

pub fn disabled_actions(now: &Now<'_>) -> String {
    match now.live.disabled_actions {
        none if none == Actions::default() => "no".to_owned(),
        some => some.to_string(),
    }
}

/// The protocols of memcached's clients, in memcached's words.
pub fn protocol(now: &Now<'_>) -> String {
    let spoken = |protocol| {
        let mut all = now.config.listeners.iter();
        all.any(|listen| listen.protocol == protocol)
    };
    match (spoken(Protocol::Text), spoken(Protocol::Binary)) {
        (true, false) => "ascii",
        (false, true) => "binary",
        _ => "auto-negotiate",
    }
    .to_owned()
}

/// A path, or memcached's word for a missing one.
pub fn path(path: &Path) -> String {
    match path.as_os_str().is_empty() {
        true => null(),
        false => path.display().to_string(),
    }
}

fn null() -> String {
    "NULL".to_owned()
}

/// memcached's words for a switch.
pub fn yes_no(on: bool) -> String {
    if on { "yes" } else { "no" }.to_owned()
}
