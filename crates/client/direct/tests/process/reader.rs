//! The readers of the tests: processes that check all that they find.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use nuthatch_direct::{Direct, Gone};

use crate::hostile;
use crate::server::GUEST;
use crate::values::{KEYS, check};

/// Reads until the server has gone, or `gets` times, with one key and with many in turn. Prints how it ended, and the hits.
pub fn read(shared: &Path, gets: u64) {
    let cache = Direct::connect(shared).unwrap();
    println!("connected");
    let mut seen = vec![0; KEYS as usize];
    let (mut hits, mut misses) = (0_u64, 0_u64);
    let mut note = |key: u64, found: Option<&[u8]>| match found {
        Some(bytes) => {
            let version = check(key, bytes);
            assert!(version >= seen[key as usize], "key {key}: an older value");
            seen[key as usize] = version;
            hits += 1;
        }
        None => misses += 1,
    };
    let mut value = Vec::new();
    let ended = (0..gets).find_map(|turn| {
        let key = turn * 7919 % KEYS;
        let got = match turn % 64 {
            0 => {
                let names = [0, 1, 2, 3, 4].map(|more| ((key + more) % KEYS).to_le_bytes());
                let names = names.each_ref().map(|name| name.as_slice());
                let each = |number: usize, found: Option<(_, &[u8])>| {
                    let found = found.map(|(_, bytes)| bytes);
                    note((key + number as u64) % KEYS, found);
                };
                cache.get_many(&names, each)
            }
            _ => cache.get(&key.to_le_bytes(), &mut value).map(|found| {
                note(key, found.map(|_| value.as_slice()));
            }),
        };
        got.err()
    });
    // A server that was stopped in the middle of a change spoils reads of one key; the others go on.
    assert_ne!(ended, Some(Gone::Forked));
    if ended == Some(Gone::Ended) {
        assert_eq!(
            cache.get(b"any", &mut value),
            Err(Gone::Ended),
            "from then on"
        );
        assert!(value.is_empty());
    }
    println!("{ended:?} hits {hits} misses {misses}");
}

/// Gets one of the keys that are stored once.
fn get(cache: &Direct, key: u64) -> Result<Option<u64>, Gone> {
    let mut value = Vec::new();
    let found = cache.get(&key.to_le_bytes(), &mut value)?;
    Ok(found.map(|_| check(key, &value)))
}

/// A child must not use its parent's connection, and the parent does not notice what the child does.
pub fn fork(shared: &Path) {
    let mut cache = Direct::connect(shared).unwrap();
    assert_eq!(get(&cache, 5), Ok(Some(1)));
    // SAFETY: the other thread of this process waits in a read, and holds no lock.
    let child = unsafe { libc::fork() };
    assert!(child >= 0);
    if child == 0 {
        assert_eq!(get(&cache, 5), Err(Gone::Forked));
        cache.reconnect().unwrap();
        assert_eq!(get(&cache, 5), Ok(Some(1)));
        drop(cache);
        std::process::exit(7);
    }
    let mut status = 0;
    // SAFETY: the number of the child, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert!(libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 7);
    assert_eq!(get(&cache, 5), Ok(Some(1)));
    println!("done");
}

/// A reader of another user, whom the settings do not let in.
pub fn stranger(shared: &Path) {
    become_user(GUEST - 1);
    let error = Direct::connect(shared).err().unwrap();
    assert_eq!(error.kind(), ErrorKind::PermissionDenied);
    assert!(error.to_string().contains("unix_peers"), "{error}");
    println!("done");
}

/// A reader of another user, whom the settings let in, and who means no good.
pub fn guest(shared: &Path) {
    become_user(GUEST);
    let cache = Direct::connect(shared).unwrap();
    assert_eq!(get(&cache, 5), Ok(Some(1)));
    assert!(!hostile::attack(shared), "opened again to write");
    assert_eq!(get(&cache, 5), Ok(Some(1)));
    println!("done");
}

fn become_user(user: u32) {
    // SAFETY: a call without addresses.
    assert_eq!(unsafe { libc::setuid(user) }, 0);
}

/// Reads, waits for a word at the door while the server is replaced, notices, and reads from the next one.
pub fn outlive(shared: &Path) {
    let mut cache = Direct::connect(shared).unwrap();
    assert_eq!(get(&cache, 7), Ok(Some(1)));
    println!("connected");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    assert_eq!(get(&cache, 7), Err(Gone::Ended));
    while cache.reconnect().is_err() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(get(&cache, 7), Ok(Some(1)));
    println!("done");
}
