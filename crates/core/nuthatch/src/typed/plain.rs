//! Kinds whose bytes are there already or take a register: numbers, strings, byte strings.

use std::convert::identity;
use std::str;
use std::sync::Arc;

use super::codec::{CodecError, Decode, Encode, wrong_len};

/// A kind of a fixed size, which is passed by value; `$bytes` makes an array of one, `$from` one of an array.
macro_rules! fixed {
    ($($kind:ty: $bytes:expr, $from:expr;)*) => { $(
        impl Encode for $kind {
            type Owned = $kind;
            type Given<'a> = $kind;

            #[inline]
            fn given(owned: &$kind) -> $kind {
                *owned
            }

            #[inline]
            fn encode(given: $kind, into: &mut Vec<u8>) -> Result<(), CodecError> {
                into.extend_from_slice(&$bytes(given));
                Ok(())
            }

            #[inline]
            fn lend<T>(given: $kind, to: impl FnOnce(&[u8]) -> T) -> Result<T, CodecError> {
                Ok(to(&$bytes(given)))
            }
        }

        impl Decode for $kind {
            type View<'a> = $kind;

            #[inline]
            fn view(bytes: &[u8]) -> Result<$kind, CodecError> {
                let wrong = || wrong_len(bytes.len(), size_of::<$kind>());
                $from(bytes.try_into().map_err(|_| wrong())?)
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<$kind, CodecError> {
                Self::view(bytes)
            }
        }
    )* };
}

macro_rules! numbers {
    ($($number:ty)*) => {
        fixed! { $($number: <$number>::to_le_bytes, |bytes| Ok(<$number>::from_le_bytes(bytes));)* }
    };
}

numbers! { u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64 }

fixed! {
    bool: |given| [u8::from(given)], |[byte]: [u8; 1]| match byte {
        0 | 1 => Ok(byte == 1),
        _ => Err(CodecError::from("a byte above 1 is no bool")),
    };
    char: |given| u32::from(given).to_le_bytes(), |bytes| Ok(char::try_from(u32::from_le_bytes(bytes))?);
    (): |()| [], |_: [u8; 0]| Ok(());
}

impl<const N: usize> Encode for [u8; N] {
    type Owned = [u8; N];
    type Given<'a> = &'a [u8; N];

    #[inline]
    fn given(owned: &[u8; N]) -> &[u8; N] {
        owned
    }

    #[inline]
    fn encode(given: &[u8; N], into: &mut Vec<u8>) -> Result<(), CodecError> {
        into.extend_from_slice(given);
        Ok(())
    }

    #[inline]
    fn lend<T>(given: &[u8; N], to: impl FnOnce(&[u8]) -> T) -> Result<T, CodecError> {
        Ok(to(given))
    }
}

impl<const N: usize> Decode for [u8; N] {
    type View<'a> = &'a [u8; N];

    #[inline]
    fn view(bytes: &[u8]) -> Result<&[u8; N], CodecError> {
        bytes.try_into().map_err(|_| wrong_len(bytes.len(), N))
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<[u8; N], CodecError> {
        Self::view(bytes).copied()
    }
}

/// Kinds that own a `$lent`, which `$bytes` shows as bytes, `$view` finds in bytes, and `$own` makes a value of.
macro_rules! owning {
    ($lent:ty, $bytes:expr, $view:expr, $own:expr => $($kind:ty)*) => { $(
        impl Encode for $kind {
            type Owned = $kind;
            type Given<'a> = &'a $lent;

            #[inline]
            fn given(owned: &$kind) -> &$lent {
                owned
            }

            #[inline]
            fn encode(given: &$lent, into: &mut Vec<u8>) -> Result<(), CodecError> {
                into.extend_from_slice($bytes(given));
                Ok(())
            }

            #[inline]
            fn lend<T>(given: &$lent, to: impl FnOnce(&[u8]) -> T) -> Result<T, CodecError> {
                Ok(to($bytes(given)))
            }
        }

        impl Decode for $kind {
            type View<'a> = &'a $lent;

            #[inline]
            fn view(bytes: &[u8]) -> Result<&$lent, CodecError> {
                $view(bytes)
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<$kind, CodecError> {
                Self::view(bytes).map($own)
            }
        }
    )* };
}

owning! { str, str::as_bytes, |bytes| Ok(str::from_utf8(bytes)?), From::from => String Box<str> Arc<str> }
owning! { [u8], identity, Ok, From::from => Vec<u8> Box<[u8]> Arc<[u8]> }
#[cfg(feature = "bytes")]
owning! { [u8], identity, Ok, bytes::Bytes::copy_from_slice => bytes::Bytes }
