//! Serves the oracle engine on a port of the system's choice: `cargo run --example oracle [PORT]`. Use it to find out
//! what a reply should be. The `nuthatch` binary is the real server.

use std::net::{Ipv4Addr, SocketAddr};

use nuthatch_check::naive::{Naive, Options};
use nuthatch_engine::Engine;
use nuthatch_server::{Config, Listen, Server, on_signals};

fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port.unwrap_or(0)));
    let config = Config {
        listeners: vec![Listen::tcp(address)],
        ..Config::default()
    };
    let server = Server::start(config, Naive::new(Options::default()).any())?;
    for (address, _) in server.addresses() {
        println!("{address}");
    }
    on_signals(server.stopper())?;
    server.join()
}
