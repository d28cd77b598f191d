//! What a recording is: the accesses of an engine's own code, divided into pieces that can be replayed.
//!
//! A piece is what a client does for some operations. Of an engine with server threads it refers to items: what a server
//! does for one line of messages. The client publishes an item, and later awaits it.

use std::path::Path;

use nuthatch_program::Failure;
use serde::{Deserialize, Serialize};

/// What is accessed, and where it matters, for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A partition's lock, and what of the partition is on its line.
    Lock,
    /// The rest of a partition: the ends of its order of use, counters.
    Partition,
    /// What says which lines of memory are free, and how much is used.
    Space,
    /// A bucket.
    Bucket,
    /// An element's header: its key's hash, the next one of the bucket.
    Chain,
    /// An element's header, for its neighbours in the order of use.
    Order,
    /// An element's key and value.
    Data,
    /// Whatever a critical section that inserts accesses beside its search.
    Insert,
    /// A line of messages.
    Request,
    /// A line of answers.
    Answer,
    /// Other memory that clients and servers share.
    Shared,
    /// Memory of a server thread.
    Server,
    /// Memory of a client: requests, answers, its side of the rings.
    Client,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::Lock,
        Self::Partition,
        Self::Space,
        Self::Bucket,
        Self::Chain,
        Self::Order,
        Self::Data,
        Self::Insert,
        Self::Request,
        Self::Answer,
        Self::Shared,
        Self::Server,
        Self::Client,
    ];
}

/// Of how many copies a line is one in a replay with many clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// There is one: all threads use the same.
    One,
    /// One for each copy of the table: a larger working set consists of several.
    Table,
    /// One for each client: a ring.
    Client,
    /// One for each thread: its stack, its heap.
    Thread,
}

/// A step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Reads the line.
    Read,
    /// Writes to it.
    Write,
    /// Takes the lock on it.
    Lock,
    /// Releases it.
    Unlock,
    /// Writes to it, and by that sends the item.
    Publish(u32),
    /// Waits until the item is done.
    Await(u32),
}

/// A step, and the instructions before it. As JSON it is a tuple.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Written", into = "Written")]
pub struct Step {
    /// Instructions since the step before.
    pub instructions: u32,
    /// What is done.
    pub action: Action,
    /// To which of the recording's lines.
    pub line: u32,
    /// What is accessed there.
    pub class: Class,
}

/// A step in a file.
type Written = (u32, Action, u32, Class);

impl From<Written> for Step {
    fn from((instructions, action, line, class): Written) -> Self {
        Self {
            instructions,
            action,
            line,
            class,
        }
    }
}

impl From<Step> for Written {
    fn from(step: Step) -> Self {
        (step.instructions, step.action, step.line, step.class)
    }
}

/// The steps of one thread without a pause, and the instructions behind the last one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The steps.
    pub steps: Vec<Step>,
    /// Instructions behind the last one.
    pub rest: u32,
}

/// What a server does for one line of messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Item {
    /// The partition that the line was sent to.
    pub partition: u32,
    /// What is done.
    pub run: Run,
}

/// What a client does for some operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// What it does itself.
    pub client: Run,
    /// What servers do for it.
    pub items: Vec<Item>,
}

/// A recording of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The engine.
    pub engine: String,
    /// Bytes of the working set.
    pub working_set: usize,
    /// Operations at a time.
    pub batch: usize,
    /// Operations of a piece.
    pub operations: usize,
    /// Partitions.
    pub partitions: usize,
    /// The engine has threads that serve its partitions.
    pub served: bool,
    /// Instructions of all operations, those of servers included.
    pub instructions: u64,
    /// Of them, those of servers.
    pub served_instructions: u64,
    /// Lines of messages that the engine itself counted, over all pieces.
    pub lines_sent: u64,
    /// The lines: of how many copies each is one.
    pub lines: Vec<Scope>,
    /// The pieces.
    pub pieces: Vec<Piece>,
}

impl Recording {
    /// Reads a recording from a file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read(path).map_err(|error| error.to_string());
        let recording = text.and_then(|text| Self::parse(&text));
        recording
            .map_err(|error| Failure::Usage(format!("--recording {}: {error}", path.display())))
    }

    /// A recording in a file's bytes.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let recording: Self = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        recording.check()?;
        Ok(recording)
    }

    /// Writes it to a file.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let text = serde_json::to_vec(self).map_err(|error| error.to_string())?;
        std::fs::write(path, text)
            .map_err(|error| Failure::from(format!("--save {}: {error}", path.display())))
    }

    /// All operations.
    pub fn all_operations(&self) -> usize {
        self.pieces.len() * self.operations
    }

    /// Checks that all numbers in it refer to something, so that a replay cannot go astray.
    pub fn check(&self) -> Result<(), String> {
        let lines = self.lines.len() as u32;
        if self.pieces.is_empty() || self.operations == 0 || self.partitions == 0 {
            return Err("no operations were recorded".to_owned());
        }
        for piece in &self.pieces {
            let items = piece.items.len() as u32;
            let mut published = vec![false; piece.items.len()];
            let runs = piece.items.iter().map(|item| (&item.run, false));
            for (run, is_client) in runs.chain([(&piece.client, true)]) {
                for step in &run.steps {
                    let known = match step.action {
                        Action::Publish(item) | Action::Await(item) => is_client && item < items,
                        _ => true,
                    };
                    if !known || step.line >= lines {
                        return Err(format!("a step that leads nowhere: {step:?}"));
                    }
                    match step.action {
                        Action::Publish(item) => published[item as usize] = true,
                        Action::Await(item) if !published[item as usize] => {
                            return Err(format!("item {item} is awaited before it is sent"));
                        }
                        _ => {}
                    }
                }
            }
            let reaches = |item: &Item| (item.partition as usize) < self.partitions;
            if !published.iter().all(|&sent| sent) || !piece.items.iter().all(reaches) {
                return Err("an item that nobody sends, or nobody serves".to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn step(instructions: u32, action: Action, line: u32) -> Step {
        (instructions, action, line, Class::Client).into()
    }

    pub(crate) fn recording(lines: &[Scope], pieces: Vec<Piece>) -> Recording {
        Recording {
            engine: "test".to_owned(),
            working_set: 1 << 20,
            batch: 1,
            operations: 1,
            partitions: 1,
            served: pieces.iter().any(|piece| !piece.items.is_empty()),
            instructions: 0,
            served_instructions: 0,
            lines_sent: 0,
            lines: lines.to_vec(),
            pieces,
        }
    }

    pub(crate) fn piece(steps: Vec<Step>, items: Vec<Vec<Step>>) -> Piece {
        let run = |steps| Run { steps, rest: 0 };
        Piece {
            client: run(steps),
            items: items
                .into_iter()
                .map(|steps| Item {
                    partition: 0,
                    run: run(steps),
                })
                .collect(),
        }
    }

    #[test]
    fn a_recording_survives_a_file_and_a_broken_one_is_refused() {
        let lines = [Scope::Client];
        let steps = vec![step(1, Action::Publish(0), 0), step(2, Action::Await(0), 0)];
        let whole = recording(
            &lines,
            vec![piece(steps.clone(), vec![vec![step(3, Action::Read, 0)]])],
        );
        let folder =
            std::env::temp_dir().join(format!("nuthatch-recording-{}", std::process::id()));
        whole.write(&folder).unwrap();
        assert_eq!(Recording::read(&folder).unwrap(), whole);
        std::fs::write(&folder, b"{}").unwrap();
        let failure = Recording::read(&folder).unwrap_err().to_string();
        assert!(failure.contains("--recording"), "{failure}");
        std::fs::remove_file(&folder).unwrap();
        let broken = [
            recording(&lines, vec![piece(vec![step(0, Action::Read, 1)], vec![])]),
            recording(
                &lines,
                vec![piece(vec![step(0, Action::Await(0), 0)], vec![vec![]])],
            ),
            recording(&lines, vec![piece(vec![], vec![vec![]])]),
            recording(&lines, vec![]),
        ];
        assert!(broken.iter().all(|broken| broken.check().is_err()));
    }
}
