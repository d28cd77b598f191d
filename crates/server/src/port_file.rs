//! The file that tells the bound ports, as memcached's does for MEMCACHED_PORT_FILENAME.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nuthatch_context::config::Protocol;
use nuthatch_telemetry::Address;

/// Such a file before it has its name: a start that fails leaves the one of a server that runs. It takes the place of nothing
/// but a file.
pub(crate) struct PortFile {
    path: PathBuf,
    unfinished: PathBuf,
}

impl PortFile {
    /// Writes it, those ports that are not memcached's by the names of their protocols. Errors name it.
    pub(crate) fn begin(path: &Path, addresses: &[(Address, Protocol)]) -> io::Result<Self> {
        let named = |error| named(path, &error);
        nuthatch_snapshot::check_replaceable(path).map_err(named)?;
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".lck");
        let unfinished = PathBuf::from(unfinished);
        // Of a server that was killed amid its start, or somebody's pipe or link, which is not to be opened.
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(named(error)),
            _ => {}
        }
        let mut file = File::create_new(&unfinished).map_err(named)?;
        // From here on it is removed again.
        let begun = Self {
            path: path.to_owned(),
            unfinished,
        };
        let written = write(&mut file, addresses).and_then(|()| file.sync_all());
        written.map(|()| begun).map_err(named)
    }

    /// Gives it its name. Errors name it.
    pub(crate) fn finish(self) -> io::Result<()> {
        fs::rename(&self.unfinished, &self.path).map_err(|error| named(&self.path, &error))
    }
}

impl Drop for PortFile {
    fn drop(&mut self) {
        // It is not there any more if it was finished.
        let _ = fs::remove_file(&self.unfinished);
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn write(file: &mut File, addresses: &[(Address, Protocol)]) -> io::Result<()> {
    for (address, protocol) in addresses {
        let (kind, address) = match address {
            Address::Tcp(address) => ("TCP", address),
            Address::Udp(address) => ("UDP", address),
            Address::Unix(_) => continue,
        };
        let kind = match protocol.is_memcached() {
            true => kind.to_owned(),
            false => protocol.name().to_uppercase(),
        };
        let family = if address.is_ipv6() { "INET6" } else { "INET" };
        writeln!(file, "{kind} {family}: {}", address.port())?;
    }
    Ok(())
}
