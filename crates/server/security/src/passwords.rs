//! Names and passwords, from a file in memcached's form: a line `name:password` for each user. A line `:admin:name`, which
//! is no user's for want of a name, says that this user administrates the server.
//!
//! A client's name and password are looked up by their message authentication code, under a secret key that is drawn at
//! random when the file is read. How far one such code agrees with another reveals nothing about a password, so the
//! time of the look-up need not be constant. It takes the same for one user and for a thousand. A comparison in
//! constant time would have to look at all users, in each login of every client that reaches the port.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;

use ring::hmac;
use ring::rand::SystemRandom;

use crate::error::SettingsError;
use crate::files;

/// The longest name, and the longest password, in bytes.
const LENGTH_MAX: usize = 255;

/// The most users of a file.
const USERS_MAX: usize = 1024;

/// The most bytes of a file: twice those of the most users.
const FILE_MAX: usize = 2 * USERS_MAX * 2 * (LENGTH_MAX + 1);

/// Bytes of a code: of HMAC-SHA-256.
const CODE: usize = 32;

/// The front of a line that names a user who administrates the server.
const ADMIN: &[u8] = b":admin:";

/// What a user may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// What every client may.
    User,
    /// Also what the server forbids to others because it changes the server.
    Administrator,
}

/// Users and their passwords.
pub struct Passwords {
    key: hmac::Key,
    /// The role of each user, by the code of name and password.
    roles: HashMap<[u8; CODE], Role>,
    /// Name and role of each user, in the file's order.
    users: Vec<(Box<[u8]>, Role)>,
}

impl Passwords {
    /// Reads a file. Errors name the line, never a password.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let named = |error: std::io::Error| SettingsError::file(path, error);
        let (text, warning) = files::read_secret(path, FILE_MAX, "passwords").map_err(named)?;
        if let Some(warning) = warning {
            tracing::warn!("{warning}");
        }
        Self::parse(&text).map_err(|error| SettingsError::file(path, error))
    }

    fn parse(text: &[u8]) -> Result<Self, String> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new());
        let key = key.map_err(|_| "the system has no random numbers".to_owned())?;
        let (mut users, mut administrators) = (Vec::new(), Vec::new());
        for (number, line) in text.split(|&byte| byte == b'\n').enumerate() {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            let wrong = |why: &str| format!("line {}: {why}", number + 1);
            if let Some(name) = line.strip_prefix(ADMIN) {
                administrators.push((number, name));
                continue;
            }
            let colon = line.iter().position(|&byte| byte == b':');
            let (name, password) = match colon {
                Some(at) if at > 0 && at + 1 < line.len() => (&line[..at], &line[at + 1..]),
                _ => return Err(wrong("not of the form name:password")),
            };
            if name.len().max(password.len()) > LENGTH_MAX {
                return Err(wrong(&format!("longer than {LENGTH_MAX} bytes")));
            }
            users.push((name, password));
            if users.len() > USERS_MAX {
                return Err(wrong(&format!("more than {USERS_MAX} users")));
            }
        }
        if users.is_empty() {
            return Err("no user".to_owned());
        }
        let names: HashSet<&[u8]> = users.iter().map(|(name, _)| *name).collect();
        if let Some((number, _)) = administrators.iter().find(|(_, it)| !names.contains(it)) {
            return Err(format!("line {}: no user has this name", number + 1));
        }
        let administrators: HashSet<&[u8]> = administrators.iter().map(|(_, it)| *it).collect();
        let role = |name| match administrators.contains(name) {
            true => Role::Administrator,
            false => Role::User,
        };
        let codes = users.iter();
        let roles = codes.map(|&(name, password)| (code(&key, name, password), role(name)));
        let roles = roles.collect();
        let mut named: Vec<(Box<[u8]>, Role)> = Vec::new();
        for (name, _) in users {
            if named.iter().all(|(other, _)| **other != *name) {
                named.push((name.into(), role(name)));
            }
        }
        Ok(Self {
            key,
            roles,
            users: named,
        })
    }

    /// The role of the user with this name and password, if there is one.
    pub fn admits(&self, name: &[u8], password: &[u8]) -> Option<Role> {
        if name.len().max(password.len()) > LENGTH_MAX {
            return None;
        }
        self.roles.get(&code(&self.key, name, password)).copied()
    }

    /// Name and role of each user, in the file's order.
    pub fn users(&self) -> Vec<(Box<[u8]>, Role)> {
        self.users.clone()
    }

    /// True if any user administrates the server.
    pub fn have_administrators(&self) -> bool {
        self.roles.values().any(|role| *role == Role::Administrator)
    }
}

/// The code of a name of up to 255 bytes and a password.
fn code(key: &hmac::Key, name: &[u8], password: &[u8]) -> [u8; CODE] {
    let mut context = hmac::Context::with_key(key);
    // The length makes the border between the two count.
    context.update(&[name.len() as u8]);
    context.update(name);
    context.update(password);
    let mut code = [0; CODE];
    code.copy_from_slice(context.sign().as_ref());
    code
}

impl fmt::Debug for Passwords {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Passwords of {} users", self.roles.len())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_user_has_one_name_and_one_password() {
        let passwords = Passwords::parse(b"ann:secret\r\n\nbob:a:b c\n").unwrap();
        assert_eq!(passwords.admits(b"ann", b"secret"), Some(Role::User));
        assert_eq!(passwords.admits(b"bob", b"a:b c"), Some(Role::User));
        for (name, password) in [
            (&b"ann"[..], &b"secre"[..]),
            (b"ann", b"secret\0"),
            (b"ann", b""),
            (b"bob", b"secret"),
            (b"", b""),
            (b"ann", &[b'x'; 300]),
        ] {
            assert_eq!(passwords.admits(name, password), None);
        }
        assert_eq!(format!("{passwords:?}"), "Passwords of 2 users");
    }

    #[test]
    fn the_border_between_name_and_password_counts() {
        let passwords = Passwords::parse(b"ann:bob\n").unwrap();
        assert!(passwords.admits(b"ann", b"bob").is_some());
        for (name, password) in [
            (&b"an"[..], &b"nbob"[..]),
            (b"annb", b"ob"),
            (b"", b"annbob"),
        ] {
            assert_eq!(passwords.admits(name, password), None);
        }
    }

    #[test]
    fn some_users_administrate() {
        let text = b":admin:bob\nann:secret\nbob:word\nbob:other\nadmin:x\n:admin:a b\na b:c\n";
        let passwords = Passwords::parse(text).unwrap();
        for (name, password, role) in [
            (&b"ann"[..], &b"secret"[..], Role::User),
            (b"bob", b"word", Role::Administrator),
            (b"bob", b"other", Role::Administrator),
            (b"admin", b"x", Role::User),
            (b"a b", b"c", Role::Administrator),
        ] {
            assert_eq!(passwords.admits(name, password), Some(role), "{name:?}");
        }
        assert_eq!(passwords.admits(b"", b"admin:bob"), None);
        assert!(passwords.have_administrators());
        assert!(
            !Passwords::parse(b"ann:admin\n")
                .unwrap()
                .have_administrators()
        );
    }

    /// The time of a login must not reveal how many users there are, nor whether a name is one of theirs.
    #[test]
    fn a_login_takes_as_long_with_a_thousand_users_as_with_one() {
        let text = |users| (0..users).map(|user| format!("user{user}:secret{user}\n"));
        let [one, many] = [1, USERS_MAX].map(|users| {
            let text: String = text(users).collect();
            Passwords::parse(text.as_bytes()).unwrap()
        });
        let time = |passwords: &Passwords| {
            let begun = Instant::now();
            (0..100).for_each(|_| assert_eq!(passwords.admits(b"user0", b"other"), None));
            begun.elapsed()
        };
        // The shortest of several: the machine may be busy.
        let least = |passwords| (0..20).map(|_| time(passwords)).min().unwrap();
        let (one, many) = (least(&one), least(&many));
        assert!(many < one * 50, "{one:?} and {many:?}");
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
            (b":admin:ann\n", "no user"),
            (b"ann:secret\n:admin:bob\n", "line 2"),
            (b"ann:secret\n:admin:\n", "line 2"),
        ] {
            let error = Passwords::parse(text).unwrap_err();
            assert!(error.contains(line) && !error.contains("secret"), "{error}");
        }
    }
}
