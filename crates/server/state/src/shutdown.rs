//! The stop of a server: one flag. A request sets it and wakes all sleeping threads, so that they see it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mio::Waker;
use nuthatch_base::sync::mutex::{Condvar, Mutex};

/// Asks a server to stop gracefully: to accept no more, to answer the requests that it has read, and to close. Cheap to
/// clone, usable from any thread.
#[derive(Clone, Default)]
pub struct Shutdown {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    requested: AtomicBool,
    /// Threads that sleep in poll.
    wakers: Mutex<Vec<Arc<Waker>>>,
    /// Threads that sleep in [`Shutdown::sleep`] wait here; the lock guards no data.
    bed: Mutex<()>,
    alarm: Condvar,
}

impl Shutdown {
    /// Begins the stop; returns at once. Asking again changes nothing.
    pub fn request(&self) {
        // Release: pairs with is_requested(): a thread that sees the stop sees all that led to it.
        if self.inner.requested.swap(true, Ordering::Release) {
            return;
        }
        self.wake_all();
        // Under the lock, so that no thread is between its check of the flag and its sleep.
        let _bed = self.inner.bed.lock();
        self.inner.alarm.notify_all();
    }

    /// True once the stop was requested.
    pub fn is_requested(&self) -> bool {
        // Acquire: pairs with request().
        self.inner.requested.load(Ordering::Acquire)
    }

    /// Wakes all threads that sleep in poll.
    pub fn wake_all(&self) {
        for waker in self.inner.wakers.lock().iter() {
            // A poll that cannot be woken has ended already.
            let _ = waker.wake();
        }
    }

    /// Adds a waker to call when the stop is requested. Calls it at once if the stop was requested already.
    pub fn wake_also(&self, waker: Arc<Waker>) -> io::Result<()> {
        let mut wakers = self.inner.wakers.lock();
        if self.is_requested() {
            waker.wake()?;
        }
        wakers.push(waker);
        Ok(())
    }

    /// Sleeps for all of `pause`, or until `asked` is set, and clears `asked`. False if the stop was requested instead.
    pub fn sleep_until_asked(&self, pause: Duration, asked: &AtomicBool) -> bool {
        let end = Instant::now() + pause;
        let mut bed = self.inner.bed.lock();
        while !self.is_requested() {
            // Relaxed: the lock orders it.
            let is_asked = asked.swap(false, Ordering::Relaxed);
            match end.checked_duration_since(Instant::now()) {
                Some(left) if !left.is_zero() && !is_asked => {
                    bed = self.inner.alarm.wait_for(bed, left);
                }
                _ => return true,
            }
        }
        false
    }

    /// Sets `asked`, and wakes the thread that sleeps until it is set.
    pub fn ask(&self, asked: &AtomicBool) {
        // Under the lock, so that no thread is between its check of `asked` and its sleep.
        let _bed = self.inner.bed.lock();
        // Relaxed: the lock orders it.
        asked.store(true, Ordering::Relaxed);
        self.inner.alarm.notify_all();
    }

    /// Sleeps for `pause` or until the stop is requested.
    pub fn sleep(&self, pause: Duration) {
        let bed = self.inner.bed.lock();
        if !self.is_requested() {
            // An early wake-up is harmless: every caller checks again.
            let _bed = self.inner.alarm.wait_for(bed, pause);
        }
    }
}
