//! From lackey's lines to a recording.
//!
//! One thread carries out everything, so the accesses have an order. Some of them are marks: stores to bytes that the
//! recorded program has set aside for that. Whoever changes the word of a partition's lock or lease begins or ends
//! something: in LockHash a critical section, in CPHash the turn of a server, which the client itself carries out while
//! the server sleeps. What a line holds follows from the engine's layout. Lines outside of it that clients and servers
//! both use are those of messages.
//!
//! ```text
//!  mark  client ... [turn: item, item, item] ... client ... mark  the rest of the items  mark  mark  client ...
//!  begin                                                    done                         drained begin
//! ```
//!
//! A thread's stack is taken to be in its first-level cache. Between two steps that order threads, only the first load of
//! a line and the first store to it are kept.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::lackey::{Kind, Line};
use crate::recording::{Action, Class, Item, Piece, Run, Scope, Step};

/// The bytes of the recorded program that mean something when they are stored to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A piece begins.
    Begin,
    /// The client has all answers.
    Done,
    /// Servers have nothing left to do.
    Drained,
}

impl Mark {
    /// How many there are.
    pub const COUNT: usize = 3;
    const ALL: [Self; Self::COUNT] = [Self::Begin, Self::Done, Self::Drained];
}

/// What the recorded program tells about itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Layout {
    /// The first mark.
    pub marks: u64,
    /// The thread's stack.
    pub stack: Range<u64>,
    /// The engine's partitions, and the bytes from one to the next.
    pub partitions: Range<u64>,
    /// Bytes from one to the next.
    pub partition_size: u64,
    /// Buckets and elements.
    pub blocks: Range<u64>,
    /// Which lines of the blocks are free.
    pub bookkeeping: Vec<Range<u64>>,
    /// Of the blocks, those of buckets.
    pub buckets: Vec<Range<u64>>,
    /// The word of an element's header that holds its neighbours in the order of use.
    pub order_word: u8,
    /// Partitions have server threads.
    pub served: bool,
}

const LINE: u64 = 64;
const WORD: u64 = 8;

/// Lines that a thread used last, and that are taken to be in its first-level cache: half of one.
const NEAR: usize = 256;

/// A line, and which of its words was accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    line: u64,
    word: u8,
}

/// What happened, and the instructions before it.
#[derive(Clone, Copy, Debug)]
struct Event {
    instructions: u32,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Load(Place),
    Store(Place),
    Lock(u64),
    Unlock(u64),
    Turn(u32),
    TurnEnd,
    Mark(Mark),
}

/// Takes lackey's lines, and keeps what happens between the marks.
pub struct Events {
    layout: Layout,
    events: Vec<Event>,
    recording: bool,
    instructions: u32,
    /// The word of the lock or lease that is held.
    held: Option<u64>,
}

impl Events {
    /// The events of a program with this layout; its buckets need not be known yet.
    pub fn new(layout: Layout) -> Self {
        Self {
            layout,
            events: Vec::new(),
            recording: false,
            instructions: 0,
            held: None,
        }
    }

    /// True between the first mark and the last.
    pub fn is_recording(&self) -> bool {
        self.recording
    }

    /// Takes a line.
    pub fn take(&mut self, line: Line) {
        match line {
            Line::Instruction => self.instructions += 1,
            Line::Access { address, .. } if self.mark(address) => {}
            Line::Access {
                kind,
                address,
                size,
            } if self.recording && !self.layout.stack.contains(&address) => {
                self.access(kind, address, size);
            }
            _ => {}
        }
    }

    fn mark(&mut self, address: u64) -> bool {
        let at = address.wrapping_sub(self.layout.marks) as usize;
        let Some(&mark) = Mark::ALL.get(at) else {
            return false;
        };
        self.recording = mark != Mark::Drained;
        self.push(What::Mark(mark));
        true
    }

    fn push(&mut self, what: What) {
        let instructions = std::mem::take(&mut self.instructions);
        self.events.push(Event { instructions, what });
    }

    fn access(&mut self, kind: Kind, address: u64, size: u32) {
        if kind == Kind::Modify && self.layout.partitions.contains(&address) && self.turn(address) {
            return;
        }
        let last = address.saturating_add(u64::from(size) - 1) / LINE;
        let mut word = (address % LINE / WORD) as u8;
        for line in address / LINE..=last {
            let place = Place { line, word };
            if kind != Kind::Store {
                self.push(What::Load(place));
            }
            if kind != Kind::Load {
                self.push(What::Store(place));
            }
            word = 0;
        }
    }

    /// If this word is a lock's or a lease's: it is taken or given back.
    fn turn(&mut self, address: u64) -> bool {
        let number = (address - self.layout.partitions.start) / self.layout.partition_size;
        let what = match (self.held, self.layout.served) {
            (None, true) => What::Turn(number as u32),
            (None, false) => What::Lock(address / LINE),
            (Some(word), _) if word != address => return false,
            (Some(_), true) => What::TurnEnd,
            (Some(_), false) => What::Unlock(address / LINE),
        };
        self.held = match self.held {
            None => Some(address),
            Some(_) => None,
        };
        self.push(what);
        true
    }
}

/// The pieces of a recording, and its lines.
pub struct Divided {
    /// The pieces.
    pub pieces: Vec<Piece>,
    /// The lines: of how many copies each is one.
    pub lines: Vec<Scope>,
    /// All instructions in the pieces.
    pub instructions: u64,
    /// Of them, those of servers.
    pub served_instructions: u64,
}

/// Divides the events. `layout` is complete now.
pub fn divide(events: &Events, layout: &Layout) -> Result<Divided, String> {
    let mut divider = Divider::new(layout, &events.events);
    for event in &events.events {
        divider.take(*event);
    }
    if divider.done.is_empty() {
        return Err("nothing was recorded: no mark was met".to_owned());
    }
    if events.recording {
        return Err("the recording ends in the middle of a piece".to_owned());
    }
    Ok(Divided {
        pieces: divider.done,
        lines: divider.lines.kinds.iter().map(|kind| kind.scope).collect(),
        instructions: divider.instructions,
        served_instructions: divider.served_instructions,
    })
}

/// Who works at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nobody of interest.
    Idle,
    /// The client.
    Client,
    /// Another client, which makes servers finish what was sent.
    Drain,
}

/// A store of a client to a line of messages, which no server has met yet.
#[derive(Clone, Copy)]
enum Sent {
    /// The step of the piece's client.
    Step(usize),
    /// It is another client's.
    Foreign,
}

struct Divider<'l> {
    lines: Lines<'l>,
    phase: Phase,
    client: Stream,
    items: Vec<Item>,
    serving: Option<Serving>,
    sent: HashMap<u64, Sent>,
    /// Lines that a server wrote to in an item, and that its client has not read since.
    answered: HashMap<u64, u32>,
    done: Vec<Piece>,
    instructions: u64,
    served_instructions: u64,
    /// The client's step at which its critical section began.
    section: usize,
}

/// The turn of a server.
struct Serving {
    partition: u32,
    stream: Stream,
    item: Option<u32>,
    /// A line of messages was met.
    begun: bool,
}

impl<'l> Divider<'l> {
    fn new(layout: &'l Layout, events: &[Event]) -> Self {
        Self {
            lines: Lines::new(layout, events),
            phase: Phase::Idle,
            client: Stream::default(),
            items: Vec::new(),
            serving: None,
            sent: HashMap::new(),
            answered: HashMap::new(),
            done: Vec::new(),
            instructions: 0,
            served_instructions: 0,
            section: 0,
        }
    }

    fn take(&mut self, Event { instructions, what }: Event) {
        match &mut self.serving {
            Some(serving) => serving.stream.pass(instructions),
            None if self.phase == Phase::Client => self.client.pass(instructions),
            None => {}
        }
        match what {
            What::Mark(mark) => self.mark(mark),
            What::Turn(partition) => {
                self.client.section();
                self.serving = Some(Serving {
                    partition,
                    stream: Stream::default(),
                    item: None,
                    begun: false,
                });
            }
            What::TurnEnd => self.end_item(),
            What::Lock(line) => self.order(Action::Lock, line),
            What::Unlock(line) => self.order(Action::Unlock, line),
            What::Load(place) | What::Store(place) => {
                let writes = matches!(what, What::Store(_));
                match self.serving.is_some() {
                    true => self.serve(place, writes),
                    false => self.ask(place, writes),
                }
            }
        }
    }

    fn mark(&mut self, mark: Mark) {
        match mark {
            Mark::Begin => {
                self.client = Stream::default();
                self.items.clear();
                self.sent.clear();
                self.answered.clear();
                self.phase = Phase::Client;
            }
            Mark::Done => self.phase = Phase::Drain,
            Mark::Drained => {
                self.phase = Phase::Idle;
                let client = std::mem::take(&mut self.client);
                self.instructions += client.instructions;
                self.done.push(Piece {
                    client: client.end(),
                    items: std::mem::take(&mut self.items),
                });
            }
        }
    }

    /// A lock, of the client: there are no servers.
    fn order(&mut self, action: Action, line: u64) {
        if self.phase != Phase::Client {
            return;
        }
        let (number, kind) = self.lines.number(line);
        self.client.step(action, number, kind.class);
        self.client.section();
        let steps = &mut self.client.run.steps;
        match action {
            Action::Unlock => note_insert(&mut steps[self.section..]),
            _ => self.section = steps.len(),
        }
    }

    /// An access of the client, or of the other one that drains.
    fn ask(&mut self, place: Place, writes: bool) {
        let line = place.line;
        let is_message = self.lines.is_shared(line);
        if self.phase != Phase::Client {
            if is_message && writes {
                self.sent.insert(line, Sent::Foreign);
            }
            return;
        }
        let (number, kind) = self.lines.at(place);
        if !is_message {
            return self.client.access(number, writes, kind);
        }
        if !writes && let Some(item) = self.answered.remove(&line) {
            self.client.step(Action::Await(item), number, kind.class);
            self.client.section();
        }
        let sends = writes && !self.sent.contains_key(&line) && self.client.is_new(number);
        self.client.access(number, writes, kind);
        if sends {
            self.sent
                .insert(line, Sent::Step(self.client.run.steps.len() - 1));
        }
    }

    /// An access of a server.
    fn serve(&mut self, place: Place, writes: bool) {
        let line = place.line;
        let is_message = self.lines.is_shared(line);
        if is_message
            && !writes
            && let Some(sent) = self.sent.remove(&line)
        {
            self.begin_item(sent);
        }
        let (number, kind) = self.lines.at(place);
        let Some(serving) = &mut self.serving else {
            return;
        };
        serving.stream.access(number, writes, kind);
        if is_message
            && writes
            && let Some(item) = serving.item
        {
            self.answered.insert(line, item);
        }
    }

    /// A server has met a line of messages.
    fn begin_item(&mut self, sent: Sent) {
        // What it did before the first one belongs to that.
        if self.serving.as_ref().is_some_and(|serving| serving.begun) {
            let partition = self.serving.as_ref().map_or(0, |serving| serving.partition);
            self.end_item();
            self.serving = Some(Serving {
                partition,
                stream: Stream::default(),
                item: None,
                begun: false,
            });
        }
        let Some(serving) = &mut self.serving else {
            return;
        };
        serving.begun = true;
        if let Sent::Step(step) = sent {
            let item = self.items.len() as u32;
            self.client.run.steps[step].action = Action::Publish(item);
            serving.item = Some(item);
            self.items.push(Item {
                partition: serving.partition,
                run: Run::default(),
            });
        }
    }

    fn end_item(&mut self) {
        let Some(serving) = self.serving.take() else {
            return;
        };
        if let Some(item) = serving.item {
            self.instructions += serving.stream.instructions;
            self.served_instructions += serving.stream.instructions;
            self.items[item as usize].run = serving.stream.end();
        }
    }
}

/// A critical section that writes a value inserts it: then all that it does beside its search is the insert's. What says
/// which lines are free stays apart: nothing but an insert uses it.
fn note_insert(section: &mut [Step]) {
    let writes = |step: &Step| step.action == Action::Write;
    if !section
        .iter()
        .any(|step| step.class == Class::Data && writes(step))
    {
        return;
    }
    for step in section {
        let has_own_class = match step.class {
            Class::Lock | Class::Space => true,
            Class::Bucket | Class::Chain => !writes(step),
            _ => false,
        };
        if !has_own_class {
            step.class = Class::Insert;
        }
    }
}

/// The steps of a thread, as they are found.
#[derive(Default)]
struct Stream {
    run: Run,
    /// Lines of all threads that were loaded or stored to since the last step that orders threads.
    section: HashSet<(u32, bool)>,
    /// Lines of its own that it used last, by their number; one more, so that 0 is none.
    near: Vec<u32>,
    instructions: u64,
}

impl Stream {
    fn pass(&mut self, instructions: u32) {
        self.run.rest += instructions;
        self.instructions += u64::from(instructions);
    }

    fn step(&mut self, action: Action, line: u32, class: Class) {
        let instructions = std::mem::take(&mut self.run.rest);
        self.run.steps.push(Step {
            instructions,
            action,
            line,
            class,
        });
    }

    fn access(&mut self, line: u32, writes: bool, kind: LineKind) {
        let is_new = if kind.scope == Scope::Thread {
            self.near.resize(NEAR, 0);
            let near = &mut self.near[line as usize % NEAR];
            std::mem::replace(near, line + 1) != line + 1
        } else {
            let is_new = self.section.insert((line, writes));
            // Who may write to it may read it.
            is_new && (writes || !self.section.contains(&(line, true)))
        };
        if is_new {
            let action = if writes { Action::Write } else { Action::Read };
            self.step(action, line, kind.class);
        }
    }

    /// True if the line was not stored to in this section.
    fn is_new(&self, line: u32) -> bool {
        !self.section.contains(&(line, true))
    }

    /// Other threads may have had the lines since.
    fn section(&mut self) {
        self.section.clear();
    }

    fn end(self) -> Run {
        self.run
    }
}

/// What a line is.
#[derive(Clone, Copy)]
struct LineKind {
    class: Class,
    scope: Scope,
}

/// How often a line was accessed by clients and by servers, and how often they stored to it.
#[derive(Clone, Copy, Default)]
struct Met {
    by: [u32; 2],
    stores: [u32; 2],
}

impl Met {
    fn is_shared(self) -> bool {
        self.by.iter().all(|&accesses| accesses > 0)
    }

    /// A sender fills a line word by word; a receiver stores to it once, to free it.
    fn class(self) -> Class {
        let [client, server] = self.stores;
        match client.cmp(&server) {
            Ordering::Greater => Class::Request,
            Ordering::Less => Class::Answer,
            Ordering::Equal => Class::Shared,
        }
    }
}

/// What lines are, and their numbers in the recording.
struct Lines<'l> {
    layout: &'l Layout,
    /// Lines outside of the layout.
    met: HashMap<u64, Met>,
    locks: HashSet<u64>,
    numbers: HashMap<u64, u32>,
    kinds: Vec<LineKind>,
}

impl<'l> Lines<'l> {
    fn new(layout: &'l Layout, events: &[Event]) -> Self {
        let mut lines = Self {
            layout,
            met: HashMap::new(),
            locks: HashSet::new(),
            numbers: HashMap::new(),
            kinds: Vec::new(),
        };
        let mut serves = false;
        for event in events {
            match event.what {
                What::Turn(_) => serves = true,
                What::TurnEnd => serves = false,
                What::Lock(line) => {
                    lines.locks.insert(line);
                }
                What::Load(Place { line, .. }) | What::Store(Place { line, .. })
                    if lines.placed(line).is_none() =>
                {
                    let met = lines.met.entry(line).or_default();
                    met.by[usize::from(serves)] += 1;
                    let stores = matches!(event.what, What::Store(_));
                    met.stores[usize::from(serves)] += u32::from(stores);
                }
                _ => {}
            }
        }
        lines
    }

    /// What a line of the engine's layout is.
    fn placed(&self, line: u64) -> Option<LineKind> {
        let address = line * LINE;
        let layout = self.layout;
        let in_any = |ranges: &[Range<u64>]| ranges.iter().any(|range| range.contains(&address));
        let (class, scope) = if layout.partitions.contains(&address) {
            match self.locks.contains(&line) {
                true => (Class::Lock, Scope::One),
                false => (Class::Partition, Scope::One),
            }
        } else if layout.blocks.contains(&address) {
            match (in_any(&layout.buckets), line % 2) {
                (true, _) => (Class::Bucket, Scope::Table),
                // With keys and values of 8 bytes an element is two lines: blocks are divided into pairs.
                (false, 0) => (Class::Chain, Scope::Table),
                (false, _) => (Class::Data, Scope::Table),
            }
        } else if in_any(&layout.bookkeeping) {
            (Class::Space, Scope::Table)
        } else {
            return None;
        };
        Some(LineKind { class, scope })
    }

    /// True for a line of messages.
    fn is_shared(&self, line: u64) -> bool {
        self.met.get(&line).is_some_and(|met| met.is_shared())
    }

    fn kind(&self, line: u64) -> LineKind {
        let (class, scope) = match self.met.get(&line) {
            // What nobody writes to all may have.
            Some(met) if met.is_shared() && met.stores == [0, 0] => (Class::Shared, Scope::One),
            Some(met) if met.is_shared() => (met.class(), Scope::Client),
            Some(Met { by: [0, _], .. }) => (Class::Server, Scope::One),
            _ => (Class::Client, Scope::Thread),
        };
        LineKind { class, scope }
    }

    /// A line's number, and what it is if this word of it is accessed.
    fn at(&mut self, place: Place) -> (u32, LineKind) {
        let (number, mut kind) = self.number(place.line);
        if kind.class == Class::Chain && place.word == self.layout.order_word {
            kind.class = Class::Order;
        }
        (number, kind)
    }

    fn number(&mut self, line: u64) -> (u32, LineKind) {
        if let Some(&number) = self.numbers.get(&line) {
            return (number, self.kinds[number as usize]);
        }
        let kind = self.placed(line).unwrap_or_else(|| self.kind(line));
        let number = self.kinds.len() as u32;
        self.numbers.insert(line, number);
        self.kinds.push(kind);
        (number, kind)
    }
}

#[cfg(test)]
#[path = "divide_tests.rs"]
mod tests;
