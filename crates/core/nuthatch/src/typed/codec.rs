//! [`Encode`] and [`Decode`]: how keys and values of a type become bytes, and come back.

use std::error::Error;

use super::buffer;

/// Why something cannot be encoded or decoded: any error, or a text (`"not a colour".into()`).
pub type CodecError = Box<dyn Error + Send + Sync>;

/// A kind of keys or values of a [`TypedCache`](super::TypedCache), by the bytes that the cache holds for them.
///
/// It is implemented for integers, `f32`, `f64`, `bool`, `char` and `()`, for `String`, `Box<str>` and `Arc<str>`, for
/// `Vec<u8>`, `Box<[u8]>`, `Arc<[u8]>` and `[u8; N]`, for `Option` and for tuples of these; with the feature `bytes` for
/// `Bytes`, and with `serde` for `Serde<T>`. A type of one's own takes a few lines:
///
/// ```
/// use nuthatch::typed::{CodecError, Decode, Encode};
/// use nuthatch::TypedCache;
///
/// #[derive(Clone, Copy, PartialEq, Debug)]
/// struct Colour { red: u8, green: u8, blue: u8 }
///
/// impl Encode for Colour {
///     type Owned = Colour;
///     type Given<'a> = Colour;
///
///     fn given(owned: &Colour) -> Colour {
///         *owned
///     }
///
///     fn encode(given: Colour, into: &mut Vec<u8>) -> Result<(), CodecError> {
///         into.extend([given.red, given.green, given.blue]);
///         Ok(())
///     }
/// }
///
/// impl Decode for Colour {
///     type View<'a> = Colour;
///
///     fn view(bytes: &[u8]) -> Result<Colour, CodecError> {
///         let &[red, green, blue] = bytes else { return Err("not three bytes".into()) };
///         Ok(Colour { red, green, blue })
///     }
///
///     fn decode(bytes: &[u8]) -> Result<Colour, CodecError> {
///         Self::view(bytes)
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let cache: TypedCache<String, Colour> = TypedCache::new(16 << 20)?;
/// cache.insert("sky", Colour { red: 135, green: 206, blue: 235 })?;
/// assert_eq!(cache.get_with("sky", |colour| colour.blue)?, Some(235));
/// # Ok(())
/// # }
/// ```
///
/// Of a kind of keys different keys must have different bytes, and equal keys the same, at every call: the cache compares
/// bytes, and uses neither `Eq` nor `Hash`.
pub trait Encode: 'static {
    /// What the cache returns: `String` for `String`.
    type Owned;

    /// What callers pass, without giving it away: `&str` for `String`, `u64` for `u64`.
    type Given<'a>: Copy;

    /// What a caller would pass for this.
    fn given(owned: &Self::Owned) -> Self::Given<'_>;

    /// Appends the bytes to `into`, which may hold others already. Errors: it has no bytes in this form.
    fn encode(given: Self::Given<'_>, into: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Lends the bytes to `to`, and returns its result. By default they are written to a buffer of the thread, which is
    /// used again; what has them already lends its own. Errors: those of [`Encode::encode`].
    #[inline]
    fn lend<T>(given: Self::Given<'_>, to: impl FnOnce(&[u8]) -> T) -> Result<T, CodecError> {
        buffer::with(|buffer| {
            Self::encode(given, buffer)?;
            Ok(to(buffer))
        })
    }
}

/// An [`Encode`] whose bytes can be read again. Values are; of keys only iteration asks for it.
pub trait Decode: Encode {
    /// What can be read in the bytes without a copy of them: `&str` for `String`.
    type View<'a>;

    /// A view of bytes that [`Encode::encode`] has written. Errors: these bytes are none that it writes. That happens if
    /// something else stores in the same cache, so it must not panic, whatever the bytes are.
    fn view(bytes: &[u8]) -> Result<Self::View<'_>, CodecError>;

    /// The same as a value of its own.
    fn decode(bytes: &[u8]) -> Result<Self::Owned, CodecError>;
}

/// The error of bytes that have the wrong number.
#[cold]
pub(super) fn wrong_len(found: usize, expected: usize) -> CodecError {
    format!("{found} bytes in place of {expected}").into()
}
