//! Threads that work beside the calls.

use std::io;
use std::thread;

use nix::sys::signal::{SigSet, SigmaskHow};

/// Starts a thread that nobody waits for. Signals of this process are for its other threads.
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let before = SigSet::all().thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
    let spawned = thread::Builder::new().name(name.to_owned()).spawn(work);
    before.thread_set_mask()?;
    spawned.map(drop)
}
