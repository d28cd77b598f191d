//! Replays a recording with many threads on a machine: a simulation of events.
//!
//! Each thread goes through the steps of pieces that it picks at random, or, if it is a server, of the items that
//! clients have sent to it. Instructions take time at the core, which its hardware threads share in turn; loads take the
//! time that [`Memory`] says; stores wait in a buffer while the thread goes on; a locked instruction waits for them.
//! Who finds a lock taken waits for its release, and then tries again beside all others who waited. An item is served
//! when its line has been written and the server has come to its ring; what was awaited is there when the item is done.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use nuthatch_base::hash::random::Xorshift;

use crate::machine::Machine;
use crate::memory::{From, Memory, TICKS, Use};
use crate::recording::{Action, Class, Recording, Run, Scope, Step};

/// Instructions of a look at a ring in which there is nothing: the place, the word, the comparison, the loop.
const POLL: u64 = 10;

/// Lines of messages that a ring holds, and that a server takes from one client before the next one's turn.
const RING: usize = 8;

/// Where threads are, and what they do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Hardware threads. If the engine has server threads, one half of them.
    pub threads: usize,
    /// Only one hardware thread of each core is used.
    pub alone: bool,
    /// Copies of the recorded table: the working set is so many times larger.
    pub copies: usize,
    /// Operations before the measured ones: of all threads together.
    pub warm_up: u64,
    /// Operations measured, of all threads together.
    pub measured: u64,
}

/// Accesses by where the line came from.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sources {
    /// The second level of the core's own caches.
    pub second: u64,
    /// Its socket.
    pub socket: u64,
    /// Another socket.
    pub other: u64,
    /// Memory.
    pub memory: u64,
    /// Ticks of those of the socket.
    pub near_ticks: u64,
    /// Ticks of those of other sockets and of memory.
    pub far_ticks: u64,
    /// Ticks of both that waited for a line or for links.
    pub waited: u64,
}

/// What was counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counted {
    /// By client and server, and by class.
    pub sources: [[Sources; Class::ALL.len()]; 2],
    /// Operations done.
    pub operations: u64,
    /// Items done.
    pub items: u64,
    /// Ticks that servers spent on items.
    pub served: u64,
    /// Ticks for which clients waited for items.
    pub awaited: u64,
    /// Ticks for which locks were waited for, and how often.
    pub lock_wait: u64,
    /// How often a lock was found taken.
    pub lock_misses: u64,
    /// Ticks from the beginning to the end.
    pub ticks: u64,
    /// Clients.
    pub clients: usize,
    /// Servers.
    pub servers: usize,
}

/// An item on its way.
#[derive(Clone, Copy)]
struct Sent {
    piece: usize,
    item: u32,
    copy: u32,
    round: u64,
    at: u64,
}

/// What a thread does at the moment.
#[derive(Clone, Copy)]
enum Work {
    /// A client's piece.
    Piece(usize),
    /// A server's item, which began then.
    Item {
        client: usize,
        sent: Sent,
        began: u64,
    },
    None,
}

struct Thread {
    core: usize,
    /// A client's or a server's number.
    number: usize,
    serves: bool,
    now: u64,
    work: Work,
    at: usize,
    /// The instructions before the step are done.
    computed: bool,
    copy: u32,
    /// Ends of the stores that are under way.
    stores: VecDeque<u64>,
    /// When it began to wait for a lock.
    locking: Option<u64>,
    random: Xorshift,
}

/// A client's side of its items.
struct Client {
    thread: usize,
    round: u64,
    /// For each item of its piece, when it was done.
    done: Vec<Option<u64>>,
    /// The item or the ring that it waits for, since when.
    awaits: Option<(u32, u64)>,
    room: Option<(usize, u64)>,
}

/// A server's rings: one for each client and each of its partitions.
struct Server {
    thread: usize,
    rings: Vec<usize>,
    at: usize,
    taken: usize,
    /// Since when it has found nothing.
    idle: Option<u64>,
}

#[derive(Default)]
struct LockState {
    held: bool,
    waiting: Vec<usize>,
}

/// Cycles from the start of one client to that of the next.
const STAGGER: u64 = 3000;

/// Whether a thread goes on.
enum Next {
    Goes,
    Waits,
}

/// A replay under way.
struct Replay<'r> {
    recording: &'r Recording,
    machine: &'r Machine,
    load: Load,
    memory: Memory,
    /// The first of a line's copies.
    first: Vec<u32>,
    threads: Vec<Thread>,
    clients: Vec<Client>,
    servers: Vec<Server>,
    /// By partition and client.
    rings: Vec<VecDeque<Sent>>,
    locks: HashMap<u32, LockState>,
    /// Until then a core's instructions are those of another thread.
    cores: Vec<u64>,
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    counted: Counted,
    began: Option<u64>,
    all_operations: u64,
}

/// Replays a recording. An error: the machine has too few threads, or the recording cannot go on.
pub fn replay(recording: &Recording, machine: &Machine, load: Load) -> Result<Counted, String> {
    Replay::new(recording, machine, load)?.run()
}

/// Numbers of lines in all their copies, at most.
const LINES_MAX: usize = 1 << 26;

impl<'r> Replay<'r> {
    fn new(recording: &'r Recording, machine: &'r Machine, load: Load) -> Result<Self, String> {
        let (clients, servers) = match recording.served {
            true => (load.threads / 2, load.threads / 2),
            false => (load.threads, 0),
        };
        let each = if load.alone { 1 } else { machine.threads.is };
        if clients == 0 || load.threads > machine.all_cores() * each {
            let most = machine.all_cores() * each;
            let least = 1 + usize::from(recording.served);
            return Err(format!("threads: {least} to {most} of {}", machine.name));
        }
        if servers > recording.partitions {
            return Err(format!(
                "{servers} servers share {} partitions",
                recording.partitions
            ));
        }
        let copies = |scope| match scope {
            Scope::One => 1,
            Scope::Table => load.copies,
            Scope::Client => clients,
            Scope::Thread => load.threads,
        };
        let mut first = Vec::new();
        let mut lines = 0;
        for &scope in &recording.lines {
            first.push(lines as u32);
            lines += copies(scope);
            if lines > LINES_MAX {
                return Err(format!("copies: more than {LINES_MAX} lines"));
            }
        }
        let mut replay = Self {
            memory: Memory::new(machine, lines),
            first,
            threads: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            rings: vec![
                VecDeque::new();
                if servers > 0 {
                    recording.partitions * clients
                } else {
                    0
                }
            ],
            locks: HashMap::new(),
            cores: vec![0; machine.all_cores()],
            queue: BinaryHeap::new(),
            counted: Counted {
                clients,
                servers,
                ..Counted::default()
            },
            began: None,
            all_operations: 0,
            recording,
            machine,
            load,
        };
        replay.place(clients, servers, each);
        replay.lay_lines();
        Ok(replay)
    }

    /// Puts lines where a program that has run for long has them, as far as they fit. What all threads use is in the third
    /// levels of the sockets in use, which filled the table together; what is a client's own is in its core's caches. Else
    /// each thread would get all of it from memory once, and short replays would consist of that. Who has the right to
    /// write to what is decided by the operations before the measured ones.
    fn lay_lines(&mut self) {
        let cores = self.threads.iter().map(|thread| thread.core);
        let sockets = cores.max().unwrap_or(0) / self.machine.cores.is + 1;
        for (&scope, &first) in self.recording.lines.iter().zip(&self.first) {
            let copies = match scope {
                Scope::One => 1,
                Scope::Table => self.load.copies as u32,
                Scope::Client | Scope::Thread => 0,
            };
            for line in first..first + copies {
                self.memory.lay(line as usize % sockets, line);
            }
            if copies == 0 {
                for client in &self.clients {
                    let Thread { core, number, .. } = self.threads[client.thread];
                    self.memory.lay_near(core, first + number as u32);
                }
            }
        }
    }

    /// Puts the threads on the cores. A client and a server share a core, or are on neighbouring ones.
    fn place(&mut self, clients: usize, servers: usize, each: usize) {
        for number in 0..clients {
            let core = if servers > 0 {
                2 * number / each
            } else {
                number / each
            };
            let thread = self.add_thread(core, number, false);
            self.clients.push(Client {
                thread,
                round: 0,
                done: Vec::new(),
                awaits: None,
                room: None,
            });
        }
        let partitions = self.recording.partitions;
        for number in 0..servers {
            let own =
                (0..partitions).filter(|partition| partition * servers / partitions == number);
            let rings = own.flat_map(|partition| partition * clients..(partition + 1) * clients);
            let rings = rings.collect();
            let thread = self.add_thread((2 * number + 1) / each, number, true);
            self.servers.push(Server {
                thread,
                rings,
                at: 0,
                taken: 0,
                idle: Some(0),
            });
        }
    }

    fn add_thread(&mut self, core: usize, number: usize, serves: bool) -> usize {
        let seed = self.threads.len() as u64 + 1;
        self.threads.push(Thread {
            core,
            number,
            serves,
            now: 0,
            work: Work::None,
            at: 0,
            computed: false,
            copy: 0,
            stores: VecDeque::new(),
            locking: None,
            random: Xorshift::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        });
        self.threads.len() - 1
    }

    fn run(mut self) -> Result<Counted, String> {
        for (number, client) in self.clients.iter().enumerate() {
            // They do not begin all at once.
            self.queue
                .push(Reverse((number as u64 * STAGGER * TICKS, client.thread)));
        }
        let all = self.load.warm_up + self.load.measured;
        while self.all_operations < all {
            let Some(Reverse((now, thread))) = self.queue.pop() else {
                return Err("the recording cannot go on: all threads wait".to_owned());
            };
            self.threads[thread].now = now.max(self.threads[thread].now);
            loop {
                if let Next::Waits = self.advance(thread) {
                    break;
                }
                let now = self.threads[thread].now;
                let first = self
                    .queue
                    .peek()
                    .is_none_or(|Reverse((next, _))| now <= *next);
                if !first || self.all_operations >= all {
                    self.queue.push(Reverse((now, thread)));
                    break;
                }
            }
        }
        Ok(self.counted)
    }

    /// A thread's next step.
    fn advance(&mut self, thread: usize) -> Next {
        let recording = self.recording;
        let run: &Run = match self.threads[thread].work {
            Work::Piece(piece) => &recording.pieces[piece].client,
            Work::Item { sent, .. } => &recording.pieces[sent.piece].items[sent.item as usize].run,
            Work::None => return self.find_work(thread),
        };
        let Some(&step) = run.steps.get(self.threads[thread].at) else {
            self.compute(thread, run.rest);
            self.finish(thread);
            return Next::Goes;
        };
        // Other threads come first if their time is before the step's. A step that is tried again is computed already.
        if !std::mem::replace(&mut self.threads[thread].computed, true) && step.instructions > 0 {
            self.compute(thread, step.instructions);
            return Next::Goes;
        }
        let next = match step.action {
            Action::Read => {
                let ticks = self.access(thread, step, Use::Load);
                let hidden = self.machine.window.is * TICKS;
                self.threads[thread].now += ticks.saturating_sub(hidden);
                Next::Goes
            }
            Action::Write => {
                self.store(thread, step);
                Next::Goes
            }
            Action::Lock => self.lock(thread, step),
            Action::Unlock => self.unlock(thread, step),
            Action::Publish(item) => self.publish(thread, step, item),
            Action::Await(item) => self.wait_for(thread, item),
        };
        if let Next::Goes = next {
            let thread = &mut self.threads[thread];
            thread.at += 1;
            thread.computed = false;
        }
        next
    }

    /// Instructions take the core's time.
    fn compute(&mut self, thread: usize, instructions: u32) {
        let ticks = (f64::from(instructions) * TICKS as f64 / self.machine.ipc.is) as u64;
        let Thread { core, now, .. } = self.threads[thread];
        let end = now.max(self.cores[core]) + ticks;
        self.cores[core] = end;
        self.threads[thread].now = end;
    }

    /// The line's copy that this thread uses.
    fn copy_of(&self, thread: usize, line: u32) -> u32 {
        let thread = &self.threads[thread];
        let copy = match (self.recording.lines[line as usize], thread.work) {
            (Scope::One, _) => 0,
            (Scope::Table, _) => thread.copy as usize,
            (Scope::Client, Work::Item { client, .. }) => client,
            (Scope::Client, _) => thread.number,
            (Scope::Thread, _) if thread.serves => self.clients.len() + thread.number,
            (Scope::Thread, _) => thread.number,
        };
        self.first[line as usize] + copy as u32
    }

    /// An access, counted; returns its ticks.
    fn access(&mut self, thread: usize, step: Step, how: Use) -> u64 {
        let Thread {
            core, now, serves, ..
        } = self.threads[thread];
        let outcome = self
            .memory
            .access(core, self.copy_of(thread, step.line), how, now);
        let sources = &mut self.counted.sources[usize::from(serves)][step.class as usize];
        let mut none = 0;
        let (count, ticks) = match outcome.from {
            From::First => return outcome.ticks,
            From::Second => (&mut sources.second, &mut none),
            From::Socket => (&mut sources.socket, &mut sources.near_ticks),
            From::Other => (&mut sources.other, &mut sources.far_ticks),
            From::Memory => (&mut sources.memory, &mut sources.far_ticks),
        };
        *count += 1;
        *ticks += outcome.ticks;
        sources.waited += outcome.waited;
        outcome.ticks
    }

    /// A store goes into the buffer. Returns when it is visible.
    fn store(&mut self, thread: usize, step: Step) -> u64 {
        let ticks = self.access(thread, step, Use::Store);
        let most = self.machine.store_buffer.is;
        let thread = &mut self.threads[thread];
        while thread.stores.front().is_some_and(|&end| end <= thread.now) {
            thread.stores.pop_front();
        }
        // Stores become visible in their order.
        let before = thread.stores.back().copied().unwrap_or(0);
        let end = before.max(thread.now + ticks);
        thread.stores.push_back(end);
        if thread.stores.len() > most {
            let oldest = thread.stores.pop_front().unwrap_or(0);
            thread.now = thread.now.max(oldest);
        }
        end
    }

    /// A locked instruction waits for the stores before it.
    fn atomic(&mut self, thread: usize, step: Step) {
        let last = self.threads[thread].stores.back().copied().unwrap_or(0);
        self.threads[thread].stores.clear();
        self.threads[thread].now = self.threads[thread].now.max(last);
        self.threads[thread].now += self.access(thread, step, Use::Atomic);
    }

    fn lock(&mut self, thread: usize, step: Step) -> Next {
        self.atomic(thread, step);
        let place = self.copy_of(thread, step.line);
        let now = self.threads[thread].now;
        let lock = self.locks.entry(place).or_default();
        if lock.held {
            lock.waiting.push(thread);
            if self.threads[thread].locking.is_none() {
                self.counted.lock_misses += 1;
                self.threads[thread].locking = Some(now);
            }
            return Next::Waits;
        }
        lock.held = true;
        if let Some(since) = self.threads[thread].locking.take() {
            self.counted.lock_wait += now - since;
        }
        Next::Goes
    }

    fn unlock(&mut self, thread: usize, step: Step) -> Next {
        self.atomic(thread, step);
        let place = self.copy_of(thread, step.line);
        let now = self.threads[thread].now;
        let lock = self.locks.entry(place).or_default();
        lock.held = false;
        for waiting in std::mem::take(&mut lock.waiting) {
            self.queue.push(Reverse((now, waiting)));
        }
        Next::Goes
    }

    fn publish(&mut self, thread: usize, step: Step, item: u32) -> Next {
        let Thread {
            number, copy, work, ..
        } = self.threads[thread];
        let Work::Piece(piece) = work else {
            return Next::Goes;
        };
        let partition = self.recording.pieces[piece].items[item as usize].partition as usize;
        let ring = partition * self.clients.len() + number;
        let now = self.threads[thread].now;
        if self.rings[ring].len() >= RING {
            self.clients[number].room = Some((ring, now));
            return Next::Waits;
        }
        if let Some((_, since)) = self.clients[number].room.take() {
            self.counted.awaited += now - since;
        }
        let at = self.store(thread, step);
        self.rings[ring].push_back(Sent {
            piece,
            item,
            copy,
            round: self.clients[number].round,
            at,
        });
        let server = partition * self.servers.len() / self.recording.partitions;
        self.rouse(server, at);
        Next::Goes
    }

    /// An idle server looks again at this moment.
    fn rouse(&mut self, server: usize, at: u64) {
        let server = &mut self.servers[server];
        if let Some(since) = server.idle.take() {
            // It has looked at ring after ring meanwhile.
            let poll = (POLL as f64 * TICKS as f64 / self.machine.ipc.is) as u64;
            let polls = at.saturating_sub(since) / poll.max(1);
            server.at = (server.at + polls as usize) % server.rings.len();
            self.queue.push(Reverse((at.max(since), server.thread)));
        }
    }

    fn wait_for(&mut self, thread: usize, item: u32) -> Next {
        let Thread { number, now, .. } = self.threads[thread];
        let client = &mut self.clients[number];
        let Some(done) = client.done[item as usize] else {
            client.awaits.get_or_insert((item, now));
            return Next::Waits;
        };
        let since = client.awaits.take().map_or(now, |(_, since)| since);
        self.threads[thread].now = now.max(done);
        self.counted.awaited += self.threads[thread].now - since;
        Next::Goes
    }

    fn find_work(&mut self, thread: usize) -> Next {
        let pieces = self.recording.pieces.len() as u64;
        if self.threads[thread].serves {
            return self.find_item(thread);
        }
        let copies = self.load.copies as u64;
        let it = &mut self.threads[thread];
        let piece = (it.random.next() >> 16) % pieces;
        it.copy = ((it.random.next() >> 16) % copies) as u32;
        (it.work, it.at) = (Work::Piece(piece as usize), 0);
        let number = it.number;
        let items = self.recording.pieces[piece as usize].items.len();
        let client = &mut self.clients[number];
        client.round += 1;
        client.done.clear();
        client.done.resize(items, None);
        Next::Goes
    }

    /// A server looks at its rings in turn.
    fn find_item(&mut self, thread: usize) -> Next {
        let Thread { number, now, .. } = self.threads[thread];
        let server = &mut self.servers[number];
        if server.taken == RING {
            (server.at, server.taken) = ((server.at + 1) % server.rings.len(), 0);
        }
        let poll = (POLL as f64 * TICKS as f64 / self.machine.ipc.is) as u64;
        let mut soonest = u64::MAX;
        for step in 0..server.rings.len() {
            let at = (server.at + step) % server.rings.len();
            let ring = server.rings[at];
            let Some(&sent) = self.rings[ring].front() else {
                continue;
            };
            if sent.at > now {
                soonest = soonest.min(sent.at);
                continue;
            }
            if step > 0 {
                server.taken = 0;
            }
            server.at = at;
            server.taken += 1;
            let began = now + step as u64 * poll;
            self.take(thread, ring, began);
            return Next::Goes;
        }
        server.idle = Some(now);
        if soonest < u64::MAX {
            self.rouse(number, soonest);
        }
        Next::Waits
    }

    fn take(&mut self, thread: usize, ring: usize, began: u64) {
        let Some(sent) = self.rings[ring].pop_front() else {
            return;
        };
        let client = ring % self.clients.len();
        let it = &mut self.threads[thread];
        it.now = began;
        it.copy = sent.copy;
        it.at = 0;
        it.work = Work::Item {
            client,
            sent,
            began,
        };
        let client = &mut self.clients[client];
        if let Some((full, _)) = &mut client.room
            && *full == ring
        {
            // Once: it looks again itself.
            *full = usize::MAX;
            self.queue.push(Reverse((began, client.thread)));
        }
    }

    /// A thread has done its work.
    fn finish(&mut self, thread: usize) {
        let work = std::mem::replace(&mut self.threads[thread].work, Work::None);
        let now = self.threads[thread].now;
        match work {
            Work::None => {}
            Work::Piece(_) => self.count_operations(now),
            Work::Item {
                client,
                sent,
                began,
            } => {
                // What it wrote must be visible.
                let last = self.threads[thread].stores.back().copied().unwrap_or(0);
                let done = now.max(last);
                self.counted.items += 1;
                self.counted.served += now - began;
                let client = &mut self.clients[client];
                if client.round == sent.round {
                    client.done[sent.item as usize] = Some(done);
                    if client.awaits.is_some_and(|(item, _)| item == sent.item) {
                        self.queue.push(Reverse((done, client.thread)));
                    }
                }
            }
        }
    }

    fn count_operations(&mut self, now: u64) {
        let operations = self.recording.operations as u64;
        self.all_operations += operations;
        match self.began {
            None if self.all_operations >= self.load.warm_up => {
                self.began = Some(now);
                self.counted = Counted {
                    clients: self.counted.clients,
                    servers: self.counted.servers,
                    ..Counted::default()
                };
            }
            None => {}
            Some(began) => {
                self.counted.operations += operations;
                self.counted.ticks = now - began;
            }
        }
    }
}

#[cfg(test)]
#[path = "replay_tests.rs"]
mod tests;
