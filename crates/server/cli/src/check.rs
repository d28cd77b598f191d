//! What a start needs besides valid settings: files, folders, users, addresses. A start and `--check` judge these here
//! alone, so that both call the same settings invalid, with the same words and the same exit code. What fails later
//! (a port in use, no memory) does not make a setting invalid. Nothing is made here, and no pipe is opened: to open one
//! and to close it again ends its reader.

use std::fs;
use std::io;
use std::net::{SocketAddr as IpAddress, TcpListener, UdpSocket};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::SocketAddr as UnixAddress;
use std::path::Path;

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, faccessat};
use nuthatch_log::LogTo;
use nuthatch_program::Failure;
use nuthatch_server::{Actions, Config, Listen, ListenAddress, bind_each, limits};

use crate::process;
use crate::settings::{PORT_FILE, Settings};

/// All checks, for `--check`: those of a start in its order, and then an engine, which takes address space and no memory
/// yet. The process becomes the user of `-u` where a start does: what is checked from there on is checked with the
/// rights of that user.
pub fn all(settings: &mut Settings) -> Result<(), Failure> {
    before_user(settings)?;
    if let Some(tls) = &settings.server.certificates {
        tls.warn();
    }
    process::raise_files(settings.server.connections_max.get());
    let user = process::change_user(&settings.process)?.map(str::to_owned);
    log(&settings.process.log, user.as_deref())?;
    as_user(settings, user.as_deref())?;
    limits::keep_to(&mut settings.server, settings.engine.memory_limit as u64);
    settings.engine.make().map(drop)
}

/// What a start needs before it becomes the user of `-u`.
pub fn before_user(settings: &mut Settings) -> Result<(), Failure> {
    settings.server.read_certificates().map_err(Failure::usage)
}

/// What the log needs. It begins before the rest is checked, and tells the errors. `user` is the name of the user that
/// the process has become.
pub fn log(log: &LogTo, user: Option<&str>) -> Result<(), Failure> {
    log.check().map_err(Failure::Usage)?;
    let checked = log.file().map_or(Ok(()), |file| appended("--log", file));
    checked.map_err(|error| invalid(error, user))
}

/// What a start needs from then on. `user` as for [`log`].
pub fn as_user(settings: &mut Settings, user: Option<&str>) -> Result<(), Failure> {
    settings.server.read_passwords().map_err(Failure::usage)?;
    administrators(&settings.server);
    addresses(settings)
        .and_then(|()| files(settings))
        .map_err(|error| invalid(error, user))
}

/// Warns of users who are named as those who may administrate the server where everybody may.
fn administrators(server: &Config) {
    let passwords = server.passwords.as_ref();
    let are_named = passwords.is_some_and(|passwords| passwords.have_administrators());
    if are_named && server.disabled_actions == Actions::default() {
        tracing::warn!("-Y: :admin: has no effect without -o disable_admin");
    }
}

/// An error that may come from the rights of this user.
pub fn invalid(error: String, user: Option<&str>) -> Failure {
    Failure::Usage(match user {
        Some(name) => format!("{error} (-u {name})"),
        None => error,
    })
}

/// Errors: a file cannot be made or written, or cannot be one of the items.
fn files(settings: &Settings) -> Result<(), String> {
    let persistence = &settings.server.persistence;
    for (flag, file) in made(settings) {
        let named = |error: String| format!("{flag} {}: {error}", file.display());
        folder(file).map_err(|error| named(error.to_owned()))?;
        if ["-s", "--handover"].contains(&flag) {
            socket(file).map_err(named)?;
        }
    }
    if let Some(file) = &settings.process.pid_file {
        in_place(file).map_err(|error| format!("-P {}: {error}", file.display()))?;
    }
    persistence.check().map_err(|error| error.to_string())?;
    if has_predecessor(settings) {
        // Its items are newer than the copy, which a start does not read then.
        return Ok(());
    }
    persistence.check_copy().map_err(|error| error.to_string())
}

/// True if another server may give this one its sockets and items. Only a start asks it.
fn has_predecessor(settings: &Settings) -> bool {
    let handover = settings.server.handover.as_ref();
    handover.is_some_and(|path| path.exists())
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

/// The first port that is not for root alone.
const UNPRIVILEGED: u16 = 1024;

/// Errors: an address of this server is taken by another of its own, is none that this machine has, or has a port that
/// this user may not have. Another server may listen there now, so of ports that any user may have, one of the system's
/// choice is tried. Which addresses a server does without is decided as at a start, which binds them in this order.
fn addresses(settings: &Settings) -> Result<(), String> {
    let server = &settings.server;
    let (udp, tcp): (Vec<&Listen>, _) =
        (server.listeners.iter()).partition(|listen| listen.address.is_udp());
    let mut taken: Vec<&ListenAddress> = Vec::new();
    for listeners in [tcp, udp, server.metrics.iter().collect()] {
        bind_each(listeners.into_iter(), |listen| {
            let address = &listen.address;
            let tried = match taken.iter().find(|other| other.overlaps(address)) {
                Some(other) => Err(twice(address, other)),
                None => try_to_listen(address, settings),
            };
            tried
                .map(|()| taken.push(address))
                .map_err(|error| match &listen.name {
                    Some(name) => io::Error::new(error.kind(), format!("{error} ({name})")),
                    None => error,
                })
        })
        .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The error of an address that another one of this server overlaps with.
fn twice(address: &ListenAddress, other: &ListenAddress) -> io::Error {
    let what = match address == other {
        true => "twice".to_owned(),
        false => format!("overlaps with {other}"),
    };
    let words = format!("{address}: {what}, of all addresses to listen at");
    io::Error::new(io::ErrorKind::AddrInUse, words)
}

/// Errors: nothing can listen at this address at a start.
fn try_to_listen(address: &ListenAddress, settings: &Settings) -> io::Result<()> {
    let any_port = |address: &IpAddress| {
        let mut address = *address;
        if address.port() >= UNPRIVILEGED {
            address.set_port(0);
        }
        address
    };
    let (address, tried) = match address {
        ListenAddress::Tcp(address) => (address, TcpListener::bind(any_port(address)).map(drop)),
        ListenAddress::Udp(address) => (address, UdpSocket::bind(any_port(address)).map(drop)),
        _ => return Ok(()),
    };
    match tried {
        Ok(()) => Ok(()),
        Err(error) => judge_bind_error(&error, address, has_predecessor(settings)),
    }
}

/// Judges why an address, with a port as [`addresses`] tries it, could not be bound. Errors: nor could it at a start.
fn judge_bind_error(
    error: &io::Error,
    address: &IpAddress,
    has_predecessor: bool,
) -> io::Result<()> {
    let named = |words: String| Err(io::Error::new(error.kind(), words));
    match error.kind() {
        // A server does without IPv6 where the machine has none.
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::InvalidInput
            if !address.ip().is_unspecified() =>
        {
            named(format!("{}: no address of this machine", address.ip()))
        }
        // If a port of the system's choice is denied (by systemd's SocketBindDeny=, say), this one may be allowed.
        // A predecessor gives ports that this user may not bind.
        io::ErrorKind::PermissionDenied if address.port() < UNPRIVILEGED && !has_predecessor => {
            named(format!("{address}: this user may not listen there"))
        }
        _ => Ok(()),
    }
}

/// The files and sockets that a server makes anew, and the flags that name them.
fn made(settings: &Settings) -> impl Iterator<Item = (&'static str, &Path)> {
    let server = &settings.server;
    let save = server
        .persistence
        .save
        .as_ref()
        .map(|(path, _)| path.as_path());
    let named = [
        ("-e", server.persistence.restart.as_deref()),
        ("--save", save),
        ("--handover", server.handover.as_deref()),
        (PORT_FILE, server.port_file.as_deref()),
    ];
    let sockets = server.listeners.iter().map(|listen| ("-s", listen.path()));
    let all = named.into_iter().chain(sockets);
    all.filter_map(|(flag, path)| Some((flag, path?)))
}

/// Errors: this process has no such right. Unlike access(2), it counts its capabilities.
fn allows(path: &Path, rights: AccessFlags) -> io::Result<()> {
    faccessat(AT_FDCWD, path, rights, AtFlags::AT_EACCESS).map_err(io::Error::from)
}

/// Errors: the file cannot be created in its folder.
fn folder(file: &Path) -> Result<(), &'static str> {
    if file.is_dir() {
        return Err("a folder, not a file");
    }
    let folder = file.parent().filter(|folder| folder.is_dir());
    let folder = folder.ok_or("there is no such folder")?;
    let may = allows(folder, AccessFlags::W_OK | AccessFlags::X_OK).is_ok();
    may.then_some(()).ok_or("its folder cannot be written to")
}

/// Errors: the file with the process id cannot be written to, or cannot be created.
fn in_place(file: &Path) -> Result<(), String> {
    let opened = nuthatch_base::file::check_no_fifo(file).and_then(|()| {
        nuthatch_base::file::open_in_place(file, fs::OpenOptions::new().append(true))
    });
    match opened {
        Ok(_) => Ok(()),
        Err(_) if !file.is_symlink() && (file.is_dir() || !file.exists()) => {
            folder(file).map_err(str::to_owned)
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Errors: the file, which is written in place, cannot be written to, or cannot be created.
fn appended(flag: &str, file: &Path) -> Result<(), String> {
    let target = nuthatch_base::file::check_appended(file);
    let possible = target
        .map_err(|error| error.to_string())
        .and_then(|target| match target.exists() {
            true => allows(&target, AccessFlags::W_OK).map_err(|error| error.to_string()),
            false => folder(&target).map_err(str::to_owned),
        });
    possible.map_err(|error| format!("{flag} {}: {error}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuckoo::DefaultEngine;
    use crate::flags::Flags;
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::PathBuf;

    /// Without a change of the user: it is of all threads, and fails where another test has filtered the system calls
    /// of its own.
    fn check(flags: Flags) -> Result<(), Failure> {
        let own = DefaultEngine::default();
        let mut settings = Settings::check(&flags, &own, None).map_err(Failure::Usage)?;
        before_user(&mut settings)?;
        log(&settings.process.log, None)?;
        as_user(&mut settings, None)?;
        settings.engine.make().map(drop)
    }

    /// A reader takes the end of the last writer for the end of the log.
    #[test]
    fn a_pipe_for_the_log_keeps_its_reader() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("log");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        let mut options = std::fs::File::options();
        let options = options.read(true).custom_flags(nix::libc::O_NONBLOCK);
        let reader = options.open(&pipe).unwrap();
        let flags = Flags {
            log: Some(pipe.display().to_string()),
            ..Flags::default()
        };
        assert_eq!(check(flags), Ok(()));
        let mut seen = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
        let ready = poll(&mut seen, PollTimeout::ZERO).unwrap();
        assert_eq!(ready, 0, "a writer has come and gone: {seen:?}");
    }

    #[test]
    fn a_port_that_was_not_tried_may_be_allowed() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        for (address, has_predecessor, is_fine) in [
            ("127.0.0.1:80", false, false),
            ("127.0.0.1:80", true, true),
            ("127.0.0.1:11211", false, true),
            // What is asked for is a port of the system's choice.
            ("127.0.0.1:0", false, false),
        ] {
            let told = judge_bind_error(&denied, &address.parse().unwrap(), has_predecessor);
            assert_eq!(told.is_ok(), is_fine, "{address}");
        }
    }

    /// A start finds out where these lead, and so does the check.
    #[test]
    fn links_are_followed_to_a_file_that_is_yet_to_be() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir(at("inner")).unwrap();
        std::os::unix::fs::symlink("inner/next", at("link")).unwrap();
        std::os::unix::fs::symlink("../none/log", at("inner/next")).unwrap();
        std::os::unix::fs::symlink("round", at("round")).unwrap();
        let with_log = |name| Flags {
            log: Some(at(name).display().to_string()),
            ..Flags::default()
        };
        let error = check(with_log("link")).unwrap_err().to_string();
        assert!(error.ends_with("there is no such folder"), "{error}");
        std::fs::create_dir(at("none")).unwrap();
        assert_eq!(check(with_log("link")), Ok(()));
        assert!(!at("none/log").exists());
        let error = check(with_log("round")).unwrap_err().to_string();
        assert!(error.contains("Too many levels"), "{error}");
    }

    #[test]
    fn a_copy_is_not_read_if_newer_items_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let items = folder.path().join("items");
        std::fs::write(&items, "damaged").unwrap();
        let flags = Flags {
            memory_file: Some(items),
            load: Some(folder.path().join("none")),
            ..Flags::default()
        };
        let error = check(flags.clone()).unwrap_err().to_string();
        assert!(error.starts_with("--load"), "{error}");
        // A server may be there, which only a start asks.
        let handover = folder.path().join("handover");
        let _predecessor = std::os::unix::net::UnixListener::bind(&handover).unwrap();
        let flags = Flags {
            handover: Some(handover),
            ..flags
        };
        assert_eq!(check(flags.clone()), Ok(()));
        let elsewhere = Flags {
            listen: vec!["192.0.2.1".into()],
            ..flags
        };
        let error = check(elsewhere).unwrap_err().to_string();
        assert!(error.starts_with("192.0.2.1"), "{error}");
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
                "127.0.0.1:7: overlaps with 0.0.0.0:7",
                Flags {
                    listen: vec!["0.0.0.0:7,127.0.0.1:7".into()],
                    ..good()
                },
            ),
            (
                "0.0.0.0:7: overlaps with 127.0.0.1:7",
                Flags {
                    listen: vec!["127.0.0.1:7,0.0.0.0:7".into()],
                    ..good()
                },
            ),
            (
                "127.0.0.1:7: overlaps with 0.0.0.0:7",
                Flags {
                    listen: vec!["*:7".into()],
                    metrics: Some("[::ffff:127.0.0.1]:7".into()),
                    ..good()
                },
            ),
            (
                "UDP 127.0.0.1:7: overlaps with UDP 0.0.0.0:7",
                Flags {
                    listen: vec!["0.0.0.0:7,127.0.0.1:8".into()],
                    udp_port: Some(7),
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
            let error = check(flags).unwrap_err().to_string();
            assert!(error.starts_with(flag), "{flag}: {error}");
        }
    }
}
