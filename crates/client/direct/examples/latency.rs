//! How long a single get of 32 bytes takes: from this process' own cache, directly from a server's memory, and through a
//! unix socket. In one run, in turn, the medians of the rounds.
//!
//!     nuthatch -s /tmp/n.sock --shared /tmp/n.shared &
//!     memcached -s /tmp/m.sock &
//!     cargo run --release -p nuthatch-direct --example latency ITEMS /tmp/n.shared /tmp/n.sock /tmp/m.sock
//!
//! A get without a call is too short to be timed alone: of these a thousand are timed together.

#[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
mod run {
    use std::hint::black_box;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::path::Path;
    use std::time::Instant;

    use nuthatch::Cache;
    use nuthatch_direct::Direct;

    const VALUE: &[u8; 32] = b"a value of exactly 32 bytes here";
    const ROUNDS: usize = 15;
    const BLOCKS: usize = 200;
    const BLOCK: u64 = 1000;
    const CALLS: u64 = 5000;

    fn name(number: u64) -> [u8; 16] {
        let mut name = *b"key:000000000000";
        let mut rest = number;
        for digit in name.iter_mut().rev().take(12) {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        name
    }

    /// The next key, as if at random.
    fn next(state: &mut u64, items: u64) -> [u8; 16] {
        *state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        name((*state >> 33) % items)
    }

    /// Stores all items in a server.
    fn fill(stream: &mut UnixStream, items: u64) {
        for first in (0..items).step_by(1000) {
            let mut requests = Vec::new();
            for number in first..(first + 1000).min(items) {
                requests.extend_from_slice(b"set ");
                requests.extend_from_slice(&name(number));
                requests.extend_from_slice(b" 0 0 32 noreply\r\n");
                requests.extend_from_slice(VALUE);
                requests.extend_from_slice(b"\r\n");
            }
            stream.write_all(&requests).unwrap();
        }
        stream.write_all(b"mn\r\n").unwrap();
        let mut answer = [0; 4];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"MN\r\n");
    }

    fn percentile(times: &mut [f64], percent: usize) -> f64 {
        times.sort_by(f64::total_cmp);
        times[(times.len() * percent / 100).min(times.len() - 1)]
    }

    /// Nanoseconds a get: half of the blocks, and 99 % of them, take less.
    fn blocks(items: u64, mut get: impl FnMut(&[u8])) -> [f64; 2] {
        let mut state = 1;
        let block = |_| {
            let begun = Instant::now();
            (0..BLOCK).for_each(|_| get(&next(&mut state, items)));
            begun.elapsed().as_nanos() as f64 / BLOCK as f64
        };
        let mut times: Vec<f64> = (0..BLOCKS).map(block).collect();
        [50, 99].map(|percent| percentile(&mut times, percent))
    }

    fn calls(items: u64, stream: &mut UnixStream) -> [f64; 2] {
        let mut state = 1;
        let expected =
            b"VALUE key:000000000000 0 32\r\n".len() + VALUE.len() + b"\r\nEND\r\n".len();
        let call = |_| {
            let mut request = *b"get key:000000000000\r\n";
            request[4..20].copy_from_slice(&next(&mut state, items));
            let begun = Instant::now();
            stream.write_all(&request).unwrap();
            let mut answer = vec![0; expected];
            stream.read_exact(&mut answer).unwrap();
            assert!(answer.starts_with(b"VALUE"));
            begun.elapsed().as_nanos() as f64
        };
        let mut times: Vec<f64> = (0..CALLS).map(call).collect();
        [50, 99].map(|percent| percentile(&mut times, percent))
    }

    pub fn main() {
        let mut arguments = std::env::args().skip(1);
        let items: u64 = arguments.next().unwrap().parse().unwrap();
        let shared = arguments.next().unwrap();
        let connect = |path: String| (UnixStream::connect(&path).unwrap(), path);
        let mut sockets: Vec<_> = arguments.map(connect).collect();
        for (stream, _) in &mut sockets {
            fill(stream, items);
        }
        let own = Cache::builder().memory_limit(1 << 30).build().unwrap();
        (0..items).for_each(|number| own.insert(name(number), VALUE).unwrap());
        let direct = Direct::connect(Path::new(&shared)).unwrap();
        let mut value = Vec::new();
        let mut rows = vec![
            ("own cache".to_owned(), Vec::new()),
            ("direct".to_owned(), Vec::new()),
        ];
        rows.extend(sockets.iter().map(|(_, path)| (path.clone(), Vec::new())));
        for _ in 0..ROUNDS {
            rows[0].1.push(blocks(items, |key| {
                assert!(own.get_into(key, &mut value));
                black_box(&value);
            }));
            rows[1].1.push(blocks(items, |key| {
                assert!(direct.get(key, &mut value).unwrap().is_some());
                black_box(&value);
            }));
            for (number, (stream, _)) in sockets.iter_mut().enumerate() {
                rows[2 + number].1.push(calls(items, stream));
            }
        }
        for (name, rounds) in rows {
            let [half, most] = [0, 1].map(|which| {
                let mut times: Vec<f64> = rounds.iter().map(|round| round[which]).collect();
                percentile(&mut times, 50)
            });
            println!("{name:20} p50 {half:9.0} ns   p99 {most:9.0} ns");
        }
    }
}

fn main() {
    #[cfg(all(target_os = "linux", not(any(nuthatch_unix, nuthatch_portable))))]
    run::main();
}
