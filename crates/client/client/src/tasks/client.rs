//! The client for tasks.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::Notify;

use super::connection::Connection;
use super::link::Link;
use crate::batches::batches;
use crate::calls::calls;
use crate::key::Key;
use crate::lease::{Compute, ComputeError, Leased, OnDrop, Pauses};
use crate::many::{Known, Many, Parts};
use crate::meta::{self, Answer, Command};
use crate::operation::{self, Item, Lease, Local, Operation, Outcome};
use crate::pool::Pool;
use crate::wire::Mode;
use crate::{Error, Keep, Options};

/// A client of one server or several, for tasks in tokio.
///
/// All tasks share it, by reference or by its clones. It has one connection to each server, on which the calls of all tasks travel
/// together: what tasks that are ready to run ask for goes in one write, and nobody waits for others. A future that is dropped
/// abandons its call, which may be carried out all the same.
///
/// The runtime needs time and I/O (`enable_all`). A connection belongs to the runtime in which it was made.
#[derive(Clone, Debug)]
pub struct Client {
    pool: Arc<Pool<Connection, Notify>>,
}

impl Client {
    calls!(AsyncFnOnce; async; .await);
    batches!(async; .await);

    /// A client of the servers at this address, which is as [`crate::Client::connect`] has it.
    ///
    /// Nothing is connected yet. Errors: [`Error::Address`].
    pub fn connect(address: &str) -> Result<Self, Error> {
        Self::connect_with(address, Options::default())
    }

    /// The same, with options that the address does not name.
    pub fn connect_with(address: &str, options: Options) -> Result<Self, Error> {
        let pool = Arc::new(Pool::new(address, options)?);
        Ok(Self { pool })
    }

    /// Leaves a place that was kept for a value, in a task of its own: the one that has it is being dropped.
    fn give_up(&self, key: &[u8], cas: u64) {
        let (client, key) = (self.clone(), key.to_owned());
        let delete = async move {
            let _ = client
                .run(&key, |key| operation::delete(key, Some(cas)))
                .await;
        };
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(delete);
        }
    }

    async fn pause(time: Duration) {
        tokio::time::sleep(time).await;
    }
}
