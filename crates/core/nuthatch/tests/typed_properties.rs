//! Of each kind of keys and values: what is stored comes back, different keys have different bytes, and no bytes at all make
//! a read panic.

use std::fmt::Debug;
use std::sync::Arc;

use nuthatch::TypedCache;
use nuthatch::typed::{Decode, Encode};
use proptest::prelude::*;

/// There and back, by itself and within others.
fn comes_back<K: Decode>(owned: &K::Owned) -> Result<(), TestCaseError>
where
    K::Owned: PartialEq + Debug,
{
    let mut bytes = Vec::new();
    K::encode(K::given(owned), &mut bytes).unwrap();
    let lent = K::lend(K::given(owned), |lent| lent.to_vec()).unwrap();
    prop_assert_eq!(&lent, &bytes);
    prop_assert_eq!(&K::decode(&bytes).unwrap(), owned);
    prop_assert!(K::view(&bytes).is_ok());
    // It appends, as a part of a tuple needs.
    let mut behind = b"before".to_vec();
    K::encode(K::given(owned), &mut behind).unwrap();
    prop_assert_eq!(behind.strip_prefix(b"before"), Some(&bytes[..]));
    // Through a cache, as a value: a value may be empty.
    let cache: TypedCache<u8, K> = TypedCache::new(1 << 20).unwrap();
    cache.insert(1, K::given(owned)).unwrap();
    let found = cache.get(1).unwrap();
    prop_assert_eq!(found.as_ref(), Some(owned));
    prop_assert!(cache.get_with(1, |_| ()).unwrap().is_some());
    let removed = cache.remove(1).unwrap();
    prop_assert_eq!(removed.as_ref(), Some(owned));
    Ok(())
}

/// Two keys have equal bytes only if they are equal.
fn keeps_apart<K: Encode>(one: &K::Owned, other: &K::Owned) -> Result<(), TestCaseError>
where
    K::Owned: PartialEq + Debug,
{
    let bytes = |owned| K::lend(K::given(owned), |bytes| bytes.to_vec()).unwrap();
    prop_assert_eq!(bytes(one) == bytes(other), one == other);
    Ok(())
}

/// Neither of them panics, and a view is there exactly if a value is.
fn reads_any<K: Decode>(bytes: &[u8]) -> Result<(), TestCaseError> {
    prop_assert_eq!(K::view(bytes).is_ok(), K::decode(bytes).is_ok());
    Ok(())
}

/// A property for each kind; the module's name is the kind's.
macro_rules! kinds {
    ($($name:ident: $kind:ty;)*) => { $(
        mod $name {
            use super::*;

            proptest! {
                #![proptest_config(ProptestConfig::with_cases(64))]

                #[test]
                fn values_come_back(owned: $kind) {
                    comes_back::<$kind>(&owned)?;
                }

                #[test]
                fn keys_are_kept_apart(one: $kind, other: $kind) {
                    keeps_apart::<$kind>(&one, &other)?;
                    keeps_apart::<$kind>(&one, &one)?;
                }

                #[test]
                fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
                    reads_any::<$kind>(&bytes)?;
                }
            }
        }
    )* };
}

kinds! {
    unsigned_8: u8;
    unsigned_16: u16;
    unsigned_32: u32;
    unsigned_64: u64;
    unsigned_128: u128;
    unsigned_size: usize;
    signed_8: i8;
    signed_16: i16;
    signed_32: i32;
    signed_64: i64;
    signed_128: i128;
    signed_size: isize;
    truth: bool;
    letter: char;
    nothing: ();
    string: String;
    boxed_string: Box<str>;
    shared_string: Arc<str>;
    byte_string: Vec<u8>;
    boxed_bytes: Box<[u8]>;
    shared_bytes: Arc<[u8]>;
    array: [u8; 5];
    empty_array: [u8; 0];
    optional: Option<u32>;
    optional_string: Option<String>;
    twice_optional: Option<Option<String>>;
    one: (String, String);
    two: (u32, Vec<u8>, Option<String>);
    three: (Option<u8>, String, (String, [u8; 3]), String);
    optional_tuple: Option<(String, Option<()>)>;
}

proptest! {
    #[test]
    fn floats_come_back_bit_by_bit(single: u32, double: u64) {
        let (single, double) = (f32::from_bits(single), f64::from_bits(double));
        let there = |bytes: &mut Vec<u8>| {
            <(f32, f64)>::encode((single, double), bytes).unwrap();
        };
        let mut bytes = Vec::new();
        there(&mut bytes);
        let back = <(f32, f64)>::decode(&bytes).unwrap();
        prop_assert_eq!((back.0.to_bits(), back.1.to_bits()), (single.to_bits(), double.to_bits()));
    }

    /// Parts that are cut elsewhere make other bytes.
    #[test]
    fn a_tuples_parts_are_kept_apart(whole in ".{0,300}", one: prop::sample::Index, other: prop::sample::Index) {
        type Parts = (String, String);
        let cuts: Vec<usize> = whole.char_indices().map(|(at, _)| at).chain([whole.len()]).collect();
        let parts = |cut: &prop::sample::Index| {
            let (left, right) = whole.split_at(cuts[cut.index(cuts.len())]);
            (left.to_owned(), right.to_owned())
        };
        keeps_apart::<Parts>(&parts(&one), &parts(&other))?;
        comes_back::<Parts>(&parts(&one))?;
    }
}

#[cfg(feature = "bytes")]
proptest! {
    #[test]
    fn shared_buffers_come_back(bytes: Vec<u8>) {
        comes_back::<bytes::Bytes>(&bytes.into())?;
    }
}

#[cfg(feature = "serde")]
mod serde_kind {
    use std::collections::BTreeMap;

    use nuthatch::typed::Serde;
    use serde::{Deserialize, Serialize};

    use super::*;

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    enum Shape {
        Point,
        Circle { radius: f32 },
        Path(Vec<(i16, i16)>),
        Named(String, Box<Shape>),
        Table(BTreeMap<String, Option<u64>>),
    }

    fn shapes() -> impl Strategy<Value = Shape> {
        let leaf = prop_oneof![
            Just(Shape::Point),
            (-1e9_f32..1e9).prop_map(|radius| Shape::Circle { radius }),
            any::<Vec<(i16, i16)>>().prop_map(Shape::Path),
            any::<BTreeMap<String, Option<u64>>>().prop_map(Shape::Table),
        ];
        leaf.prop_recursive(3, 8, 1, |inner| {
            (any::<String>(), inner).prop_map(|(name, shape)| Shape::Named(name, shape.into()))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn values_come_back(shape in shapes()) {
            comes_back::<Serde<Shape>>(&shape)?;
            comes_back::<(Serde<Shape>, Option<Serde<Shape>>)>(&(shape.clone(), Some(shape)))?;
        }

        #[test]
        fn keys_are_kept_apart(one in shapes(), other in shapes()) {
            keeps_apart::<Serde<Shape>>(&one, &other)?;
        }

        #[test]
        fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            reads_any::<Serde<Shape>>(&bytes)?;
        }
    }

    /// Class: a length that the bytes promise is believed.
    #[test]
    fn a_promised_length_takes_no_memory() {
        let promised = [
            2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert!(Serde::<Shape>::decode(&promised).is_err());
    }

    #[test]
    fn bytes_behind_the_value_are_an_error() {
        let error = Serde::<Shape>::decode(&[0, 0]).unwrap_err();
        assert_eq!(error.to_string(), "1 bytes behind the value");
    }
}
