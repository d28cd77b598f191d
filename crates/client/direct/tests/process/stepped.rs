//! A client that is killed at any of its instructions: its parent traces it, lets it take so many, and kills it.

use std::path::Path;

use nix::sched::{CpuSet, sched_getaffinity, sched_getcpu, sched_setaffinity};
use nix::unistd::Pid;

use crate::ring::{Client, retry};
use crate::values::check;

/// What is done by the ring in a round, and the answer.
const SENT: &[u8] = b"set stepped 0 0 9\r\n123456789\r\nget stepped\r\n";
const ANSWER: &[u8] = b"STORED\r\nVALUE stepped 0 9\r\n123456789\r\nEND\r\n";

/// The client: connects, stops until it is traced, reads directly and writes by the ring, and ends.
pub fn round(shared: &Path) {
    // Those before it may not have left yet.
    let mut client = retry(|| Client::connect(shared));
    let mut value = Vec::new();
    println!("connected");
    // SAFETY: it asks its parent to trace it, and stops itself.
    unsafe {
        assert_eq!(libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0), 0);
        libc::raise(libc::SIGSTOP);
    }
    for key in 1..4_u64 {
        if client
            .direct
            .get(&key.to_le_bytes(), &mut value)
            .unwrap()
            .is_some()
        {
            check(key, &value);
        }
        client.expect(SENT, ANSWER);
    }
    // SAFETY: nothing of this process is worth an orderly end.
    unsafe { libc::_exit(0) }
}

/// Another client, which finds the server whole.
pub fn another(client: &mut Client) {
    client.expect(SENT, ANSWER);
    client.expect(b"mn\r\n", b"MN\r\n");
}

/// Lets a stopped child take `steps` instructions, or those until its end. Returns how many it took. They take turns, so both stay on
/// one core: to wake the other on another one takes half of the time.
pub fn step(child: u32, steps: u64) -> u64 {
    let child = child as i32;
    let this_thread = Pid::from_raw(0);
    let before = sched_getaffinity(this_thread).unwrap();
    let mut here = CpuSet::new();
    here.set(sched_getcpu().unwrap()).unwrap();
    for who in [this_thread, Pid::from_raw(child)] {
        sched_setaffinity(who, &here).unwrap();
    }
    let taken = step_here(child, steps);
    sched_setaffinity(this_thread, &before).unwrap();
    taken
}

fn step_here(child: i32, steps: u64) -> u64 {
    assert!(has_stopped(child));
    for taken in 0..steps {
        // SAFETY: the child is traced and has stopped.
        let stepped = unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) };
        assert_eq!(stepped, 0);
        if !has_stopped(child) {
            return taken;
        }
    }
    steps
}

/// Waits until a child stops, or has ended: its end is left to who started it.
fn has_stopped(child: i32) -> bool {
    let (by_id, what) = (libc::P_PID, libc::WSTOPPED | libc::WEXITED);
    let wait = |flags| {
        // SAFETY: a structure of numbers; and a child that has not been waited for to its end.
        unsafe {
            let mut found: libc::siginfo_t = std::mem::zeroed();
            assert_eq!(libc::waitid(by_id, child as u32, &mut found, flags), 0);
            found.si_code
        }
    };
    let has_stopped = [libc::CLD_STOPPED, libc::CLD_TRAPPED].contains(&wait(what | libc::WNOWAIT));
    if has_stopped {
        wait(libc::WSTOPPED);
    }
    has_stopped
}
