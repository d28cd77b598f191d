//! Keys and values, as C has them.

use std::ptr;

use nuthatch_client::Item;

/// A key, for a get of many.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Key {
    /// Its bytes.
    pub data: *const u8,
    /// How many bytes.
    pub length: usize,
}

/// An item that is to be stored, of many.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Entry {
    /// The bytes of its key.
    pub key: *const u8,
    /// How many bytes.
    pub key_length: usize,
    /// The bytes of its value.
    pub value: *const u8,
    /// How many bytes.
    pub value_length: usize,
    /// For how many milliseconds, rounded up to seconds. Negative: without an end.
    pub lifetime_ms: i64,
    /// The caller's own.
    pub flags: u32,
}

/// A value that was found. Its memory is freed by nuthatch_client_value_free().
#[derive(Debug)]
#[repr(C)]
pub struct Value {
    /// Its bytes. NULL: there is no value.
    pub data: *mut u8,
    /// How many bytes.
    pub length: usize,
    /// A number for nuthatch_client_cas(), which changes with the item. Calls that get items set it.
    pub cas: u64,
    /// The flags with which it was stored. Calls that get items set them.
    pub flags: u32,
    /// How many seconds are left, -1 without an end. Calls that get items set it.
    pub seconds_left: i64,
}

impl Value {
    pub(crate) const NONE: Self = Self {
        data: ptr::null_mut(),
        length: 0,
        cas: 0,
        flags: 0,
        seconds_left: -1,
    };

    /// A value of these bytes, or none.
    pub(crate) fn of(bytes: Option<Vec<u8>>) -> Self {
        let Some(bytes) = bytes else {
            return Self::NONE;
        };
        // With as much memory as bytes, which `free` gives back. An empty one has memory of no bytes, and no NULL.
        let bytes = bytes.into_boxed_slice();
        Self {
            length: bytes.len(),
            data: Box::into_raw(bytes).cast(),
            ..Self::NONE
        }
    }

    /// A value with its flags, or none.
    pub(crate) fn flagged(found: Option<(Vec<u8>, u32)>) -> Self {
        match found {
            Some((bytes, flags)) => Self {
                flags,
                ..Self::of(Some(bytes))
            },
            None => Self::NONE,
        }
    }

    pub(crate) fn of_item(item: Item) -> Self {
        Self {
            cas: item.cas,
            flags: item.flags,
            seconds_left: item
                .left
                .map_or(-1, |left| i64::try_from(left.as_secs()).unwrap_or(i64::MAX)),
            ..Self::of(Some(item.value))
        }
    }
}

/// Frees the memory of a value, which then is none. NULL, and a value that is none, are passed over.
///
/// # Safety
/// `value` is NULL or was written by a call of this library, and its bytes are used no more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nuthatch_client_value_free(value: *mut Value) {
    // SAFETY: the caller's promise.
    let Some(value) = (unsafe { value.as_mut() }) else {
        return;
    };
    let Value { data, length, .. } = std::mem::replace(value, Value::NONE);
    if !data.is_null() {
        // SAFETY: `Value::of` made this pointer of a box of so many bytes, and nobody has freed it: it would be NULL.
        drop(unsafe { Box::from_raw(ptr::slice_from_raw_parts_mut(data, length)) });
    }
}
