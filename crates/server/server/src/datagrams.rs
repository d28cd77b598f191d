//! Sockets of memcached's UDP: a request is one datagram, its answer one or more (`nuthatch_protocol::datagram`). Each
//! worker has a socket of its own for each address, and the kernel spreads clients over these sockets.

use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use mio::Token;
use mio::net::UdpSocket;
use nuthatch_engine::Time;
use nuthatch_protocol::datagram::Frames;
use nuthatch_settings::config::Protocol;
use nuthatch_state::telemetry::connections::{Info, Peer};
use socket2::{Domain, SockAddr, Socket, Type};

use crate::handover::Named;
use crate::handover::taking::Successor;
use crate::protocols::Phase;

/// Bytes of the longest datagram that can come.
pub(crate) const DATAGRAM_MAX: usize = 65_507;

/// Bytes of a socket's buffers in the kernel. The kernel may allow fewer.
const KERNEL_BUFFER: usize = 4 << 20;

/// A worker's socket for the datagrams of an address.
pub(crate) struct DatagramSocket {
    pub(crate) socket: UdpSocket,
    pub(crate) protocol: Protocol,
    pub(crate) info: Arc<Info>,
    /// There may be datagrams: an event said so, and no read has found the socket empty since.
    pub(crate) ready: bool,
}

impl DatagramSocket {
    /// Binds the sockets of all workers for an address. Returns them, and the address with its real port.
    pub(crate) fn bind(
        address: SocketAddr,
        workers: usize,
        protocol: Protocol,
        successor: Option<&mut Successor>,
    ) -> io::Result<(Vec<Self>, SocketAddr)> {
        let (first, mut given) = match successor {
            Some(successor) => (successor.udp(address), Some(successor)),
            None => (None, None),
        };
        let first = match first {
            Some(first) => first,
            None => {
                let first = open(address)?;
                // The address is not shared yet, so this fails if another server has it.
                first.bind(&SockAddr::from(address))?;
                first.set_reuse_port(true)?;
                first
            }
        };
        let address = address_of(&first)?;
        let mut sockets = vec![first];
        while sockets.len() < workers {
            let given = given.as_mut().and_then(|successor| successor.udp(address));
            sockets.push(match given {
                Some(socket) => socket,
                None => {
                    let next = open(address)?;
                    next.set_reuse_port(true)?;
                    next.bind(&SockAddr::from(address))?;
                    next
                }
            });
        }
        Ok((Self::all(sockets, address, protocol), address))
    }

    /// The sockets of all workers for a socket that another process has bound: all workers share it.
    pub(crate) fn inherit(
        socket: &Socket,
        workers: usize,
        protocol: Protocol,
    ) -> io::Result<(Vec<Self>, SocketAddr)> {
        if socket.r#type()? != Type::DGRAM {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not a socket for datagrams",
            ));
        }
        socket.set_nonblocking(true)?;
        let address = address_of(socket)?;
        let copies = (0..workers).map(|_| socket.try_clone());
        let sockets = copies.collect::<io::Result<_>>()?;
        Ok((Self::all(sockets, address, protocol), address))
    }

    fn all(sockets: Vec<Socket>, address: SocketAddr, protocol: Protocol) -> Vec<Self> {
        let sockets = sockets.into_iter().map(|socket| Self {
            socket: UdpSocket::from_std(socket.into()),
            protocol,
            info: Arc::new(Info::unregistered(Peer::Udp(address), Time(0))),
            ready: false,
        });
        sockets.collect()
    }

    /// Its socket, for another process.
    pub(crate) fn copy(&self) -> io::Result<Named> {
        Ok(Named {
            name: "udp",
            socket: self.socket.as_fd().try_clone_to_owned()?,
        })
    }

    /// Its number in the system.
    pub(crate) fn fd(&self) -> i32 {
        self.socket.as_raw_fd()
    }
}

fn address_of(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?.as_socket();
    address.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no UDP"))
}

fn open(address: SocketAddr) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    let socket = Socket::new(domain, Type::DGRAM, Some(socket2::Protocol::UDP))?;
    if domain == Domain::IPV6 {
        // As for TCP: the same port can be bound for IPv4 beside it.
        socket.set_only_v6(true)?;
    }
    socket.set_nonblocking(true)?;
    // With smaller buffers, bursts lose datagrams sooner.
    let _ = socket.set_recv_buffer_size(KERNEL_BUFFER);
    let _ = socket.set_send_buffer_size(KERNEL_BUFFER);
    Ok(socket)
}

/// The poll's token for a worker's datagram socket. Tokens of connections count up from 0, these count down from the
/// waker's.
pub(crate) fn token(index: usize) -> Token {
    Token(usize::MAX - 1 - index)
}

/// The index of the datagram socket that a token names, of `count` sockets. `None` if the token is not one of theirs.
pub(crate) fn index_of(token: Token, count: usize) -> Option<usize> {
    let index = (usize::MAX - 1).checked_sub(token.0)?;
    (index < count).then_some(index)
}

/// A request on its way through an iteration.
pub(crate) struct Datagram {
    /// The index of the worker's socket that received it.
    pub(crate) socket: usize,
    pub(crate) peer: SocketAddr,
    pub(crate) request: u16,
    pub(crate) phase: Phase,
}

/// A writer that sends an answer in frames.
pub(crate) struct Sender<'s> {
    socket: &'s UdpSocket,
    peer: SocketAddr,
    frames: Frames,
}

impl<'s> Sender<'s> {
    /// For an answer of `len` bytes.
    pub(crate) fn new(socket: &'s UdpSocket, peer: SocketAddr, request: u16, len: usize) -> Self {
        Self {
            socket,
            peer,
            frames: Frames::new(request, len),
        }
    }
}

fn send(socket: &UdpSocket, peer: SocketAddr, frame: &[u8]) -> io::Result<()> {
    loop {
        match socket.send_to(frame, peer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            sent => break sent.map(|_| ()),
        }
    }
}

impl Write for Sender<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let send = |frame: &[u8]| send(self.socket, self.peer, frame);
        self.frames.take(bytes, send)?;
        Ok(bytes.len())
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        pieces.iter().map(|piece| self.write(piece)).sum()
    }

    /// Sends the last frame, which may be shorter.
    fn flush(&mut self) -> io::Result<()> {
        self.frames.end(|frame| send(self.socket, self.peer, frame))
    }
}

#[cfg(test)]
mod tests {
    use nuthatch_protocol::datagram::{FRAME, HEADER};

    use super::*;

    #[test]
    fn an_answer_is_cut_into_numbered_frames() {
        let (ours, address) =
            DatagramSocket::bind(([127, 0, 0, 1], 0).into(), 2, Protocol::Text, None).unwrap();
        assert_eq!(ours.len(), 2);
        assert_eq!(ours[1].socket.local_addr().unwrap(), address);
        let client = std::net::UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        for len in [1, FRAME - HEADER, FRAME - HEADER + 1, 10_000] {
            let text: Vec<u8> = (0..len).map(|byte| byte as u8).collect();
            let peer = client.local_addr().unwrap();
            let mut frames = Sender::new(&ours[0].socket, peer, 7, len);
            let (one, other) = text.split_at(len / 3);
            let pieces = [IoSlice::new(one), IoSlice::new(other)];
            assert_eq!(frames.write_vectored(&pieces).unwrap(), len);
            frames.flush().unwrap();
            let (mut found, mut number) = (Vec::new(), 0);
            while found.len() < len {
                let mut frame = [0; 2000];
                let count = client.recv(&mut frame).unwrap();
                assert!(count <= FRAME);
                let of = len.div_ceil(FRAME - HEADER) as u8;
                assert_eq!(frame[..HEADER], [0, 7, 0, number, 0, of, 0, 0]);
                found.extend_from_slice(&frame[HEADER..count]);
                number += 1;
            }
            assert_eq!(found, text);
        }
    }

    #[test]
    fn an_address_has_one_server() {
        let bind = |address| DatagramSocket::bind(address, 2, Protocol::Text, None);
        let (_sockets, address) = bind(([127, 0, 0, 1], 0).into()).unwrap();
        let error = bind(address).err().expect("it is taken");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    }

    #[test]
    fn tokens_name_sockets() {
        for index in 0..3 {
            assert_eq!(index_of(token(index), 3), Some(index));
        }
        assert_eq!(index_of(token(3), 3), None);
        assert_eq!(index_of(Token(0), 3), None);
        assert_eq!(index_of(crate::worker::WAKE, 3), None);
    }
}
