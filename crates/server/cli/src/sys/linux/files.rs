//! The files that a process of `-o drop_privileges` may still use (Landlock).

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError,
    RulesetStatus, Scope, path_beneath_rules,
};
use nix::errno::Errno;
use nix::libc;

use crate::settings::Settings;

/// The newest rules that are requested; an older kernel applies those that it supports.
const RULES: ABI = ABI::V6;

/// The system's directories that the server reads: its own memory and files, processors and huge pages.
const SYSTEM: [&str; 3] = ["/proc", "/sys", "/etc"];

/// Where the log may go: its descriptor is opened anew.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/log"];

/// The files that a confined process may still use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Confinement {
    /// Files that are read again while it runs. Their directories stay readable: a file is often replaced by a new one.
    reads: Vec<PathBuf>,
    /// Files that are written or removed: likewise.
    writes: Vec<PathBuf>,
}

impl Confinement {
    /// For a server with these settings, from this configuration file.
    pub fn new(settings: &Settings, file: Option<&Path>) -> Self {
        let (server, process) = (&settings.server, &settings.process);
        let tls = server.tls.iter().flat_map(|tls| tls.files());
        let reads = file
            .into_iter()
            .chain(server.auth_file.as_deref())
            .chain(server.persistence.load.as_deref())
            .chain(tls);
        let save = server
            .persistence
            .save
            .as_ref()
            .map(|(path, _)| path.as_path());
        let writes = process
            .log
            .file()
            .into_iter()
            .chain(process.pid_file.as_deref())
            .chain(server.port_file.as_deref())
            .chain(server.persistence.restart.as_deref())
            .chain(server.handover.as_deref())
            .chain(server.shared.as_deref())
            .chain(save)
            .chain(server.listeners.iter().filter_map(|listen| listen.path()));
        Self {
            reads: reads.map(Path::to_owned).collect(),
            writes: writes.map(Path::to_owned).collect(),
        }
    }

    /// Gives up all other files. Must run before any thread is started. Returns a warning if the kernel supports only a
    /// part.
    pub fn files(&self) -> Result<Option<String>, String> {
        let error = |error: RulesetError| format!("-o drop_privileges: files: {error}");
        let read = AccessFs::from_read(RULES) & !AccessFs::Execute;
        let write = AccessFs::from_all(RULES) & !AccessFs::Execute;
        let reads = SYSTEM
            .map(PathBuf::from)
            .into_iter()
            .chain(folders(&self.reads));
        let status = Ruleset::default()
            .handle_access(AccessFs::from_all(RULES))
            // Its own listeners are bound later: seccomp refuses the others.
            .and_then(|rules| rules.handle_access(AccessNet::ConnectTcp))
            .and_then(|rules| rules.scope(Scope::Signal))
            .and_then(|rules| rules.scope(Scope::AbstractUnixSocket))
            .and_then(|rules| rules.create())
            .and_then(|rules| rules.add_rules(path_beneath_rules(reads, read)))
            .and_then(|rules| rules.add_rules(path_beneath_rules(DEVICES, write)))
            .and_then(|rules| rules.add_rules(path_beneath_rules(folders(&self.writes), write)))
            .and_then(|rules| rules.restrict_self())
            .map_err(error)?;
        match status.ruleset {
            RulesetStatus::FullyEnforced => Ok(None),
            RulesetStatus::PartiallyEnforced => Ok(Some(
                "-o drop_privileges: this kernel's Landlock knows a part of the rules".to_owned(),
            )),
            RulesetStatus::NotEnforced => Err(format!("-o drop_privileges: {}", why_no_landlock())),
        }
    }
}

/// Why the kernel has no Landlock: calls for its version once more, for the error.
#[allow(unsafe_code)]
fn why_no_landlock() -> &'static str {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag and no address the call touches no memory.
    let status = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    match Errno::result(status) {
        Err(Errno::EPERM) => {
            "a filter of system calls refuses Landlock (systemd: SystemCallFilter=landlock_create_ruleset \
             landlock_add_rule landlock_restrict_self)"
        }
        Err(Errno::EOPNOTSUPP) => "Landlock is switched off in this kernel (lsm=landlock,...)",
        _ => "this kernel has no Landlock (Linux 5.13)",
    }
}

/// The directories of files, by their names and by their resolved paths: names may be links, which are replaced too.
fn folders(files: &[PathBuf]) -> impl Iterator<Item = PathBuf> {
    files.iter().flat_map(|file| {
        let real = file.canonicalize().ok();
        let folder = |path: &Path| path.parent().map(Path::to_owned);
        folder(file)
            .into_iter()
            .chain(real.as_deref().and_then(folder))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::ErrorKind;
    use std::net::{TcpListener, TcpStream};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
    use std::process::Command;

    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    use super::*;
    use crate::sys::linux::tests::confined;

    #[test]
    fn only_files_that_were_named_are_opened() {
        let [ours, others] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let place = |folder: &tempfile::TempDir, name| folder.path().join(name);
        for (folder, name) in [(&ours, "read"), (&others, "secret"), (&others, "real")] {
            fs::write(place(folder, name), "x").unwrap();
        }
        let linked = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(place(&ours, "read"), place(&linked, "link")).unwrap();
        confined(|| {
            let confinement = Confinement {
                reads: vec![place(&linked, "link")],
                writes: vec![place(&ours, "log")],
            };
            match confinement.files() {
                Err(error) if error.contains("Landlock") => {
                    return eprintln!("skipped: {error}");
                }
                given_up => assert_eq!(given_up, Ok(None)),
            }
            assert_eq!(fs::read(place(&linked, "link")).unwrap(), b"x");
            fs::write(place(&ours, "log"), "x").unwrap();
            fs::rename(place(&ours, "log"), place(&ours, "log.1")).unwrap();
            fs::remove_file(place(&ours, "log.1")).unwrap();
            assert!(fs::read_to_string("/proc/self/status").is_ok());
            for refused in [
                fs::read(place(&others, "secret")).map(|_| ()),
                fs::write(place(&others, "new"), "x"),
                fs::write(place(&linked, "new"), "x"),
                fs::remove_file(place(&others, "secret")),
                Command::new("/bin/true").status().map(|_| ()),
            ] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
            }
        });
        assert!(fs::read(place(&others, "secret")).is_ok(), "others are not");
    }

    #[test]
    fn who_refuses_landlock_is_told() {
        let refused = BTreeMap::from([(libc::SYS_landlock_create_ruleset, Vec::new())]);
        for (errno, words) in [
            (libc::EPERM, "a filter of system calls"),
            (libc::EOPNOTSUPP, "switched off"),
            (libc::ENOSYS, "no Landlock"),
        ] {
            let error = confined(|| {
                let machine = std::env::consts::ARCH.try_into().unwrap();
                let refuse = SeccompAction::Errno(errno as u32);
                let filter =
                    SeccompFilter::new(refused.clone(), SeccompAction::Allow, refuse, machine);
                let filter: BpfProgram = filter.unwrap().try_into().unwrap();
                seccompiler::apply_filter(&filter).unwrap();
                Confinement::default().files().unwrap_err()
            });
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn nothing_is_reached_by_tcp_or_by_an_abstract_name() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let name = format!("nuthatch-test-{}", std::process::id());
        let name = SocketAddr::from_abstract_name(name).unwrap();
        let abstract_listener = UnixListener::bind_addr(&name).unwrap();
        confined(|| {
            match Confinement::default().files() {
                Err(error) if error.contains("Landlock") => {
                    return eprintln!("skipped: {error}");
                }
                // An older kernel knows a part of the rules: of TCP from 6.7 on, of names from 6.12 on.
                Ok(Some(_)) => return eprintln!("skipped: an older kernel"),
                given_up => assert_eq!(given_up, Ok(None)),
            }
            let tcp = TcpStream::connect(listener.local_addr().unwrap());
            let named = UnixStream::connect_addr(&name);
            for refused in [tcp.map(|_| ()), named.map(|_| ())] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
            }
            // Its own listeners are bound later.
            assert!(TcpListener::bind(("127.0.0.1", 0)).is_ok());
        });
        drop(abstract_listener);
    }
}
