//! Rounds of checks on stores, one store after the other: the last PE makes the stores and sends requests, the first
//! PEs serve, and any others only take part.
//!
//! A round begins with a command, which is broadcast, and ends when its driver sets a word of each PE.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nuthatch_check::conformance::{self, Setup};
use nuthatch_cluster::{Config, Member, Operations};
use nuthatch_engine::AnyEngine;
use nuthatch_fabric::{Address, Fabric, NoMemory};

use crate::Arena;

/// Sessions of a PE: this many threads send requests at the same time.
const SESSIONS: usize = 4;

/// Words of the fabric that rounds take besides the stores'.
pub const OWN: usize = 8;

/// How often a PE checks whether the round has ended. Meanwhile others may need its calls of the fabric.
const LOOK: Duration = Duration::from_millis(1);

/// A PE of a job that checks stores.
pub struct Rounds<F: Fabric> {
    arena: Arc<Arena<F>>,
    servers: usize,
    operations: Operations,
    /// How many rounds have ended, set by the driver.
    ended: Address,
}

/// The driver's command at the beginning of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Command {
    Store(Setup),
    End,
}

impl Command {
    fn words(self) -> [u64; 4] {
        match self {
            Self::End => [0; 4],
            Self::Store(setup) => [
                1,
                setup.memory_limit as u64,
                setup.item_size_max as u64,
                setup.evicts.into(),
            ],
        }
    }

    fn of(words: [u64; 4]) -> Self {
        match words {
            [0, ..] => Self::End,
            [_, memory_limit, item_size_max, evicts] => Self::Store(Setup {
                memory_limit: memory_limit as usize,
                item_size_max: item_size_max as usize,
                evicts: evicts != 0,
            }),
        }
    }
}

/// The store of a setup.
fn config(setup: Setup, servers: usize, operations: Operations) -> Config {
    Config {
        servers,
        memory: setup.memory_limit / servers,
        memory_max: setup.memory_limit / servers,
        item_size_max: setup.item_size_max,
        evicts: setup.evicts,
        sessions: SESSIONS,
        // Few, so that buckets overflow.
        buckets: Some(1 << 12),
        operations,
        // So that nothing of the previous store passes for this one's.
        seed: RandomState::new().hash_one(setup.memory_limit),
        ..Config::default()
    }
}

/// Words of the fabric for the largest store of any check.
pub fn words(servers: usize, pes: usize) -> usize {
    let cases = conformance::cases();
    let setups = cases.iter().map(|case| case.setup).chain([Setup::AMPLE]);
    let words = setups.map(|setup| {
        let config = config(setup, servers, Operations::Chosen);
        let words = config.symmetric_words(pes);
        words.expect("the checks' stores can be")
    });
    OWN + words.max().unwrap_or(0)
}

impl<F: Fabric> Rounds<F> {
    /// Collective. At least one PE does not serve.
    pub fn new(fabric: Arc<F>, servers: usize, operations: Operations) -> Result<Self, NoMemory> {
        assert!(servers < fabric.pes(), "somebody must ask");
        let ended = fabric.allocate(OWN)?;
        let words = words(servers, fabric.pes()) - OWN;
        let arena = Arc::new(Arena::new(fabric, words)?);
        Ok(Self {
            arena,
            servers,
            operations,
            ended,
        })
    }

    /// True for the PE that is to [`drive`](Self::drive). The others [`follow`](Self::follow).
    pub fn is_driver(&self) -> bool {
        self.arena.pe() == self.driver()
    }

    fn driver(&self) -> usize {
        self.arena.pes() - 1
    }

    /// Opens the store of a round, as all PEs do.
    fn open(&self, setup: Setup) -> Member<Arena<F>> {
        self.arena.reset();
        let config = config(setup, self.servers, self.operations);
        Member::open(Arc::clone(&self.arena), &config).expect("the arena has room for it")
    }

    fn command(&self, command: Command) -> Command {
        let mut words = command.words();
        self.arena.broadcast(self.driver(), &mut words);
        Command::of(words)
    }

    /// Runs checks on stores that it makes. A store is used until the next one is made.
    pub fn drive(&self, checks: impl FnOnce(&dyn Fn(Setup) -> Arc<AnyEngine>)) {
        let rounds = std::cell::Cell::new(0);
        let end_round = || {
            if rounds.get() > 0 {
                for pe in 0..self.arena.pes() {
                    let _ = self.arena.set(pe, self.ended, rounds.get());
                }
                self.arena.barrier();
            }
        };
        checks(&|setup| {
            end_round();
            rounds.set(rounds.get() + 1);
            self.command(Command::Store(setup));
            AnyEngine::new(self.open(setup).engine())
        });
        end_round();
        self.command(Command::End);
    }

    /// Takes part in all rounds.
    pub fn follow(&self) {
        let mut rounds = 0;
        while let Command::Store(setup) = self.command(Command::End) {
            rounds += 1;
            let member = self.open(setup);
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                if member.is_server() {
                    let (mut server, stop) = (member.server(), &stop);
                    scope.spawn(move || server.run(stop));
                }
                self.wait(rounds);
                // No PE sends requests any more.
                self.arena.barrier();
                // Relaxed: the flag is all there is to see.
                stop.store(true, Ordering::Relaxed);
            });
        }
    }

    fn wait(&self, rounds: u64) {
        let ended = &self.arena.local(self.ended, 1)[0];
        // Acquire: the driver's requests lie before.
        while ended.load(Ordering::Acquire) < rounds {
            self.arena.pause(0);
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuthatch_fabric::threads::Network;

    #[test]
    fn stores_follow_each_other() {
        let (servers, pes) = (2, 4);
        let ends = Network::free(pes, words(servers, pes) + 64).ends();
        thread::scope(|scope| {
            for end in ends {
                scope.spawn(move || {
                    let rounds = Rounds::new(end, servers, Operations::Chosen).unwrap();
                    match rounds.is_driver() {
                        true => rounds.drive(|make| conformance::run(&["delta"], make)),
                        false => rounds.follow(),
                    }
                });
            }
        });
    }
}
