//! A client that is made when it is needed: again after a fork, because a child must not use its parent's connections, and
//! after it was closed.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use nuthatch_client::Error;

/// A client, and the process that made it.
pub(crate) struct Shared<C> {
    make: Box<dyn Fn() -> Result<C, Error> + Send + Sync>,
    current: ArcSwapOption<Made<C>>,
}

/// A client of one process.
pub(crate) struct Made<C> {
    process: u32,
    pub client: C,
}

impl<C> Shared<C> {
    /// Makes the first one, so that what is wrong with the address is told now.
    pub fn new(make: impl Fn() -> Result<C, Error> + Send + Sync + 'static) -> Result<Self, Error> {
        let shared = Self {
            make: Box::new(make),
            current: ArcSwapOption::empty(),
        };
        shared.get().map(|_| shared)
    }

    /// This process' client.
    pub fn get(&self) -> Result<Arc<Made<C>>, Error> {
        let process = std::process::id();
        if let Some(made) = &*self.current.load()
            && made.process == process
        {
            return Ok(Arc::clone(made));
        }
        let client = (self.make)()?;
        let made = Arc::new(Made { process, client });
        // If two threads are here, one's client has no connection yet and goes after its call.
        abandon(self.current.swap(Some(Arc::clone(&made))));
        Ok(made)
    }

    /// Ends the connections, when the calls that use them are through. The next call makes new ones.
    pub fn close(&self) {
        abandon(self.current.swap(None));
    }
}

/// Lets a client go; but never one of the parent process, whose connections must not be ended, and whose locks may be held.
fn abandon<C>(made: Option<Arc<Made<C>>>) {
    if let Some(made) = made
        && made.process != std::process::id()
    {
        std::mem::forget(made);
    }
}

impl<C> Drop for Shared<C> {
    fn drop(&mut self) {
        self.close();
    }
}
