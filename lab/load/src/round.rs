//! One round: all threads of the load on one server.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_bench::os;
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

/// How often a wait checks whether it must end early.
const LOOK: Duration = Duration::from_millis(50);

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
    /// Why it ended early, if it did.
    pub ended: Option<String>,
}

impl Load {
    fn client(&self, target: SocketAddr, conns: usize, thread: usize) -> Result<Client, String> {
        Client::connect(target, conns, self.pipeline, self.speaker(thread))
    }

    fn speaker(&self, thread: usize) -> Speaker {
        Speaker {
            items: self.items,
            protocol: self.protocol,
            store_misses: self.store_misses,
            stamp: (thread as u64) << 48,
        }
    }

    /// Stores all items.
    pub fn preload(&self, target: SocketAddr, stop: &AtomicBool) -> Result<(), String> {
        let speaker = self.speaker(0);
        let mut client = Client::connect(target, 1, PRELOAD_PIPELINE, speaker)?;
        client.drive(&mut (0..self.items.count), stop)
    }

    /// Loads a server. Rounds of the same number ask for the same. A server that stops ends the round; what was measured
    /// until then is in it.
    pub fn round(
        &self,
        target: SocketAddr,
        pid: Option<u32>,
        cores: Option<&[usize]>,
        number: usize,
        stop: &AtomicBool,
    ) -> Round {
        let mut clients = Vec::new();
        for thread in 0..self.threads {
            let conns = self.conns / self.threads + usize::from(thread < self.conns % self.threads);
            match self.client(target, conns, thread) {
                Ok(client) => clients.push(client),
                Err(error) => return Round::ended(error),
            }
        }
        let started = Instant::now();
        let from = started + self.time.mul_f64(WARM_UP).min(WARM_UP_MAX);
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
                    let course = self.course(thread, seed, started, window);
                    let failed = &failed;
                    scope.spawn(move || {
                        let part = run_part(client, course, core, stop);
                        // Relaxed: only ends a wait early.
                        failed.fetch_or(part.1.is_some(), Ordering::Relaxed);
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
                ended: None,
            };
            for thread in running {
                let (tally, ended) = thread
                    .join()
                    .unwrap_or_else(|_| (Tally::default(), Some("a thread panicked".to_owned())));
                round.tally.add(&tally);
                round.ended = round.ended.or(ended);
            }
            round.measure(&window);
            round
        })
    }

    fn course(&self, thread: usize, seed: Seed, started: Instant, window: Window) -> Measured {
        let rate = self.arrivals.map_or(0.0, |arrivals| arrivals.rate);
        let requests = rate * self.time.as_secs_f64() * (1.0 + WARM_UP);
        let run = Run {
            records: self.items.count,
            requests: requests as u64 / self.threads as u64,
            threads: self.threads,
        };
        let actions = self.items.workload.actions(run, seed, thread);
        let moments = self
            .arrivals
            .map(|arrivals| arrivals.of_thread(seed, thread, self.threads));
        Measured::new(actions, moments, started, window)
    }
}

/// Runs a thread's part. Returns why it ended early, too.
fn run_part(
    mut client: Client,
    mut course: Measured,
    core: Option<usize>,
    stop: &AtomicBool,
) -> (Tally, Option<String>) {
    let driven = core
        .map_or(Ok(()), os::pin)
        .and_then(|()| client.drive(&mut course, stop));
    course.end(Instant::now());
    (course.tally, driven.err())
}

/// CPU time of a process within a window. None: it has ended, or the window is cut off.
fn cpu_time(pid: u32, window: &Window, over: &dyn Fn() -> bool) -> Option<Duration> {
    wait_until(window.from, over);
    let before = os::cpu_time(pid).ok()?;
    wait_until(window.to, over);
    let after = os::cpu_time(pid).ok()?;
    (!over()).then(|| after.saturating_sub(before))
}

fn wait_until(moment: Instant, over: &dyn Fn() -> bool) {
    while !over() {
        let left = moment.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::sleep(left.min(LOOK));
    }
}

impl Round {
    /// A round that ended before it began.
    fn ended(why: String) -> Self {
        Self {
            tally: Tally::default(),
            time: Duration::ZERO,
            cpu: None,
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

    /// The server's CPU time for an operation, in microseconds.
    pub fn cpu_us_per_op(&self) -> Option<f64> {
        let cpu = self.cpu?.as_secs_f64() * 1e6;
        (self.tally.answered > 0).then(|| cpu / self.tally.answered as f64)
    }
}
