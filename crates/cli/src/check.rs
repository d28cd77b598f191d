//! `--check`: checks what a start needs besides valid settings: files, folders, users, addresses, and an engine that
//! can have these settings.

use std::fs;
use std::io;
use std::net::{SocketAddr as IpAddress, TcpListener, UdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::SocketAddr as UnixAddress;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use nuthatch_server::{ListenAddress, SettingsError};

use crate::engine;
use crate::process;
use crate::settings::Settings;

/// Looks for the users, the folders and the addresses that settings name, reads the files that a server reads when it
/// starts, and makes the engine, which takes address space and no memory yet. Errors are those of a start, or of a save
/// later. The process becomes the user of `-u` where a start does: what is checked from there on is checked with the
/// rights of that user.
pub fn all(settings: &mut Settings) -> Result<(), String> {
    before_user(settings)?;
    let user = process::change_user(&settings.process)?.map(str::to_owned);
    as_user(settings, user.as_deref())
}

/// What a start needs before it becomes the user of `-u`.
fn before_user(settings: &mut Settings) -> Result<(), String> {
    let said = |error: SettingsError| error.to_string();
    settings.server.check().map_err(said)?;
    settings.server.read_certificates().map_err(said)?;
    if let Some(tls) = &settings.server.certificates {
        tls.warn();
    }
    if let Some(name) = &settings.process.user {
        process::user(name).map_err(|error| format!("-u {error}"))?;
    }
    Ok(())
}

/// What a start needs from then on. `user` is the name of the user that the process has become.
fn as_user(settings: &mut Settings, user: Option<&str>) -> Result<(), String> {
    let checked = settings.server.check_files();
    checked.map_err(|error| error.to_string())?;
    settings.process.log.check()?;
    each_address_once(settings)?;
    let named = |error: String| match user {
        Some(name) => format!("{error} (-u {name})"),
        None => error,
    };
    addresses(settings).map_err(named)?;
    engine::make(&settings.engine).map_err(|error| error.to_string())?;
    files(settings).map_err(named)
}

/// Errors: a file cannot be made or written, or cannot be one of the items.
fn files(settings: &Settings) -> Result<(), String> {
    for (flag, file) in written(settings) {
        let named = |error: String| format!("{flag} {}: {error}", file.display());
        // These two are written in place.
        let possible = match ["-P", "--log"].contains(&flag) && file.is_file() {
            true => in_place(&file),
            false => folder(&file),
        };
        possible.map_err(|error| named(error.to_owned()))?;
        if ["-s", "--handover"].contains(&flag) {
            socket(&file).map_err(named)?;
        }
    }
    let keeping = &settings.server.keeping;
    let checked = keeping.check().and_then(|()| keeping.check_copy());
    checked.map_err(|error| error.to_string())
}

/// Errors: no socket can be made there.
fn socket(path: &Path) -> Result<(), String> {
    UnixAddress::from_pathname(path).map_err(|error| error.to_string())?;
    match fs::symlink_metadata(path) {
        Ok(there) if !there.file_type().is_socket() => {
            Err("something is there that is no socket".to_owned())
        }
        _ => Ok(()),
    }
}

/// Errors: two listeners have the same address. Ports that the system chooses differ.
fn each_address_once(settings: &Settings) -> Result<(), String> {
    let server = &settings.server;
    let listeners = server.listeners.iter().map(|listen| &listen.place);
    let addresses = listeners
        .chain(&server.metrics)
        .filter_map(|place| match place {
            ListenAddress::Tcp(address) if address.port() != 0 => Some(*address),
            _ => None,
        });
    let mut seen: Vec<IpAddress> = Vec::new();
    for address in addresses {
        if seen.contains(&address) {
            return Err(format!(
                "{address}: twice, of -l, -p, --redis-port, --cpserver and --metrics"
            ));
        }
        seen.push(address);
    }
    Ok(())
}

/// The first port that is not for root alone.
const UNPRIVILEGED: u16 = 1024;

/// Errors: a listener has an address that this machine has not, or a port that this user may not have. Another server
/// may listen there now, so of ports that any user may have, one of the system's choice is tried.
fn addresses(settings: &Settings) -> Result<(), String> {
    let server = &settings.server;
    let listeners = server.listeners.iter().map(|listen| &listen.place);
    for place in listeners.chain(&server.metrics) {
        let any_port = |address: &IpAddress| {
            let mut address = *address;
            if address.port() >= UNPRIVILEGED {
                address.set_port(0);
            }
            address
        };
        let (address, tried) = match place {
            ListenAddress::Tcp(address) => {
                (address, TcpListener::bind(any_port(address)).map(drop))
            }
            ListenAddress::Udp(address) => (address, UdpSocket::bind(any_port(address)).map(drop)),
            _ => continue,
        };
        match tried.map_err(|error| error.kind()) {
            // A server does without IPv6 where the machine has none.
            Err(io::ErrorKind::AddrNotAvailable) if !address.ip().is_unspecified() => {
                return Err(format!("{}: no address of this machine", address.ip()));
            }
            Err(io::ErrorKind::PermissionDenied) => {
                return Err(format!("{address}: this user may not listen there"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The files that a server writes or makes, and the flags that name them.
fn written(settings: &Settings) -> Vec<(&'static str, PathBuf)> {
    let (server, process) = (&settings.server, &settings.process);
    let save = server.keeping.save.as_ref().map(|(path, _)| path.as_path());
    let named = [
        ("-e", server.keeping.restart.as_deref()),
        ("--save", save),
        ("--handover", server.handover.as_deref()),
        ("--log", process.log.file()),
        ("-P", process.pid_file.as_deref()),
    ];
    let named = named
        .into_iter()
        .filter_map(|(flag, path)| Some((flag, path?)));
    let sockets = server
        .listeners
        .iter()
        .filter_map(|listen| Some(("-s", listen.path()?)));
    named
        .chain(sockets)
        .map(|(flag, path)| (flag, path.to_owned()))
        .collect()
}

/// Errors: the file cannot be created in its folder.
fn folder(file: &Path) -> Result<(), &'static str> {
    if file.is_dir() {
        return Err("a folder, not a file");
    }
    let folder = file.parent().filter(|folder| folder.is_dir());
    let folder = folder.ok_or("there is no such folder")?;
    let may = access(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    may.then_some(()).ok_or("its folder cannot be written to")
}

/// Errors: the file cannot be written to.
fn in_place(file: &Path) -> Result<(), &'static str> {
    let may = access(file, AccessFlags::W_OK).is_ok();
    may.then_some(()).ok_or("it cannot be written to")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;
    use nuthatch_engines::EngineName;

    /// Without a change of the user: it is of all threads, and fails where another test has filtered the system calls
    /// of its own.
    fn check(flags: Flags) -> Result<(), String> {
        let mut settings = Settings::check(&flags, None)?;
        before_user(&mut settings)?;
        as_user(&mut settings, None)
    }

    #[test]
    fn what_a_start_would_stumble_over_is_told_with_its_flag() {
        let folder = tempfile::tempdir().unwrap();
        let none = folder.path().join("none/file");
        let (none, is_folder) = (Some(none), Some(folder.path().to_owned()));
        let link = folder.path().join("link");
        std::os::unix::fs::symlink("elsewhere", &link).unwrap();
        let good = || Flags {
            memory_file: Some(folder.path().join("items")),
            save: Some(folder.path().join("copy")),
            pidfile: Some(folder.path().join("pid")),
            handover: Some(folder.path().join("handover")),
            log: Some(folder.path().join("log").display().to_string()),
            user: Some("root".into()),
            ..Flags::default()
        };
        std::fs::write(folder.path().join("pid"), "1\n").unwrap();
        assert_eq!(check(good()), Ok(()));
        let first = Flags {
            load: good().save,
            ..good()
        };
        assert_eq!(check(first), Ok(()));
        let text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
        for (flag, flags) in [
            (
                "-e",
                Flags {
                    memory_file: none.clone(),
                    ..good()
                },
            ),
            (
                "-e",
                Flags {
                    memory_file: is_folder.clone(),
                    ..good()
                },
            ),
            (
                "--save",
                Flags {
                    save: none.clone(),
                    ..good()
                },
            ),
            (
                "--save",
                Flags {
                    save: Some(link),
                    ..good()
                },
            ),
            (
                "--load",
                Flags {
                    load: none.clone(),
                    ..good()
                },
            ),
            (
                "--handover",
                Flags {
                    handover: none.clone(),
                    ..good()
                },
            ),
            (
                "--log",
                Flags {
                    log: text(&none),
                    ..good()
                },
            ),
            (
                "-P",
                Flags {
                    pidfile: none.clone(),
                    ..good()
                },
            ),
            (
                "-s",
                Flags {
                    unix_socket: none.clone(),
                    ..good()
                },
            ),
            (
                "-u",
                Flags {
                    user: Some("no such user".into()),
                    ..good()
                },
            ),
            (
                "-o unix_peers",
                Flags {
                    extended: vec!["unix_peers=0:no such user".into()],
                    ..good()
                },
            ),
            (
                "-s",
                Flags {
                    unix_socket: Some(folder.path().join("s".repeat(200))),
                    ..good()
                },
            ),
            (
                "--handover",
                Flags {
                    handover: good().pidfile,
                    ..good()
                },
            ),
            (
                "--load",
                Flags {
                    load: good().pidfile,
                    ..good()
                },
            ),
            (
                "127.0.0.1:7",
                Flags {
                    listen: vec!["127.0.0.1:7".into()],
                    metrics: Some("127.0.0.1:7".into()),
                    ..good()
                },
            ),
            (
                "127.0.0.1:11211",
                Flags {
                    listen: vec!["127.0.0.1".into()],
                    redis_port: Some(11211),
                    ..good()
                },
            ),
            (
                "192.0.2.1: no address of this machine",
                Flags {
                    listen: vec!["192.0.2.1".into()],
                    ..good()
                },
            ),
            (
                "192.0.2.1: no address of this machine",
                Flags {
                    metrics: Some("192.0.2.1:9150".into()),
                    ..good()
                },
            ),
            (
                "-I",
                Flags {
                    max_item_size: Some(40 << 20),
                    ..good()
                },
            ),
            (
                "-n",
                Flags {
                    slab_min_size: Some(10_000_000),
                    ..good()
                },
            ),
            (
                "--partitions",
                Flags {
                    engine: Some(EngineName::Cphash),
                    partitions: Some(3),
                    ..good()
                },
            ),
            (
                "--partitions",
                Flags {
                    engine: Some(EngineName::Lockhash),
                    partitions: Some(0),
                    ..good()
                },
            ),
            (
                "-m, --memory-limit-max",
                Flags {
                    memory_limit: Some(100_000 << 30),
                    ..good()
                },
            ),
            (
                "-p",
                Flags {
                    port: Some(70_000),
                    ..good()
                },
            ),
            (
                "-U",
                Flags {
                    udp_port: Some(-7),
                    ..good()
                },
            ),
            (
                "--redis-port",
                Flags {
                    redis_port: Some(70_000),
                    ..good()
                },
            ),
            (
                "--metrics",
                Flags {
                    metrics: Some("127.0.0.1:x".into()),
                    ..good()
                },
            ),
            (
                "-l",
                Flags {
                    listen: vec!["127.0.0.1:99999".into()],
                    ..good()
                },
            ),
        ] {
            let error = check(flags).unwrap_err();
            assert!(error.starts_with(flag), "{flag}: {error}");
        }
    }
}
