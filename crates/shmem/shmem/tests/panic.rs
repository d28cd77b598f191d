//! Tests that a server that panics ends its process, in whichever thread it runs: the others would wait for it for
//! ever.

use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use nuthatch_fabric::threads::{Network, ThreadsFabric};
use nuthatch_fabric::{Fabric, forward_fabric};
use nuthatch_shmem::{Options, Store};

/// A fabric on which the first PE's waits panic.
struct Failing(Arc<ThreadsFabric>);

impl Failing {
    fn below(&self) -> &ThreadsFabric {
        &self.0
    }
}

impl Fabric for Failing {
    forward_fabric!(pe pes verified allocate local direct put get put_nbi get_nbi compare_swap fetch_add);
    forward_fabric!(swap fetch set signal is_gone fence quiet barrier broadcast nanos);

    fn pause(&self, attempt: u32) {
        assert!(self.pe() > 0, "a server's fault");
        self.0.pause(attempt);
    }

    fn doze(&self, longest: Duration) {
        assert!(self.pe() > 0, "a server's fault");
        self.0.doze(longest);
    }
}

/// The variable that names the test which is to be the job itself.
const JOB: &str = "NUTHATCH_TEST_PANIC";

/// How long a job may take. Only how a failure shows depends on it.
const WAIT: Duration = Duration::from_secs(120);

fn job(servers: usize) {
    let options = Options {
        servers,
        memory: 4 << 20,
        item_size_max: 64 << 10,
        directory: 1024,
        ..Options::default()
    };
    let words = options.symmetric_words(2).unwrap();
    thread::scope(|scope| {
        for end in Network::free(2, words).ends() {
            let options = &options;
            scope.spawn(move || {
                let store = Store::open(Arc::new(Failing(end)), options).unwrap();
                match store.is_server() {
                    true => store.serve(),
                    false => while store.get(b"key").is_ok() {},
                }
            });
        }
    });
}

/// Runs the test of this name as a job of its own.
fn ended(test: &str) -> ExitStatus {
    let program = std::env::current_exe().unwrap();
    let mut child = Command::new(program)
        .args([test, "--exact"])
        .env(JOB, test)
        .spawn()
        .unwrap();
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > WAIT {
            child.kill().unwrap();
            panic!("the job hangs");
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn ends_the_process(test: &str, servers: usize) {
    match std::env::var(JOB) {
        Ok(name) if name == test => job(servers),
        _ => assert!(!ended(test).success()),
    }
}

#[test]
fn of_a_dedicated_server() {
    ends_the_process("of_a_dedicated_server", 1);
}

#[test]
fn of_a_server_beside_the_program() {
    ends_the_process("of_a_server_beside_the_program", 0);
}
