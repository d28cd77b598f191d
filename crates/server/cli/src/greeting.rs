//! The lines that a server prints when it starts: what runs, and a command to try.

use std::fmt::Write as _;
use std::net::SocketAddr;

use nuthatch_engine::request::PREFIX_LEN_MAX;
use nuthatch_engine::{AnyEngine, Engine};
use nuthatch_server::{Address, Protocol, ServerHandle, Verify};

/// The commands of the suggested first request, in a shell's quotation marks.
const WORDS: &str = r"set seed 0 0 5\r\nacorn\r\nget seed\r\nquit\r\n";

/// The text of the greeting: what runs, and what to type next.
pub fn words(says: &str, server: &ServerHandle, has_passwords: bool) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let mut text = format!("nuthatch {version}: {says}\n");
    if let Some(next) = what_next(server, has_passwords) {
        // Writing to a String does not fail.
        let _ = writeln!(text, "try: {next}   (Ctrl-C ends the server)");
    }
    text
}

/// The longest key of a Redis client, and the largest item, in bytes.
pub fn largest(engine: &AnyEngine) -> (usize, usize) {
    let key = engine.key_len_max() - PREFIX_LEN_MAX;
    (key, engine.item_size_max())
}

/// What Redis' clients must know that expect more: the limits of keys and values. Empty if none are served.
pub fn limits(server: &ServerHandle, (key_len_max, item_size_max): (usize, usize)) -> String {
    match server.addresses_of(Protocol::is_redis).next() {
        Some(_) => format!(
            "for Redis' clients keys of {key_len_max} bytes and items of {} KiB (-I) at most, ",
            item_size_max >> 10
        ),
        None => String::new(),
    }
}

/// The command to try next, if an address takes memcached's text protocol.
fn what_next(server: &ServerHandle, has_passwords: bool) -> Option<String> {
    let speaks_text = |protocol: Protocol| protocol.is_memcached() && protocol != Protocol::Binary;
    let mut addresses = server.addresses_of(speaks_text);
    let address = addresses.find(|address| !address.is_udp())?;
    Some(command(address, server.tls_at(address), has_passwords))
}

/// A shell command that sends [`WORDS`] to this address, with programs that any Debian has: bash, and for a unix socket
/// python3. TLS needs openssl.
fn command(address: &Address, tls: Option<Verify>, has_passwords: bool) -> String {
    let login = if has_passwords {
        "login=\"NAME PASSWORD\"; "
    } else {
        ""
    };
    let printed = match has_passwords {
        true => format!("printf \"set login 0 0 %d\\r\\n%s\\r\\n{WORDS}\" ${{#login}} \"$login\""),
        false => format!("printf \"{WORDS}\""),
    };
    match (address, tls) {
        (Address::Tcp(address), None) => {
            let (host, port) = (host(address), address.port());
            format!("bash -c '{login}exec 3<>/dev/tcp/{host}/{port}; {printed} >&3; cat <&3'")
        }
        (Address::Tcp(address), Some(verify)) => {
            let (host, port) = (host(address), address.port());
            let host = if host.contains(':') {
                format!("[{host}]")
            } else {
                host
            };
            let certificate = match verify {
                Verify::Always => " -cert CERTIFICATE -key KEY",
                Verify::Nothing | Verify::IfPresent => "",
            };
            format!(
                "bash -c '{login}{printed} | openssl s_client -quiet -connect {host}:{port}{certificate}'"
            )
        }
        (Address::Unix(path), _) => {
            let login = match has_passwords {
                true => {
                    r#"login = b"NAME PASSWORD"; s.sendall(b"set login 0 0 %d\r\n%s\r\n" % (len(login), login)); "#
                }
                false => "",
            };
            format!(
                "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{}\"); \
                 {login}s.sendall(b\"{WORDS}\"); print(*s.makefile(), sep=\"\", end=\"\")'",
                path.display()
            )
        }
        (Address::Udp(_), _) => String::new(),
    }
}

/// The host of this address, as a client on this machine names it.
fn host(address: &SocketAddr) -> String {
    match address.ip() {
        ip if ip.is_unspecified() => "localhost".to_owned(),
        ip => ip.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tcp(text: &str) -> Address {
        Address::Tcp(text.parse().unwrap())
    }

    #[test]
    fn what_next_reaches_the_server() {
        for (address, to) in [
            (tcp("0.0.0.0:5"), "/dev/tcp/localhost/5;"),
            (tcp("127.0.0.1:6"), "/dev/tcp/127.0.0.1/6;"),
            (tcp("[::1]:7"), "/dev/tcp/::1/7;"),
            (Address::Unix("/s".into()), "s.connect(\"/s\")"),
        ] {
            for has_passwords in [false, true] {
                let command = command(&address, None, has_passwords);
                assert!(command.contains(to), "{command}");
                assert_eq!(command.contains("NAME PASSWORD"), has_passwords);
            }
        }
        let command = |verify| command(&tcp("[::]:7"), Some(verify), false);
        assert!(
            command(Verify::Nothing).ends_with("openssl s_client -quiet -connect localhost:7'")
        );
        assert!(command(Verify::Always).contains("-cert CERTIFICATE -key KEY"));
    }
}
