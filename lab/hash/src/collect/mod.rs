//! `nuthatch-lab hash collect`: keys of this machine's file systems, as the tables of the Linux paper have
//! them, and of its processes and users. The walk stays on one file system and takes memory for the depth of the tree
//! only.

mod blocks;
pub mod ext2;
#[allow(unsafe_code)]
mod extents;
mod swap;
mod tasks;
mod walk;

use std::cell::RefCell;
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
    /// The same pages as if they were swapped out: the swap cache's keys, in the page cache's table
    SwapCache(Options),
    /// Inode numbers that an ext2 of 1999 would give the same names
    Ext2Inodes(Options),
    /// Blocks of metadata that such an ext2 would have: the keys of a buffer cache of that time
    Ext2Blocks(Options),
    /// Numbers of the running processes and threads: keys of the process table
    Pids(Listed),
    /// Numbers of the users: keys of the user table
    Uids(Listed),
}

/// The options of a collection from a list of the system.
#[derive(Args, Clone, Debug)]
pub struct Listed {
    /// Write to this file instead of standard output; the file appears when it is complete
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Maximum number of keys
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
}

/// The options of a collection.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// The directory to begin at
    #[arg(value_name = "DIR")]
    pub root: PathBuf,
    /// Where to write, and how much.
    #[command(flatten)]
    pub listed: Listed,
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
        Collect::SwapCache(options) => stream(options, swap::swap_cache),
        Collect::Ext2Inodes(options) => stream(options, ext2::inodes),
        Collect::Ext2Blocks(options) => stream(options, ext2::blocks),
        Collect::Pids(options) => write(options, "no threads", tasks::threads, || Ok(())),
        Collect::Uids(options) => write(options, "no users", tasks::users, || Ok(())),
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
    let limit = options.listed.limit.unwrap_or(u64::MAX) as usize;
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
    // The collection and its check at the end share the walk, one after the other.
    let walk = RefCell::new(Walk::begin(&options.root, options.skip_unreadable)?);
    let none = format!("{}: there is no such key below it", options.root.display());
    write(
        &options.listed,
        &none,
        |sink| collect(&mut walk.borrow_mut(), sink),
        || walk.borrow().finish(),
    )
}

/// Writes the keys of a collection. `finish` says whether it missed any; `none` is the error if there is no key.
fn write<K: Line>(
    options: &Listed,
    none: &str,
    collect: impl FnOnce(Sink<'_, K>) -> Result<(), Failure>,
    finish: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut output = Output::open(options.output.as_deref())?;
    let limit = options.limit.unwrap_or(u64::MAX);
    let progress = Progress::new("keys", None);
    let (mut count, mut line, mut reader) = (0, Vec::new(), Reader::Listens);
    output.write(header(K::FORMAT).as_bytes())?;
    collect(&mut |key| {
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
    finish()?;
    if count == 0 {
        return Err(Failure::run(none));
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
    each_page(walk, &mut |(file, page)| {
        let (inode, offset) = (address::inode(file), page * address::PAGE);
        sink(Page { inode, offset })
    })
}

/// The number of each file, and of each of its pages.
fn each_page(walk: &mut Walk, sink: Sink<'_, (u64, u64)>) -> Result<(), Failure> {
    let mut files = 0;
    while let Some(visited) = walk.next() {
        let Some(bytes) = walk.stored_bytes(&visited) else {
            continue;
        };
        for page in 0..bytes.div_ceil(address::PAGE) {
            if sink((files, page))?.is_break() {
                return Ok(());
            }
        }
        files += 1;
    }
    Ok(())
}
