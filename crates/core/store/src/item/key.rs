//! The key of an item, copied out so that it can be hashed.

use std::mem::MaybeUninit;

use super::Header;
use crate::memory::arena::Address;
use crate::memory::bytes;
use crate::store::{Placement, Store};
use nuthatch_engine::request::KEY_LEN_MAX;

/// A copy of a key.
pub struct KeyCopy {
    bytes: [MaybeUninit<u8>; 256],
    len: usize,
}

impl KeyCopy {
    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `copy_key` initialised the first `len` bytes.
        unsafe { bytes::assume_init(&self.bytes[..self.len]) }
    }
}

impl<P: Placement> Store<P> {
    /// The key at an address, as far as it can be read without a lock: it may be torn.
    pub fn copy_key(&self, address: Address) -> Option<KeyCopy> {
        let header = Header::load(&self.arena, address);
        let len = header.key_len();
        if len == 0 || len > KEY_LEN_MAX {
            return None;
        }
        let mut key = KeyCopy {
            bytes: [MaybeUninit::uninit(); 256],
            len,
        };
        let into = &mut key.bytes[..len];
        let whole = self.arena.read(address, header.key_start(), into);
        whole.then_some(key)
    }
}
