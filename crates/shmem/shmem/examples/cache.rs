//! An OpenSHMEM program whose PEs share a cache: each raises a common count, and gets what it and the others have
//! stored.
//!
//! ```text
//! cargo build -p nuthatch-shmem --features openshmem --example cache
//! oshrun -n 4 target/debug/examples/cache         every PE serves, in a thread beside the program's
//! oshrun -n 4 target/debug/examples/cache 1       the first PE only serves
//! ```

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use nuthatch_shmem::fabric::Fabric;
use nuthatch_shmem::fabric::openshmem::{self, OpenShmem};
use nuthatch_shmem::{Options, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let servers = std::env::args()
        .nth(1)
        .map_or(Ok(0), |servers| servers.parse())?;
    let options = Options {
        servers,
        memory: 64 << 20,
        ..Options::default()
    };
    // OpenSHMEM takes its memory when it starts, so how many PEs there are must be known before. Invalid settings are
    // an error on every PE here, where no PE waits for another yet.
    let words = options.symmetric_words(openshmem::launched().unwrap_or(1))?;
    // SAFETY: no other thread exists that uses the environment, and OpenSHMEM is started nowhere else.
    let fabric = Arc::new(unsafe { OpenShmem::open(words) }?);
    let store = Store::open(Arc::clone(&fabric), &options).unwrap_or_else(|error| {
        // A PE that returned would leave the others waiting.
        eprintln!("cache: {error}");
        fabric.abort(1)
    });
    if store.is_server() {
        store.serve();
    } else if let Err(error) = ask(&store, fabric.pe(), fabric.pes() - servers) {
        eprintln!("cache: {error}");
        fabric.abort(1);
    }
    store.close();
    // OpenSHMEM ends when the last reference to the fabric drops, on all PEs together.
    Ok(())
}

/// The work of one of `clients` clients.
fn ask(store: &Store<OpenShmem>, pe: usize, clients: usize) -> Result<(), nuthatch_shmem::Error> {
    let name = format!("greeting of {pe}");
    store.set(name.as_bytes(), b"hello", Some(Duration::from_secs(600)))?;
    store.add(b"count", b"0", None)?;
    store.incr(b"count", 1)?;
    // A miss is always possible: items may be evicted.
    let all = || -> Result<bool, _> {
        let count = store.get(b"count")?.unwrap_or_default();
        Ok(count == clients.to_string().as_bytes())
    };
    while !all()? {
        std::thread::yield_now();
    }
    let greeting = store.get(name.as_bytes())?.unwrap_or_default();
    let greeting = String::from_utf8_lossy(&greeting);
    println!("cache: PE {pe}: {greeting} from one of {clients} clients");
    Ok(())
}
