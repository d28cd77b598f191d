//! Scripts by name, as EVALSHA finds them.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use nuthatch_base::sync::mutex::Mutex;
use sha1_smol::Sha1;

use crate::{SCRIPT_LEN_MAX, Script};

/// The most bytes of the texts of all scripts that are kept: some hundred scripts, of which a program has a few. In
/// memory a script is up to some thirty times as long as its text.
const TEXTS_MAX: usize = 128 << 10;

/// The name of a script: the SHA-1 of its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Name([u8; 20]);

impl Name {
    /// That of a script of this text.
    pub fn of(text: &[u8]) -> Self {
        Self(Sha1::from(text).digest().bytes())
    }

    /// The name that is written so: 40 hexadecimal digits in either case.
    pub fn read(digits: &[u8]) -> Option<Self> {
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        let (pairs, []) = digits.as_chunks::<2>() else {
            return None;
        };
        let mut name = [0; 20];
        if pairs.len() != name.len() {
            return None;
        }
        for (byte, [high, low]) in name.iter_mut().zip(pairs) {
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Some(Self(name))
    }
}

/// As Redis writes it, in small letters.
impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// The scripts that clients sent. If they are too many, the one that was not used for the longest time is forgotten: a
/// client sends its text again when it hears that a script is not known.
///
/// All workers share it. So under its lock nothing is hashed, parsed or freed, and no search takes longer for more
/// scripts than a tree's does.
#[derive(Debug, Default)]
pub struct Library(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    scripts: HashMap<Name, Known>,
    /// The names by the moments of their last uses.
    uses: BTreeMap<u64, Name>,
    /// The moment: it counts uses.
    now: u64,
    /// Bytes of all texts.
    texts: usize,
}

#[derive(Debug)]
struct Known {
    script: Arc<Script>,
    /// Bytes of its text.
    len: usize,
    /// The moment of its last use.
    used: u64,
}

impl Library {
    /// The script of this name.
    pub fn find(&self, name: Name) -> Option<Arc<Script>> {
        self.0.lock().find(name)
    }

    /// True if it has a script of this name.
    pub fn has(&self, name: Name) -> bool {
        self.0.lock().scripts.contains_key(&name)
    }

    /// The script of a text, which has this name. If it is new it is read and kept. `None` if it is none.
    pub fn load(&self, name: Name, text: &[u8]) -> Option<Arc<Script>> {
        if text.len() > SCRIPT_LEN_MAX {
            return None;
        }
        if let Some(script) = self.find(name) {
            return Some(script);
        }
        let script = Arc::new(Script::read(text)?);
        // These are freed behind the lock.
        let _forgotten = self.0.lock().keep(name, text.len(), Arc::clone(&script));
        Some(script)
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        // They are freed behind the lock.
        let _forgotten = std::mem::take(&mut *self.0.lock());
    }
}

impl Kept {
    fn find(&mut self, name: Name) -> Option<Arc<Script>> {
        let known = self.scripts.get_mut(&name)?;
        self.uses.remove(&known.used);
        self.now += 1;
        known.used = self.now;
        self.uses.insert(self.now, name);
        Some(Arc::clone(&known.script))
    }

    /// Keeps a script, and returns those that it has no room for any more. Another thread may have kept it meanwhile.
    fn keep(&mut self, name: Name, len: usize, script: Arc<Script>) -> Vec<Known> {
        if self.find(name).is_some() {
            return Vec::new();
        }
        let mut forgotten = Vec::new();
        while self.texts + len > TEXTS_MAX
            && let Some((_, name)) = self.uses.pop_first()
            && let Some(known) = self.scripts.remove(&name)
        {
            self.texts -= known.len;
            forgotten.push(known);
        }
        self.now += 1;
        let used = self.now;
        self.texts += len;
        self.uses.insert(used, name);
        self.scripts.insert(name, Known { script, len, used });
        forgotten
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(number: usize) -> String {
        format!("return redis.call('incrby', KEYS[1], {number})")
    }

    fn load(library: &Library, text: &str) -> Option<(Name, Arc<Script>)> {
        let name = Name::of(text.as_bytes());
        library
            .load(name, text.as_bytes())
            .map(|script| (name, script))
    }

    #[test]
    fn a_script_has_the_name_of_its_text() {
        let written = "a9993e364706816aba3e25717850c26c9cd0d89d";
        assert_eq!(Name::of(b"abc").to_string(), written);
        assert_eq!(Name::read(written.as_bytes()), Some(Name::of(b"abc")));
        for odd in [
            "",
            "a9",
            &written[1..],
            &format!("{written}00"),
            &written.replace('d', "g"),
        ] {
            assert_eq!(Name::read(odd.as_bytes()), None, "{odd}");
        }
        let library = Library::default();
        let (name, script) = load(&library, &text(1)).unwrap();
        let written = name.to_string().to_uppercase();
        let read = Name::read(written.as_bytes()).unwrap();
        assert_eq!(library.find(read), Some(script));
        assert!(!library.has(Name::of(b"")));
        assert!(load(&library, "return 1").is_none());
        library.clear();
        assert!(!library.has(name));
    }

    #[test]
    fn the_longest_unused_leaves() {
        let library = Library::default();
        let load = |number| load(&library, &text(number)).unwrap().0;
        let first = load(0);
        let second = load(1);
        for number in 2..TEXTS_MAX / text(0).len() {
            load(number);
            load(0);
        }
        assert!(library.has(first) && !library.has(second));
        let kept = library.0.lock();
        let lens = kept.scripts.values().map(|known| known.len);
        assert_eq!(kept.texts, lens.sum());
        assert!(kept.texts <= TEXTS_MAX);
        let by_use = kept.uses.iter().map(|(used, name)| (*name, *used));
        let uses: HashMap<_, _> = by_use.collect();
        assert_eq!(uses.len(), kept.scripts.len());
        for (name, known) in &kept.scripts {
            assert_eq!(uses[name], known.used);
        }
    }

    #[test]
    fn a_long_text_is_no_script() {
        let library = Library::default();
        let long = format!("{}--{}", text(1), " ".repeat(SCRIPT_LEN_MAX));
        assert!(load(&library, &long).is_none());
        assert!(load(&library, &long[..SCRIPT_LEN_MAX]).is_some());
    }
}
