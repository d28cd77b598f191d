//! The directory beside a naive one, and known answers.

use std::collections::BTreeSet;

use super::*;

fn paper() -> Machine {
    Machine::named("paper").unwrap()
}

/// A machine whose caches are large enough for a few lines, and small enough to be looked through.
fn roomy() -> Machine {
    let mut machine = paper();
    machine.port.is = 0;
    (
        machine.l1_bytes.is,
        machine.l2_bytes.is,
        machine.l3_bytes.is,
    ) = (4 << 10, 8 << 10, 64 << 10);
    machine
}

/// A line as one would describe it: its version, and which core knows which version.
#[derive(Default)]
struct Naive {
    version: u64,
    /// Cores with a valid copy.
    copies: BTreeSet<usize>,
    writer: Option<usize>,
    transfers: usize,
}

impl Naive {
    fn access(&mut self, core: usize, how: Use) {
        let sole = self.writer == Some(core);
        let has = self.copies.contains(&core);
        match how {
            Use::Load if has => {}
            Use::Load => {
                self.transfers += 1;
                // The first of all readers may write without asking.
                self.writer = self.copies.is_empty().then_some(core);
                self.copies.insert(core);
            }
            Use::Store | Use::Atomic => {
                self.transfers += usize::from(!sole);
                self.version += 1;
                self.copies = [core].into();
                self.writer = Some(core);
            }
        }
    }
}

#[test]
fn one_writer_or_many_readers_and_as_many_transfers_as_a_naive_directory_counts() {
    let machine = roomy();
    let mut memory = Memory::new(&machine, 8);
    let mut naive: Vec<Naive> = (0..8).map(|_| Naive::default()).collect();
    let mut random = nuthatch_base::hash::random::Xorshift::new(7);
    let mut transfers = 0;
    let mut now = 0;
    for step in 0..20_000 {
        let word = random.next();
        let (core, line) = ((word >> 8) as usize % 80, (word >> 32) as u32 % 8);
        let how = [Use::Load, Use::Load, Use::Store, Use::Atomic][word as usize % 4];
        let outcome = memory.access(core, line, how, now);
        now += outcome.ticks;
        transfers += usize::from(outcome.from >= From::Socket);
        naive[line as usize].access(core, how);
        let (state, wanted) = (&memory.lines[line as usize], &naive[line as usize]);
        let copies: BTreeSet<usize> = (0..80)
            .filter(|core| state.holders >> core & 1 == 1)
            .collect();
        assert_eq!(copies, wanted.copies);
        let owner = (state.owner != NOBODY).then_some(usize::from(state.owner));
        assert_eq!(owner, wanted.writer);
        if step % 100 == 0 {
            memory.check(line);
        }
    }
    assert_eq!(
        transfers,
        naive.iter().map(|line| line.transfers).sum::<usize>()
    );
    assert!(naive.iter().all(|line| line.version > 0));
}

#[test]
fn small_caches_forget_and_stay_consistent() {
    let mut machine = paper();
    machine.sockets.is = 2;
    machine.cores.is = 3;
    machine.ways.is = 2;
    (
        machine.l1_bytes.is,
        machine.l2_bytes.is,
        machine.l3_bytes.is,
    ) = (128, 512, 1024);
    let mut memory = Memory::new(&machine, 200);
    let mut random = nuthatch_base::hash::random::Xorshift::new(3);
    for step in 0..20_000 {
        let word = random.next();
        let how = [Use::Load, Use::Store][word as usize % 2];
        memory.access(
            (word >> 8) as usize % 6,
            (word >> 32) as u32 % 200,
            how,
            step * 10_000,
        );
        if step % 100 == 0 {
            (0..200).for_each(|line| memory.check(line));
        }
    }
}

#[test]
fn latencies_are_those_of_the_machine() {
    let machine = paper();
    let mut memory = Memory::new(&machine, 64);
    let mut at = 0;
    let mut cycles = |core, line, how| {
        at += 1_000_000;
        let outcome = memory.access(core, line, how, at);
        (outcome.from, outcome.ticks / TICKS)
    };
    // Line 0 is at home in socket 0, line 7 in socket 7: two hops from there.
    assert_eq!(cycles(0, 0, Use::Load), (From::Memory, 355));
    assert_eq!(cycles(0, 7, Use::Load), (From::Memory, 601));
    assert_eq!(cycles(0, 0, Use::Store), (From::First, 0));
    assert_eq!(cycles(1, 0, Use::Load), (From::Socket, 109));
    assert_eq!(cycles(10, 0, Use::Load), (From::Other, 223));
    assert_eq!(cycles(10, 0, Use::Store), (From::Other, 318));
    assert_eq!(cycles(70, 0, Use::Atomic), (From::Other, 430));
    assert_eq!(cycles(70, 0, Use::Atomic), (From::First, 20));
    assert_eq!(cycles(71, 0, Use::Atomic), (From::Socket, 120));
}

#[test]
fn a_line_on_its_way_is_waited_for() {
    let machine = paper();
    let mut memory = Memory::new(&machine, 8);
    memory.access(0, 0, Use::Store, 0);
    let now = 1_000_000;
    let first = memory.access(10, 0, Use::Store, now);
    assert_eq!((first.ticks / TICKS, first.waited), (320, 0));
    let second = memory.access(0, 0, Use::Store, now);
    assert_eq!((second.ticks / TICKS, second.waited / TICKS), (640, 320));
}
