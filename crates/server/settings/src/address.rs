//! Addresses as people type them, in one grammar for every flag and every file: `HOST`, `HOST:PORT`, `[HOST]:PORT`,
//! `:PORT` and `PORT`. A host is an address, a name, or `*` for every address of this machine, as for memcached's `-l`.

use std::error::Error;
use std::fmt::{self, Display, Formatter};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener};

use dns_lookup::{AddrInfoHints, LookupError, LookupErrorKind, SockType, getaddrinfo};
use nix::net::if_::{if_indextoname, if_nametoindex};

/// An address as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypedAddress<'t> {
    typed: &'t str,
    host: Host<'t>,
    port: Option<u16>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Host<'t> {
    /// All addresses of this machine.
    Every,
    Address(IpAddr),
    /// An address that is valid at one interface, and the name or number of that.
    Scoped(Ipv6Addr, &'t str),
    Name(&'t str),
}

impl<'t> TypedAddress<'t> {
    /// Parses what was typed. Asks nobody for the addresses of a name.
    pub fn parse(typed: &'t str) -> Result<Self, AddressError> {
        let typed = typed.trim();
        let (host, port) = match typed.strip_prefix('[') {
            Some(rest) => {
                let (host, behind) = rest.split_once(']').ok_or(AddressError::Bracket)?;
                let port = behind.strip_prefix(':').map(port).transpose()?;
                if port.is_none() && !behind.is_empty() {
                    return Err(AddressError::Bracket);
                }
                (host, port)
            }
            // memcached takes an address of IPv6 without brackets, which then is without a port.
            None if typed.matches(':').count() > 1 => (typed, None),
            None => match typed.split_once(':') {
                Some(("", behind)) => ("*", Some(port(behind)?)),
                Some((host, behind)) => (host, Some(port(behind)?)),
                // 0 is an address of IPv4, and +5 is neither that nor a port.
                None => match typed.parse::<u16>() {
                    Ok(port) if port > 0 && !typed.starts_with('+') => ("*", Some(port)),
                    _ => (typed, None),
                },
            },
        };
        let host = Host::parse(host)?;
        Ok(Self { typed, host, port })
    }

    /// Its port, if one was typed.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// What was typed, unless that is an address.
    pub fn name(&self) -> Option<&'t str> {
        (!matches!(self.host, Host::Address(_))).then_some(self.typed)
    }

    /// True if the system has to tell its addresses: a resolver, or the one that knows the interfaces.
    pub fn asks_system(&self) -> bool {
        matches!(self.host, Host::Name(_) | Host::Scoped(..))
    }

    /// Its addresses, at least one, each once. `port` is for one without.
    pub fn addresses(&self, port: u16) -> Result<Vec<SocketAddr>, AddressError> {
        let port = self.port.unwrap_or(port);
        match self.host {
            Host::Every => Ok(everywhere(port)),
            Host::Address(address) => Ok(vec![(address, port).into()]),
            Host::Scoped(address, scope) => {
                let scope = interface(scope)?;
                Ok(vec![SocketAddrV6::new(address, port, 0, scope).into()])
            }
            Host::Name(name) => resolve(name, port),
        }
    }
}

impl<'t> Host<'t> {
    fn parse(typed: &'t str) -> Result<Self, AddressError> {
        if typed == "*" {
            return Ok(Self::Every);
        }
        if let Ok(address) = typed.parse::<IpAddr>() {
            // A socket of IPv6 takes no clients of IPv4 (`bind_tcp`), so ::ffff:127.0.0.1 is 127.0.0.1.
            return match address.to_canonical() {
                IpAddr::V6(address) if address.is_unicast_link_local() => {
                    Err(AddressError::NoScope)
                }
                address => Ok(Self::Address(address)),
            };
        }
        if let Some((address, scope)) = typed.split_once('%')
            && let Ok(address) = address.parse()
        {
            return Ok(Self::Scoped(address, scope));
        }
        let is_name = |byte: u8| !byte.is_ascii_whitespace() && !b":[],;%".contains(&byte);
        match !typed.is_empty() && typed.bytes().all(is_name) {
            true => Ok(Self::Name(typed)),
            false => Err(AddressError::Syntax),
        }
    }
}

/// All addresses of this machine, first that of IPv4. That of IPv6 only if the machine has IPv6.
pub fn everywhere(port: u16) -> Vec<SocketAddr> {
    let v4 = (Ipv4Addr::UNSPECIFIED, port).into();
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(_) => vec![v4, (Ipv6Addr::UNSPECIFIED, port).into()],
        Err(_) => vec![v4],
    }
}

/// The port behind a colon: -1 and 0 are any free one, as with memcached.
fn port(typed: &str) -> Result<u16, AddressError> {
    match typed {
        "-1" => Ok(0),
        typed => typed.parse().map_err(|_| AddressError::Port),
    }
}

/// The number of an interface that exists.
fn interface(typed: &str) -> Result<u32, AddressError> {
    let found = match typed.parse() {
        // nix 0.31 takes no name for an empty one.
        Ok(number) => match if_indextoname(number) {
            Ok(name) if !name.is_empty() => Some(number),
            _ => None,
        },
        Err(_) => if_nametoindex(typed).ok(),
    };
    found.ok_or(AddressError::Interface)
}

fn resolve(name: &str, port: u16) -> Result<Vec<SocketAddr>, AddressError> {
    let hints = AddrInfoHints {
        socktype: SockType::Stream.into(),
        ..AddrInfoHints::default()
    };
    let mut found = Vec::new();
    for info in getaddrinfo(Some(name), None, Some(hints))? {
        // Another error is that of an address which is neither IPv4's nor IPv6's.
        let Ok(info) = info else { continue };
        let mut address = info.sockaddr;
        address.set_port(port);
        if !found.contains(&address) {
            found.push(address);
        }
    }
    match found.is_empty() {
        true => Err(AddressError::Unknown),
        false => Ok(found),
    }
}

/// Why what was typed has no address. The text begins where what was typed ends.
#[derive(Debug)]
#[non_exhaustive]
pub enum AddressError {
    /// Neither an address nor a name.
    Syntax,
    /// The bracket is not closed, or something other than a port is behind it.
    Bracket,
    /// Behind the colon is no port.
    Port,
    /// A link-local address without its interface.
    NoScope,
    /// There is no such interface.
    Interface,
    /// The resolver knows no address of this name.
    Unknown,
    /// The resolver gives no answer: it may know the name.
    NoAnswer(io::Error),
}

impl From<LookupError> for AddressError {
    fn from(error: LookupError) -> Self {
        match error.kind() {
            LookupErrorKind::NoName | LookupErrorKind::NoData => Self::Unknown,
            _ => Self::NoAnswer(error.into()),
        }
    }
}

impl Display for AddressError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Syntax => {
                "neither an address nor a name; an address is as in 127.0.0.1, 127.0.0.1:11211, ::1, [::1]:11211, \
                 localhost:11211, *:11211 or :11211"
            }
            Self::Bracket => "brackets are as in [::1] or [::1]:11211",
            Self::Port => "no port: -1 to 65535 is expected behind the colon",
            Self::NoScope => "a link-local address needs its interface, as in fe80::1%eth0",
            Self::Interface => "this machine has no such interface",
            Self::Unknown => "unknown name",
            Self::NoAnswer(error) => {
                return write!(out, "no answer from the resolver, which may know the name: {error}");
            }
        })
    }
}

impl Error for AddressError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(typed: &str) -> Vec<String> {
        let found = TypedAddress::parse(typed).and_then(|address| address.addresses(5));
        let found = found.unwrap_or_else(|error| panic!("{typed}: {error}"));
        found.iter().map(SocketAddr::to_string).collect()
    }

    #[test]
    fn one_address_has_many_spellings() {
        for (typed, address) in [
            ("127.0.0.1", "127.0.0.1:5"),
            (" 127.0.0.1:6 ", "127.0.0.1:6"),
            ("[127.0.0.1]:6", "127.0.0.1:6"),
            ("127.0.0.1:-1", "127.0.0.1:0"),
            ("127.1:7", "127.0.0.1:7"),
            ("0", "0.0.0.0:5"),
            ("::1", "[::1]:5"),
            ("[::1]", "[::1]:5"),
            ("[::1]:6", "[::1]:6"),
            ("::", "[::]:5"),
            ("::ffff:127.0.0.1", "127.0.0.1:5"),
            ("[::ffff:7f00:1]:6", "127.0.0.1:6"),
            ("fe80::1%1", "[fe80::1%1]:5"),
            ("[fe80::1%1]", "[fe80::1%1]:5"),
            ("[fe80::1%lo]:6", "[fe80::1%1]:6"),
            ("::1%lo", "[::1%1]:5"),
        ] {
            assert_eq!(addresses(typed), [address], "{typed}");
        }
    }

    #[test]
    fn every_address_has_many_spellings() {
        for (typed, port) in [
            ("*", 5),
            ("*:6", 6),
            ("[*]:6", 6),
            (":6", 6),
            ("11211", 11211),
        ] {
            let all = everywhere(port);
            let address = TypedAddress::parse(typed).unwrap();
            assert_eq!(address.addresses(5).unwrap(), all, "{typed}");
            assert_eq!(address.name(), Some(typed));
        }
    }

    #[test]
    fn a_name_has_each_address_once() {
        let mut found = addresses("localhost:6");
        assert!(found.contains(&"127.0.0.1:6".to_owned()) || found.contains(&"[::1]:6".to_owned()));
        let count = found.len();
        found.sort();
        found.dedup();
        assert_eq!(found.len(), count);
    }

    #[test]
    fn what_is_no_address_is_told_apart() {
        for (typed, says) in [
            ("", "neither"),
            ("[]", "neither"),
            ("1.2.3:9:9", "neither"),
            ("127.0.0.1 ::1", "neither"),
            ("two words", "neither"),
            ("+5", "name"),
            ("fe80::1%eth0%eth1", "no such interface"),
            ("fe80::1%none", "no such interface"),
            ("fe80::1%0", "no such interface"),
            ("[fe80::1%2147483000]:5", "no such interface"),
            ("fe80::1", "needs its interface"),
            ("[fe80::1]:5", "needs its interface"),
            ("[::1", "brackets"),
            ("[::1]5", "brackets"),
            ("localhost:", "no port"),
            ("localhost:x", "no port"),
            ("127.0.0.1:65536", "no port"),
            (":x", "no port"),
        ] {
            let found = TypedAddress::parse(typed).and_then(|address| address.addresses(5));
            let error = found.unwrap_err().to_string();
            assert!(error.contains(says), "{typed}: {error}");
        }
    }

    #[test]
    fn an_unknown_name_is_no_silent_resolver() {
        let told = |number| AddressError::from(LookupError::new(number)).to_string();
        assert_eq!(told(nix::libc::EAI_NONAME), "unknown name");
        assert_eq!(told(nix::libc::EAI_NODATA), "unknown name");
        for number in [
            nix::libc::EAI_AGAIN,
            nix::libc::EAI_FAIL,
            nix::libc::EAI_SYSTEM,
        ] {
            assert!(told(number).starts_with("no answer"), "{number}");
        }
    }
}
