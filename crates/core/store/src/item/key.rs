//! The key of an item, copied out so that it can be hashed.

use std::mem::MaybeUninit;

use super::{Header, SHORT_KEY_LEN_MAX};
use crate::memory::arena::Address;
use crate::memory::bytes;
use crate::store::{Placement, Store};
use nuthatch_engine::request::LONG_KEY_LEN_MAX;

/// A copy of a key.
pub struct KeyCopy {
    short: [MaybeUninit<u8>; 256],
    len: usize,
    /// In place of the array, if the key is long.
    long: Option<Box<[MaybeUninit<u8>]>>,
}

impl KeyCopy {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        let bytes = match &self.long {
            None => &self.short[..self.len],
            Some(long) => long,
        };
        // SAFETY: `copy_key` initialised the first `len` bytes of the array, or `copy_long_key` all of the box.
        unsafe { bytes::assume_init(bytes) }
    }
}

impl<P: Placement> Store<P> {
    /// The key at an address, as far as it can be read without a lock: it may be torn.
    pub fn copy_key(&self, address: Address) -> Option<KeyCopy> {
        let header = Header::load(&self.arena, address);
        let len = header.key_len();
        if len == 0 {
            return None;
        }
        if len > SHORT_KEY_LEN_MAX {
            return self.copy_long_key(address, &header);
        }
        let mut key = KeyCopy {
            short: [MaybeUninit::uninit(); 256],
            len,
            long: None,
        };
        let into = &mut key.short[..len];
        let whole = self.arena.read(address, header.key_start(), into);
        whole.then_some(key)
    }

    /// The same for a long key. A torn length is bounded before memory is taken for it.
    #[cold]
    #[inline(never)]
    fn copy_long_key(&self, address: Address, header: &Header) -> Option<KeyCopy> {
        let len = header.key_len();
        if len > LONG_KEY_LEN_MAX {
            return None;
        }
        let mut long = vec![MaybeUninit::new(0); len].into_boxed_slice();
        let whole = self.arena.read(address, header.key_start(), &mut long);
        whole.then(|| KeyCopy {
            short: [MaybeUninit::uninit(); 256],
            len,
            long: Some(long),
        })
    }
}
