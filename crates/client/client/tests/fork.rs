//! Children of a process that has a client: they must not use their parent's connections.
#![cfg(unix)]

#[cfg(feature = "near")]
use std::time::Duration;

use nuthatch_client::Client;

mod servers;

use servers::*;

/// How many connections the server has taken, beside those of this function.
fn connections(server: &Server, asked: &mut u64) -> u64 {
    *asked += 1;
    let taken: u64 = server
        .running()
        .stat("", "total_connections")
        .parse()
        .unwrap();
    taken - *asked
}

/// Class of fault: two processes use one connection, and one gets the reply that is the other's.
#[test]
fn a_child_has_a_connection_of_its_own() {
    let server = Server::nuthatch("");
    let client = Client::connect(&server.address()).unwrap();
    client.set("k", "v", None).unwrap();
    let mut asked = 0;
    let before = connections(&server, &mut asked);
    let found = Ok(Some(b"v".to_vec()));
    in_child(|| {
        let of_child = client.clone();
        let is_right = of_child.get("k") == found && client.get("k") == found;
        drop(of_child);
        // A child of the child, too.
        in_child(|| client.get("k") == found);
        is_right && client.get("k") == found
    });
    assert_eq!(connections(&server, &mut asked), before + 2);
    assert_eq!(client.get("k"), found);
    assert_eq!(connections(&server, &mut asked), before + 2);
}

/// Class of fault: a child waits for a lock of its parent's near cache, which a thread holds that the child has not.
#[cfg(feature = "near")]
#[test]
fn a_child_has_a_near_cache_of_its_own() {
    let server = Server::nuthatch("");
    let client = Client::connect(&server.address_with("near_ms=3600000")).unwrap();
    let other = Client::connect(&server.address()).unwrap();
    client.set("k", "old", Duration::from_secs(3600)).unwrap();
    assert_eq!(client.get("k"), Ok(Some(b"old".to_vec())));
    other.set("k", "new", None).unwrap();
    let (old, new) = (Ok(Some(b"old".to_vec())), Ok(Some(b"new".to_vec())));
    in_child(|| {
        let first = client.get("k");
        // It is kept here as well.
        client.get("k") == new && first == new
    });
    assert_eq!(client.get("k"), old, "the parent's is as it was");
}

/// The kind of fault: what is found in this process takes a system call all the same, because it asks which process this is.
#[cfg(all(
    feature = "near",
    target_os = "linux",
    not(any(nuthatch_unix, nuthatch_portable))
))]
#[test]
fn a_near_hit_does_not_ask_for_the_number_of_the_process() {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

    let server = Server::nuthatch("");
    let client = Client::connect(&server.address_with("near_ms=3600000")).unwrap();
    let other = Client::connect(&server.address()).unwrap();
    client.set("k", "old", None).unwrap();
    let old = Ok(Some(b"old".to_vec()));
    assert_eq!(client.get("k"), old);
    other.set("k", "new", None).unwrap();
    let number = std::process::id();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let calls = [(libc::SYS_getpid, Vec::new())].into();
            let (refuse, machine) = (SeccompAction::Errno(1), std::env::consts::ARCH);
            let machine = machine.try_into().unwrap();
            let filter = SeccompFilter::new(calls, SeccompAction::Allow, refuse, machine);
            let filter: BpfProgram = filter.unwrap().try_into().unwrap();
            // Of this thread alone.
            seccompiler::apply_filter(&filter).unwrap();
            assert_ne!(std::process::id(), number);
            assert_eq!(client.get("k"), old, "a child would ask the server");
        });
    });
}
