//! Tests with captures of both formats, whole, cut and broken in every place; and with any bytes instead of them.

use std::time::Duration;

use etherparse::PacketBuilder;
use nuthatch_pipeline::capture::{Capture, CaptureError, FRAME_MAX, Faults};
use nuthatch_pipeline::key::{Field, FlowKey};
use nuthatch_pipeline::packet::{Link, Skip};
use nuthatch_pipeline::source::{Frames, Replay, Source};
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter, RawPcapPacket};
use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionBlock;
use pcap_file::pcapng::blocks::simple_packet::SimplePacketBlock;
use pcap_file::{DataLink, Endianness};
use proptest::collection::vec;
use proptest::prelude::*;

mod invariants;

/// A UDP packet from this port, with a payload of `payload` bytes.
fn frame(port: u16, payload: usize) -> Vec<u8> {
    let mut frame = Vec::new();
    PacketBuilder::ethernet2([1; 6], [2; 6])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
        .udp(port, 53)
        .write(&mut frame, &vec![0; payload])
        .unwrap();
    frame
}

fn pcap(frames: &[Vec<u8>], datalink: DataLink, endianness: Endianness) -> Vec<u8> {
    let header = PcapHeader {
        datalink,
        endianness,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    for frame in frames {
        let packet = PcapPacket::new(Duration::from_secs(1), frame.len() as u32, frame);
        writer.write_packet(&packet).unwrap();
    }
    writer.into_writer()
}

/// Each frame from its interface: a link type and a snap length for each.
fn pcapng(interfaces: &[(DataLink, u32)], frames: &[(u32, Vec<u8>)], order: Endianness) -> Vec<u8> {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), order).unwrap();
    for &(link, snap_len) in interfaces {
        writer
            .write_pcapng_block(InterfaceDescriptionBlock::new(link, snap_len))
            .unwrap();
    }
    for (interface_id, frame) in frames {
        let block = EnhancedPacketBlock {
            interface_id: *interface_id,
            timestamp: Duration::ZERO,
            original_len: frame.len() as u32,
            data: frame.into(),
            options: vec![],
        };
        writer.write_pcapng_block(block).unwrap();
    }
    writer.into_inner()
}

fn read(bytes: &[u8]) -> Result<Capture, CaptureError> {
    let mut capture = Capture::default();
    capture.read(bytes).map(|()| capture)
}

#[test]
fn both_formats_in_both_byte_orders() {
    let frames = [frame(1, 10), frame(2, 400), frame(1, 0)];
    for order in [Endianness::Big, Endianness::Little] {
        let numbered: Vec<_> = frames.iter().map(|frame| (0, frame.clone())).collect();
        for bytes in [
            pcap(&frames, DataLink::ETHERNET, order),
            pcapng(&[(DataLink::ETHERNET, 0)], &numbered, order),
        ] {
            let capture = read(&bytes).unwrap();
            assert_eq!(*capture.faults(), Faults::default());
            assert_eq!(capture.len(), 3);
            assert_eq!(capture.frame(0), (Link::Ethernet, &frames[0][..]));
            assert_eq!(capture.frame(1).1, &frames[1][..FRAME_MAX]);
            let frames = Frames::new(capture);
            assert_eq!((frames.len(), frames.flows()), (3, 2));
        }
    }
}

#[test]
fn a_capture_cut_anywhere_gives_the_frames_before() {
    let frames = [frame(1, 8), frame(2, 8), frame(3, 8)];
    let numbered: Vec<_> = frames.iter().map(|frame| (0, frame.clone())).collect();
    let plain = pcap(&frames, DataLink::ETHERNET, Endianness::Little);
    let blocks = pcapng(&[(DataLink::ETHERNET, 0)], &numbered, Endianness::Little);
    for whole in [plain, blocks] {
        let mut most = 0;
        for length in 0..whole.len() {
            match read(&whole[..length]) {
                Err(CaptureError::NotACapture(_)) => assert_eq!(most, 0, "{length} bytes"),
                Err(error) => panic!("{length} bytes: {error}"),
                Ok(capture) => {
                    assert!(capture.len() >= most && capture.len() < 3);
                    most = capture.len();
                    for (number, frame) in frames.iter().enumerate().take(most) {
                        assert_eq!(capture.frame(number).1, &frame[..]);
                    }
                    let reported = &capture.faults().broken_off;
                    assert!(reported.len() <= 1);
                    assert!(
                        reported
                            .iter()
                            .all(|why| why.contains("ends in the middle"))
                    );
                }
            }
        }
        assert_eq!(most, 2);
    }
}

#[test]
fn empty_captures_and_empty_packets() {
    for bytes in [&b""[..], b"abc", b"GET / HTTP/1.1\r\nHost: none\r\n\r\n"] {
        let Err(CaptureError::NotACapture(_)) = read(bytes) else {
            panic!("{bytes:?} was read");
        };
    }
    assert!(
        read(&pcap(&[], DataLink::ETHERNET, Endianness::Little))
            .unwrap()
            .is_empty()
    );
    let capture = read(&pcap(
        &[vec![], frame(1, 0)],
        DataLink::ETHERNET,
        Endianness::Little,
    ));
    let capture = capture.unwrap();
    assert_eq!((capture.len(), capture.faults().empty), (1, 1));
}

#[test]
fn unknown_links_are_counted_by_their_number() {
    let capture = pcap(&[frame(1, 0)], DataLink::IEEE802_11, Endianness::Little);
    let capture = read(&capture).unwrap();
    assert!(capture.is_empty());
    assert_eq!(capture.faults().unknown_links, [(105, 1)].into());
    // One interface of two can be read.
    let interfaces = [(DataLink::IEEE802_11, 0), (DataLink::RAW, 0)];
    let frames = [(0, frame(1, 0)), (1, frame(2, 0)[14..].to_vec())];
    let capture = read(&pcapng(&interfaces, &frames, Endianness::Big)).unwrap();
    assert_eq!(capture.len(), 1);
    assert_eq!(capture.frame(0).0, Link::Ip);
    assert_eq!(capture.faults().unknown_links, [(105, 1)].into());
}

#[test]
fn a_packet_of_no_interface_is_a_bad_block() {
    let mut bytes = pcapng(
        &[(DataLink::ETHERNET, 0)],
        &[(0, frame(1, 0)), (0, frame(2, 0))],
        Endianness::Little,
    );
    // Behind a section header of 28 bytes and an interface of 20, the first packet's block begins
    // with its type and length, and then names its interface.
    bytes[28 + 20 + 8] = 1;
    let capture = read(&bytes).unwrap();
    assert_eq!((capture.len(), capture.faults().bad_blocks), (1, 1));
}

#[test]
fn a_simple_packet_is_as_long_as_it_was() {
    let mut writer = PcapNgWriter::with_endianness(Vec::new(), Endianness::Little).unwrap();
    writer
        .write_pcapng_block(InterfaceDescriptionBlock::new(DataLink::ETHERNET, 60))
        .unwrap();
    // 42 bytes are padded to 44; 120 bytes were cut to the snap length.
    for frame in [frame(1, 0), frame(2, 78)] {
        let block = SimplePacketBlock {
            original_len: frame.len() as u32,
            data: frame[..frame.len().min(60)].into(),
        };
        writer.write_pcapng_block(block).unwrap();
    }
    let capture = read(&writer.into_inner()).unwrap();
    assert_eq!(capture.frame(0).1.len(), 42);
    assert_eq!(capture.frame(1).1.len(), 60);
    assert_eq!(Frames::new(capture).len(), 2);
}

#[test]
fn packets_longer_than_the_snap_length_are_read() {
    let header = PcapHeader {
        snaplen: 50,
        ..PcapHeader::default()
    };
    let frame = frame(1, 100);
    let mut writer = PcapWriter::with_header(Vec::new(), header).unwrap();
    let packet = RawPcapPacket {
        ts_sec: 0,
        // No such number of microseconds either: times are not used.
        ts_frac: u32::MAX,
        incl_len: 50,
        orig_len: frame.len() as u32,
        data: frame[..50].into(),
    };
    writer.write_raw_packet(&packet).unwrap();
    let capture = read(&writer.into_writer()).unwrap();
    assert_eq!(Frames::new(capture).len(), 1);
}

#[test]
fn what_has_no_key_is_counted() {
    let mut arp = frame(1, 0);
    arp[12..14].copy_from_slice(&[0x08, 0x06]);
    arp[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
    let mut malformed = frame(1, 0);
    malformed[14] = 0x41;
    let cut = frame(1, 0)[..30].to_vec();
    let bytes = pcap(
        &[arp, malformed, cut, frame(7, 0)],
        DataLink::ETHERNET,
        Endianness::Little,
    );
    let frames = Frames::new(read(&bytes).unwrap());
    assert_eq!(frames.len(), 1);
    let skipped: Vec<_> = frames.skipped().collect();
    assert_eq!(
        skipped,
        [(Skip::NotIp, 1), (Skip::Truncated, 1), (Skip::Malformed, 1)]
    );
}

#[test]
fn captures_follow_one_another() {
    let mut capture = Capture::default();
    let broken = pcap(
        &[frame(1, 8), frame(2, 8)],
        DataLink::ETHERNET,
        Endianness::Little,
    );
    capture.read(&broken[..broken.len() - 1]).unwrap();
    capture
        .read(&pcap(&[frame(3, 8)], DataLink::ETHERNET, Endianness::Big)[..])
        .unwrap();
    assert_eq!(capture.len(), 2);
    assert_eq!(capture.faults().broken_off.len(), 1);
}

#[test]
fn copies_alternate_each_from_its_own_start() {
    let frames: Vec<_> = (0..10).map(|port| frame(port, 0)).collect();
    let bytes = pcap(&frames, DataLink::ETHERNET, Endianness::Little);
    let frames = Frames::new(read(&bytes).unwrap());
    let mut source = Source::Capture(Replay::new(&frames, 4));
    // Two rounds of the capture by four copies, in bursts that fit neither.
    let mut keys = vec![FlowKey::default(); 80];
    for burst in keys.chunks_mut(7) {
        source.draw(burst);
        source.parse(burst);
    }
    let ports = |copy: usize| -> Vec<u64> {
        let of_copy = keys.iter().skip(copy).step_by(4);
        of_copy.map(|key| key.get(Field::SourcePort)).collect()
    };
    for (copy, first) in [0, 2, 5, 7].into_iter().enumerate() {
        let expected: Vec<u64> = (0..20).map(|packet| (first + packet) % 10).collect();
        assert_eq!(ports(copy), expected);
    }
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 4 * frames.flows());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_bytes_are_a_frame_or_not(bytes in vec(any::<u8>(), 0..200)) {
        invariants::check(&bytes);
    }

    #[test]
    fn frames_with_a_few_wrong_bytes(
        wrong in vec((0..62_usize, any::<u8>()), 0..6),
        port in any::<u16>(),
        v6 in any::<bool>(),
    ) {
        let mut bytes = Vec::new();
        let builder = PacketBuilder::ethernet2([1; 6], [2; 6]);
        if v6 {
            builder.ipv6([1; 16], [2; 16], 9).udp(port, 53).write(&mut bytes, &[0; 4]).unwrap();
        } else {
            builder.ipv4([10; 4], [11; 4], 9).tcp(port, 22, 0, 0).write(&mut bytes, &[]).unwrap();
        }
        for (at, byte) in wrong {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        invariants::check(&bytes);
        invariants::check(&pcap(&[bytes], DataLink::ETHERNET, Endianness::Little));
    }
}
