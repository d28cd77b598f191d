//! A server for one test. The engine is chosen here, once for all tests.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::Arc;

use nuthatch_check::naive::{Naive, Options};
use nuthatch_server::{Address, Config, Listen, Server, ServerHandle};

use crate::client::Client;

/// The engine under the server.
pub type TestEngine = Naive;

/// What a test may want of its engine.
#[derive(Clone, Copy)]
pub struct Wants {
    pub memory: usize,
    pub item_size_max: usize,
    pub evicts: bool,
}

impl Default for Wants {
    fn default() -> Self {
        Self {
            memory: 256 << 20,
            item_size_max: 1 << 20,
            evicts: true,
        }
    }
}

/// Makes the engine.
pub fn engine(wants: Wants) -> Arc<TestEngine> {
    Naive::new(Options {
        memory_limit: wants.memory,
        item_size_max: wants.item_size_max,
        evicts: wants.evicts,
        ..Options::default()
    })
}

/// A port of the system's choice on 127.0.0.1.
pub fn any_port() -> Listen {
    Listen::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
}

/// Settings of most tests.
pub fn config() -> Config {
    Config {
        listeners: vec![any_port()],
        threads: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    }
}

/// A running server that stops when the test ends.
pub struct Fixture {
    handle: Option<ServerHandle>,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(config(), Wants::default())
    }

    pub fn with(config: Config, wants: Wants) -> Self {
        Self {
            handle: Some(Server::start(config, engine(wants)).unwrap()),
        }
    }

    pub fn handle(&self) -> &ServerHandle {
        self.handle.as_ref().unwrap()
    }

    /// The first TCP address.
    pub fn address(&self) -> SocketAddr {
        let addresses = self.handle().addresses().iter();
        addresses
            .filter_map(|address| match address {
                Address::Tcp(address) => Some(*address),
                Address::Unix(_) => None,
            })
            .next()
            .unwrap()
    }

    pub fn client(&self) -> Client {
        Client::tcp(self.address())
    }

    /// Stops it and waits for its end.
    pub fn stop(mut self) {
        self.end();
    }

    fn end(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.shutdown();
            handle.join().unwrap();
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.end();
    }
}
