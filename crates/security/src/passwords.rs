//! Names and passwords, from a file in memcached's form: a line `name:password` for each user.
//!
//! A comparison takes the same time wherever two texts begin to differ, and looks at every user.

use std::fmt;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use subtle::{Choice, ConstantTimeEq};

use crate::error::SettingsError;

/// The longest name, and the longest password, in bytes.
const LENGTH_MAX: usize = 255;

/// Users that a file has at most: each is looked at in each login.
const USERS_MAX: usize = 1024;

/// A text in a room whose size does not tell its length.
struct Padded {
    room: [u8; LENGTH_MAX],
    len: u8,
}

impl Padded {
    /// `None` if it is too long.
    fn new(text: &[u8]) -> Option<Self> {
        let mut room = [0; LENGTH_MAX];
        room.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self {
            room,
            len: text.len() as u8,
        })
    }

    fn ct_eq(&self, other: &Self) -> Choice {
        self.room.ct_eq(&other.room) & self.len.ct_eq(&other.len)
    }
}

/// Users and their passwords.
pub struct Passwords {
    users: Vec<(Padded, Padded)>,
}

impl Passwords {
    /// Reads a file. Errors name the line, never a password.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let named = |error: std::io::Error| SettingsError::file(path, error);
        let text = fs::read(path).map_err(named)?;
        if fs::metadata(path).map_err(named)?.permissions().mode() & 0o007 != 0 {
            tracing::warn!("{}: everybody can read the passwords", path.display());
        }
        Self::parse(&text).map_err(|error| SettingsError::file(path, error))
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let mut users = Vec::new();
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let wrong = |why: &str| format!("line {}: {why}", number + 1);
            let colon = line.iter().position(|&byte| byte == b':');
            let (name, password) = match colon {
                Some(at) if at > 0 && at + 1 < line.len() => (&line[..at], &line[at + 1..]),
                _ => return Err(wrong("not of the form name:password")),
            };
            match (Padded::new(name), Padded::new(password)) {
                (Some(name), Some(password)) => users.push((name, password)),
                _ => return Err(wrong(&format!("longer than {LENGTH_MAX} bytes"))),
            }
            if users.len() > USERS_MAX {
                return Err(wrong(&format!("more than {USERS_MAX} users")));
            }
        }
        match users.is_empty() {
            true => Err("no user".to_owned()),
            false => Ok(Self { users }),
        }
    }

    /// True if this is a user's name and password.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> bool {
        let (Some(name), Some(password)) = (Padded::new(name), Padded::new(password)) else {
            return false;
        };
        let mut admitted = Choice::from(0);
        for user in &self.users {
            admitted |= user.0.ct_eq(&name) & user.1.ct_eq(&password);
        }
        admitted.into()
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Passwords of {} users", self.users.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_one_name_and_one_password() {
        let passwords = Passwords::parse(b"ann:secret\r\n\nbob:a:b c\n").unwrap();
        assert!(passwords.admits(b"ann", b"secret"));
        assert!(passwords.admits(b"bob", b"a:b c"));
        for (name, password) in [
            (&b"ann"[..], &b"secre"[..]),
            (b"ann", b"secret\0"),
            (b"ann", b""),
            (b"bob", b"secret"),
            (b"", b""),
            (b"ann", &[b'x'; 300]),
        ] {
            assert!(!passwords.admits(name, password));
        }
        assert_eq!(format!("{passwords:?}"), "Passwords of 2 users");
    }

    #[test]
    fn what_is_wrong_is_told_by_its_line_and_without_a_password() {
        let long = [&b"a:"[..], &[b'p'; 256]].concat();
        for (text, line) in [
            (&b"ann:secret\nsecret\n"[..], "line 2"),
            (b":secret", "line 1"),
            (b"ann:", "line 1"),
            (&long, "line 1"),
            (b"\n\n", "no user"),
        ] {
            let error = Passwords::parse(text).unwrap_err();
            assert!(error.contains(line) && !error.contains("secret"), "{error}");
        }
    }
}
