//! What of the server's tests asks something of the engine: for those engines on which the whole of
//! it would be repetition. A test that includes this brings the engine, as for the whole.

// Not every way to talk is used here.
#[allow(dead_code)]
mod client;
mod cpserver;
#[allow(dead_code)]
pub mod fixture;
mod hash;
mod large;
mod meta;
mod redis;
mod stop;
mod text;
