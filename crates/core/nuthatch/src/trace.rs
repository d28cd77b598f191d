//! Spans and events for the subscriber of the crate `tracing`, with the feature of this name. Without it there is nothing
//! here to pay for.
//!
//! Keys and values are not told, because they may be secret: only how long they are.

use crate::error::Error;

/// Tells of an operation that was refused.
#[inline]
pub(crate) fn refused(error: Error, key_len: usize) {
    #[cfg(feature = "tracing")]
    tracing::debug!(target: "nuthatch", %error, key_len, "refused");
    #[cfg(not(feature = "tracing"))]
    let _untold = (error, key_len);
}

/// Tells of a computed value that was refused: its caller gets it, and does not learn that the next one computes it again.
#[inline]
pub(crate) fn not_kept(error: Error, key_len: usize, value_len: usize) {
    #[cfg(feature = "tracing")]
    tracing::warn!(target: "nuthatch", %error, key_len, value_len, "a computed value was not stored");
    #[cfg(not(feature = "tracing"))]
    let _untold = (error, key_len, value_len);
}

/// A computation: a span from its begin to its end, with an event at its end that says how long it took.
pub(crate) struct Computation {
    #[cfg(feature = "tracing")]
    span: tracing::Span,
    #[cfg(feature = "tracing")]
    began: std::time::Instant,
}

impl Computation {
    /// It begins.
    #[inline]
    pub fn begin(key_len: usize) -> Self {
        #[cfg(not(feature = "tracing"))]
        let _untold = key_len;
        Self {
            #[cfg(feature = "tracing")]
            span: tracing::debug_span!(target: "nuthatch", "compute", key_len),
            #[cfg(feature = "tracing")]
            began: std::time::Instant::now(),
        }
    }

    /// Runs it, or a part of it, within its span.
    #[inline]
    pub fn run<T>(&self, part: impl FnOnce() -> T) -> T {
        #[cfg(feature = "tracing")]
        return self.span.in_scope(part);
        #[cfg(not(feature = "tracing"))]
        part()
    }

    /// It has ended, with a value of so many bytes or with an error.
    #[inline]
    pub fn end(self, value_len: Option<usize>) {
        #[cfg(feature = "tracing")]
        self.span.in_scope(|| {
            let elapsed_us = self.began.elapsed().as_micros() as u64;
            match value_len {
                Some(value_len) => {
                    tracing::debug!(target: "nuthatch", elapsed_us, value_len, "computed");
                }
                None => tracing::debug!(target: "nuthatch", elapsed_us, "the computation failed"),
            }
        });
        #[cfg(not(feature = "tracing"))]
        let _untold = value_len;
    }
}
