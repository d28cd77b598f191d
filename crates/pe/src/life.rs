//! A PE's life: it opens the store with the others, serves, and ends with them.
//!
//! The end, in this order:
//! 1. Any PE that is told to stop tells all ([`Ending`]).
//! 2. Gateways answer what they have read and close. Servers go on: gateways may be waiting for them.
//! 3. All PEs meet at a barrier: nobody asks any more.
//! 4. Servers stop.

use std::io::{self, Write};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use nuthatch_cluster::{Member, Serving};
use nuthatch_engine::AnyEngine;
use nuthatch_fabric::Fabric;
use nuthatch_program::Failure;
use nuthatch_server::{Address, Server, ServerHandle, Shutdown};

use crate::ending::Ending;
use crate::options::Plan;

/// How often a PE that is no server looks after the fabric: one that makes no calls lets nobody get on over TCP, not
/// even what a server tells all clients.
const BEAT: Duration = Duration::from_millis(1);

/// How often a server's main thread looks whether the job is to end. Its serving thread calls the fabric all the time.
const LOOK: Duration = Duration::from_millis(20);

/// Ends the whole job at once: for what the others would wait for in vain.
pub type Abort = Arc<dyn Fn() + Send + Sync>;

/// Lives a PE's life until `stop` is requested on any PE, or something fails on one.
///
/// All PEs get the same settings. Returns when all are done, so that the fabric can end.
pub fn run<F: Fabric>(
    fabric: &Arc<F>,
    plan: Plan,
    stop: &Shutdown,
    abort: &Abort,
) -> Result<(), Failure> {
    let ending = Ending::new(Arc::clone(fabric)).map_err(|none| Failure::run(none.to_string()))?;
    let member = Member::open(Arc::clone(fabric), &plan.store)
        .map_err(|error| Failure::run(error.to_string()))?;
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
    let lived = match plan.gateway {
        Some(config) => gateway(&**fabric, &member, config)
            .and_then(|gateway| live(fabric, &ending, stop, gateway)),
        None => {
            wait(&**fabric, &ending, || stop.is_requested(), LOOK);
            Ok(())
        }
    };
    // For those who have not heard of it: every way to here brings the end.
    ending.request();
    fabric.barrier();
    drop(serving);
    lived
}

/// Starts the gateway of this PE.
fn gateway<F: Fabric>(
    fabric: &F,
    member: &Member<F>,
    config: nuthatch_server::Config,
) -> Result<ServerHandle, Failure> {
    let gateway = Server::start(config, AnyEngine::new(member.engine()))
        .map_err(|error| Failure::run(error.to_string()))?;
    let places: Vec<_> = gateway
        .addresses()
        .iter()
        .map(|(at, _)| place(at))
        .collect();
    say(fabric.pe(), &format!("gateway at {}", places.join(" ")));
    Ok(gateway)
}

/// Waits for the end, and closes the gateway.
fn live<F: Fabric>(
    fabric: &Arc<F>,
    ending: &Ending<F>,
    stop: &Shutdown,
    gateway: ServerHandle,
) -> Result<(), Failure> {
    // Its own ends it too: the command `shutdown`, or a thread that failed.
    let own = gateway.stopper();
    wait(
        &**fabric,
        ending,
        || stop.is_requested() || own.is_requested(),
        BEAT,
    );
    gateway.shutdown();
    gateway
        .join()
        .map_err(|error| Failure::run(error.to_string()))
}

/// Waits until this PE is told to stop, or another was.
fn wait<F: Fabric>(fabric: &F, ending: &Ending<F>, is_stopped: impl Fn() -> bool, pause: Duration) {
    while !ending.is_requested() {
        if is_stopped() {
            ending.request();
        }
        fabric.pause(0);
        thread::sleep(pause);
    }
}

/// What a job is, in a line.
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

fn place(address: &Address) -> String {
    match address {
        Address::Tcp(address) | Address::Udp(address) => address.to_string(),
        Address::Unix(path) => path.display().to_string(),
    }
}

/// Tells a person what this PE does. Not `eprintln!`, which panics if nobody listens.
fn say(pe: usize, words: &str) {
    // There is no other place for the message. In one call, so that lines of PEs do not mix.
    let _ = io::stderr().write_all(format!("nuthatch-pe {pe}: {words}\n").as_bytes());
}
