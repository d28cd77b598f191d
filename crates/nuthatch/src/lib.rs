//! An in-memory cache from byte strings to byte strings: many threads, one hard memory limit, reads without locks.
//!
//! * [Quick start](#quick-start)
//! * [Reading](#reading)
//! * [Lifetimes](#lifetimes)
//! * [Memory and eviction](#memory-and-eviction)
//! * [Conditional stores and counters](#conditional-stores-and-counters)
//! * [Single flight](#single-flight)
//! * [Listeners](#listeners)
//! * [Batches](#batches)
//! * [Threads and tasks](#threads-and-tasks)
//! * [Errors](#errors)
//! * [What it does not do](#what-it-does-not-do)
//! * [Features](#features)
//!
//! # Quick start
//!
//! ```
//! use nuthatch::Cache;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // 64 MiB for items, index and everything else.
//! let cache = Cache::new(64 << 20)?;
//! cache.insert("user:1", "Ada")?;
//! assert_eq!(cache.get("user:1"), Some(b"Ada".to_vec()));
//! assert!(cache.contains_key("user:1"));
//! assert_eq!(cache.remove("user:1"), Some(b"Ada".to_vec()));
//! # Ok(())
//! # }
//! ```
//!
//! [`Cache::builder`] sets everything else. A [`Cache`] is a handle: clones share one cache.
//!
//! # Reading
//!
//! | method | the value is |
//! |---|---|
//! | [`Cache::get`] | copied into a new `Vec<u8>` |
//! | [`Cache::get_into`] | copied into a `Vec<u8>` of yours, which is used again |
//! | [`Cache::get_with`] | lent to a closure; nothing is allocated |
//! | `Cache::get_bytes` | copied into [`bytes::Bytes`](https://docs.rs/bytes), with the feature `bytes` |
//! | [`Cache::get_item`] | copied, with its version, its age, and when it expires |
//! | [`Cache::get_many`] | copied, for many keys in one batch |
//! | [`Cache::get_many_with`] | lent to a closure, for many keys in one batch; the fastest |
//! | [`Cache::iter`] | copied, for all keys |
//!
//! # Lifetimes
//!
//! A cache has a [time to live](Builder::time_to_live) (how long an item lives after it was stored) and a
//! [time to idle](Builder::time_to_idle) (how long after it was last used), or neither. Each store can say another time
//! to live by a [`Lifetime`], for which a [`Duration`](std::time::Duration) will do. Only [`Cache::insert`] takes none:
//! it is the short form of [`Cache::insert_for`] with [`Lifetime::Default`], as nearly all stores are.
//!
//! ```
//! use std::time::Duration;
//! use nuthatch::{Cache, Lifetime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cache = Cache::builder()
//!     .time_to_live(Duration::from_secs(24 * 3600))
//!     .time_to_idle(Duration::from_secs(600))
//!     .build()?;
//! // A day, and ten minutes from its last use.
//! cache.insert("page", "<h1>")?;
//! // A minute.
//! cache.insert_for("token", "42", Duration::from_secs(60))?;
//! // Ten minutes from its last use.
//! cache.insert_for("name", "Ada", Lifetime::Unlimited)?;
//! cache.touch("token", Duration::from_secs(3600))?;
//! # Ok(())
//! # }
//! ```
//!
//! Times are exact to a sixteenth of a second, and an idle item may live a sixteenth of its time to idle longer: so a
//! use seldom has to write. Without a time to idle a use writes one bit at most. An expired item is never returned; its
//! memory comes back when its room is needed, or by [maintenance](Builder::maintenance_thread).
//!
//! # Memory and eviction
//!
//! The [memory limit](Builder::memory_limit) bounds all that grows with the data. Address space for it is reserved when
//! the cache is made; memory is taken as it is needed, and is given back when [the limit](Cache::set_memory_limit) is
//! lowered or the cache dropped. An item takes its key, its value, 16 bytes of header and about 8 of the index,
//! rounded up to 8 bytes; the largest is set by [`Builder::item_size_max`].
//!
//! When memory is full, a store evicts: new items that were not used twice, and others that were not used of late (two
//! queues and ghosts, as S3-FIFO has them, whatever sizes items have). With [`evict(false)`](Builder::evict) the store
//! is refused instead.
//!
//! [`Cache::stats`] tells what is there and what was evicted.
//!
//! # Conditional stores and counters
//!
//! Each of these is one atomic step: [`Cache::add`], [`Cache::replace`], [`Cache::append`], [`Cache::prepend`],
//! [`Cache::compare_and_swap`], [`Cache::incr`] and [`Cache::decr`].
//!
//! ```
//! use nuthatch::{Cache, Lifetime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cache = Cache::new(16 << 20)?;
//! assert!(cache.add("visits", "0", Lifetime::Default)?);
//! assert_eq!(cache.incr("visits", 5)?, Some(5));
//! assert_eq!(cache.get("visits"), Some(b"5".to_vec()));
//! # Ok(())
//! # }
//! ```
//!
//! # Single flight
//!
//! When many callers miss a key at once, [`Cache::get_or_insert_with`] lets one of them compute its value while the
//! others wait for it. They all get the value, even if it cannot be stored.
//!
//! ```
//! use nuthatch::{Cache, Lifetime};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cache = Cache::new(16 << 20)?;
//! let read = || std::fs::read("/proc/version");
//! let version = cache.try_get_or_insert_with("version", Lifetime::Default, read)?;
//! assert_eq!(cache.get("version"), Some(version));
//! # Ok(())
//! # }
//! ```
//!
//! A computation that asks for its own key gets [`Error::Recursion`] instead of waiting for itself. A value that is
//! removed while it is computed is stored nevertheless.
//!
//! # Listeners
//!
//! [`Builder::removal_listener`] is called with each value that leaves the cache, once, with the [`RemovalCause`]:
//! evicted, expired, removed or replaced. [`Builder::eviction_listener`] is called for the first two alone, and costs
//! nothing when a value is removed or replaced.
//!
//! ```
//! use std::sync::mpsc;
//! use nuthatch::{Cache, RemovalCause};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let (sender, left) = mpsc::channel();
//! let cache = Cache::builder()
//!     .removal_listener(move |removed| {
//!         let value = removed.value.map(<[u8]>::to_vec);
//!         let _ = sender.send((removed.cause, value));
//!     })
//!     .build()?;
//! cache.insert("user:1", "Ada")?;
//! cache.insert("user:1", "Grace")?;
//! cache.invalidate("user:1");
//! assert_eq!(left.try_recv(), Ok((RemovalCause::Replaced, Some(b"Ada".to_vec()))));
//! assert_eq!(left.try_recv(), Ok((RemovalCause::Explicit, Some(b"Grace".to_vec()))));
//! # Ok(())
//! # }
//! ```
//!
//! # Batches
//!
//! A get of a key that is in no cache of the processor waits for memory, several times. [`Cache::get_many`] and
//! [`Cache::get_many_with`] wait for many keys at once. That is worth it from a handful of keys on, in caches of more
//! than some MiB; about 32 keys overlap all that a processor can.
//!
//! # Threads and tasks
//!
//! Every method takes `&self` and may be called from any thread. Reads take no lock. Writers lock two of thousands of
//! stripes for a moment. Each thread that calls a cache keeps a small session with it until the cache is dropped.
//!
//! No method but single flight waits for another caller, and none does I/O, so tasks of an executor may call them all;
//! for single flight there are `get_or_insert_async` and `try_get_or_insert_async` behind the feature `async`, for any
//! executor:
#![cfg_attr(feature = "async", doc = "```")]
#![cfg_attr(not(feature = "async"), doc = "```ignore")]
//! use nuthatch::{Cache, Lifetime};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let cache = Cache::new(16 << 20)?;
//! let fetch = async { "fetched once" };
//! let value = cache.get_or_insert_async("k", Lifetime::Default, fetch).await?;
//! assert_eq!(value, b"fetched once");
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! Only what stores something can fail ([`Error`]): a key that is empty or over [`KEY_LEN_MAX`] bytes, an item over
//! its limit, no memory in a cache that may not evict. A failed operation changes nothing. A get of a key that no store
//! would take is a miss. A cache that cannot be made says why by a [`BuildError`].
//!
//! # What it does not do
//!
//! * It holds bytes, not Rust values: what you store is copied in, and what you read is copied out (or lent).
//! * It keeps nothing on disk, and nothing after the process.
//! * Eviction goes by uses and bytes: it takes no weights of yours, and does not know what a value costs to compute.
//! * There is no order of keys and no search but by key.
//! * It is for Linux on little-endian machines of 64 bits (x86-64, aarch64). Elsewhere it does not compile, and says so.
//!   It needs Rust 1.88.
//!
//! # Features
//!
//! * `async`: single flight for tasks. No dependency.
//! * `bytes`: `get_bytes`, by the crate `bytes`.

#![deny(missing_debug_implementations)]

mod builder;
mod cache;
mod error;
mod flight;
mod lifetime;
mod listener;
mod stats;

pub use {
    builder::Builder,
    cache::{Cache, CasOutcome, Item, Iter},
    error::{BuildError, Error, LoadError},
    lifetime::Lifetime,
    listener::{RemovalCause, Removed},
    nuthatch_engine::LimitError,
    nuthatch_engine::request::KEY_LEN_MAX,
    stats::Stats,
};

/// The README's examples are run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
