//! Kinds that are made of others: `Option`, and tuples.
//!
//! A tuple is its parts one behind the other. Each but the last has its length in front of it, so that `("a", "bc")` and
//! `("ab", "c")` have different bytes.

use super::codec::{CodecError, Decode, Encode};

/// First byte of an `Option`.
const NONE: u8 = 0;
const SOME: u8 = 1;

impl<A: Encode> Encode for Option<A> {
    type Owned = Option<A::Owned>;
    type Given<'a> = Option<A::Given<'a>>;

    fn given(owned: &Option<A::Owned>) -> Option<A::Given<'_>> {
        owned.as_ref().map(A::given)
    }

    fn encode(given: Option<A::Given<'_>>, into: &mut Vec<u8>) -> Result<(), CodecError> {
        match given {
            None => into.push(NONE),
            Some(given) => {
                into.push(SOME);
                A::encode(given, into)?;
            }
        }
        Ok(())
    }
}

/// What an `Option` with these bytes holds.
fn content(bytes: &[u8]) -> Result<Option<&[u8]>, CodecError> {
    match bytes {
        [NONE] => Ok(None),
        [SOME, content @ ..] => Ok(Some(content)),
        _ => Err("neither a None nor a Some".into()),
    }
}

impl<A: Decode> Decode for Option<A> {
    type View<'a> = Option<A::View<'a>>;

    fn view(bytes: &[u8]) -> Result<Option<A::View<'_>>, CodecError> {
        content(bytes)?.map(A::view).transpose()
    }

    fn decode(bytes: &[u8]) -> Result<Option<A::Owned>, CodecError> {
        content(bytes)?.map(A::decode).transpose()
    }
}

/// Appends a part, and its length in front of it: seven bits a byte, the least first, with the eighth set in all but the
/// last.
fn encode_part<A: Encode>(given: A::Given<'_>, into: &mut Vec<u8>) -> Result<(), CodecError> {
    let begin = into.len();
    A::encode(given, into)?;
    let mut len = into.len() - begin;
    let mut at = begin;
    while len >= 0x80 {
        into.insert(at, len as u8 | 0x80);
        len >>= 7;
        at += 1;
    }
    into.insert(at, len as u8);
    Ok(())
}

/// Takes a part from the front of a tuple's bytes.
fn take_part<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8], CodecError> {
    let short = || CodecError::from("a tuple that ends too early");
    let mut len = 0;
    for shift in (0..usize::BITS).step_by(7) {
        let (&byte, behind) = bytes.split_first().ok_or_else(short)?;
        *bytes = behind;
        // What it shifts out belongs to a length that no tuple has: the part is then too short or not what it should be.
        len |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            let (part, behind) = bytes.split_at_checked(len).ok_or_else(short)?;
            *bytes = behind;
            return Ok(part);
        }
    }
    Err("a tuple with a part without an end".into())
}

macro_rules! tuple {
    ($($part:ident)*, $last:ident) => {
        #[allow(non_snake_case, reason = "a part's name is its kind's")]
        impl<$($part: Encode,)* $last: Encode> Encode for ($($part,)* $last,) {
            type Owned = ($($part::Owned,)* $last::Owned,);
            type Given<'a> = ($($part::Given<'a>,)* $last::Given<'a>,);

            fn given(($($part,)* $last,): &Self::Owned) -> Self::Given<'_> {
                ($($part::given($part),)* $last::given($last),)
            }

            fn encode(
                ($($part,)* $last,): Self::Given<'_>,
                into: &mut Vec<u8>,
            ) -> Result<(), CodecError> {
                $(encode_part::<$part>($part, into)?;)*
                $last::encode($last, into)
            }
        }

        impl<$($part: Decode,)* $last: Decode> Decode for ($($part,)* $last,) {
            type View<'a> = ($($part::View<'a>,)* $last::View<'a>,);

            fn view(bytes: &[u8]) -> Result<Self::View<'_>, CodecError> {
                let mut bytes = bytes;
                Ok(($($part::view(take_part(&mut bytes)?)?,)* $last::view(bytes)?,))
            }

            fn decode(bytes: &[u8]) -> Result<Self::Owned, CodecError> {
                let mut bytes = bytes;
                Ok(($($part::decode(take_part(&mut bytes)?)?,)* $last::decode(bytes)?,))
            }
        }
    };
}

tuple! { A, B }
tuple! { A B, C }
tuple! { A B C, D }

#[cfg(test)]
mod tests {
    use super::*;

    type Names = (String, String);

    #[test]
    fn long_parts_have_long_lengths() {
        for len in [0, 1, 127, 128, 129, 16_383, 16_384, 70_000] {
            let name = "n".repeat(len);
            let mut bytes = Vec::new();
            Names::encode((&name, "last"), &mut bytes).unwrap();
            let in_front = bytes.len() - len - "last".len();
            assert_eq!(
                in_front,
                [1, 2, 3][usize::from(len > 127) + usize::from(len > 16_383)]
            );
            assert_eq!(Names::view(&bytes).unwrap(), (&*name, "last"));
        }
    }

    #[test]
    fn lengths_that_no_tuple_has_are_errors() {
        for bytes in [
            &[][..],
            &[0x80],
            &[2, b'a'],
            &[0xff; 20],
            &[
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, b'a',
            ],
        ] {
            assert!(Names::view(bytes).is_err(), "{bytes:?}");
            assert!(Names::decode(bytes).is_err(), "{bytes:?}");
        }
    }
}
