//! What a server without requests costs, and how long the next request to it waits.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use nuthatch_cluster::Operations;
use nuthatch_engine::{Engine, Handle, Key, Op, Request, Store};
use nuthatch_fabric::Fabric;
use serde::Serialize;

use crate::fabric::store::{Failed, NOW, Sink, config, with_store};

/// Pauses between two gets.
pub const PAUSES: [Duration; 5] = [
    Duration::ZERO,
    Duration::from_micros(200),
    Duration::from_millis(2),
    Duration::from_millis(20),
    Duration::from_millis(200),
];

/// A client that pauses before each get by a message.
#[derive(Clone, Debug, Serialize)]
pub struct Idle {
    /// The pause, in microseconds.
    pub pause_us: u64,
    /// The median get, in nanoseconds.
    pub p50_ns: u64,
    /// One get in ten takes longer.
    pub p90_ns: u64,
    /// One get in a hundred takes longer.
    pub p99_ns: u64,
    /// The server's share of a core meanwhile.
    pub server: f64,
}

/// The names of the columns.
pub const HEADING: &str = "pause us    p50 ns   p90 ns   p99 ns   server's share of a core";

impl Display for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pause_us,
            p50_ns,
            p90_ns,
            p99_ns,
            server,
        } = self;
        let share = server * 100.0;
        write!(
            f,
            "{pause_us:>8}{p50_ns:>10}{p90_ns:>9}{p99_ns:>9}{share:>12.1} %"
        )
    }
}

/// Measures a pause for two seconds, or `most` gets. Collective; the second PE has the result.
pub fn measure<F: Fabric>(
    fabric: &Arc<F>,
    pause: Duration,
    most: u64,
) -> Result<Option<Idle>, Failed> {
    let began = (Instant::now(), cpu_time());
    let found = with_store(fabric, &config(Operations::Active, 0), |engine, pe, _| {
        let mut handle = engine.handle();
        let mut sink = Sink::new();
        let mut histogram = Histogram::<u64>::new(3).expect("three digits are lawful");
        let key = Key::new(b"a key", engine.hasher());
        let mut ask = |op| handle.execute(NOW, &[Request { key, op }], &mut sink);
        ask(Op::Store(Store::set(&[7; 100])));
        let started = Instant::now();
        while pe == 1 && started.elapsed() < Duration::from_secs(2) && histogram.len() < most {
            if !pause.is_zero() {
                thread::sleep(pause);
            }
            let asked = Instant::now();
            ask(Op::Get);
            let nanos = asked.elapsed().as_nanos() as u64;
            histogram.record(nanos.max(1)).expect("the histogram grows");
        }
        Ok(histogram)
    })?;
    let share = (cpu_time() - began.1) / began.0.elapsed().as_secs_f64();
    let mut shares = [share.to_bits()];
    fabric.broadcast(0, &mut shares);
    Ok(found
        .filter(|histogram| !histogram.is_empty())
        .map(|histogram| Idle {
            pause_us: pause.as_micros() as u64,
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            server: f64::from_bits(shares[0]),
        }))
}

/// Seconds of a core that this thread has used; 0 if the kernel does not tell.
fn cpu_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|first| first.parse().ok());
    nanos.unwrap_or(0.0) / 1e9
}
