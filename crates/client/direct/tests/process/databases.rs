//! Redis' clients exchange and empty databases, while database 0 is read.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;

use nuthatch_direct::Direct;

/// Where the server of a socket listens for Redis' clients.
pub fn socket(shared: &Path) -> PathBuf {
    shared.with_extension("redis")
}

/// A client of Redis' protocol, whose answers are a line.
struct Redis(BufReader<UnixStream>);

impl Redis {
    fn ask(&mut self, words: &str) {
        self.0.get_mut().write_all(words.as_bytes()).unwrap();
        self.0.get_mut().write_all(b"\r\n").unwrap();
        let mut answer = String::new();
        self.0.read_line(&mut answer).unwrap();
        assert_eq!(answer, "+OK\r\n", "{words}");
    }
}

/// Each change that was answered is seen by the next get.
pub fn change(shared: &Path) {
    let cache = Direct::connect(shared).unwrap();
    let stream = UnixStream::connect(socket(shared)).unwrap();
    let mut redis = Redis(BufReader::new(stream));
    for (words, found) in [
        ("SET k v", Some("v")),
        ("SELECT 1", Some("v")),
        ("SET k other", Some("v")),
        ("SWAPDB 0 1", Some("other")),
        ("SET k changed", Some("other")),
        ("SWAPDB 1 0", Some("changed")),
        ("SELECT 0", Some("changed")),
        ("FLUSHDB", None),
        ("SET k again", Some("again")),
        ("FLUSHALL", None),
        ("SET k more", Some("more")),
    ] {
        redis.ask(words);
        assert_eq!(get(&cache, b"k").as_deref(), found, "{words}");
        let mut many = Vec::new();
        cache
            .get_many(&[b"none", b"k"], |number, found| {
                let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
                many.push((number, found.map(|(_, value)| text(value))));
            })
            .unwrap();
        assert_eq!(many, [(0, None), (1, found.map(str::to_owned))], "{words}");
    }
    beside(&cache, &mut redis);
    println!("done");
}

/// Database 0 always has a key of its own, which no other has.
fn beside(cache: &Direct, redis: &mut Redis) {
    redis.ask("SET zero 0");
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            (0..200_000)
                .filter_map(|_| get(cache, b"zero"))
                .all(|value| value == "0" || value == "1")
        });
        while !reader.is_finished() {
            redis.ask("SELECT 1");
            redis.ask("SET zero 1");
            redis.ask("SWAPDB 0 1");
            redis.ask("SET zero 0");
            redis.ask("SWAPDB 0 1");
        }
        assert!(reader.join().unwrap());
    });
}

fn get(cache: &Direct, key: &[u8]) -> Option<String> {
    let mut value = Vec::new();
    let found = cache.get(key, &mut value).unwrap();
    found.map(|_| String::from_utf8(value).unwrap())
}
