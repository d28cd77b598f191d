//! A server for one test.

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::sync::{Arc, mpsc};
use std::thread;

use nuthatch_engine::{Audit, Engine};
use nuthatch_server::{Address, Config, Listen, Protocol, Server, ServerHandle};

use super::client::{Client, PATIENCE};
use crate::engine::{TestEngine, engine};

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

/// A port of the system's choice on 127.0.0.1.
pub fn any_port() -> Listen {
    Listen::tcp((Ipv4Addr::LOCALHOST, 0))
}

/// Settings of most tests.
pub fn config() -> Config {
    Config {
        listeners: vec![any_port()],
        threads: NonZeroUsize::new(2).unwrap(),
        ..Config::default()
    }
}

fn first_tcp(handle: &ServerHandle, is_it: fn(Protocol) -> bool) -> SocketAddr {
    handle
        .addresses_of(is_it)
        .find_map(|address| match address {
            Address::Tcp(address) => Some(*address),
            Address::Udp(_) | Address::Unix(_) => None,
        })
        .unwrap()
}

/// Waits for a server's end, but not for ever.
fn join(handle: ServerHandle) {
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || tell.send(handle.join()));
    let end = ended.recv_timeout(PATIENCE);
    end.expect("the server ends").unwrap();
}

/// A running server that stops when the test ends.
pub struct Fixture {
    handle: Option<ServerHandle>,
    engine: Arc<TestEngine>,
}

impl Fixture {
    pub fn new() -> Self {
        Self::with(config(), Wants::default())
    }

    pub fn with(config: Config, wants: Wants) -> Self {
        let engine = engine(wants);
        Self {
            handle: Some(Server::start(config, Arc::clone(&engine).any()).unwrap()),
            engine,
        }
    }

    pub fn handle(&self) -> &ServerHandle {
        self.handle.as_ref().unwrap()
    }

    /// The first TCP address.
    pub fn address(&self) -> SocketAddr {
        first_tcp(self.handle(), Protocol::is_memcached)
    }

    /// The first TCP address for CPServer's clients.
    pub fn cpserver_address(&self) -> SocketAddr {
        first_tcp(self.handle(), Protocol::is_cpserver)
    }

    pub fn cpserver_client(&self) -> Client {
        Client::tcp(self.cpserver_address())
    }

    pub fn redis_client(&self) -> Client {
        Client::tcp(first_tcp(self.handle(), Protocol::is_redis))
    }

    pub fn client(&self) -> Client {
        Client::tcp(self.address())
    }

    /// Stops it and waits for its end.
    pub fn stop(mut self) {
        self.end();
    }

    /// Waits for its end, which something else has brought about.
    pub fn join(mut self) {
        join(self.handle.take().unwrap());
        self.engine.audit().unwrap();
    }

    fn end(&mut self) {
        if let Some(handle) = self.handle.take() {
            handle.shutdown();
            join(handle);
            if !std::thread::panicking() {
                self.engine.audit().unwrap();
            }
        }
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.end();
    }
}
