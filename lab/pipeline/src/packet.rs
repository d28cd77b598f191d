//! The parser: from a frame's bytes to its key. Whatever the bytes are, the result is a key or the reason why there is
//! none.

use etherparse::{
    EtherType, Ipv6ExtensionSlice, LaxIpPayloadSlice, LaxLinkExtSlice, LaxNetSlice,
    LaxSlicedPacket, ether_type, ip_number,
};
use pcap_file::DataLink;

use crate::key::{FlowKey, Fragment, Header, TAGGED};

/// The link layer: what precedes a frame's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Ethernet II.
    Ethernet,
    /// Nothing: the frame begins with the IP header.
    Ip,
    /// BSD loopback: four bytes of address family, in anyone's byte order.
    Loopback,
    /// Linux cooked capture: 16 bytes, the type of what follows in the last two.
    LinuxCooked,
    /// Its second version: 20 bytes, the type in the first two.
    LinuxCooked2,
}

impl Link {
    /// The link of a capture's link type, if it is one of those that can be read.
    pub fn of(link_type: DataLink) -> Option<Self> {
        match link_type {
            DataLink::ETHERNET => Some(Self::Ethernet),
            DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(Self::Ip),
            DataLink::NULL | DataLink::LOOP => Some(Self::Loopback),
            DataLink::LINUX_SLL => Some(Self::LinuxCooked),
            DataLink::LINUX_SLL2 => Some(Self::LinuxCooked2),
            _ => None,
        }
    }
}

/// Why a frame has no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Skip {
    /// It carries no IP: ARP, say.
    NotIp,
    /// It ends before its ports do: cut by the snap length, or broken off.
    Truncated,
    /// A header contradicts itself.
    Malformed,
    /// More VLAN tags than three.
    TooManyTags,
}

impl Skip {
    /// All of them, in the order of their values.
    pub const ALL: [Self; 4] = [
        Self::NotIp,
        Self::Truncated,
        Self::Malformed,
        Self::TooManyTags,
    ];

    /// Its name in a report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotIp => "not IP",
            Self::Truncated => "truncated",
            Self::Malformed => "malformed",
            Self::TooManyTags => "more than three VLAN tags",
        }
    }
}

/// The key of a frame.
#[inline]
pub fn parse(link: Link, frame: &[u8]) -> Result<FlowKey, Skip> {
    let packet = match link {
        Link::Ethernet => LaxSlicedPacket::from_ethernet(frame).map_err(|_| Skip::Truncated)?,
        Link::Ip => ip(frame)?,
        Link::Loopback => ip(frame.get(4..).ok_or(Skip::Truncated)?)?,
        Link::LinuxCooked => cooked(frame, 14, 16)?,
        Link::LinuxCooked2 => cooked(frame, 0, 20)?,
    };
    key(&packet)
}

fn ip(bytes: &[u8]) -> Result<LaxSlicedPacket<'_>, Skip> {
    use etherparse::err::ip::LaxHeaderSliceError;
    LaxSlicedPacket::from_ip(bytes).map_err(|error| match error {
        LaxHeaderSliceError::Len(_) => Skip::Truncated,
        LaxHeaderSliceError::Content(_) => Skip::Malformed,
    })
}

fn cooked(frame: &[u8], type_at: usize, header: usize) -> Result<LaxSlicedPacket<'_>, Skip> {
    let payload = frame.get(header..).ok_or(Skip::Truncated)?;
    let ether_type = u16::from_be_bytes([frame[type_at], frame[type_at + 1]]);
    Ok(LaxSlicedPacket::from_ether_type(
        EtherType(ether_type),
        payload,
    ))
}

fn key(packet: &LaxSlicedPacket<'_>) -> Result<FlowKey, Skip> {
    let tags = tags(packet);
    let (source, destination, fragment, payload) = match &packet.net {
        Some(LaxNetSlice::Arp(_)) => return Err(Skip::NotIp),
        None => return Err(why_not_ip(packet)),
        // Before its headers are read: etherparse 0.20 reads beyond the frame when it walks IPv6 extensions of which
        // the last one announced is cut.
        Some(_) if stopped_below_transport(packet) => return Err(why_not_ip(packet)),
        Some(LaxNetSlice::Ipv4(ip)) => {
            let header = ip.header();
            let later = header.fragments_offset().value() != 0;
            (
                header.source_addr().into(),
                header.destination_addr().into(),
                fragment(ip.payload().fragmented, later),
                ip.payload(),
            )
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let later = ip.extensions().clone().into_iter().any(|extension| {
                matches!(extension, Ipv6ExtensionSlice::Fragment(fragment)
                    if fragment.fragment_offset().value() != 0)
            });
            (
                ip.header().source_addr().into(),
                ip.header().destination_addr().into(),
                fragment(ip.payload().fragmented, later),
                ip.payload(),
            )
        }
    };
    Ok(FlowKey::new(&Header {
        source,
        destination,
        protocol: payload.ip_number.0,
        ports: ports(payload, fragment)?,
        fragment,
        tags,
    }))
}

fn fragment(fragmented: bool, later: bool) -> Fragment {
    match (fragmented, later) {
        (_, true) => Fragment::Later,
        (true, false) => Fragment::First,
        (false, false) => Fragment::Whole,
    }
}

/// The VLAN tags, from the outside in.
fn tags(packet: &LaxSlicedPacket<'_>) -> [u16; 3] {
    let mut tags = [0; 3];
    let vlans = packet.link_exts.iter().filter_map(|header| match header {
        LaxLinkExtSlice::Vlan(vlan) => Some(vlan.vlan_identifier().value()),
        LaxLinkExtSlice::Macsec(_) => None,
    });
    for (tag, number) in tags.iter_mut().zip(vlans) {
        *tag = TAGGED | number;
    }
    tags
}

/// The ports, or ICMP's type and code. They are the first bytes of the payload, so a packet that was
/// cut behind them still has them, which the parser of whole transport headers would refuse.
fn ports(payload: &LaxIpPayloadSlice<'_>, fragment: Fragment) -> Result<(u16, u16), Skip> {
    if fragment == Fragment::Later {
        return Ok((0, 0));
    }
    let bytes = payload.payload;
    match payload.ip_number {
        ip_number::TCP
        | ip_number::UDP
        | ip_number::UDP_LITE
        | ip_number::SCTP
        | ip_number::DCCP => match *bytes {
            [a, b, c, d, ..] => Ok((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]))),
            _ => Err(Skip::Truncated),
        },
        ip_number::ICMP | ip_number::IPV6_ICMP => match *bytes {
            [kind, code, ..] => Ok((u16::from(kind), u16::from(code))),
            _ => Err(Skip::Truncated),
        },
        _ => Ok((0, 0)),
    }
}

/// True if an extension header of IP could not be read, so that the protocol is not known.
fn stopped_below_transport(packet: &LaxSlicedPacket<'_>) -> bool {
    use etherparse::err::Layer;
    packet.stop_err.as_ref().is_some_and(|(_, layer)| {
        !matches!(
            layer,
            Layer::TcpHeader | Layer::UdpHeader | Layer::UdpPayload | Layer::Icmpv4 | Layer::Icmpv6
        )
    })
}

fn why_not_ip(packet: &LaxSlicedPacket<'_>) -> Skip {
    use etherparse::err::packet::SliceError;
    match &packet.stop_err {
        Some((SliceError::Len(_), _)) => Skip::Truncated,
        Some(_) => Skip::Malformed,
        None => match packet.ether_payload() {
            Some(payload)
                if packet.link_exts.is_full()
                    && matches!(
                        payload.ether_type,
                        ether_type::VLAN_TAGGED_FRAME
                            | ether_type::PROVIDER_BRIDGING
                            | ether_type::VLAN_DOUBLE_TAGGED_FRAME
                    ) =>
            {
                Skip::TooManyTags
            }
            _ => Skip::NotIp,
        },
    }
}

#[cfg(test)]
mod tests {
    use etherparse::{IpFragOffset, Ipv4Header, PacketBuilder, SingleVlanHeader, VlanId};

    use super::*;
    use crate::key::{End, Field};

    /// One whole header of destination options announces another, which is cut. (A read beyond the frame is
    /// seen where this runs under AddressSanitizer: the fuzz target `packet`.)
    #[test]
    fn an_extension_that_is_cut_is_not_looked_into() {
        const DESTINATION_OPTIONS: u8 = 60;
        const WHOLE: [u8; 8] = [DESTINATION_OPTIONS, 0, 1, 4, 0, 0, 0, 0];
        for cut in 0..WHOLE.len() {
            let length = (WHOLE.len() + cut) as u8;
            let mut packet = vec![0x60, 0, 0, 0, 0, length];
            packet.extend([DESTINATION_OPTIONS, 64]);
            packet.extend([1; 32]);
            packet.extend(WHOLE);
            packet.extend(&WHOLE[..cut]);
            assert_eq!(parse(Link::Ip, &packet), Err(Skip::Truncated), "cut {cut}");
        }
    }

    fn udp_frame() -> Vec<u8> {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .udp(1000, 53)
            .write(&mut frame, &[0; 20])
            .unwrap();
        frame
    }

    fn ports_of(key: &FlowKey) -> (u64, u64) {
        (key.get(Field::SourcePort), key.get(Field::DestinationPort))
    }

    /// `frame` with VLAN tags put between addresses and type.
    fn tagged(frame: &[u8], tags: &[u16]) -> Vec<u8> {
        let mut out = frame[..12].to_vec();
        let last = u16::from_be_bytes([frame[12], frame[13]]);
        let types = |index: usize| match tags.get(index) {
            Some(_) => ether_type::VLAN_TAGGED_FRAME.0,
            None => last,
        };
        out.extend(types(0).to_be_bytes());
        for (index, &tag) in tags.iter().enumerate() {
            let header = SingleVlanHeader {
                pcp: Default::default(),
                drop_eligible_indicator: false,
                vlan_id: VlanId::try_new(tag).unwrap(),
                ether_type: EtherType(types(index + 1)),
            };
            out.extend(header.to_bytes());
        }
        out.extend(&frame[14..]);
        out
    }

    #[test]
    fn udp_and_tcp_over_both_families() {
        let key = parse(Link::Ethernet, &udp_frame()).unwrap();
        assert_eq!(key.address(End::Source).to_string(), "10.0.0.1");
        assert_eq!(key.address(End::Destination).to_string(), "10.0.0.2");
        assert_eq!(ports_of(&key), (1000, 53));
        assert_eq!(key.get(Field::Protocol), 17);

        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv6([1; 16], [2; 16], 64)
            .tcp(80, 81, 0, 0)
            .write(&mut frame, &[])
            .unwrap();
        let key = parse(Link::Ethernet, &frame).unwrap();
        assert_eq!(key.get(Field::Version), 6);
        assert_eq!(key.get(Field::Protocol), 6);
        assert_eq!(ports_of(&key), (80, 81));
    }

    #[test]
    fn icmp_has_type_and_code() {
        let mut frame = Vec::new();
        PacketBuilder::ethernet2([1; 6], [2; 6])
            .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
            .icmpv4_echo_request(1, 2)
            .write(&mut frame, &[])
            .unwrap();
        assert_eq!(ports_of(&parse(Link::Ethernet, &frame).unwrap()), (8, 0));
    }

    #[test]
    fn tags_up_to_three() {
        let plain = parse(Link::Ethernet, &udp_frame()).unwrap();
        let mut seen = vec![plain];
        for tags in [&[5][..], &[5, 6], &[6, 5], &[5, 6, 7], &[0]] {
            let key = parse(Link::Ethernet, &tagged(&udp_frame(), tags)).unwrap();
            assert_eq!(key.get(Field::OuterTag), u64::from(TAGGED | tags[0]));
            assert_eq!(ports_of(&key), (1000, 53));
            assert!(!seen.contains(&key), "{tags:?}");
            seen.push(key);
        }
        let four = tagged(&udp_frame(), &[1, 2, 3, 4]);
        assert_eq!(parse(Link::Ethernet, &four), Err(Skip::TooManyTags));
    }

    #[test]
    fn links_lead_to_the_same_key() {
        let frame = udp_frame();
        let key = parse(Link::Ethernet, &frame).unwrap();
        let ip = &frame[14..];
        assert_eq!(parse(Link::Ip, ip), Ok(key));
        assert_eq!(
            parse(Link::Loopback, &[&[2, 0, 0, 0], ip].concat()),
            Ok(key)
        );
        let mut cooked = vec![0; 16];
        cooked[14] = 8;
        assert_eq!(parse(Link::LinuxCooked, &[&cooked, ip].concat()), Ok(key));
        let mut cooked = vec![0; 20];
        cooked[0] = 8;
        assert_eq!(parse(Link::LinuxCooked2, &[&cooked, ip].concat()), Ok(key));
    }

    fn ipv4_fragment(offset: u16, more: bool, payload: &[u8]) -> Vec<u8> {
        let mut header = Ipv4Header::new(
            payload.len() as u16,
            64,
            ip_number::UDP,
            [10, 0, 0, 1],
            [10, 0, 0, 2],
        )
        .unwrap();
        header.more_fragments = more;
        header.fragment_offset = IpFragOffset::try_new(offset).unwrap();
        [header.to_bytes().as_slice(), payload].concat()
    }

    #[test]
    fn fragments_of_both_families() {
        let payload = [0, 1, 0, 2, 0, 0, 0, 0];
        let first = parse(Link::Ip, &ipv4_fragment(0, true, &payload)).unwrap();
        assert_eq!(first.get(Field::Fragment), Fragment::First as u64);
        assert_eq!(ports_of(&first), (1, 2));
        let later = parse(Link::Ip, &ipv4_fragment(1, false, &payload)).unwrap();
        assert_eq!(later.get(Field::Fragment), Fragment::Later as u64);
        assert_eq!(ports_of(&later), (0, 0));

        for (offset_and_more, expected, ports) in [
            (0x0001_u16, Fragment::First, (1, 2)),
            (0x0008, Fragment::Later, (0, 0)),
            (0x0000, Fragment::Whole, (1, 2)),
        ] {
            let mut packet = vec![0x60, 0, 0, 0, 0, 16, 44, 64];
            packet.extend([1; 32]);
            packet.extend([17, 0]);
            packet.extend(offset_and_more.to_be_bytes());
            packet.extend([0; 4]);
            packet.extend(payload);
            let key = parse(Link::Ip, &packet).unwrap();
            assert_eq!(key.get(Field::Fragment), expected as u64);
            assert_eq!(key.get(Field::Protocol), 17);
            assert_eq!(ports_of(&key), ports);
        }
    }

    #[test]
    fn a_packet_cut_behind_its_ports_still_has_them() {
        let frame = tagged(&udp_frame(), &[9]);
        let whole = parse(Link::Ethernet, &frame).unwrap();
        let ports_end = 14 + 4 + 20 + 4;
        for length in 0..frame.len() {
            let cut = parse(Link::Ethernet, &frame[..length]);
            if length >= ports_end {
                assert_eq!(cut, Ok(whole), "{length} bytes");
            } else {
                assert_eq!(cut, Err(Skip::Truncated), "{length} bytes");
            }
        }
    }

    #[test]
    fn what_is_not_ip() {
        let mut arp = udp_frame();
        arp[12..14].copy_from_slice(&[0x08, 0x06]);
        arp[14..22].copy_from_slice(&[0, 1, 8, 0, 6, 4, 0, 1]);
        assert_eq!(parse(Link::Ethernet, &arp), Err(Skip::NotIp));
        arp[12..14].copy_from_slice(&[0x88, 0xcc]);
        assert_eq!(parse(Link::Ethernet, &arp), Err(Skip::NotIp));
        // A header length of 16 bytes, and version 5.
        let mut bad = udp_frame()[14..].to_vec();
        bad[0] = 0x44;
        assert_eq!(parse(Link::Ip, &bad), Err(Skip::Malformed));
        bad[0] = 0x55;
        assert_eq!(parse(Link::Ip, &bad), Err(Skip::Malformed));
        assert_eq!(parse(Link::Ip, &[]), Err(Skip::Truncated));
        for link in [Link::Loopback, Link::LinuxCooked, Link::LinuxCooked2] {
            assert_eq!(parse(link, &[0, 0, 0]), Err(Skip::Truncated));
        }
    }
}
