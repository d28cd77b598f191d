//! Blocks of files and directories, as the file system tells them.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use nuthatch_hash::key::Block;
use rustix::fs::{major, minor};

use super::extents::{Extents, ExtentsError};
use super::walk::{Found, Walk};
use super::{Go, Sink};
use crate::Failure;

/// One key for each block that holds a part of a file or directory: blocks are as large as the file
/// system's.
pub fn blocks(walk: &mut Walk, sink: Sink<'_, Block>) -> Result<(), Failure> {
    while let Some(found) = walk.next() {
        if !found.has_blocks() {
            continue;
        }
        if of_file(walk, &found, sink)? == Go::Stop {
            return Ok(());
        }
    }
    Ok(())
}

fn of_file(walk: &mut Walk, found: &Found, sink: Sink<'_, Block>) -> Result<Go, Failure> {
    let opened = File::open(found.path()).and_then(|file| Ok((file.metadata()?, file)));
    let (about, file) = match opened {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Go::On),
        Err(error) => {
            walk.left_out(&format!("{}: {error}", found.path().display()));
            return Ok(Go::On);
        }
    };
    let device = device_1999(about.dev());
    let block_bytes = about.blksize().max(512);
    for extent in Extents::of(&file) {
        let extent = match extent {
            Ok(extent) => extent,
            Err(ExtentsError::Unsupported) => {
                return Err(Failure::data(format!(
                    "{}: its file system does not tell where its blocks are (FIEMAP); ext4, xfs and \
                     btrfs do",
                    found.path().display()
                )));
            }
            Err(ExtentsError::Failed(error)) => {
                walk.left_out(&format!("{}: {error}", found.path().display()));
                return Ok(Go::On);
            }
        };
        let first = extent.physical / block_bytes;
        for block in first..first + extent.length.div_ceil(block_bytes) {
            if sink(Block { device, block })? == Go::Stop {
                return Ok(Go::Stop);
            }
        }
    }
    Ok(Go::On)
}

/// A device number as it was in the paper's time: 8 bits each.
fn device_1999(device: u64) -> u64 {
    u64::from(major(device) & 0xff) << 8 | u64::from(minor(device) & 0xff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_has_sixteen_bits() {
        assert_eq!(device_1999(rustix::fs::makedev(8, 5)), 0x0805);
        assert_eq!(device_1999(rustix::fs::makedev(0x1fe, 0x102)), 0xfe02);
    }
}
