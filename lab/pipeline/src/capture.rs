//! Captures: the frames of pcap and pcapng files, and counts of the parts that could not be used.
//!
//! A capture that is broken somewhere gives the frames before the break, and reports it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use byteorder_slice::{BigEndian, LittleEndian};
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::{ENHANCED_PACKET_BLOCK, PACKET_BLOCK, SIMPLE_PACKET_BLOCK};
use pcap_file::pcapng::{Block, PcapNgReader, RawBlock};
use pcap_file::{DataLink, Endianness, PcapError};

use crate::packet::Link;

/// Bytes of a frame that are kept: more than the headers that its key comes from. A frame with a
/// longer chain of headers counts as truncated.
pub const FRAME_MAX: usize = 256;

/// Frames that captures may have together, so that a mistaken file does not take all memory.
pub const FRAMES_MAX: usize = 1 << 24;

/// The first bytes of a pcapng file.
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// How files of gzip, xz, zstd and bzip2 begin, in which captures are often kept.
const COMPRESSED: [&[u8]; 4] = [b"\x1f\x8b", b"\xfd7zX", b"\x28\xb5\x2f\xfd", b"BZh"];

/// The place of a frame's bytes.
#[derive(Clone, Copy, Debug)]
struct FrameRange {
    start: usize,
    len: u16,
    link: Link,
}

/// Frames in the order of their files.
#[derive(Clone, Debug, Default)]
pub struct Capture {
    bytes: Vec<u8>,
    frames: Vec<FrameRange>,
    faults: Faults,
}

/// The parts that could not be used, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Packets by the number of their link type, where that cannot be read.
    pub unknown_links: BTreeMap<u32, u64>,
    /// Packets without a byte.
    pub empty: u64,
    /// Blocks of a pcapng file that contradict themselves.
    pub bad_blocks: u64,
    /// The errors that ended a file early.
    pub broken_off: Vec<String>,
}

/// Why there is no capture.
#[derive(Debug)]
pub enum CaptureError {
    /// The file cannot be read.
    Io(io::Error),
    /// It is neither pcap nor pcapng; what it is instead.
    NotACapture(String),
    /// More frames than [`FRAMES_MAX`].
    TooMany,
}

impl std::fmt::Display for CaptureError {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(error) => write!(out, "{error}"),
            Self::NotACapture(why) => write!(out, "neither pcap nor pcapng: {why}"),
            Self::TooMany => write!(out, "more than {FRAMES_MAX} packets"),
        }
    }
}

impl std::error::Error for CaptureError {}

impl Capture {
    /// Adds the frames of a file.
    pub fn read_file(&mut self, path: &Path) -> Result<(), CaptureError> {
        self.read(File::open(path).map_err(CaptureError::Io)?)
    }

    /// Adds the frames of a stream that is a pcap or a pcapng file.
    pub fn read(&mut self, mut stream: impl Read) -> Result<(), CaptureError> {
        let mut magic = Vec::with_capacity(4);
        stream
            .by_ref()
            .take(4)
            .read_to_end(&mut magic)
            .map_err(CaptureError::Io)?;
        if magic.len() < 4 {
            let length = magic.len();
            return Err(CaptureError::NotACapture(format!("{length} bytes")));
        }
        if COMPRESSED.iter().any(|known| magic.starts_with(known)) {
            let why = "it is compressed; unpack it first".to_owned();
            return Err(CaptureError::NotACapture(why));
        }
        let is_pcapng = magic == PCAPNG_MAGIC;
        let whole = io::Cursor::new(magic).chain(stream);
        if is_pcapng {
            self.read_pcapng(whole)
        } else {
            self.read_pcap(whole)
        }
    }

    /// How many frames there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The frame with this number, below [`Capture::len`].
    #[inline(always)]
    pub fn frame(&self, number: usize) -> (Link, &[u8]) {
        let place = self.frames[number];
        let end = place.start + usize::from(place.len);
        (place.link, &self.bytes[place.start..end])
    }

    /// What could not be used.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    fn read_pcap(&mut self, stream: impl Read) -> Result<(), CaptureError> {
        let mut reader = PcapReader::new(stream).map_err(no_capture)?;
        // The upper half may hold the length of a frame check sequence.
        let link_type = DataLink::from(u32::from(reader.header().datalink) & 0xffff);
        // Not `next_packet`: it refuses packets that capture programs do write, such as one that was longer than the
        // snap length.
        while let Some(packet) = reader.next_raw_packet() {
            match packet {
                Ok(packet) => self.add(link_type, &packet.data)?,
                Err(error) => {
                    self.break_off(&error);
                    break;
                }
            }
        }
        Ok(())
    }

    fn read_pcapng(&mut self, stream: impl Read) -> Result<(), CaptureError> {
        let mut reader = PcapNgReader::new(stream).map_err(no_capture)?;
        loop {
            let endianness = reader.section().endianness;
            let block = match reader.next_raw_block() {
                None => return Ok(()),
                Some(Err(error)) => {
                    self.break_off(&error);
                    return Ok(());
                }
                Some(Ok(block)) => match packet_of(block, endianness) {
                    Ok(block) => block,
                    Err(_) => {
                        self.faults.bad_blocks += 1;
                        continue;
                    }
                },
            };
            let Some((interface, data, original_len)) = block else {
                continue;
            };
            let Some(interface) = reader.interfaces().get(interface as usize) else {
                self.faults.bad_blocks += 1;
                continue;
            };
            let snap_len = match interface.snaplen {
                0 => usize::MAX,
                length => length as usize,
            };
            // A simple packet's data has padding behind it.
            let len = data.len().min(original_len as usize).min(snap_len);
            let link_type = interface.linktype;
            self.add(link_type, &data[..len])?;
        }
    }

    fn add(&mut self, link_type: DataLink, data: &[u8]) -> Result<(), CaptureError> {
        let Some(link) = Link::of(link_type) else {
            let number = u32::from(link_type);
            *self.faults.unknown_links.entry(number).or_default() += 1;
            return Ok(());
        };
        if data.is_empty() {
            self.faults.empty += 1;
            return Ok(());
        }
        if self.frames.len() == FRAMES_MAX {
            return Err(CaptureError::TooMany);
        }
        let len = data.len().min(FRAME_MAX);
        self.frames.push(FrameRange {
            start: self.bytes.len(),
            len: len as u16,
            link,
        });
        self.bytes.extend(&data[..len]);
        Ok(())
    }

    fn break_off(&mut self, error: &PcapError) {
        let after = self.frames.len();
        self.faults
            .broken_off
            .push(format!("after {after} packets: {}", describe(error)));
    }
}

/// A packet of a pcapng file: its interface's number, its bytes, and how many it had.
type NgPacket = (u32, Vec<u8>, u32);

/// The packet in a block, if it is a block of a packet.
fn packet_of(block: RawBlock<'_>, order: Endianness) -> Result<Option<NgPacket>, PcapError> {
    // Other blocks are not used, so their faults are ignored.
    if !matches!(
        block.type_,
        ENHANCED_PACKET_BLOCK | PACKET_BLOCK | SIMPLE_PACKET_BLOCK
    ) {
        return Ok(None);
    }
    let block = match order {
        Endianness::Big => block.try_into_block::<BigEndian>()?,
        Endianness::Little => block.try_into_block::<LittleEndian>()?,
    };
    Ok(match block {
        Block::EnhancedPacket(packet) => {
            Some((packet.interface_id, packet.data.into_owned(), u32::MAX))
        }
        Block::Packet(packet) => Some((
            u32::from(packet.interface_id),
            packet.data.into_owned(),
            u32::MAX,
        )),
        Block::SimplePacket(packet) => Some((0, packet.data.into_owned(), packet.original_len)),
        _ => None,
    })
}

fn no_capture(error: PcapError) -> CaptureError {
    match error {
        PcapError::IoError(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            CaptureError::Io(error)
        }
        error => CaptureError::NotACapture(describe(&error)),
    }
}

/// The error with its cause, which the library's own message leaves out.
fn describe(error: &PcapError) -> String {
    match error {
        PcapError::IoError(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => {
            "it ends in the middle".to_owned()
        }
        PcapError::IoError(cause) => cause.to_string(),
        other => other.to_string(),
    }
}
