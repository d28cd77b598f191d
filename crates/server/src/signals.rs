//! Signals as ordinary events, in a thread of their own.

use std::{io, thread};

use nuthatch_context::shutdown::Shutdown;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals as Incoming;

/// The signals of a server. From the moment they are caught none of them ends the process by itself:
///
/// * SIGTERM, SIGINT and SIGUSR1 (memcached's graceful stop) stop the server;
/// * SIGHUP asks the server to read its settings again and to reopen its log;
/// * SIGUSR2 asks for a copy of all items.
///
/// SIGPIPE is not among them: Rust's runtime ignores it before `main`, so that a write to a socket whose client has
/// closed is an error like any other.
pub struct Signals(Incoming);

impl Signals {
    /// Catches the signals. Signals that arrive before [`Signals::serve`] wait for it, so that a server that gets a
    /// signal to stop while it starts leaves no socket behind.
    pub fn catch() -> io::Result<Self> {
        Incoming::new([SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP]).map(Self)
    }

    /// Starts a thread that calls `hang_up` at each SIGHUP and `save` at each SIGUSR2, and requests the stop at any of the
    /// others.
    pub fn serve(
        self,
        shutdown: Shutdown,
        mut hang_up: impl FnMut() + Send + 'static,
        mut save: impl FnMut() + Send + 'static,
    ) -> io::Result<()> {
        let Self(mut incoming) = self;
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || {
                for signal in incoming.forever() {
                    match signal {
                        SIGHUP => hang_up(),
                        SIGUSR2 => save(),
                        _ => {
                            tracing::info!(signal, "stopping");
                            shutdown.request();
                        }
                    }
                }
            })?;
        Ok(())
    }
}

/// Requests the stop when the process gets SIGTERM, SIGINT or SIGUSR1, and ignores SIGHUP and SIGUSR2: for programs
/// that have nothing to read again and nothing to save. See [`Signals`].
pub fn on_signals(shutdown: Shutdown) -> io::Result<()> {
    Signals::catch()?.serve(
        shutdown,
        || tracing::info!("SIGHUP: nothing to read again"),
        || tracing::info!("SIGUSR2: nothing to save"),
    )
}
