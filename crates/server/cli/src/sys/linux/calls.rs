//! The system calls of a running server, as a list of what is allowed (seccomp).
//!
//! A refused call returns EPERM and raises no signal: a call that is missing here fails, and does not end a cache. A call
//! that is newer than this list returns ENOSYS, as on an older kernel: so a later C library falls back to an older call.
//!
//! What the list leaves out on purpose: other processes and programs, new sockets and connections, users, memory that is
//! executable, and all that administers a machine.

use std::collections::BTreeMap;

use nix::libc;
use nuthatch_log::LogTo;
use nuthatch_server::Config;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, apply_filter_all_threads,
};

/// Calls that a few settings need, and that the others do without.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaterCalls {
    /// Replies to datagrams name their receiver, and so do lines for journald.
    sends_to_addresses: bool,
    /// A handover passes descriptors, and so does shared memory. Nor can a filter see which receiver such a message names.
    sends_messages: bool,
    /// Each process that reads the items gets memory for its hints.
    makes_memory: bool,
    /// The C library connects to the system's log with the first line, and whenever that was started again.
    connects_to_log: bool,
}

impl LaterCalls {
    /// For a server with these settings.
    pub fn new(server: &Config, log: &LogTo) -> Self {
        let has_udp = server
            .listeners
            .iter()
            .any(|listen| listen.address.is_udp());
        let to_journald = *log == LogTo::Journald;
        Self {
            sends_to_addresses: has_udp || to_journald,
            sends_messages: server.handover.is_some() || server.shared.is_some() || to_journald,
            makes_memory: server.shared.is_some(),
            connects_to_log: *log == LogTo::Syslog,
        }
    }
}

/// Gives up all other system calls, for all threads. Must run when all sockets are bound.
pub fn give_up(later: &LaterCalls) -> Result<(), String> {
    let filters = filters(later).map_err(|error| format!("-o drop_privileges: calls: {error}"))?;
    let mut applied = filters
        .iter()
        .map(|filter| apply_filter_all_threads(filter));
    applied
        .try_for_each(|applied| applied)
        .map_err(|error| format!("-o drop_privileges: calls: {error}"))
}

/// In their order: where two filters return an error, that of the later one counts.
fn filters(later: &LaterCalls) -> Result<Vec<BpfProgram>, BackendError> {
    let allow = SeccompAction::Allow;
    let errno = |errno: i32| SeccompAction::Errno(errno as u32);
    let filter = |calls, others, listed| -> Result<BpfProgram, BackendError> {
        let machine = std::env::consts::ARCH.try_into()?;
        SeccompFilter::new(calls, others, listed, machine)?.try_into()
    };
    // The flags of clone3 lie in memory, which no filter can read. The C library falls back to clone if clone3 returns
    // that there is no such call.
    let absent = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![
        filter(allowed(later), errno(libc::EPERM), allow.clone())?,
        filter(absent, allow, errno(libc::ENOSYS))?,
        numbers(NEWEST as u32 + 1, libc::ENOSYS),
        #[cfg(target_arch = "x86_64")]
        numbers(X32, libc::EPERM),
    ])
}

/// The newest call that was looked at for the list. Numbers are given in the order of time, and alike on all machines.
const NEWEST: i64 = libc::SYS_mseal;

/// The bit of the calls of the x32 ABI, which a kernel may have beside its own: the same calls under numbers that are in no
/// list, and whose architecture filters take for x86-64.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// Returns an error from the calls with this number and higher ones.
fn numbers(first: u32, errno: i32) -> BpfProgram {
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
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, first),
        answer(libc::SECCOMP_RET_ERRNO | errno as u32),
        answer(libc::SECCOMP_RET_ALLOW),
    ]
}

/// The allowed calls; a call with conditions is allowed only if it meets one of them.
fn allowed(later: &LaterCalls) -> BTreeMap<i64, Vec<SeccompRule>> {
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> =
        ALLOWED.iter().map(|&call| (call, Vec::new())).collect();
    calls.extend(with_conditions());
    let mut allow = |is_needed: bool, call, rules| {
        if is_needed {
            calls.insert(call, rules);
        }
    };
    let only = |condition| vec![all_of(vec![condition])];
    let to_any = only(connects_nothing(3));
    allow(later.sends_to_addresses, libc::SYS_sendto, to_any);
    let message = only(connects_nothing(2));
    allow(later.sends_messages, libc::SYS_sendmsg, message);
    // Landlock keeps these from TCP and from abstract names.
    let unix = one_of(0, &[libc::AF_UNIX as u64]);
    allow(later.connects_to_log, libc::SYS_socket, unix);
    allow(later.connects_to_log, libc::SYS_connect, Vec::new());
    allow(later.makes_memory, libc::SYS_memfd_create, Vec::new());
    calls
}

/// Calls that are allowed with some arguments only.
fn with_conditions() -> [(i64, Vec<SeccompRule>); 12] {
    let exec = libc::PROT_EXEC as u64;
    let not_executable = || rule(2, SeccompCmpOp::MaskedEq(exec), 0);
    let thread = libc::CLONE_THREAD as u64;
    let itself = u64::from(std::process::id());
    [
        (libc::SYS_mmap, not_executable()),
        (libc::SYS_mprotect, not_executable()),
        // `clone` makes threads, and other processes without this flag.
        (
            libc::SYS_clone,
            rule(0, SeccompCmpOp::MaskedEq(thread), thread),
        ),
        // To a peer that the socket has already.
        (
            libc::SYS_sendto,
            vec![all_of(vec![pointer_is_null(4), connects_nothing(3)])],
        ),
        (libc::SYS_tgkill, one_of(0, &[itself])),
        (libc::SYS_sched_getaffinity, one_of(0, &[0, itself])),
        (libc::SYS_sched_setaffinity, one_of(0, &[0])),
        (libc::SYS_prlimit64, one_of(0, &[0, itself])),
        (libc::SYS_prctl, one_of(0, PRCTL)),
        (libc::SYS_fcntl, one_of(1, FCNTL)),
        (libc::SYS_ioctl, one_of(1, IOCTL)),
        (libc::SYS_setsockopt, one_of(1, SOCKET_LEVELS)),
    ]
}

/// Names for threads and memory, and what a filter needs that follows the first.
const PRCTL: &[u64] = &[
    libc::PR_SET_NO_NEW_PRIVS as u64,
    libc::PR_SET_NAME as u64,
    libc::PR_GET_NAME as u64,
    libc::PR_SET_VMA as u64,
];

/// Flags, copies, locks and seals; not who is sent a signal.
const FCNTL: &[u64] = &[
    libc::F_DUPFD as u64,
    libc::F_DUPFD_CLOEXEC as u64,
    libc::F_GETFD as u64,
    libc::F_SETFD as u64,
    libc::F_GETFL as u64,
    libc::F_SETFL as u64,
    libc::F_GETLK as u64,
    libc::F_SETLK as u64,
    libc::F_SETLKW as u64,
    libc::F_OFD_GETLK as u64,
    libc::F_OFD_SETLK as u64,
    libc::F_OFD_SETLKW as u64,
    libc::F_ADD_SEALS as u64,
];

/// Whether a descriptor waits, how much it has, and whether it is a terminal. Their types differ between C libraries.
#[allow(clippy::unnecessary_cast)]
const IOCTL: &[u64] = &[
    libc::FIONBIO as u64,
    libc::FIONREAD as u64,
    libc::FIOCLEX as u64,
    libc::TCGETS as u64,
    libc::TIOCGWINSZ as u64,
    libc::TIOCOUTQ as u64,
];

/// Options of sockets and of TCP.
const SOCKET_LEVELS: &[u64] = &[libc::SOL_SOCKET as u64, libc::IPPROTO_TCP as u64];

fn one_of(argument: u8, values: &[u64]) -> Vec<SeccompRule> {
    values
        .iter()
        .flat_map(|&value| rule(argument, SeccompCmpOp::Eq, value))
        .collect()
}

fn rule(argument: u8, is: SeccompCmpOp, value: u64) -> Vec<SeccompRule> {
    vec![all_of(vec![number(argument, is, value)])]
}

fn all_of(conditions: Vec<SeccompCondition>) -> SeccompRule {
    SeccompRule::new(conditions).expect("each rule has a condition")
}

/// Among the flags of a message there is not the one by which it connects its TCP socket, as `connect` does. Landlock does
/// not see that.
fn connects_nothing(flags: u8) -> SeccompCondition {
    let fast_open = libc::MSG_FASTOPEN as u64;
    number(flags, SeccompCmpOp::MaskedEq(fast_open), 0)
}

fn pointer_is_null(argument: u8) -> SeccompCondition {
    condition(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0)
}

fn number(argument: u8, is: SeccompCmpOp, value: u64) -> SeccompCondition {
    condition(argument, SeccompCmpArgLen::Dword, is, value)
}

fn condition(
    argument: u8,
    length: SeccompCmpArgLen,
    is: SeccompCmpOp,
    value: u64,
) -> SeccompCondition {
    SeccompCondition::new(argument, length, is, value).expect("a call has six arguments")
}

/// Calls that are allowed with any argument.
const ALLOWED: &[i64] = &[
    // Threads, waiting, signals to itself, and the end.
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_futex_waitv,
    libc::SYS_set_robust_list,
    libc::SYS_get_robust_list,
    libc::SYS_rseq,
    libc::SYS_membarrier,
    libc::SYS_sched_yield,
    libc::SYS_getcpu,
    libc::SYS_restart_syscall,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigpending,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigtimedwait,
    libc::SYS_sigaltstack,
    // Another filter: it only takes away.
    libc::SYS_seccomp,
    // Memory.
    libc::SYS_brk,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_mincore,
    // Time, random numbers, and what the process is and uses.
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_gettimeofday,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_getppid,
    libc::SYS_gettid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getgroups,
    libc::SYS_getcwd,
    libc::SYS_getrusage,
    libc::SYS_times,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    // Descriptors, and events on them.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_preadv,
    libc::SYS_pwritev,
    libc::SYS_lseek,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_eventfd2,
    libc::SYS_epoll_create1,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_pwait2,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    // Files: Landlock knows which.
    libc::SYS_openat,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_statfs,
    libc::SYS_fstatfs,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_ftruncate,
    libc::SYS_fallocate,
    libc::SYS_fadvise64,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
    libc::SYS_sync_file_range,
    libc::SYS_flock,
    libc::SYS_fchmod,
    libc::SYS_fchown,
    // Sockets that are there.
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    // Older forms of the same, which other machines never had.
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_stat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lstat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_access,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_dup2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_getrlimit,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_time,
];

#[cfg(test)]
#[allow(unsafe_code)]
mod tests {
    use std::io::{ErrorKind, IoSlice, Read, Write};
    use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::process::Command;
    use std::ptr;
    use std::thread;

    use nix::errno::Errno;
    use nix::sys::socket::{self, MsgFlags, Shutdown, SockaddrIn};

    use super::*;
    use crate::sys::linux::tests::confined;

    /// Runs `body` in a thread with the filters of these settings.
    fn filtered<T: Send>(later: LaterCalls, body: impl FnOnce() -> T + Send) -> T {
        confined(|| {
            for filter in filters(&later).unwrap() {
                seccompiler::apply_filter(&filter).unwrap();
            }
            body()
        })
    }

    /// A call with numbers as arguments.
    fn call(number: i64, arguments: [i64; 6]) -> nix::Result<i64> {
        let [a, b, c, d, e, f] = arguments;
        // SAFETY: each caller passes calls that are refused, or that touch no memory of this process.
        Errno::result(unsafe { libc::syscall(number, a, b, c, d, e, f) })
    }

    fn error<T>(done: std::io::Result<T>) -> Option<i32> {
        done.err().and_then(|error| error.raw_os_error())
    }

    const REFUSED: Option<i32> = Some(libc::EPERM);

    #[test]
    fn no_process_and_no_socket_is_made() {
        filtered(LaterCalls::default(), || {
            assert_eq!(error(Command::new("/bin/true").status()), REFUSED);
            assert_eq!(error(UdpSocket::bind(("127.0.0.1", 0))), REFUSED);
            assert_eq!(error(TcpStream::connect(("127.0.0.1", 1))), REFUSED);
            assert_eq!(error(UnixDatagram::unbound()), REFUSED);
            assert_eq!(error(UnixStream::pair()), REFUSED);
            #[cfg(target_arch = "x86_64")]
            assert_eq!(call(libc::SYS_fork, [0; 6]), Err(Errno::EPERM));
            assert_eq!(
                call(libc::SYS_clone, [libc::SIGCHLD.into(), 0, 0, 0, 0, 0]),
                Err(Errno::EPERM)
            );
            assert_eq!(thread::spawn(|| 7).join().unwrap(), 7);
        });
    }

    #[test]
    fn a_connection_stays_with_its_peer() {
        let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut accepted, _) = listener.accept().unwrap();
        filtered(LaterCalls::default(), || {
            let port = other.local_addr().unwrap().port();
            for family in [libc::AF_UNSPEC, libc::AF_INET] {
                // SAFETY: an address of zeros is one of the family AF_UNSPEC.
                let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
                address.sin_family = family as u16;
                address.sin_port = port.to_be();
                address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
                // SAFETY: the address lives, and has this length.
                let connected = unsafe {
                    libc::connect(
                        accepted.as_raw_fd(),
                        ptr::from_ref(&address).cast(),
                        size_of::<libc::sockaddr_in>() as u32,
                    )
                };
                assert_eq!(Errno::result(connected), Err(Errno::EPERM));
            }
            accepted.write_all(b"still here").unwrap();
        });
        drop(accepted);
        let mut said = String::new();
        client.read_to_string(&mut said).unwrap();
        assert_eq!(said, "still here");
    }

    #[test]
    fn no_message_connects_its_socket() {
        let other = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        other.set_nonblocking(true).unwrap();
        let address = SockaddrIn::from(SocketAddrV4::new(
            Ipv4Addr::LOCALHOST,
            other.local_addr().unwrap().port(),
        ));
        let flags = MsgFlags::from_bits_retain(libc::MSG_FASTOPEN);
        for is_allowed in [false, true] {
            let later = LaterCalls {
                sends_to_addresses: is_allowed,
                sends_messages: is_allowed,
                makes_memory: is_allowed,
                connects_to_log: is_allowed,
            };
            // A listener that was shut down is a socket that can be connected, and a server has some.
            let sockets = [(); 2].map(|()| TcpListener::bind(("127.0.0.1", 0)).unwrap());
            let [to, message] = sockets.each_ref().map(AsRawFd::as_raw_fd);
            filtered(later, || {
                for socket in [to, message] {
                    socket::shutdown(socket, Shutdown::Read).unwrap();
                }
                let sent = socket::sendto(to, b"x", &address, flags);
                assert_eq!(sent, Err(Errno::EPERM));
                let sent = socket::send(to, b"x", flags);
                assert_eq!(sent, Err(Errno::EPERM));
                let text = [IoSlice::new(b"x")];
                let sent = socket::sendmsg(message, &text, &[], flags, Some(&address));
                assert_eq!(sent, Err(Errno::EPERM));
            });
        }
        let accepted = other.accept().map(|(_, peer)| peer);
        assert_eq!(accepted.unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn receivers_are_named_only_where_a_setting_needs_it() {
        let receiver = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        let to = receiver.local_addr().unwrap();
        for sends_to_addresses in [false, true] {
            let socket = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
            let later = LaterCalls {
                sends_to_addresses,
                ..LaterCalls::default()
            };
            let sent = filtered(later, || error(socket.send_to(b"x", to)));
            assert_eq!(sent, if sends_to_addresses { None } else { REFUSED });
        }
        for connects_to_log in [false, true] {
            let later = LaterCalls {
                connects_to_log,
                ..LaterCalls::default()
            };
            filtered(later, || {
                let made = error(UnixDatagram::unbound());
                assert_eq!(made, if connects_to_log { None } else { REFUSED });
                assert_eq!(error(UdpSocket::bind(("127.0.0.1", 0))), REFUSED);
            });
        }
    }

    #[test]
    fn memory_is_never_executable() {
        let flags = i64::from(libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let [read, write, exec] =
            [libc::PROT_READ, libc::PROT_WRITE, libc::PROT_EXEC].map(i64::from);
        filtered(LaterCalls::default(), || {
            for protection in [exec, read | exec, read | write | exec] {
                assert_eq!(
                    call(libc::SYS_mmap, [0, 4096, protection, flags, -1, 0]),
                    Err(Errno::EPERM)
                );
            }
            let page = call(libc::SYS_mmap, [0, 4096, read | write, flags, -1, 0]).unwrap();
            for number in [libc::SYS_mprotect, libc::SYS_pkey_mprotect] {
                assert_eq!(
                    call(number, [page, 4096, read | exec, -1, 0, 0]),
                    Err(Errno::EPERM)
                );
            }
            assert_eq!(call(libc::SYS_mprotect, [page, 4096, read, 0, 0, 0]), Ok(0));
            assert_eq!(call(libc::SYS_munmap, [page, 4096, 0, 0, 0, 0]), Ok(0));
            assert_eq!(call(libc::SYS_memfd_create, [0; 6]), Err(Errno::EPERM));
        });
    }

    #[test]
    fn what_is_not_listed_is_refused() {
        let parent = i64::from(std::os::unix::process::parent_id());
        filtered(LaterCalls::default(), || {
            for (number, first) in [
                (libc::SYS_kill, parent),
                (libc::SYS_tgkill, parent),
                (libc::SYS_ptrace, 0),
                (libc::SYS_setuid, 65534),
                (libc::SYS_mount, 0),
                (libc::SYS_bpf, 0),
                (libc::SYS_io_uring_setup, 1),
                (libc::SYS_userfaultfd, 0),
                (libc::SYS_keyctl, 0),
                (libc::SYS_unshare, 0),
                (libc::SYS_setsid, 0),
                (libc::SYS_fchmodat, 0),
                (libc::SYS_prctl, i64::from(libc::PR_SET_DUMPABLE)),
                (libc::SYS_prlimit64, parent),
            ] {
                assert_eq!(
                    call(number, [first, 0, 0, 0, 0, 0]),
                    Err(Errno::EPERM),
                    "{number}"
                );
            }
            // As on a kernel that does not have them.
            for number in [libc::SYS_clone3, NEWEST + 1, NEWEST + 1000] {
                assert_eq!(call(number, [0; 6]), Err(Errno::ENOSYS), "{number}");
            }
        });
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn calls_by_other_numbers_are_refused() {
        filtered(LaterCalls::default(), || {
            let x32 = libc::SYS_getpid | i64::from(X32);
            assert_eq!(call(x32, [0; 6]), Err(Errno::EPERM));
            let itself = Ok(i64::from(std::process::id()));
            assert_eq!(call(libc::SYS_getpid, [0; 6]), itself);
        });
    }
}
