//! Who has to go when memory is short.

pub mod clock;
