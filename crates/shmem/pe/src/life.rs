//! A PE's life: it opens the store with the others, serves, and ends with them.
//!
//! The end, in this order:
//! 1. A PE that is told to stop tells all PEs ([`Ending`]).
//! 2. Gateways answer what they have read and close. Servers go on: gateways may be waiting for them.
//! 3. All PEs meet at a barrier: no PE sends requests any more.
//! 4. Servers stop.
//!
//! All of it is bounded ([`Bound`]): if a PE does not come, because it stands still or is cut off, the job ends with an
//! error instead of never.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_cluster::{Cluster, ConfigError, Member, Serving};
use nuthatch_engine::AnyEngine;
use nuthatch_fabric::Fabric;
use nuthatch_program::Failure;
use nuthatch_server::{Server, ServerHandle, Shutdown, greeting};

use crate::ending::Ending;
use crate::options::Plan;
use crate::pulse::{Event, Pulse};

/// How often a PE that is no server calls the fabric. Over TCP a PE that makes no calls lets nothing arrive, not even
/// the control words of a server.
const BEAT: Duration = Duration::from_millis(1);

/// How often a server's main thread checks whether the job is to end. Its serving thread calls the fabric all the time.
const LOOK: Duration = Duration::from_millis(20);

/// How long the end may take.
const END: Duration = Duration::from_secs(60);

/// Ends the whole job at once, when the other PEs would wait in vain.
pub type Abort = Arc<dyn Fn() + Send + Sync>;

/// Words of symmetric memory that a job takes beside its store.
pub const fn own_words<F: Fabric>(pes: usize) -> usize {
    Ending::<F>::WORDS + Pulse::<F>::words(pes)
}

/// Ends the job at once if this lives for too long.
pub struct Bound(#[allow(dead_code)] Sender<()>);

impl Bound {
    /// Begins the bound now.
    pub fn start(pe: usize, abort: &Abort) -> Self {
        Self::of(END, pe, abort)
    }

    fn of(most: Duration, pe: usize, abort: &Abort) -> Self {
        let (bound, over) = channel::<()>();
        let abort = Arc::clone(abort);
        let watch = move || {
            if over.recv_timeout(most) == Err(RecvTimeoutError::Timeout) {
                say(
                    pe,
                    &format!("the job has not ended in {most:?}, and is aborted"),
                );
                abort();
            }
        };
        // If no thread can be started, the end is not bounded; in practice one can.
        let _ = thread::Builder::new().name("bound".to_owned()).spawn(watch);
        Self(bound)
    }
}

/// Lives a PE's life until `stop` is requested on any PE, or something fails on one.
///
/// All PEs get the same settings; if one has others, all fail. Returns when all are done, so that the fabric can end.
pub fn run<F: Fabric>(
    fabric: &Arc<F>,
    plan: Plan,
    stop: &Shutdown,
    abort: &Abort,
) -> Result<(), Failure> {
    let ending = Ending::new(Arc::clone(fabric)).map_err(|none| Failure::run(none.to_string()))?;
    let member = Member::open(Arc::clone(fabric), &plan.store).map_err(refused)?;
    // Before anything serves: an allocation waits for all PEs, and a server that polls would keep UCX's lock from it.
    let pulse = Pulse::new(Arc::clone(fabric), plan.store.servers)
        .map_err(|none| Failure::run(none.to_string()))?;
    let serving = member.is_server().then(|| {
        let abort = Arc::clone(abort);
        Serving::start(&member, move || abort())
    });
    if fabric.pe() == 0 {
        say(0, &introduce(&plan, fabric.pes()));
        if let Some(advice) = plan.store.advice() {
            say(0, &format!("warning: {advice}"));
        }
    }
    let engine = plan.gateway.is_some().then(|| member.engine());
    let mut waiting = Waiting {
        fabric: &**fabric,
        ending: &ending,
        pulse,
        abort,
        engine: engine.clone(),
    };
    let lived = match plan.gateway.zip(engine) {
        Some((config, engine)) => gateway(&**fabric, engine, config).and_then(|gateway| {
            // It is set only here.
            let _ = plan.controls.set(gateway.controls());
            live(&mut waiting, stop, gateway)
        }),
        None => {
            drop(waiting.until(|| stop.is_requested(), LOOK));
            Ok(())
        }
    };
    let _bound = Bound::start(fabric.pe(), abort);
    // For PEs that have not heard of it: every way to this point ends the job.
    ending.request();
    fabric.barrier();
    drop(serving);
    lived
}

/// Why a store does not open. Flags that are invalid, or not the same on all PEs, are invalid in the next job, too.
fn refused(error: ConfigError) -> Failure {
    match error {
        ConfigError::Setting(_) | ConfigError::Unequal { .. } => Failure::usage(error),
        ConfigError::Memory(_) => Failure::run(error.to_string()),
    }
}

/// Starts the gateway of this PE.
fn gateway<F: Fabric>(
    fabric: &F,
    engine: Arc<Cluster<F>>,
    config: nuthatch_server::Config,
) -> Result<ServerHandle, Failure> {
    let has_passwords = config.auth_file.is_some();
    let gateway = Server::start(config, AnyEngine::new(engine))
        .map_err(|error| Failure::run(error.to_string()))?;
    say(
        fabric.pe(),
        &format!("gateway at {}", greeting::addresses(&gateway)),
    );
    for open in greeting::open_to_all(&gateway, has_passwords) {
        tracing::warn!("{open}");
    }
    Ok(gateway)
}

/// Waits for the end, and closes the gateway.
fn live<F: Fabric>(
    waiting: &mut Waiting<'_, F>,
    stop: &Shutdown,
    gateway: ServerHandle,
) -> Result<(), Failure> {
    // The gateway's own stop ends the wait, too: the command `shutdown`, or a thread that failed.
    let own = gateway.stopper();
    let _bound = waiting.until(|| stop.is_requested() || own.is_requested(), BEAT);
    gateway.shutdown();
    gateway
        .join()
        .map_err(|error| Failure::run(error.to_string()))
}

/// The wait of a PE's main thread.
struct Waiting<'a, F: Fabric> {
    fabric: &'a F,
    ending: &'a Ending<F>,
    pulse: Pulse<F>,
    abort: &'a Abort,
    /// The engine, which reports silent PEs to the gateway's clients.
    engine: Option<Arc<Cluster<F>>>,
}

impl<F: Fabric> Waiting<'_, F> {
    /// Waits until this PE or another is told to stop, and tells all PEs. From then on the end is bounded.
    fn until(&mut self, is_stopped: impl Fn() -> bool, pause: Duration) -> Bound {
        while !self.ending.is_requested() && !is_stopped() {
            for event in self.pulse.beat(Instant::now()) {
                self.note(event);
            }
            self.fabric.pause(0);
            thread::sleep(pause);
        }
        let bound = Bound::start(self.fabric.pe(), self.abort);
        self.ending.request();
        bound
    }

    fn note(&self, event: Event) {
        let own = self.fabric.pe();
        if let (Some(engine), Event::Silent(pe) | Event::Heard(pe, _)) = (&self.engine, event) {
            engine.note_silence(pe, matches!(event, Event::Silent(_)));
        }
        match event {
            Event::Silent(pe) => say(
                own,
                &format!(
                    "PE {pe} has not been heard for a while: it stands still, or is cut off, and what needs it waits"
                ),
            ),
            Event::Heard(pe, silent) => {
                say(
                    own,
                    &format!("PE {pe} is heard again, after {} s", silent.as_secs()),
                );
            }
            Event::Lost(pe) => {
                say(
                    own,
                    &format!("PE {pe} is not heard any more: the job is aborted"),
                );
                (self.abort)();
            }
        }
    }
}

/// The description of a job in one line.
fn introduce(plan: &Plan, pes: usize) -> String {
    let servers = plan.store.servers;
    let (gateways, both) = match pes - servers {
        0 => (pes, ", each PE both"),
        gateways => (gateways, ""),
    };
    format!(
        "servers: {servers} of {} MiB, gateways: {gateways}{both}",
        plan.store.memory >> 20
    )
}

/// Prints what this PE does, in one piece, so that lines of PEs do not mix.
fn say(pe: usize, words: &str) {
    nuthatch_log::say(format!("nuthatch-pe {pe}: {words}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_takes_too_long_is_aborted() {
        let (aborted, has_aborted) = channel();
        let abort: Abort = Arc::new(move || {
            // The receiver may have been dropped.
            let _ = aborted.send(());
        });
        drop(Bound::of(END, 0, &abort));
        let bound = Bound::of(Duration::ZERO, 0, &abort);
        assert_eq!(has_aborted.recv(), Ok(()));
        drop((bound, abort));
        // The other bound did not abort: all senders are dropped, and nothing more came.
        assert!(has_aborted.recv().is_err());
    }
}
