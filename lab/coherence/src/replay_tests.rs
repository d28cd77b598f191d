//! Known answers.

use super::*;
use crate::recording::tests::{piece, recording, step};

/// A machine whose instructions take a cycle each, and whose stores and loads cost what the table says.
fn machine() -> Machine {
    let mut machine = Machine::named("paper").unwrap();
    machine.window.is = 0;
    machine
}

fn load(threads: usize) -> Load {
    Load {
        threads,
        alone: true,
        copies: 1,
        warm_up: 100,
        measured: 1000,
    }
}

fn cycles(counted: &Counted) -> f64 {
    counted.ticks as f64 / TICKS as f64 / counted.operations as f64 * counted.clients as f64
}

#[test]
fn instructions_alone_scale_with_cores_but_not_with_threads_of_one() {
    let lines = [Scope::Thread];
    let alone = recording(
        &lines,
        vec![piece(vec![step(1000, Action::Read, 0)], vec![])],
    );
    for threads in [1, 20, 80] {
        let long = Load {
            warm_up: 20_000,
            measured: 20_000,
            ..load(threads)
        };
        let counted = replay(&alone, &machine(), long).unwrap();
        assert!(
            (cycles(&counted) - 1000.0).abs() < 20.0,
            "{}",
            cycles(&counted)
        );
    }
    let both = Load {
        alone: false,
        ..load(2)
    };
    let counted = replay(&alone, &machine(), both).unwrap();
    assert!(
        (cycles(&counted) - 2000.0).abs() < 40.0,
        "{}",
        cycles(&counted)
    );
}

#[test]
fn a_lock_lets_one_after_the_other_pass() {
    let lines = [Scope::One];
    let steps = vec![step(500, Action::Lock, 0), step(1000, Action::Unlock, 0)];
    let one_lock = recording(&lines, vec![piece(steps, vec![])]);
    // One thread: two locked instructions on a line that it owns, and what it does under the lock.
    let counted = replay(&one_lock, &machine(), load(1)).unwrap();
    assert!(
        (cycles(&counted) - 1540.0).abs() < 1.0,
        "{}",
        cycles(&counted)
    );
    assert_eq!(counted.lock_misses, 0);
    // More threads of a socket: each operation costs what is done under the lock, and the line's way there and back.
    let two = replay(&one_lock, &machine(), load(2)).unwrap();
    let each = two.ticks as f64 / TICKS as f64 / two.operations as f64;
    assert!((1000.0 + 20.0..=1000.0 + 250.0).contains(&each), "{each}");
    assert!(two.lock_misses > 900 && two.lock_wait > 0);
    // All who wait ask for the line when it is released.
    let ten = replay(&one_lock, &machine(), load(10)).unwrap();
    let each_of_ten = ten.ticks as f64 / TICKS as f64 / ten.operations as f64;
    assert!(each_of_ten > each, "{each_of_ten} after {each}");
}

/// A client sends a line and waits for its answer, which takes the server `work` instructions.
fn messages(work: u32) -> Recording {
    let lines = [Scope::Client, Scope::Client];
    let client = vec![
        step(10, Action::Publish(0), 0),
        step(0, Action::Await(0), 1),
        step(0, Action::Read, 1),
    ];
    let item = vec![step(0, Action::Read, 0), step(work, Action::Write, 1)];
    recording(&lines, vec![piece(client, vec![item])])
}

#[test]
fn a_message_costs_its_lines() {
    let mut machine = machine();
    machine.ipc.is = 1000.0;
    let counted = replay(&messages(0), &machine, load(2)).unwrap();
    // The client gets the right to write to its line (shared by the server: 116), the server loads it (109) and gets the
    // right to write to the answer's (116), the client loads that (109).
    assert!(
        (cycles(&counted) - 450.0).abs() < 5.0,
        "{}",
        cycles(&counted)
    );
    let [client, server] = &counted.sources;
    let of = Class::Client as usize;
    assert_eq!((client[of].socket, server[of].socket), (2000, 2000));
    assert_eq!(counted.items, 1000);
}

#[test]
fn a_server_that_is_busy_is_waited_for() {
    let counted = replay(&messages(10_000), &machine(), load(2)).unwrap();
    let share = counted.served as f64 / counted.ticks as f64;
    assert!(share > 0.95 && counted.awaited > counted.served, "{share}");
}

#[test]
fn what_was_in_use_before_the_start_is_not_got_from_memory() {
    let lines = [Scope::Table, Scope::Thread];
    let steps = vec![step(0, Action::Read, 0), step(0, Action::Read, 1)];
    let both = recording(&lines, vec![piece(steps, vec![])]);
    let from_start = |copies| Load {
        copies,
        warm_up: 0,
        measured: 5000,
        ..load(2)
    };
    let counted = replay(&both, &machine(), from_start(1)).unwrap();
    let all = counted.sources[0][Class::Client as usize];
    assert_eq!((all.memory, all.other), (0, 0), "{all:?}");
    // More than the third level holds.
    let many = machine().l3_bytes.is as u32 / 64 * 2;
    let counted = replay(&both, &machine(), from_start(many as usize)).unwrap();
    let all = counted.sources[0][Class::Client as usize];
    let share = all.memory as f64 / counted.operations as f64;
    assert!((0.4..0.6).contains(&share), "{share}");
}

#[test]
fn the_same_again_gives_the_same() {
    let recording = messages(100);
    let first = replay(&recording, &machine(), load(2)).unwrap();
    assert_eq!(first, replay(&recording, &machine(), load(2)).unwrap());
}

#[test]
fn what_cannot_be_is_refused() {
    let machine = machine();
    assert!(
        replay(&messages(1), &machine, load(1))
            .unwrap_err()
            .contains("threads")
    );
    assert!(
        replay(&messages(1), &machine, load(82))
            .unwrap_err()
            .contains("threads")
    );
    assert!(
        replay(&messages(1), &machine, load(4))
            .unwrap_err()
            .contains("partitions")
    );
    let lines = [Scope::One];
    let stuck = recording(&lines, vec![piece(vec![step(0, Action::Lock, 0)], vec![])]);
    assert!(
        replay(&stuck, &machine, load(1))
            .unwrap_err()
            .contains("wait")
    );
}
