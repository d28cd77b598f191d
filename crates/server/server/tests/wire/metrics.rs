//! The endpoint of metrics, beside clients that say nothing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::client::PATIENCE;
use super::fixture::{Fixture, Wants, config};
use nuthatch_server::{Config, Listen};

fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_health_check_is_answered_beside_any_number_of_half_requests() {
    let config = Config {
        metrics: vec![
            Listen::tcp(([127, 0, 0, 1], 0)),
            Listen::tcp(([127, 0, 0, 2], 0)),
        ],
        ..config()
    };
    let server = Fixture::with(config, Wants::default());
    let [address, other] = server.handle().metrics_addresses() else {
        panic!("two were asked for");
    };
    let address = *address;
    let mut half = Vec::new();
    for _ in 0..300 {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
        half.push(stream);
        if half.len() % 100 == 0 {
            let answer = ask(address, "GET /healthz HTTP/1.1\r\n\r\n");
            assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
            assert!(answer.ends_with("\r\n\r\nok\n"), "{answer}");
        }
    }
    let page = ask(address, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(page.contains("nuthatch_connections "), "{page}");
    let page = ask(*other, "GET /metrics HTTP/1.1\r\n\r\n");
    assert!(page.contains("nuthatch_connections "), "{page}");
    // Who came last may go on.
    let mut last = half.pop().unwrap();
    last.set_read_timeout(Some(PATIENCE)).unwrap();
    last.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    last.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
}
