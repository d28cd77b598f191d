//! A reserved element: its value has not arrived completely.

use super::data::Place;
use super::element::Element;
use super::memory::BlockMemory;

/// An element that is NOT READY, and how much of its value has arrived. The caller gives it back if it is neither taken
/// nor published: only an engine can reach the element's owner.
pub struct ReservedElement {
    element: Option<Element>,
    key_len: usize,
    value_len: usize,
    written: usize,
    /// Where its next byte goes.
    pub(crate) place: Place,
}

impl ReservedElement {
    /// Wraps an element that was just inserted, with room for the key and so many bytes.
    pub fn new(memory: &BlockMemory, element: Element, key: &[u8], value_len: usize) -> Self {
        Self {
            element: Some(element),
            key_len: key.len(),
            value_len,
            written: 0,
            place: memory.write_on(Place::new(element, 0), key),
        }
    }

    /// Appends to the value.
    ///
    /// # Panics
    ///
    /// If there are more bytes than are missing.
    pub fn write(&mut self, memory: &BlockMemory, bytes: &[u8]) {
        assert!(
            bytes.len() <= self.missing(),
            "more bytes than were reserved"
        );
        if self.element.is_some() {
            self.place = memory.write_on(self.place, bytes);
        }
        self.written += bytes.len();
    }

    /// Bytes of the value that have not arrived.
    pub fn missing(&self) -> usize {
        self.value_len - self.written
    }

    /// The element, to be published or given back. Only the first call returns it.
    pub fn take(&mut self) -> Option<Element> {
        self.element.take()
    }

    /// Bytes of the key.
    pub fn key_len(&self) -> usize {
        self.key_len
    }

    /// Key and value. `None` once the element was taken, and if there is no memory for a copy, whose length a client
    /// chose.
    pub fn to_vec(&self, memory: &BlockMemory) -> Option<Vec<u8>> {
        let len = self.key_len + self.value_len;
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).ok()?;
        Some(memory.append_to(bytes, self.element?, 0, len))
    }
}
