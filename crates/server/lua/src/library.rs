//! The scripts that all workers know by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nuthatch_base::sync::mutex::Mutex;
use nuthatch_script::Name;

use crate::shebang::{self, Flags};

/// The most bytes of the texts of all scripts.
const TEXTS_MAX: usize = 4 << 20;

/// The most scripts.
const COUNT_MAX: usize = 5000;

/// A script that is not compiled yet.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    /// Its name.
    pub name: Name,
    /// What it says of itself.
    pub flags: Flags,
    text: Box<[u8]>,
}

impl Source {
    /// Errors: the words of an answer.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        Self::named(Name::of(text), text)
    }

    /// The same of a text whose name is known. Errors: as above.
    pub fn named(name: Name, text: &[u8]) -> Result<Self, String> {
        let (flags, _) = shebang::read(text)?;
        Ok(Self {
            name,
            flags,
            text: text.into(),
        })
    }

    /// What Lua reads of it.
    pub(crate) fn code(&self) -> &[u8] {
        shebang::read(&self.text).map_or(&self.text, |(_, code)| code)
    }
}

/// Scripts by name. Those that EVAL brought are forgotten when there is no room for another one, the longest unused first:
/// their clients send them again. Those of SCRIPT LOAD stay: their clients rely on it.
#[derive(Debug, Default)]
pub struct Library(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    scripts: HashMap<Name, Known>,
    /// The names of those that EVAL brought, by the moments of their last uses.
    uses: BTreeMap<u64, Name>,
    /// The moment: it counts uses.
    now: u64,
    /// Bytes of all texts.
    texts: usize,
}

#[derive(Debug)]
struct Known {
    source: Arc<Source>,
    /// The moment of its last use. `None` if it stays.
    used: Option<u64>,
}

impl Library {
    /// The script of this name.
    pub fn find(&self, name: Name) -> Option<Arc<Source>> {
        self.0.lock().find(name)
    }

    /// True if it has a script of this name.
    pub fn has(&self, name: Name) -> bool {
        self.0.lock().scripts.contains_key(&name)
    }

    /// Keeps a script, for ever if it `stays`. False if there is no room.
    pub fn keep(&self, source: &Arc<Source>, stays: bool) -> bool {
        // What is forgotten is freed behind the lock.
        let mut forgotten = Vec::new();
        self.0.lock().keep(source, stays, &mut forgotten)
    }

    /// Forgets all of them.
    pub fn clear(&self) {
        let _forgotten = std::mem::take(&mut *self.0.lock());
    }
}

impl Kept {
    fn find(&mut self, name: Name) -> Option<Arc<Source>> {
        let known = self.scripts.get_mut(&name)?;
        if let Some(used) = &mut known.used {
            self.uses.remove(used);
            self.now += 1;
            *used = self.now;
            self.uses.insert(self.now, name);
        }
        Some(Arc::clone(&known.source))
    }

    fn keep(&mut self, source: &Arc<Source>, stays: bool, forgotten: &mut Vec<Known>) -> bool {
        if self.find(source.name).is_some() {
            if stays
                && let Some(known) = self.scripts.get_mut(&source.name)
                && let Some(used) = known.used.take()
            {
                self.uses.remove(&used);
            }
            return true;
        }
        let len = source.text.len();
        while self.texts + len > TEXTS_MAX || self.scripts.len() >= COUNT_MAX {
            let Some((_, name)) = self.uses.pop_first() else {
                return false;
            };
            if let Some(known) = self.scripts.remove(&name) {
                self.texts -= known.source.text.len();
                forgotten.push(known);
            }
        }
        self.now += 1;
        let used = (!stays).then_some(self.now);
        if let Some(used) = used {
            self.uses.insert(used, source.name);
        }
        self.texts += len;
        let source = Arc::clone(source);
        self.scripts.insert(source.name, Known { source, used });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(number: usize, len: usize) -> Arc<Source> {
        let text = format!("return {number}{}", " ".repeat(len));
        Arc::new(Source::read(text.as_bytes()).unwrap())
    }

    #[test]
    fn those_that_were_loaded_stay() {
        let library = Library::default();
        let loaded = source(0, 0);
        assert!(library.keep(&loaded, true));
        let first = source(1, 0);
        assert!(library.keep(&first, false));
        for number in 2..COUNT_MAX + 2 {
            assert!(library.keep(&source(number, 0), false));
        }
        assert!(library.has(loaded.name) && !library.has(first.name));
        library.clear();
        assert!(!library.has(loaded.name));
    }

    #[test]
    fn too_many_loaded_ones_are_refused() {
        let library = Library::default();
        let len = 1 << 20;
        assert!((0..3).all(|number| library.keep(&source(number, len), true)));
        let brought = source(3, len - 100);
        assert!(library.keep(&brought, false));
        // It takes the place of the one that may be forgotten, and once all stay there is none.
        assert!(library.keep(&source(4, len - 100), true));
        assert!(!library.has(brought.name));
        assert!(!library.keep(&source(5, len), true));
        assert!(library.has(source(0, len).name));
    }
}
