//! One round: all threads of the load on one server.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_bench::os;
use nuthatch_bench::server::wait_until;
use nuthatch_workload::ycsb::Run;
use nuthatch_workload::{Arrivals, Seed};

use crate::client::{Client, Speaker};
use crate::course::Measured;
use crate::items::Items;
use crate::tally::{Tally, Window};
use crate::wire::Protocol;

/// The share of a round's time that is spent before it, uncounted, and the most of it.
const WARM_UP: f64 = 0.1;
const WARM_UP_MAX: Duration = Duration::from_secs(1);

/// Sets at once while items are stored beforehand.
const PRELOAD_PIPELINE: usize = 64;

/// A load, checked.
#[derive(Clone, Debug)]
pub struct Load {
    /// Its items.
    pub items: Items,
    /// The server's protocol.
    pub protocol: Protocol,
    /// None: a closed load.
    pub arrivals: Option<Arrivals>,
    /// Connections.
    pub conns: usize,
    /// Requests on a connection at once, at most.
    pub pipeline: usize,
    /// Threads.
    pub threads: usize,
    /// How long a round counts.
    pub time: Duration,
    /// What a get misses is stored.
    pub store_misses: bool,
}

/// What a round found.
#[derive(Clone, Debug)]
pub struct Round {
    /// Counts and times.
    pub tally: Tally,
    /// How long it counted.
    pub time: Duration,
    /// The server's CPU time meanwhile, user and system.
    pub cpu: Option<Duration>,
    /// The number behind all items that there are then: a next round inserts from there on.
    pub items: u64,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

impl Load {
    fn speaker(&self, thread: usize, count: u64) -> Speaker {
        let items = Items {
            count,
            ..self.items
        };
        Speaker {
            items,
            protocol: self.protocol,
            store_misses: self.store_misses,
            stamp: (thread as u64) << 48,
        }
    }

    /// Stores so many items.
    pub fn preload(&self, target: SocketAddr, items: u64, stop: &AtomicBool) -> Result<(), String> {
        let speaker = self.speaker(0, items);
        let mut client = Client::connect(target, 1, PRELOAD_PIPELINE, speaker, stop)?;
        client.drive(&mut (0..items), stop)
    }

    /// The clients of all threads, which know of so many items.
    fn clients(
        &self,
        target: SocketAddr,
        items: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<Client>, String> {
        let client = |thread| {
            let conns = self.conns / self.threads + usize::from(thread < self.conns % self.threads);
            let speaker = self.speaker(thread, items);
            Client::connect(target, conns, self.pipeline, speaker, stop)
        };
        (0..self.threads).map(client).collect()
    }

    /// The time before a round counts: with bursts whole periods, so that it counts from the begin of one.
    fn warm_up(&self) -> Duration {
        let least = self.time.mul_f64(WARM_UP).min(WARM_UP_MAX);
        match self.arrivals.and_then(|arrivals| arrivals.period()) {
            None => least,
            Some(period) => period.mul_f64(least.div_duration_f64(period).ceil()),
        }
    }

    /// Loads a server that has so many items. Rounds of the same number ask for the same, if as many are there. A server that
    /// stops ends the round; what was measured until then is in it.
    pub fn round(
        &self,
        target: SocketAddr,
        pid: Option<u32>,
        cores: Option<&[usize]>,
        number: usize,
        items: u64,
        stop: &AtomicBool,
    ) -> Round {
        let clients = match self.clients(target, items, stop) {
            Ok(clients) => clients,
            Err(error) => return Round::ended(error, items),
        };
        let started = Instant::now();
        let from = started + self.warm_up();
        let window = Window {
            from,
            to: from + self.time,
        };
        let seed = Seed(1 + number as u64);
        let failed = AtomicBool::new(false);
        thread::scope(|scope| {
            let running: Vec<_> = clients
                .into_iter()
                .enumerate()
                .map(|(thread, client)| {
                    let core = cores.map(|cores| cores[thread % cores.len()]);
                    let course = self.course(thread, seed, items, started, window);
                    let failed = &failed;
                    scope.spawn(move || {
                        let part = run_part(client, course, core, stop);
                        // Relaxed: only ends a wait early.
                        failed.fetch_or(part.ended.is_some(), Ordering::Relaxed);
                        part
                    })
                })
                .collect();
            let over = || failed.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
            let cpu = pid.and_then(|pid| cpu_time(pid, &window, &over));
            let mut round = Round {
                tally: Tally::default(),
                time: self.time,
                cpu,
                items,
                ended: None,
            };
            for thread in running {
                let part = thread.join().unwrap_or_else(|_| Part::panicked());
                round.tally.add(&part.tally);
                round.items = round.items.max(part.items);
                round.ended = round.ended.or(part.ended);
            }
            round.measure(&window);
            round
        })
    }

    fn course(
        &self,
        thread: usize,
        seed: Seed,
        items: u64,
        started: Instant,
        window: Window,
    ) -> Measured {
        let rate = self.arrivals.map_or(0.0, |arrivals| arrivals.rate);
        let requests = rate * self.time.as_secs_f64() * (1.0 + WARM_UP);
        let run = Run {
            records: items,
            requests: requests as u64 / self.threads as u64,
            threads: self.threads,
        };
        let actions = self.items.workload.actions(run, seed, thread);
        let actions = match self.store_misses {
            true => actions.storing_misses(),
            false => actions,
        };
        let moments = self
            .arrivals
            .map(|arrivals| arrivals.of_thread(seed, thread, self.threads));
        Measured::new(actions, moments, started, window)
    }
}

/// What a thread did in a round.
struct Part {
    tally: Tally,
    /// The number behind all items.
    items: u64,
    /// Why it ended early, if it did.
    ended: Option<String>,
}

impl Part {
    fn panicked() -> Self {
        Self {
            tally: Tally::default(),
            items: 0,
            ended: Some("a thread panicked".to_owned()),
        }
    }
}

/// Runs a thread's part.
fn run_part(
    mut client: Client,
    mut course: Measured,
    core: Option<usize>,
    stop: &AtomicBool,
) -> Part {
    let driven = core
        .map_or(Ok(()), os::pin)
        .and_then(|()| client.drive(&mut course, stop));
    let now = Instant::now();
    for (kind, due) in client.owed() {
        course.unanswered(kind, due, now);
    }
    course.end(now);
    Part {
        items: course.items(),
        tally: course.tally,
        ended: driven.err(),
    }
}

/// CPU time of a process within a window. None: it has ended, or the window is cut off.
fn cpu_time(pid: u32, window: &Window, over: &dyn Fn() -> bool) -> Option<Duration> {
    wait_until(window.from, over);
    let before = os::cpu_time(pid).ok()?;
    wait_until(window.to, over);
    let after = os::cpu_time(pid).ok()?;
    (!over()).then(|| after.saturating_sub(before))
}

impl Round {
    /// A round that ended before it began.
    pub fn ended(why: String, items: u64) -> Self {
        Self {
            tally: Tally::default(),
            time: Duration::ZERO,
            cpu: None,
            items,
            ended: Some(why),
        }
    }

    /// A round that ended early counted until its last answer.
    fn measure(&mut self, window: &Window) {
        if self.ended.is_some() {
            let until = self.tally.last.unwrap_or(window.from).min(window.to);
            self.time = until.saturating_duration_since(window.from);
        }
    }

    /// Answered operations a second.
    pub fn ops_per_s(&self) -> f64 {
        self.tally.answered as f64 / self.time.as_secs_f64().max(1e-9)
    }

    /// The server's CPU time for an operation, in microseconds. That for refills is in it.
    pub fn cpu_us_per_op(&self) -> Option<f64> {
        let cpu = self.cpu?.as_secs_f64() * 1e6;
        (self.tally.answered > 0).then(|| cpu / self.tally.answered as f64)
    }
}
