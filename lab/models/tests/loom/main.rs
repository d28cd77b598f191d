//! Models of the engines: every interleaving of two or three threads (up to a number of preemptions, see
//! `scripts/loom.sh`), and every value that a relaxed load may return.
//!
//! They drive the engine itself through its interface, or, where one step is the subject, the functions of its parts;
//! only sizes are smaller. Each test is named by its claim and cites the invariant of `cuckoo/lib.rs` ("cuckoo n"),
//! `mailbox.rs` ("mailbox n"), `slab/mod.rs` ("store n"), `log/mod.rs` ("log n"), `stripes.rs` ("stripes n"), and so on. A test with canary in its
//! name removes one protection and must fail: this shows that the models can fail. The writer is the thread that a
//! model starts on, and readers are spawned: `crates/core/base/tests/loom.rs` says why.
#![cfg(loom)]

mod ages;
mod anderson;
mod buckets;
mod chained;
mod engine;
mod growth;
mod hints;
mod mailbox;
mod moves;
mod partition;
mod paths;
mod pins;
mod rewrites;
mod ring;
mod runs;
mod world;
