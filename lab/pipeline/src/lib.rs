//! A packet pipeline of real stages, in which flow caches are measured, and the commands that run it.
//!
//! ```text
//! capture -> packet -> key -+-> microflow -> megaflow -> classifier -> action      (pipeline)
//! generate ----------- key -+       |                        |
//!                              any flow cache           a rule file
//! ```
//!
//! * [`capture`] reads pcap and pcapng files, [`packet`] parses a frame's headers, [`generate`] makes artificial flows;
//!   [`source`] returns the packets of either in bursts.
//! * [`rules`] is the format of rule files, [`classifier`] finds the rule for a packet and the bits that the decision
//!   depends on, [`megaflow`] caches the decision for all packets that it holds for.
//! * [`microflow`] is the first cache: any of [`design`]. [`hopscotch`] is the paper's other baseline.
//! * [`replay`], [`mod@bench`], [`optimum`], [`attack`] and [`theory`] are the commands of `nuthatch-lab flow`.
//!
//! Packets are drawn before the clock starts, and rounds of the designs alternate, so that a machine
//! that slows down affects them all.

#![deny(unsafe_code)]

#[cfg(feature = "commands")]
mod arguments;
#[cfg(feature = "commands")]
pub mod attack;
#[cfg(feature = "commands")]
pub mod bench;
pub mod capture;
pub mod classifier;
pub mod cycles;
#[cfg(feature = "commands")]
pub mod design;
#[cfg(feature = "commands")]
mod figures;
pub mod generate;
pub mod hopscotch;
#[cfg(feature = "commands")]
mod input;
pub mod key;
mod key_table;
pub mod megaflow;
pub mod microflow;
#[cfg(feature = "commands")]
pub mod optimum;
pub mod packet;
pub mod pipeline;
mod prefixes;
#[cfg(feature = "commands")]
pub mod replay;
#[cfg(feature = "commands")]
pub mod report;
#[cfg(feature = "commands")]
mod rival;
#[cfg(feature = "commands")]
mod rounds;
pub mod rules;
pub mod source;
#[cfg(feature = "commands")]
pub mod theory;
