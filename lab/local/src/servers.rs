//! The servers of a run: Nuthatch at a unix socket, with shared memory, and at a port; memcached at both, if it is there.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use nuthatch_bench::os;
use nuthatch_bench::started::{Started, free_address};
use tempfile::TempDir;

use crate::options::Options;
use crate::socket;

/// A server that has the items.
pub struct Server {
    /// Where it listens: an address of nuthatch-client.
    pub address: String,
    /// It, to be ended.
    started: Started,
}

impl Server {
    /// Its process.
    pub fn pid(&self) -> u32 {
        self.started.pid()
    }
}

/// All servers, and the folder of their sockets.
pub struct Servers {
    /// Nuthatch at a unix socket.
    pub unix: Server,
    /// Where it shares its memory.
    pub shared: PathBuf,
    /// Nuthatch at a port.
    pub tcp: Server,
    /// Where the same speaks Redis' protocol.
    pub redis: String,
    /// memcached, at a unix socket and at a port; or why it is not there.
    pub memcached: Result<[Server; 2], String>,
    /// A dictionary of Python's multiprocessing, in a process of its own.
    pub manager: Option<Server>,
    /// Removed last.
    folder: TempDir,
}

impl Servers {
    /// Starts and fills all.
    pub fn start(
        program: &Path,
        options: &Options,
        keys: u32,
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        let filled = |server: Server| {
            socket::fill(&server.address, keys, options.value_size as usize)?;
            Ok::<Server, String>(server)
        };
        let (memory, threads) = (options.memory, options.threads);
        let load = format!("-m {memory} -t {threads}");
        let ours = program.display();
        let shared = folder.path().join("shared");
        let path = folder.path().join("unix");
        let unix = at_socket(
            &format!(
                "{ours} {load} --shared {} -s {}",
                shared.display(),
                path.display()
            ),
            &path,
            stop,
        )?;
        let redis_port = free_address()
            .map_err(|error| format!("no free port: {error}"))?
            .port();
        let tcp = at_port(
            &format!("{ours} {load} -l 127.0.0.1 -p {{port}} --redis-port {redis_port}"),
            stop,
        )?;
        Ok(Self {
            unix: filled(unix)?,
            shared,
            tcp: filled(tcp)?,
            redis: format!("tcp://127.0.0.1:{redis_port}"),
            memcached: match memcached(options, folder.path(), stop)? {
                Ok([unix, tcp]) => Ok([filled(unix)?, filled(tcp)?]),
                Err(why) => Err(why),
            },
            manager: None,
            folder,
        })
    }

    /// A path of the run's own.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts Python's manager.
    pub fn start_manager(
        &mut self,
        python: &Path,
        script: &Path,
        stop: &AtomicBool,
    ) -> Result<(), String> {
        let path = self.path("manager");
        let command = format!(
            "{} {} serve {}",
            python.display(),
            script.display(),
            path.display()
        );
        // It takes a connection that says nothing for an error: its socket is only looked for.
        let started = Started::start_until(&command, &os::cores(), stop, |_| path.exists())?;
        self.manager = Some(Server {
            address: path.display().to_string(),
            started,
        });
        Ok(())
    }
}

/// memcached at a unix socket and at a port, or why it cannot be had.
fn memcached(
    options: &Options,
    folder: &Path,
    stop: &AtomicBool,
) -> Result<Result<[Server; 2], String>, String> {
    let program = &options.memcached;
    let mut asked = Command::new(program);
    asked.arg("-V").stdout(Stdio::null()).stderr(Stdio::null());
    if let Err(error) = asked.status() {
        return Ok(Err(format!("{}: {error}", program.display())));
    }
    let (memory, threads) = (options.memory, options.threads);
    // Without -u it refuses to run as root; others than root cannot enter the folder of its socket.
    let load = format!(
        "{} -m {memory} -t {threads} -U 0 -u root -R 1024 -c 4096",
        program.display()
    );
    let path = folder.join("memcached");
    let unix = at_socket(&format!("{load} -s {}", path.display()), &path, stop)?;
    let tcp = at_port(&format!("{load} -l 127.0.0.1 -p {{port}}"), stop)?;
    Ok(Ok([unix, tcp]))
}

fn at_socket(command: &str, path: &Path, stop: &AtomicBool) -> Result<Server, String> {
    let started = Started::start_until(command, &os::cores(), stop, |_| {
        UnixStream::connect(path).is_ok()
    })?;
    Ok(Server {
        address: format!("unix://{}", path.display()),
        started,
    })
}

fn at_port(command: &str, stop: &AtomicBool) -> Result<Server, String> {
    let started = Started::start(command, &os::cores(), stop)?;
    Ok(Server {
        address: format!("tcp://{}", started.address()),
        started,
    })
}
