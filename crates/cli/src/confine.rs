//! `-o drop_privileges`: the process gives up the files and system calls that a running server does not need, so that
//! an attacker who exploits it gains little. Landlock restricts files: the process opens only those of its settings,
//! and starts no program. Seccomp restricts system calls: the process creates no other process and no network socket,
//! and makes no call that administers a machine.
//!
//! Refused calls return EPERM and raise no signal. Calls that are not known to help an attacker stay allowed: a later C
//! library that makes another call must not end a cache.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus,
    Scope, path_beneath_rules,
};
use nix::errno::Errno;
use nix::libc;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter_all_threads,
};

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
            .chain(server.keeping.load.as_deref())
            .chain(tls);
        let save = server.keeping.save.as_ref().map(|(path, _)| path.as_path());
        let writes = process
            .log
            .file()
            .into_iter()
            .chain(process.pid_file.as_deref())
            .chain(server.port_file.as_deref())
            .chain(server.keeping.restart.as_deref())
            .chain(server.handover.as_deref())
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
            .and_then(|rules| rules.scope(Scope::Signal))
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
    let told = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            VERSION,
        )
    };
    match Errno::result(told) {
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

/// Gives up system calls, for all threads. Must run when all sockets are bound.
pub fn calls() -> Result<(), String> {
    let filters = filters().map_err(|error| format!("-o drop_privileges: calls: {error}"))?;
    let mut applied = filters
        .iter()
        .map(|filter| apply_filter_all_threads(filter));
    applied
        .try_for_each(|applied| applied)
        .map_err(|error| format!("-o drop_privileges: calls: {error}"))
}

fn filters() -> Result<Vec<BpfProgram>, BackendError> {
    // The flags of clone3 lie in memory, which no filter can read. The C library falls back to clone if clone3 returns
    // that there is no such call.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![
        filter(refused(), libc::EPERM)?,
        filter(absent, libc::ENOSYS)?,
        #[cfg(target_arch = "x86_64")]
        other_numbers(),
    ])
}

/// Refuses the calls of the x32 ABI, which a kernel may have beside its own: the same calls under numbers that are in
/// no list, and whose architecture filters take for x86-64.
#[cfg(target_arch = "x86_64")]
fn other_numbers() -> BpfProgram {
    /// The bit that their numbers have.
    const X32: u32 = 0x4000_0000;
    let instruction = |code: u32, jf, k| seccompiler::sock_filter {
        code: code as u16,
        jt: 0,
        jf,
        k,
    };
    let answer = |with| instruction(libc::BPF_RET | libc::BPF_K, 0, with);
    vec![
        // The call's number is the first field of a filter's input.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, X32),
        answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

/// Lets all other calls through.
fn filter(calls: BTreeMap<i64, Vec<SeccompRule>>, errno: i32) -> Result<BpfProgram, BackendError> {
    let refuse = SeccompAction::Errno(errno as u32);
    let machine = std::env::consts::ARCH.try_into()?;
    SeccompFilter::new(calls, SeccompAction::Allow, refuse, machine)?.try_into()
}

/// The refused calls; a call with conditions is refused only if it meets one.
fn refused() -> BTreeMap<i64, Vec<SeccompRule>> {
    let always = ALWAYS_REFUSED.iter().map(|&call| (call, Vec::new()));
    // `clone` makes threads too: only calls without CLONE_THREAD make a process.
    let no_thread = condition(0, SeccompCmpOp::MaskedEq(libc::CLONE_THREAD as u64), 0);
    // The log goes to unix sockets of this machine, by a path.
    let no_path = condition(0, SeccompCmpOp::Ne, libc::AF_UNIX as u64);
    let sometimes = [(libc::SYS_clone, no_thread), (libc::SYS_socket, no_path)];
    always.chain(sometimes).collect()
}

fn condition(argument: u8, is: SeccompCmpOp, value: u64) -> Vec<SeccompRule> {
    let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, is, value);
    let rule = condition.and_then(|condition| SeccompRule::new(vec![condition]));
    vec![rule.expect("a call has six arguments, and a rule one condition")]
}

/// Calls for programs, other processes, listening, users, and the administration of a machine.
const ALWAYS_REFUSED: &[i64] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_open_by_handle_at,
    libc::SYS_mknodat,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_reboot,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_personality,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_fanotify_init,
    // Other architectures have clone alone.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::net::UdpSocket;
    use std::os::unix::net::UnixDatagram;
    use std::process::Command;
    use std::thread;

    use super::*;

    /// In a thread of its own, since a thread cannot take back what it has given up.
    fn confined<T: Send>(body: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(body).join().expect("it does not panic"))
    }

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
                let filter = filter(refused.clone(), errno).unwrap();
                seccompiler::apply_filter(&filter).unwrap();
                Confinement::default().files().unwrap_err()
            });
            assert!(error.contains(words), "{error}");
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    #[allow(unsafe_code)]
    fn calls_by_other_numbers_are_refused() {
        // SAFETY: getpid takes no arguments and touches no memory, by either number.
        let getpid = |bit| Errno::result(unsafe { libc::syscall(libc::SYS_getpid | bit) });
        confined(|| {
            for filter in filters().unwrap() {
                seccompiler::apply_filter(&filter).unwrap();
            }
            assert_eq!(getpid(0x4000_0000), Err(Errno::EPERM));
            assert_eq!(getpid(0), Ok(i64::from(std::process::id())));
        });
    }

    #[test]
    fn no_process_and_no_network_socket_is_made() {
        confined(|| {
            for filter in filters().unwrap() {
                seccompiler::apply_filter(&filter).unwrap();
            }
            for refused in [
                Command::new("/bin/true").status().map(|_| ()),
                UdpSocket::bind(("127.0.0.1", 0)).map(|_| ()),
                std::net::TcpStream::connect(("127.0.0.1", 1)).map(|_| ()),
            ] {
                assert_eq!(refused.unwrap_err().kind(), ErrorKind::PermissionDenied);
            }
            assert!(UnixDatagram::unbound().is_ok());
            assert_eq!(thread::spawn(|| 7).join().unwrap(), 7);
        });
    }
}
