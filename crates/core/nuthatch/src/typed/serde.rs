//! [`Serde`]: keys and values that serde knows, in postcard's bytes.

use std::marker::PhantomData;

use postcard::ser_flavors::Flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::codec::{CodecError, Decode, Encode};

/// The kind of a type with serde's `Serialize` and `DeserializeOwned`: callers pass a `&T` and get a `T`. With the feature
/// `serde`.
///
/// ```
/// use nuthatch::TypedCache;
/// use nuthatch::typed::Serde;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize, PartialEq, Debug)]
/// struct User { name: String, visits: u32 }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let users: TypedCache<u64, Serde<User>> = TypedCache::new(16 << 20)?;
/// users.insert(7, &User { name: "Ada".into(), visits: 1 })?;
/// let user: Option<User> = users.get(7)?;
/// assert_eq!(user.map(|user| user.name).as_deref(), Some("Ada"));
/// # Ok(())
/// # }
/// ```
///
/// The bytes are [postcard](https://docs.rs/postcard)'s: they hold neither names nor types, so serde's attributes
/// `flatten`, `untagged` and `skip_serializing_if` do not work with it, and of two types with the same fields each reads the
/// other's values. [`Decode::View`] is a `T`, since serde has no view of bytes for any `T`. As a kind of keys it is for
/// types that always have the same order: not for `HashMap` and `HashSet`.
#[derive(Debug)]
pub struct Serde<T>(PhantomData<fn() -> T>);

impl<T: Serialize + 'static> Encode for Serde<T> {
    type Owned = T;
    type Given<'a> = &'a T;

    #[inline]
    fn given(owned: &T) -> &T {
        owned
    }

    #[inline]
    fn encode(given: &T, into: &mut Vec<u8>) -> Result<(), CodecError> {
        Ok(postcard::serialize_with_flavor(given, Append(into))?)
    }
}

impl<T: Serialize + DeserializeOwned + 'static> Decode for Serde<T> {
    type View<'a> = T;

    #[inline]
    fn view(bytes: &[u8]) -> Result<T, CodecError> {
        match postcard::take_from_bytes(bytes)? {
            (value, []) => Ok(value),
            (_, behind) => Err(format!("{} bytes behind the value", behind.len()).into()),
        }
    }

    #[inline]
    fn decode(bytes: &[u8]) -> Result<T, CodecError> {
        Self::view(bytes)
    }
}

/// Appends what postcard writes. (Its own flavor for a vector gives a new one.)
struct Append<'a>(&'a mut Vec<u8>);

impl Flavor for Append<'_> {
    type Output = ();

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}
