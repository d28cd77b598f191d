//! A server's thread, and what is done if it panics: no PE may wait for a server that has ended.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nuthatch_fabric::Fabric;

use crate::store::Member;

/// Calls a closure if the thread that holds it panics.
pub struct OnPanic<D: FnOnce()>(Option<D>);

impl<D: FnOnce()> OnPanic<D> {
    /// Calls `deed` on a panic.
    pub fn new(deed: D) -> Self {
        Self(Some(deed))
    }
}

impl<D: FnOnce()> Drop for OnPanic<D> {
    fn drop(&mut self) {
        if let Some(deed) = self.0.take_if(|_| thread::panicking()) {
            deed();
        }
    }
}

/// The thread of a server, which ends when this drops.
pub struct Serving {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Serving {
    /// Starts the server of this PE. Panics if this PE does not serve.
    pub fn start<F: Fabric>(member: &Member<F>, on_panic: impl FnOnce() + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (mut server, stopped) = (member.server(), Arc::clone(&stop));
        let serve = move || {
            let _on_panic = OnPanic::new(on_panic);
            server.run(&stopped);
        };
        let thread = thread::Builder::new()
            .name("server".to_owned())
            .spawn(serve);
        Self {
            stop,
            thread: Some(thread.expect("there is a thread more")),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Relaxed: the flag is all there is to see.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A server that panicked has reported it.
            let _ = thread.join();
        }
    }
}
