//! The part of the server's tests that depends on the engine, for engines on which all tests would be repetition. A
//! test that includes this brings the engine, as for `mod.rs`.

// Not every way to talk is used here.
#[allow(dead_code)]
mod client;
mod cpserver;
mod databases;
#[allow(dead_code)]
pub mod fixture;
mod hash;
mod large;
mod long_keys;
mod meta;
mod redis;
mod stop;
mod text;
mod uploads;
