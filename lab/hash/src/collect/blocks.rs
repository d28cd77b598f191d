//! Blocks of files and directories, as the file system reports them.

use std::fs::File;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;

use crate::key::Block;
use nix::sys::stat::{major, minor};

use super::Sink;
use super::extents::{Extents, ExtentsError};
use super::walk::{Visited, Walk};
use nuthatch_program::Failure;

/// One key for each block that holds a part of a file or directory: blocks are as large as the file
/// system's.
pub fn blocks(walk: &mut Walk, sink: Sink<'_, Block>) -> Result<(), Failure> {
    while let Some(visited) = walk.next() {
        if !visited.has_blocks() {
            continue;
        }
        if of_file(walk, &visited, sink)?.is_break() {
            return Ok(());
        }
    }
    Ok(())
}

fn of_file(
    walk: &mut Walk,
    visited: &Visited,
    sink: Sink<'_, Block>,
) -> Result<ControlFlow<()>, Failure> {
    let opened = File::open(visited.path()).and_then(|file| Ok((file.metadata()?, file)));
    let (about, file) = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(ControlFlow::Continue(())),
        Err(error) => {
            walk.left_out(&format!("{}: {error}", visited.path().display()));
            return Ok(ControlFlow::Continue(()));
        }
    };
    let device = device_1999(about.dev());
    let block_bytes = about.blksize().max(512);
    for extent in Extents::of(&file) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(ExtentsError::Unsupported) => {
                return Err(Failure::run(format!(
                    "{}: its file system does not report where its blocks are (FIEMAP); ext4, xfs and \
                     btrfs do",
                    visited.path().display()
                )));
            }
            Err(ExtentsError::Failed(error)) => {
                walk.left_out(&format!("{}: {error}", visited.path().display()));
                return Ok(ControlFlow::Continue(()));
            }
        };
        let first = extent.physical / block_bytes;
        for block in first..first + extent.length.div_ceil(block_bytes) {
            if sink(Block { device, block })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// A device number as it was in the paper's time: 8 bits each.
fn device_1999(device: u64) -> u64 {
    (major(device) & 0xff) << 8 | minor(device) & 0xff
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::makedev;

    use super::*;

    #[test]
    fn a_device_has_sixteen_bits() {
        assert_eq!(device_1999(makedev(8, 5)), 0x0805);
        assert_eq!(device_1999(makedev(0x1fe, 0x102)), 0xfe02);
    }
}
