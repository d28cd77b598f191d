//! Signals as ordinary events, in a thread of their own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{io, thread};

use libc::{c_int, sighandler_t};
use nuthatch_state::shutdown::Shutdown;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGXCPU};
use signal_hook::iterator::Signals as Incoming;

use crate::sys::signals as sys;

/// Signals that request the stop, beside those of one system alone. SIGUSR1 is memcached's graceful stop. SIGQUIT and
/// SIGXCPU would end the process without its items being written: by a key of the terminal or an image's STOPSIGNAL, and
/// a second before the hard limit of processor time. (So would SIGPWR on Linux.)
const STOPPING: &[c_int] = &[SIGTERM, SIGINT, SIGUSR1, SIGQUIT, SIGXCPU];

/// All signals that request the stop.
fn stopping() -> impl Iterator<Item = &'static c_int> {
    STOPPING.iter().chain(sys::STOPPING)
}

/// Signals that would end or stop the process, and that mean nothing to a server:
///
/// * SIGXFSZ: a file has reached the limit of size. The write fails with EFBIG, as on a full disk.
/// * SIGALRM, SIGVTALRM, SIGPROF: a timer that the process before an exec has set runs on.
/// * SIGIO (SIGPOLL): a descriptor that the process was given reports events.
/// * SIGTTOU and SIGTTIN: a server in the background of a terminal writes its log there (`stty tostop`).
///
/// SIGPIPE is not among them: Rust's runtime ignores it before `main`, so that a write to a socket whose client has
/// closed is an error like any other.
const MEANINGLESS: &[c_int] = &[
    libc::SIGXFSZ,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGTTOU,
    libc::SIGTTIN,
];

/// Ignores the signals that mean nothing to a server, those of real time among them: a stray one must not cost all items.
/// For a program that is a server and nothing else, before it writes its first file, and before a library that it starts
/// catches signals of its own.
pub fn ignore_meaningless() {
    for signal in MEANINGLESS.iter().copied().chain(sys::meaningless()) {
        ignore(signal);
    }
}

/// A handler would not do in place of SIG_IGN: a write to a terminal is repeated for as long as SIGTTOU is handled.
fn ignore(signal: c_int) {
    const IGNORED: sighandler_t = libc::SIG_IGN;
    // SAFETY: SIG_IGN runs no code of ours, and the call touches no memory. It fails for a number that is no signal.
    unsafe { libc::signal(signal, IGNORED) };
}

/// The signals of a server. From the moment they are caught none of them ends the process by itself:
///
/// * SIGTERM, SIGINT, SIGUSR1, SIGQUIT, SIGXCPU and SIGPWR stop the server;
/// * SIGHUP asks the server to read its settings again and to reopen its log;
/// * SIGUSR2 asks for a copy of all items.
pub struct Signals(Incoming);

impl Signals {
    /// Catches the signals. Signals that arrive before [`Signals::serve`] wait for it, so that a server that gets a
    /// signal to stop while it starts leaves no socket behind.
    pub fn catch() -> io::Result<Self> {
        Incoming::new(stopping().chain(&[SIGUSR2, SIGHUP])).map(Self)
    }

    /// Starts a thread that calls `hang_up` at each SIGHUP and `save` at each SIGUSR2, and requests the stop at any of the
    /// others: also after one of the calls has panicked, for a server that no signal ends is killed.
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
                    // Unwind safe: what a call has not done when it panics, the next does, and the stop is a flag.
                    let heard = catch_unwind(AssertUnwindSafe(|| match signal {
                        SIGHUP => hang_up(),
                        SIGUSR2 => save(),
                        _ => tracing::info!(signal, "stopping"),
                    }));
                    if heard.is_err() {
                        tracing::error!(signal, "a fault of the server; please report it");
                    }
                    if stopping().any(|stopping| *stopping == signal) {
                        shutdown.request();
                    }
                }
            })?;
        Ok(())
    }
}

/// Requests the stop when the process gets a signal that stops a server, and ignores SIGHUP and SIGUSR2: for programs
/// that have nothing to read again and nothing to save. See [`Signals`].
pub fn on_signals(shutdown: Shutdown) -> io::Result<()> {
    Signals::catch()?.serve(
        shutdown,
        || tracing::info!("SIGHUP: nothing to read again"),
        || tracing::info!("SIGUSR2: nothing to save"),
    )
}
