//! Tests of what every engine promises. They are one program, because each program that builds all engines compiles all
//! of them.
#![cfg(not(loom))]

mod end_of_time;
mod engines;
mod lists;
mod reservations;
