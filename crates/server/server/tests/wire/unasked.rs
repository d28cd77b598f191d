//! What clients are sent unasked: messages of channels.

use super::client::Client;
use super::fixture::{Fixture, Wants};
use super::redis::{ask, both, line, request};

/// The connections of a server are spread over its two workers, so some of these have another than the publisher.
#[test]
fn a_message_reaches_all_who_have_subscribed() {
    let server = Fixture::with(both(), Wants::default());
    let mut publisher = server.redis_client();
    let mut subscribers: Vec<Client> = (0..6).map(|_| server.redis_client()).collect();
    for subscriber in &mut subscribers {
        subscriber.send([line("SUBSCRIBE news"), line("PSUBSCRIBE n?ws")].concat());
        subscriber.expect(b"*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n*3\r\n$10\r\npsubscribe\r\n$4\r\nn?ws\r\n:2\r\n");
    }
    let long = vec![b'x'; 300_000];
    for text in [&b"hi"[..], b"", &long] {
        ask(
            &mut publisher,
            &request(&[b"PUBLISH", b"news", text]),
            b":12\r\n",
        );
        let said = [format!("${}\r\n", text.len()).as_bytes(), text, b"\r\n"].concat();
        for subscriber in &mut subscribers {
            subscriber.expect([b"*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n", &said[..]].concat());
            subscriber.expect(
                [
                    b"*4\r\n$8\r\npmessage\r\n$4\r\nn?ws\r\n$4\r\nnews\r\n",
                    &said[..],
                ]
                .concat(),
            );
        }
    }
    drop(subscribers.split_off(3));
    let subscriber = &mut subscribers[0];
    subscriber.send([line("PUNSUBSCRIBE"), line("PING")].concat());
    subscriber
        .expect(b"*3\r\n$12\r\npunsubscribe\r\n$4\r\nn?ws\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n");
    // Those that have gone are forgotten when the server has seen it.
    loop {
        publisher.send(line("PUBLISH news x"));
        if publisher.line() == ":5" {
            break;
        }
    }
}

/// Order, and nothing lost, with several publishers at once.
#[test]
fn messages_come_in_the_order_of_their_publisher() {
    const MESSAGES: usize = 2000;
    let server = Fixture::with(both(), Wants::default());
    let mut subscriber = server.redis_client();
    subscriber.send(line("HELLO 3"));
    while subscriber.line() != "*0" {}
    subscriber.send(line("SUBSCRIBE c"));
    subscriber.expect(b">3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    let publishers: Vec<_> = (0..3).map(|_| server.redis_client()).collect();
    std::thread::scope(|scope| {
        for (number, mut publisher) in publishers.into_iter().enumerate() {
            scope.spawn(move || {
                let said: Vec<u8> = (0..MESSAGES)
                    .flat_map(|at| line(&format!("PUBLISH c {number}:{at:06}")))
                    .collect();
                publisher.send(said);
                publisher.expect(":1\r\n".repeat(MESSAGES));
            });
        }
        let mut next = [0; 3];
        for _ in 0..3 * MESSAGES {
            subscriber.expect(b">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$8\r\n");
            let text = subscriber.line();
            let (number, at) = text.split_once(':').unwrap();
            let (number, at): (usize, usize) = (number.parse().unwrap(), at.parse().unwrap());
            assert_eq!(at, next[number]);
            next[number] += 1;
        }
    });
}

#[test]
fn who_does_not_read_is_closed() {
    let server = Fixture::with(both(), Wants::default());
    let (mut publisher, mut text) = (server.redis_client(), server.client());
    ask(
        &mut publisher,
        &request(&[
            b"CONFIG",
            b"SET",
            b"client-output-buffer-limit",
            b"pubsub 1mb 0 0",
        ]),
        b"+OK\r\n",
    );
    let mut slow = server.redis_client();
    slow.send(line("SUBSCRIBE c"));
    slow.expect(b"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    let message = request(&[b"PUBLISH", b"c", &vec![b'x'; 60_000]]);
    loop {
        publisher.send(&message);
        if publisher.line() == ":0" {
            break;
        }
    }
    assert_eq!(text.stat("slow_subscribers"), 1);
    while slow.drain_some() {}
    ask(
        &mut publisher,
        &line("PUBSUB NUMSUB c"),
        b"*2\r\n$1\r\nc\r\n:0\r\n",
    );
}
