//! Looking up a host's name.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::aside;

/// The addresses of a host, within this time. A name is looked up in a thread of its own, because the system sets no bound to
/// it: who gives up waiting, leaves the thread to end by itself.
pub(crate) fn addresses(host: &str, port: u16, patience: Duration) -> io::Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![(address, port).into()]);
    }
    let (found, finds) = mpsc::channel();
    let host = host.to_owned();
    let look_up = move || {
        #[expect(
            clippy::disallowed_methods,
            reason = "nobody waits for this thread for longer than a connection may take"
        )]
        let addresses = (host.as_str(), port).to_socket_addrs();
        // Nobody may be waiting any more.
        let _ = found.send(addresses.map(Vec::from_iter));
    };
    aside::spawn("look-up", look_up)?;
    finds.recv_timeout(patience).unwrap_or_else(|error| {
        let (kind, words) = match error {
            RecvTimeoutError::Timeout => {
                (ErrorKind::TimedOut, "the host's name was not found in time")
            }
            RecvTimeoutError::Disconnected => {
                (ErrorKind::Other, "the host's name could not be looked up")
            }
        };
        Err(io::Error::new(kind, words))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_name() {
        let patience = Duration::from_secs(60);
        let found = |host| addresses(host, 7, patience).unwrap();
        assert_eq!(found("127.0.0.1"), ["127.0.0.1:7".parse().unwrap()]);
        assert_eq!(found("::1"), ["[::1]:7".parse().unwrap()]);
        assert!(
            found("localhost")
                .iter()
                .all(|address| address.ip().is_loopback())
        );
        assert!(addresses("no such host", 7, patience).is_err());
    }
}
