//! Scripts by name, as EVALSHA finds them.

use std::sync::Arc;

use sha1_smol::Sha1;

use crate::{SCRIPT_LEN_MAX, Script};

/// The most bytes of the texts of all scripts that are kept: some hundred scripts, of which a program has a few. In
/// memory a script is up to some thirty times as long as its text.
const TEXTS_MAX: usize = 128 << 10;

/// The SHA-1 of a text in small letters, as Redis names scripts.
pub fn sha1(text: &[u8]) -> String {
    Sha1::from(text).digest().to_string()
}

/// The scripts that clients sent, by the SHA-1 of their text. If they are too many, the one that was not used for the
/// longest time is forgotten: a client sends its text again when it hears that a script is not known.
#[derive(Debug, Default)]
pub struct Library {
    /// The script that was used last is at the end.
    scripts: Vec<Known>,
    /// Bytes of their texts.
    texts: usize,
}

#[derive(Debug)]
struct Known {
    name: String,
    /// Bytes of its text.
    len: usize,
    script: Arc<Script>,
}

impl Library {
    /// The script of this name, its digits in either case.
    pub fn find(&mut self, name: &[u8]) -> Option<Arc<Script>> {
        let at = self.position(name)?;
        self.scripts[at..].rotate_left(1);
        self.scripts.last().map(|known| Arc::clone(&known.script))
    }

    /// True if it has a script of this name.
    pub fn has(&self, name: &[u8]) -> bool {
        self.position(name).is_some()
    }

    /// Reads a text and keeps it. Returns its name, and its script. `None` if it is none.
    pub fn load(&mut self, text: &[u8]) -> Option<(String, Arc<Script>)> {
        // A longer text is not even hashed: no client can make the server read 64 KiB.
        if text.len() > SCRIPT_LEN_MAX {
            return None;
        }
        let name = sha1(text);
        if let Some(script) = self.find(name.as_bytes()) {
            return Some((name, script));
        }
        let script = Arc::new(Script::read(text)?);
        self.texts += text.len();
        while self.texts > TEXTS_MAX {
            self.texts -= self.scripts.remove(0).len;
        }
        self.scripts.push(Known {
            name: name.clone(),
            len: text.len(),
            script: Arc::clone(&script),
        });
        Some((name, script))
    }

    /// Forgets all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn position(&self, name: &[u8]) -> Option<usize> {
        // The one that is used often is near the end.
        let is_it = |known: &Known| known.name.as_bytes().eq_ignore_ascii_case(name);
        self.scripts.iter().rposition(is_it)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize) -> String {
        format!("return redis.call('incrby', KEYS[1], {number})")
    }

    #[test]
    fn a_script_has_the_name_of_its_text() {
        assert_eq!(sha1(b"abc"), "a9993e364706816aba3e25717850c26c9cd0d89d");
        let mut library = Library::default();
        let (name, script) = library.load(text(1).as_bytes()).unwrap();
        assert_eq!(library.find(name.to_uppercase().as_bytes()), Some(script));
        assert!(!library.has(b"") && !library.has(&[b'0'; 40]));
        assert!(library.load(b"return 1").is_none());
        library.clear();
        assert!(!library.has(name.as_bytes()));
    }

    #[test]
    fn the_longest_unused_leaves() {
        let mut library = Library::default();
        let mut load = |number| library.load(text(number).as_bytes()).unwrap().0;
        let first = load(0);
        let second = load(1);
        for number in 2..TEXTS_MAX / text(0).len() {
            load(number);
            load(0);
        }
        assert!(library.has(first.as_bytes()) && !library.has(second.as_bytes()));
        assert_eq!(
            library.texts,
            library.scripts.iter().map(|known| known.len).sum()
        );
        assert!(library.texts <= TEXTS_MAX);
    }

    #[test]
    fn a_long_text_is_no_script() {
        let mut library = Library::default();
        let long = format!("{}--{}", text(1), " ".repeat(SCRIPT_LEN_MAX));
        assert!(library.load(long.as_bytes()).is_none());
        assert!(library.load(&long.as_bytes()[..SCRIPT_LEN_MAX]).is_some());
    }
}
