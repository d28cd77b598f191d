//! The distributed store as a library for OpenSHMEM programs: their PEs open it together and share a cache.
//!
//! With the feature `openshmem` there is [`fabric`]`::openshmem::OpenShmem`, which starts OpenSHMEM (`open`) or joins a
//! program that starts it itself (`prepare` before that, then `join`). `examples/cache.rs` is a whole program. Without
//! the feature PEs are threads, as in a test:
//!
//! ```
//! use std::thread;
//! use nuthatch_shmem::fabric::threads::Network;
//! use nuthatch_shmem::{Options, Store};
//!
//! let options = Options { memory: 4 << 20, item_size_max: 64 << 10, ..Options::default() };
//! let words = options.symmetric_words(2).unwrap();
//! thread::scope(|scope| {
//!     for fabric in Network::free(2, words).ends() {
//!         let options = &options;
//!         scope.spawn(move || {
//!             let store = Store::open(fabric, options).unwrap();
//!             store.set(b"key", b"value", None).unwrap();
//!             assert_eq!(store.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
//!             store.close();
//!         });
//!     }
//! });
//! ```

mod answers;
mod options;
mod store;

pub use nuthatch_cluster::{ConfigError, Difference};
pub use nuthatch_fabric as fabric;
pub use options::Options;
pub use store::{Error, Statistics, Store, Swapped};
