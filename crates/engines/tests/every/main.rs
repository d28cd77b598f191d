//! What every engine promises. In one program, because each that makes all engines compiles all of them.
#![cfg(not(loom))]

mod end_of_time;
mod engines;
mod reservations;
