//! `nuthatch-lab hash collect`: keys of this machine's file systems, as the tables of the Linux paper have
//! them. The walk stays on one file system and takes memory for the depth of the tree only.

mod blocks;
#[allow(unsafe_code)]
mod extents;
mod walk;

use std::ops::ControlFlow;
use std::path::PathBuf;

use crate::functions::dentry::name_hash;
use crate::key::{Dentry, Inode, Page};
use clap::{Args, Subcommand};

use crate::format::{Line, header, trailer};
use crate::{Failure, address};
pub use blocks::blocks;
use nuthatch_program::output::{Output, Reader};
use nuthatch_program::progress::Progress;
pub use walk::Walk;

/// The kinds of keys.
#[derive(Clone, Debug, Subcommand)]
pub enum Collect {
    /// Names in their directories: the dentry cache's keys
    Dentries(Options),
    /// Inode numbers: the inode cache's keys
    Inodes(Options),
    /// Blocks of files and directories (FIEMAP): the buffer cache's keys
    Blocks(Options),
    /// Pages of files, from their sizes: the page cache's keys
    PageCache(Options),
}

/// The options of a collection.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The directory to begin at
    #[arg(value_name = "DIR")]
    pub root: PathBuf,
    /// Write to this file instead of standard output; the file appears when it is complete
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Maximum number of keys
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// Leave out what cannot be read, without ending in an error
    #[arg(long)]
    pub skip_unreadable: bool,
}

/// Collects keys and writes them.
pub fn run(collect: &Collect) -> Result<(), Failure> {
    match collect {
        Collect::Dentries(options) => stream(options, dentries),
        Collect::Inodes(options) => stream(options, inodes),
        Collect::Blocks(options) => stream(options, blocks),
        Collect::PageCache(options) => stream(options, pages),
    }
}

/// Collects up to `limit` keys in memory.
pub fn gather<K>(
    options: &Options,
    collect: impl FnOnce(
        &mut Walk,
        &mut dyn FnMut(K) -> Result<ControlFlow<()>, Failure>,
    ) -> Result<(), Failure>,
) -> Result<Vec<K>, Failure> {
    let mut keys = Vec::new();
    let mut walk = Walk::begin(&options.root, options.skip_unreadable)?;
    let limit = options.limit.unwrap_or(u64::MAX) as usize;
    collect(&mut walk, &mut |key| {
        keys.push(key);
        Ok(if keys.len() < limit {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        })
    })?;
    Ok(keys)
}

/// Receives a collector's keys; it breaks when no more are wanted.
pub type Sink<'a, K> = &'a mut dyn FnMut(K) -> Result<ControlFlow<()>, Failure>;

/// Keys between two reports of progress.
const PROGRESS_EVERY: u64 = 1 << 12;

fn stream<K: Line>(
    options: &Options,
    collect: impl FnOnce(&mut Walk, Sink<'_, K>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut walk = Walk::begin(&options.root, options.skip_unreadable)?;
    let mut output = Output::open(options.output.as_deref())?;
    let limit = options.limit.unwrap_or(u64::MAX);
    let progress = Progress::new("keys", None);
    let (mut count, mut line, mut reader) = (0, Vec::new(), Reader::Listens);
    output.write(header(K::FORMAT).as_bytes())?;
    collect(&mut walk, &mut |key| {
        line.clear();
        key.write(&mut line);
        reader = output.write(&line)?;
        count += 1;
        if count % PROGRESS_EVERY == 0 {
            progress.add(PROGRESS_EVERY);
        }
        let enough = count == limit || reader == Reader::Left;
        Ok(if enough {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })?;
    drop(progress);
    if reader == Reader::Left {
        return Ok(());
    }
    // Only after the walk has found that no key is missing: an incomplete file is not put in place, and the reader of a
    // pipe detects that the last line is missing.
    walk.finish()?;
    if count == 0 {
        let root = options.root.display();
        return Err(Failure::run(format!(
            "{root}: there is no such key below it"
        )));
    }
    output.write(trailer(count).as_bytes())?;
    output.finish()
}

/// One key for each name. Dentries have addresses in the order of the walk.
pub fn dentries(walk: &mut Walk, sink: Sink<'_, Dentry>) -> Result<(), Failure> {
    // The dentries of the directories above, the root's first.
    let mut parents = Vec::new();
    for (seen, visited) in walk.by_ref().enumerate() {
        parents.truncate(visited.depth());
        let own = address::dentry(seen as u64);
        if let Some(&parent) = parents.last() {
            let name_hash = u64::from(name_hash(visited.name()));
            if sink(Dentry { parent, name_hash })?.is_break() {
                return Ok(());
            }
        }
        parents.push(own);
    }
    Ok(())
}

/// One key for each name's inode; a file with several names is counted once for each.
pub fn inodes(walk: &mut Walk, sink: Sink<'_, Inode>) -> Result<(), Failure> {
    let superblock = address::superblock();
    for visited in walk.by_ref() {
        let number = visited.inode();
        if sink(Inode { superblock, number })?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// One key for each page of each file that has blocks: its holes are in no cache.
pub fn pages(walk: &mut Walk, sink: Sink<'_, Page>) -> Result<(), Failure> {
    let mut files = 0;
    while let Some(visited) = walk.next() {
        let Some(bytes) = walk.stored_bytes(&visited) else {
            continue;
        };
        let inode = address::inode(files);
        files += 1;
        for page in 0..bytes.div_ceil(address::PAGE) {
            let offset = page * address::PAGE;
            if sink(Page { inode, offset })?.is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
}
