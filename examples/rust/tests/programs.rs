//! Each program as its users have it: started, and asked by many connections at once.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;

use nuthatch_examples::Product;

/// A program that listens; it ends with this.
struct Running {
    program: Child,
    address: SocketAddr,
}

impl Running {
    fn start(program: &str) -> Self {
        let mut program = Command::new(program)
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(program.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.trim().parse().unwrap();
        Self { program, address }
    }

    /// What is answered to this, until the program closes the connection.
    fn ask(&self, question: &str) -> String {
        let mut connection = TcpStream::connect(self.address).unwrap();
        connection.write_all(question.as_bytes()).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Of many that ask for one product at once, all get it, and the store is asked once; so again later.
    fn caches(&self, ask: impl Fn(&Self, &str) -> String + Sync) {
        let expected = Product {
            id: 7,
            name: "product 7".to_owned(),
            cents: 995,
        };
        for _ in 0..2 {
            thread::scope(|scope| {
                for _ in 0..20 {
                    scope.spawn(|| {
                        let answer = ask(self, "7");
                        let product: Product = serde_json::from_str(&answer).expect(&answer);
                        assert_eq!(product, expected);
                    });
                }
            });
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ended = self.program.kill();
        let _status = self.program.wait();
    }
}

/// The status and the body of a web page.
#[cfg(any(feature = "axum", feature = "actix"))]
fn page(program: &Running, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let mut connection = TcpStream::connect(program.address).unwrap();
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect(&answer);
    let status = head
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    (status.expect(head), body.to_owned())
}

#[cfg(any(feature = "axum", feature = "actix"))]
fn serves_pages(program: &str) {
    let program = Running::start(program);
    program.caches(|program, id| {
        let (status, body) = page(program, &format!("/products/{id}"));
        assert_eq!(status, 200);
        body
    });
    assert_eq!(page(&program, "/lookups"), (200, "1".to_owned()));
    assert_eq!(
        page(&program, "/products/0"),
        (404, "there is no such product".to_owned())
    );
}

#[cfg(feature = "axum")]
#[test]
fn axum() {
    serves_pages(env!("CARGO_BIN_EXE_axum"));
}

#[cfg(feature = "actix")]
#[test]
fn actix() {
    serves_pages(env!("CARGO_BIN_EXE_actix"));
}

#[test]
fn service() {
    let program = Running::start(env!("CARGO_BIN_EXE_service"));
    program.caches(|program, id| program.ask(&format!("get {id}\n")));
    assert_eq!(program.ask("lookups\n"), "1\n");
    let answers = program.ask("get 0\r\nget x\nput\nget 7\n");
    let answers: Vec<&str> = answers.lines().collect();
    assert_eq!(answers[0], "error: there is no such product");
    assert_eq!(
        answers[1..3],
        [
            "error: invalid digit found in string",
            "error: get NUMBER, or lookups"
        ]
    );
    assert!(answers[3].starts_with("{\"id\":7"));
    // A line without an end is not read for ever.
    assert_eq!(program.ask(&"x".repeat(1024)), "");
}
