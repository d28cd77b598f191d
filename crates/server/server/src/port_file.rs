//! The file that lists the bound ports, like the one that memcached writes for MEMCACHED_PORT_FILENAME.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nuthatch_base::file::{BY_MASK, Unfinished};
use nuthatch_settings::config::Protocol;
use nuthatch_state::telemetry::Address;

/// The written file, before it has its name: so a start that fails leaves the file of a running server alone. It
/// replaces nothing but a file.
pub(crate) struct PortFile {
    path: PathBuf,
    file: Unfinished,
}

impl PortFile {
    /// Writes the file. A port of another protocol than memcached's is listed by its protocol's name. Errors name the
    /// path.
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

    /// Gives the file its name. Errors name the path.
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
