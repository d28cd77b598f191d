//! A machine that gives no memory. A process of its own, because it limits itself.

use std::fs;

use bumpalo::Bump;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nuthatch_base::memory::reserve::{self, Allocator};
use nuthatch_script::{Failure, Script, Value};

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

/// Bytes that this process may write.
fn held() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmData:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.unwrap().parse::<u64>().unwrap() << 10
}

/// Class of bug: what a peer makes a program allocate uses up the reserve of those who cannot do without.
#[test]
fn a_text_for_which_there_is_no_memory_leaves_the_reserve() {
    let script =
        Script::read(b"local v = redis.call('get', KEYS[1]) .. ARGV[1] return #v").unwrap();
    let argument = vec![b'x'; 8_000_000];
    let arguments = [&argument[..]];
    let run = || {
        let mut key = |_: &[&[u8]]| Ok(Value::Text(b"x"));
        let arena = Bump::new();
        let ran = script.run(b"k", &arguments, &arena, &mut key);
        ran.value.map(|value| value == Value::Number(8_000_001.0))
    };
    assert_eq!(run(), Ok(true));
    assert!(reserve::fill(32 << 20));
    let before = reserve::openings();
    let (soft, hard) = getrlimit(Resource::RLIMIT_DATA).unwrap();
    setrlimit(Resource::RLIMIT_DATA, held(), hard).unwrap();
    let ran = run();
    setrlimit(Resource::RLIMIT_DATA, soft, hard).unwrap();
    assert_eq!(ran, Err(Failure::OutOfMemory));
    assert_eq!(reserve::openings(), before);
    assert_eq!(run(), Ok(true));
}
