//! The bound on the end of a server that has failed.
//!
//! A thread that panicked inside of an engine may have left a lock held. Then other threads, and the save of the items,
//! may wait for it for ever. So from the first panic on, a watchdog waits for signs of progress, and ends the process
//! when none comes. It is spawned with the server: a process that has failed may be unable to spawn a thread.
//!
//! ```text
//!  thread that panics --sign--+
//!                             v
//!  join: save --sign, sign--> watchdog --no sign for `limit`--> exit
//! ```

use std::io;
use std::process;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// The exit code of a process that could not save: that of any other failure is 1.
const STUCK: i32 = 3;

/// Tells the watchdog of a failure, and then of progress. When all copies are dropped, the watchdog ends.
#[derive(Clone)]
pub(crate) struct Signs(SyncSender<()>);

impl Signs {
    /// Sends a sign of a failure, or of progress after one. It neither waits nor allocates.
    pub(crate) fn send(&self) {
        // One that has not been taken yet is as good.
        let _ = self.0.try_send(());
    }
}

/// Spawns the watchdog of a server: it ends the process, with a message and [`STUCK`], when a server that has failed
/// makes no progress for `limit`. A save makes progress with every few items, and the workers stop within a second; but
/// a disk may need long for what was written.
pub(crate) fn spawn(limit: Duration) -> io::Result<Signs> {
    spawn_with(limit, move || {
        tracing::error!(
            "the server has failed, and its end has made no progress for {} s: the process ends without (or with only \
             some of) the files of -e and --save; those of before are as they were",
            limit.as_secs()
        );
        // A log that is written by another thread has this long for the message.
        thread::sleep(Duration::from_secs(1));
        process::exit(STUCK);
    })
}

fn spawn_with(limit: Duration, end: impl FnOnce() + Send + 'static) -> io::Result<Signs> {
    let (signs, received) = sync_channel(1);
    let named = thread::Builder::new().name("watchdog".to_owned());
    named.spawn(move || {
        if is_stuck(&received, limit) {
            end();
        }
    })?;
    Ok(Signs(signs))
}

/// True if there was a sign, and then none for so long. False if nobody is left to give one.
fn is_stuck(signs: &Receiver<()>, limit: Duration) -> bool {
    if signs.recv().is_err() {
        return false;
    }
    loop {
        match signs.recv_timeout(limit) {
            Ok(()) => {}
            Err(RecvTimeoutError::Timeout) => return true,
            Err(RecvTimeoutError::Disconnected) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn a_failure_without_progress_ends_the_process_and_nothing_else_does() {
        let short = Duration::from_millis(50);
        let (end, ended) = channel();
        let signs = spawn_with(short, move || end.send("stuck").unwrap()).unwrap();
        assert!(ended.recv_timeout(4 * short).is_err(), "nothing has failed");
        signs.send();
        assert_eq!(ended.recv_timeout(Duration::from_secs(60)), Ok("stuck"));

        let (end, ended) = channel();
        let long = Duration::from_secs(600);
        let signs = spawn_with(long, move || end.send("stuck").unwrap()).unwrap();
        signs.send();
        signs.clone().send();
        drop(signs);
        // The watchdog ended, for it dropped its end.
        assert!(ended.recv_timeout(Duration::from_secs(60)).is_err());
    }
}
