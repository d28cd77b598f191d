//! A mapped array whose length is known when it is compiled, so that a masked index needs no further check.

use std::io;
use std::ops::Deref;
use std::sync::Arc;

use super::shared::SharedView;
use super::{AnyBytes, Mapped, Part, Source, Zeroed};

/// `N` zeroed values that are never moved.
pub struct MappedArray<T, const N: usize>(Mapped<T>);

impl<T: Zeroed, const N: usize> MappedArray<T, N> {
    /// Zeroed values, with memory from `source`. Errors: the system gives none.
    pub fn reserve_in(source: &Source) -> io::Result<Self> {
        Mapped::reserve_to_grow_in(source, N).map(Self)
    }

    /// Values that another process made, to load from: see [`Mapped::view`]. `None` if they are not all mapped there.
    pub fn view(of: &Arc<SharedView>, part: Part) -> Option<Self>
    where
        T: AnyBytes,
    {
        let mapped = Mapped::view(of, part)?;
        (mapped.len() == N).then_some(Self(mapped))
    }

    /// Where they lie in the file of their source.
    pub fn part(&self) -> Part {
        self.0.part()
    }
}

impl<T: Zeroed, const N: usize> Deref for MappedArray<T, N> {
    type Target = [T; N];

    #[inline(always)]
    fn deref(&self) -> &[T; N] {
        // SAFETY: both ways to make one see to it that there are `N` values.
        unsafe { self.0.first_chunk().unwrap_unchecked() }
    }
}
