//! A server as a process: its flags and its file, the checks of both, start, signals and end.
//!
//! Two programs are made of it, and differ in their engines. `nuthatch` (`src/bin/nuthatch`) has the [default
//! one](cuckoo). `nuthatch-lab serve` has all, with the switches that papers need. Each declares the flags for its
//! engines as an [`EngineFlags`](engine::EngineFlags); every other flag is declared once for both, as one of the server's
//! [settings](nuthatch_server::settings).
//!
//! Data flows one way: flags and file ([`serve::Serve`], [`flags`], [`file`](mod@file)) to what was typed, that to checked settings
//! (`settings`), and those to a server (`serve`).

#![deny(unsafe_code)]

mod check;
pub mod cuckoo;
mod daemon;
pub mod engine;
mod extended;
pub mod file;
pub mod flags;
mod greeting;
mod listeners;
mod missing;
mod pid_file;
mod process;
pub mod reach;
mod reload;
pub mod serve;
mod settings;
mod sys;
