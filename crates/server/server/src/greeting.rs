//! What a server that has started tells of its addresses: where it listens, and which of them are open to other
//! machines.

use std::fmt::Write as _;
use std::net::SocketAddr;

use nuthatch_settings::config::{Protocol, Verify};
use nuthatch_state::telemetry::Address;

use crate::server::ServerHandle;

/// The addresses at which the server listens, as text.
pub fn addresses(server: &ServerHandle) -> String {
    let list = |is_it: fn(Protocol) -> bool| {
        list(server.addresses_of(is_it), |address| {
            server.tls_at(address).is_some()
        })
    };
    let named = [
        ("", list(Protocol::is_memcached)),
        ("CPServer at ", list(Protocol::is_cpserver)),
        ("Redis at ", list(Protocol::is_redis)),
    ];
    let named = named
        .into_iter()
        .filter(|(_, addresses)| !addresses.is_empty());
    let mut addresses: Vec<String> = named
        .map(|(name, addresses)| name.to_owned() + &addresses)
        .collect();
    let metrics = server.metrics_addresses().iter();
    let metrics: Vec<String> = metrics
        .map(|address| format!("http://{address}/metrics"))
        .collect();
    if !metrics.is_empty() {
        addresses.push(format!("metrics at {}", metrics.join(" ")));
    }
    addresses.join(", ")
}

/// A sentence for each kind of address that other machines reach without a password or a certificate.
pub fn open_to_all(server: &ServerHandle, has_passwords: bool) -> Vec<String> {
    let addresses = server.addresses().iter().map(|(address, _)| address);
    let open = addresses
        .filter(|address| !has_passwords && server.tls_at(address) != Some(Verify::Always));
    sentences(open, server.metrics_addresses())
}

/// `addresses` are those where neither a password nor a certificate is demanded; the sockets of systemd are among them.
/// Metrics have no password.
fn sentences<'a>(
    addresses: impl Iterator<Item = &'a Address>,
    metrics: &[SocketAddr],
) -> Vec<String> {
    let is_open = |address: &&Address| match address {
        Address::Tcp(address) | Address::Udp(address) => !address.ip().is_loopback(),
        Address::Unix(_) => false,
    };
    let mut sentences = Vec::new();
    let open = list(addresses.filter(is_open), |_| false);
    if !open.is_empty() {
        sentences.push(format!(
            "everybody who reaches {open} may read and write: -l 127.0.0.1, or passwords (-Y)"
        ));
    }
    let metrics: Vec<_> = metrics.iter().copied().map(Address::Tcp).collect();
    let open = list(metrics.iter().filter(is_open), |_| false);
    if !open.is_empty() {
        sentences.push(format!(
            "everybody who reaches {open} may read the metrics: --metrics 127.0.0.1"
        ));
    }
    sentences
}

fn list<'a>(
    addresses: impl IntoIterator<Item = &'a Address>,
    has_tls: impl Fn(&Address) -> bool,
) -> String {
    let mut text = String::new();
    for address in addresses {
        let space = if text.is_empty() { "" } else { " " };
        let tls = if has_tls(address) { " (TLS)" } else { "" };
        // Writing to a String does not fail.
        let _ = match address {
            Address::Tcp(address) => write!(text, "{space}{address}{tls}"),
            Address::Udp(address) => write!(text, "{space}UDP {address}"),
            Address::Unix(path) => write!(text, "{space}{}", path.display()),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    #[test]
    fn what_others_reach_is_told() {
        let inner = [
            tcp("127.0.0.1:5"),
            tcp("[::1]:5"),
            Address::Unix("/s".into()),
        ];
        let outer = [
            tcp("0.0.0.0:5"),
            Address::Udp("10.0.0.1:6".parse().unwrap()),
        ];
        let metrics = ["127.0.0.1:9150", "[::]:9150", "10.0.0.1:1"];
        let metrics = metrics.map(|text| text.parse().unwrap());
        assert!(sentences(inner.iter(), &metrics[..1]).is_empty());
        let told = sentences(inner.iter().chain(&outer), &metrics);
        assert!(told[0].contains("0.0.0.0:5 UDP 10.0.0.1:6 may read and write"));
        assert!(told[1].contains("reaches [::]:9150 10.0.0.1:1 may read the metrics"));
        // Passwords and certificates protect the items, not the metrics.
        assert_eq!(sentences([].iter(), &metrics[2..]).len(), 1);
    }

    #[test]
    fn addresses_with_tls_are_marked() {
        let all = [tcp("1.2.3.4:5"), tcp("[::]:5")];
        let first = |address: &Address| *address == all[0];
        assert_eq!(list(&all, first), "1.2.3.4:5 (TLS) [::]:5");
    }
}
