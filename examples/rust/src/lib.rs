//! What the three programs share: a store that is slow, and a cache in front of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nuthatch::typed::Serde;
use nuthatch::{BuildError, Cache, TypedCache, TypedError};
use serde::{Deserialize, Serialize};

/// How long an answer of the store is good for.
const FRESH: Duration = Duration::from_secs(60);

/// What the store has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Product {
    /// Its number.
    pub id: u64,
    /// What it is called.
    pub name: String,
    /// Its price in cents.
    pub cents: u32,
}

/// The store has no such product, which is an answer, too. A program's own errors of its store go here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NotFound;

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("there is no such product")
    }
}

impl std::error::Error for NotFound {}

/// Products, as a data base has them: each look-up takes a while.
#[derive(Debug, Default)]
struct Store {
    lookups: AtomicU64,
}

impl Store {
    async fn product(&self, id: u64) -> Result<Product, NotFound> {
        self.lookups.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(100)).await;
        if id == 0 {
            return Err(NotFound);
        }
        let name = format!("product {id}");
        Ok(Product {
            id,
            name,
            cents: 995,
        })
    }
}

/// The products, cached. Clones share one cache and one store, so each handler has its own.
#[derive(Clone, Debug)]
pub struct Products {
    cache: TypedCache<u64, Serde<Product>>,
    store: Arc<Store>,
}

impl Products {
    /// At most 64 MiB of them are cached.
    pub fn new() -> Result<Self, BuildError> {
        let cache = Cache::builder()
            .memory_limit(64 << 20)
            .maintenance_thread(true)
            .build_typed()?;
        let store = Arc::default();
        Ok(Self { cache, store })
    }

    /// A product. Of all tasks that ask for one that is not cached, one asks the store, and the others wait for its
    /// answer.
    pub async fn get(&self, id: u64) -> Result<Product, TypedError<NotFound>> {
        let load = self.store.product(id);
        self.cache.try_get_or_insert_async(id, FRESH, load).await
    }

    /// How often the store was asked.
    pub fn lookups(&self) -> u64 {
        self.store.lookups.load(Ordering::Relaxed)
    }
}
