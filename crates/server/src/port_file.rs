//! The file that tells the bound ports, as memcached's does for MEMCACHED_PORT_FILENAME.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nuthatch_context::config::Protocol;
use nuthatch_file::{BY_MASK, Unfinished};
use nuthatch_telemetry::Address;

/// Such a file before it has its name: a start that fails leaves the one of a server that runs. It takes the place of nothing
/// but a file.
pub(crate) struct PortFile {
    path: PathBuf,
    file: Unfinished,
}

impl PortFile {
    /// Writes it, those ports that are not memcached's by the names of their protocols. Errors name it.
    pub(crate) fn begin(path: &Path, addresses: &[(Address, Protocol)]) -> io::Result<Self> {
        let begin = || {
            let mut file = Unfinished::begin(path, BY_MASK)?;
            file.write_all(text(addresses).as_bytes())?;
            Ok(Self {
                path: path.to_owned(),
                file,
            })
        };
        begin().map_err(|error| named(path, &error))
    }

    /// Gives it its name. Errors name it.
    pub(crate) fn finish(self) -> io::Result<()> {
        let finished = self.file.finish(&self.path);
        finished.map_err(|error| named(&self.path, &error))
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// A line for each port.
fn text(addresses: &[(Address, Protocol)]) -> String {
    let line = |(address, protocol): &(Address, Protocol)| {
        let (kind, address) = match address {
            Address::Tcp(address) => ("TCP", address),
            Address::Udp(address) => ("UDP", address),
            Address::Unix(_) => return None,
        };
        let kind = match protocol.is_memcached() {
            true => kind.to_owned(),
            false => protocol.name().to_uppercase(),
        };
        let family = if address.is_ipv6() { "INET6" } else { "INET" };
        Some(format!("{kind} {family}: {}\n", address.port()))
    };
    addresses.iter().filter_map(line).collect()
}
