//! A server run, from settings to exit.
use crate::Failure;
use crate::command::Serve;
use crate::process::{self, PidFile};
use crate::settings::{PORT_FILE, Settings};

/// Serves until it is told to stop.
pub fn run(serve: Serve) -> Result<(), Failure> {
    let flags = serve.flags().map_err(Failure::Usage)?;
    let port_file = std::env::var_os(PORT_FILE).map(Into::into);
    let settings = Settings::check(&flags, port_file).map_err(Failure::Usage)?;
    start(settings).map_err(Failure::Runtime)
}

fn start(settings: Settings) -> Result<(), String> {
    let connections = settings.server.connections_max.get();
    let mut warnings = settings.warnings;
    warnings.extend(process::prepare(&settings.process, connections)?);
    for warning in &warnings {
        eprintln!("nuthatch: {warning}");
    }
    let pid_file = settings.process.pid_file.as_deref();
    let _pid_file = pid_file.map(PidFile::write).transpose()?;
    Err("not yet".into())
}
