//! An in-memory cache from byte strings to byte strings: many threads, one hard memory limit, reads without locks.
//!
//! * [Quick start](#quick-start)
//! * [Typed keys and values](#typed-keys-and-values)
//! * [Reading](#reading)
//! * [Lifetimes](#lifetimes)
//! * [Memory and eviction](#memory-and-eviction)
//! * [Conditional stores and counters](#conditional-stores-and-counters)
//! * [Single flight](#single-flight)
//! * [Listeners](#listeners)
//! * [Batches](#batches)
//! * [Threads and tasks](#threads-and-tasks)
//! * [Errors](#errors)
//! * [Coming from moka, quick_cache or foyer](#coming-from-moka-quick_cache-or-foyer)
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
//! # Typed keys and values
//!
//! A [`TypedCache`] is the same with keys and values of types: numbers, strings, byte strings, tuples and options of them,
//! with the feature `serde` whatever serde knows, and types that implement [`Encode`](typed::Encode) and
//! [`Decode`](typed::Decode). A get makes a new value of the bytes; [`TypedCache::get_with`] lends what can be read in them.
//!
//! ```
//! use nuthatch::TypedCache;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let users: TypedCache<u64, String> = TypedCache::new(64 << 20)?;
//! users.insert(1, "Ada")?;
//! assert_eq!(users.get(1)?, Some("Ada".to_owned()));
//! assert_eq!(users.get_with(1, |name: &str| name.len())?, Some(3));
//! # Ok(())
//! # }
//! ```
//!
//! It is not named `Cache<K, V>`, as in moka and quick_cache: [`Cache`] is the cache of bytes, and calls like [`Cache::new`]
//! could not say which of both they mean.
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
//! A cache has a [time to live](Builder::time_to_live) (how long an item lives after it was stored) and a [time to
//! idle](Builder::time_to_idle) (how long after it was last used), or neither. Each store can set another time to live
//! by a [`Lifetime`]; a [`Duration`](std::time::Duration) converts to one. Only [`Cache::insert`] takes no lifetime: it
//! is the short form of [`Cache::insert_for`] with [`Lifetime::Default`], which nearly all stores use.
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
//! An item may live a sixteenth of a second longer, and an idle item may live a sixteenth of its time to idle longer, so
//! that a use seldom has to write. Without a time to idle a use writes one bit at most. An expired item is never
//! returned. Its memory is freed when a store needs the room, or by [maintenance](Builder::maintenance_thread).
//!
//! # Memory and eviction
//!
//! The [memory limit](Builder::memory_limit) bounds all that grows with the data. Address space for it is reserved when
//! the cache is made; memory is taken as it is needed, and is given back when [the limit](Cache::set_memory_limit) is
//! lowered or the cache dropped. An item takes its key, its value, 16 bytes of header and about 8 bytes of the index,
//! rounded up to 8 bytes. [`Builder::item_size_max`] sets the size of the largest item.
//!
//! When memory is full, a store evicts new items that were not used for a while after they were stored, and other items
//! that were not used lately. (The policy is S3-FIFO's: two queues and ghosts, for items of any size.) With
//! [`evict(false)`](Builder::evict) the store is refused instead.
//!
//! [`Cache::stats`] returns how many items are stored, how many were evicted, and how many reads hit
//! ([`Stats::hit_ratio`]).
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
//! let read = || std::fs::read("Cargo.toml");
//! let manifest = cache.try_get_or_insert_with("manifest", Lifetime::Default, read)?;
//! assert_eq!(cache.get("manifest"), Some(manifest));
//! # Ok(())
//! # }
//! ```
//!
//! A computation that calls single flight for its own key gets [`Error::Recursion`] instead of waiting for itself. If
//! the key is removed while its value is computed, the value is stored nevertheless.
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
//! A get of a key that is in none of the processor's caches waits for memory several times. [`Cache::get_many`] and
//! [`Cache::get_many_with`] overlap these waits of many keys. That pays from a handful of keys on, in caches of more
//! than some MiB. About 32 keys overlap as many waits as a processor can.
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
//! # Coming from moka, quick_cache or foyer
//!
//! | there | here |
//! |---|---|
//! | `Cache<K, V>` with any types | [`TypedCache<K, V>`](TypedCache), with types that have bytes |
//! | `max_capacity`, `capacity` and a weigher | [`Builder::memory_limit`], in bytes of all that grows with the data. At least 1 MiB, so 0 is refused; so is more than the address space, as `usize::MAX` ([`BuildError`]) |
//! | moka's `get_with(key, init)`, quick_cache's `get_or_insert_with`, foyer's `get_or_fetch` | [`Cache::get_or_insert_with`]; here [`Cache::get_with`] lends the value that is there |
//! | `try_get_with`, which shares an error as an `Arc` | [`Cache::try_get_or_insert_with`]: an error goes to the caller that computed, and the next one computes |
//! | `future::Cache`, `get_or_insert_async`, foyer's `get_or_fetch` | `get_or_insert_async` and `try_get_or_insert_async`, with the feature `async` |
//! | `get`, which clones a value or an entry | [`Cache::get`], which copies it |
//! | `entry(key).and_compute_with` | [`Cache::get_item`] and [`Cache::compare_and_swap`] |
//! | `Expiry`, `expire_after` | a [`Lifetime`] for each store |
//! | `invalidate`, `remove`, `clear`, `invalidate_all` | [`Cache::invalidate`], [`Cache::remove`], [`Cache::invalidate_all`] |
//! | `eviction_listener` (moka's is told of replaced and removed values too), `Lifecycle`, `EventListener` | [`Builder::removal_listener`] |
//! | `entry_count`, `weighted_size`, `hits`, `misses` | [`Cache::entry_count`], [`Cache::weighted_size`], [`Stats`] |
//! | `run_pending_tasks` | nothing: what was stored counts at once. [`Cache::maintain`] frees what has expired |
//!
//! # What it does not do
//!
//! * It holds bytes, not Rust values: what you store is copied in, and what you read is copied out (or lent). A
//!   [`TypedCache`] encodes and decodes them.
//! * A key has 1 to 250 bytes ([`KEY_LEN_MAX`]): of a longer one, as a URL may be, take a hash.
//! * It keeps nothing on disk, and nothing after the process.
//! * Eviction goes by uses and bytes: it takes no weights of yours, and does not know what a value costs to compute.
//! * There is no order of keys and no search but by key.
//! * It is for little-endian machines of 64 bits (x86-64, aarch64). Elsewhere it does not compile, and says so. It needs
//!   Rust 1.89.
//! * It is at home on Linux. On macOS, FreeBSD and Windows it works without huge pages, and memory that a lower limit frees
//!   goes back late: on macOS and FreeBSD when the system wants it, on Windows with the cache. Windows counts the whole
//!   limit as committed from the beginning, although it takes memory only for what is used.
//!
//! # Features
//!
//! * `async`: single flight for tasks. No dependency.
//! * `bytes`: `get_bytes`, by the crate `bytes`.
//! * `serde`: `typed::Serde<T>`, keys and values that serde knows, in the bytes of the crate `postcard`.
//! * `metrics`: `Stats::publish` gives what a cache counts to the recorder of the crate `metrics`, when it is called.
//! * `tracing`: for the subscriber of the crate `tracing`, with the target `nuthatch`. A computation of single flight is a span
//!   (`compute`, DEBUG) with an event at its end that has `elapsed_us`; a refused store is an event (DEBUG, and WARN for a
//!   computed value, of which nobody else learns it). Keys and values are not told, only how long they are.

#![deny(missing_debug_implementations)]

mod builder;
mod cache;
mod error;
mod flight;
mod lifetime;
mod listener;
#[cfg(feature = "metrics")]
mod metrics;
mod stats;
mod trace;
pub mod typed;

pub use {
    builder::Builder,
    cache::{Cache, CasOutcome, Item, Iter},
    error::{BuildError, Error, LoadError},
    lifetime::Lifetime,
    listener::{RemovalCause, Removed},
    nuthatch_engine::LimitError,
    nuthatch_engine::request::KEY_LEN_MAX,
    stats::Stats,
    typed::{TypedCache, TypedError},
};

#[cfg(feature = "metrics")]
pub use metrics::describe_metrics;

/// The README's examples are run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
