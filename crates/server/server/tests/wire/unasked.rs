//! What clients are sent unasked: messages of channels, and that keys have changed.

use std::collections::HashSet;

use super::client::Client;
use super::fixture::{Fixture, Wants, any_port, config};
use super::redis::{ask, both, line, request};
use nuthatch_server::{Config, Protocol};

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

#[test]
fn what_waits_and_what_is_tracked_have_limits() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    client.send(line("CONFIG GET maxmemory"));
    client.expect(b"*2\r\n$9\r\nmaxmemory\r\n");
    let _len = client.line();
    let memory: u64 = client.line().parse().unwrap();
    let mut set = |name: &str, value: &str, reply: &str| {
        let words = ["CONFIG", "SET", name, value].map(str::as_bytes);
        ask(&mut client, &request(&words), reply.as_bytes());
    };
    let failed = |name: &str, why: &str| {
        format!("-ERR CONFIG SET failed (possibly related to argument '{name}') - {why}\r\n")
    };
    let name = "client-output-buffer-limit";
    let why = "the limit must not be above maxmemory";
    set(
        name,
        &format!("pubsub {} 0 0", memory + 1),
        &failed(name, why),
    );
    set(name, &format!("pubsub {memory} 0 0"), "+OK\r\n");
    let name = "tracking-table-max-keys";
    let why = "so many keys would take more memory than maxmemory";
    let most = (memory / 512).max(1_000_000);
    set(name, &(most + 1).to_string(), &failed(name, why));
    set(name, &most.to_string(), "+OK\r\n");
}

/// A client of RESP3 that tracks.
fn tracking(server: &Fixture, options: &str) -> Client {
    let mut client = server.redis_client();
    client.send(line("HELLO 3"));
    while client.line() != "*0" {}
    client.send(line(&format!("CLIENT TRACKING ON{options}")));
    client.expect(b"+OK\r\n");
    client
}

fn told(key: &str) -> String {
    format!(
        ">2\r\n$10\r\ninvalidate\r\n*1\r\n${}\r\n{key}\r\n",
        key.len()
    )
}

/// Writers of every protocol, on every worker.
#[test]
fn a_key_that_was_read_is_told_when_it_changes() {
    let server = Fixture::with(both(), Wants::default());
    let mut near = tracking(&server, "");
    let mut writers: Vec<Client> = (0..3).map(|_| server.redis_client()).collect();
    let mut text = server.client();
    let writes = [
        "SET k w",
        "APPEND k x",
        "SET k 5 EX 100",
        "INCR k",
        "EXPIRE k 50",
        "GETEX k PERSIST",
        "DEL k",
        "MSET k 1",
        "RENAME k other",
        "COPY other k",
        "GETDEL k",
        "RESTORE k 0 broken",
        "FLUSHALL",
    ];
    for (number, write) in writes.into_iter().enumerate() {
        near.send(line("GET k"));
        if near.line() != "_" {
            let _value = near.line();
        }
        let writer = &mut writers[number % 3];
        writer.send([line(write), line("PING")].concat());
        while writer.line() != "+PONG" {}
        match write {
            "RESTORE k 0 broken" => {}
            "FLUSHALL" => near.expect(">2\r\n$10\r\ninvalidate\r\n_\r\n"),
            _ => near.expect(told("k")),
        }
    }
    for write in [
        "set k 0 0 1\r\nx\r\n",
        "append k 0 0 1\r\ny\r\n",
        "delete k\r\n",
    ] {
        near.send(line("EXISTS k"));
        near.line();
        text.send(write);
        text.line();
        near.expect(told("k"));
    }
    // A long value, which comes in pieces.
    near.send(line("MGET k other"));
    near.expect("*2\r\n_\r\n_\r\n");
    let long = request(&[b"SET", b"other", &vec![b'x'; 300_000]]);
    ask(&mut writers[0], &long, b"+OK\r\n");
    near.expect(told("other"));
    ask(&mut near, &line("CLIENT TRACKING OFF"), b"+OK\r\n");
    ask(&mut near, &line("GET k"), b"_\r\n");
    ask(&mut writers[0], &line("SET k 1"), b"+OK\r\n");
    ask(&mut near, b"", b"");
}

/// A client that says ON again is told of what it has read before, by its new options.
#[test]
fn who_begins_to_track_again_forgets_nothing() {
    let server = Fixture::with(both(), Wants::default());
    let mut near = tracking(&server, "");
    ask(&mut near, &line("MGET k own"), b"*2\r\n_\r\n_\r\n");
    ask(&mut near, &line("CLIENT TRACKING ON NOLOOP"), b"+OK\r\n");
    ask(&mut near, &line("SET own 1"), b"+OK\r\n");
    let mut writer = server.redis_client();
    ask(&mut writer, &line("SET k 1"), b"+OK\r\n");
    near.expect(told("k"));
}

#[test]
fn what_is_tracked_depends_on_options() {
    let server = Fixture::with(both(), Wants::default());
    let mut writer = server.redis_client();
    let mut set = |key: &str| ask(&mut writer, &line(&format!("SET {key} 1")), b"+OK\r\n");
    let mut near = tracking(&server, " OPTIN");
    ask(&mut near, &line("GET a"), b"_\r\n");
    ask(
        &mut near,
        &[line("CLIENT CACHING YES"), line("GET b"), line("GET c")].concat(),
        b"+OK\r\n_\r\n_\r\n",
    );
    ["a", "b", "c"].into_iter().for_each(&mut set);
    near.expect(told("b"));
    ask(&mut near, b"", b"");

    let mut near = tracking(&server, " OPTOUT");
    let said = [line("CLIENT CACHING NO"), line("GET d"), line("GET e")].concat();
    ask(&mut near, &said, b"+OK\r\n_\r\n_\r\n");
    ["d", "e"].into_iter().for_each(&mut set);
    near.expect(told("e"));
    ask(&mut near, b"", b"");

    let mut near = tracking(&server, " BCAST PREFIX user: NOLOOP");
    ["user:1", "item:1"].into_iter().for_each(&mut set);
    near.expect(told("user:1"));
    ask(&mut near, &line("SET user:2 1"), b"+OK\r\n");

    let mut other = server.redis_client();
    other.send(
        [
            line("SUBSCRIBE __redis__:invalidate"),
            line("RESET"),
            line("CLIENT ID"),
        ]
        .concat(),
    );
    while other.line() != "+RESET" {}
    let id = other.line();
    other.send(line("SUBSCRIBE __redis__:invalidate"));
    while other.line() != ":1" {}
    let mut near = server.redis_client();
    let said = format!("CLIENT TRACKING ON REDIRECT {}", &id[1..]);
    ask(&mut near, &line(&said), b"+OK\r\n");
    ask(&mut near, &line("GET f"), b"$-1\r\n");
    set("f");
    other.expect(b"*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n*1\r\n$1\r\nf\r\n");
    ask(
        &mut near,
        &line("CLIENT GETREDIR"),
        format!("{id}\r\n").as_bytes(),
    );
}

#[test]
fn what_expires_or_is_evicted_is_told() {
    let wants = Wants {
        memory: 8 << 20,
        ..Wants::default()
    };
    let server = Fixture::with(both(), wants);
    let mut near = tracking(&server, "");
    let mut writer = server.redis_client();
    ask(&mut writer, &line("SET k v PX 300"), b"+OK\r\n");
    ask(&mut near, &line("GET k"), b"$1\r\nv\r\n");
    near.expect(told("k"));
    ask(&mut writer, &line("SET k v"), b"+OK\r\n");
    ask(&mut near, &line("GET k"), b"$1\r\nv\r\n");
    let value = vec![b'v'; 50_000];
    // Items that are read, too, so that they are worth as much as the one that was tracked.
    for number in 0.. {
        let key = format!("filler:{number}");
        let said = [
            request(&[b"SET", key.as_bytes(), &value]),
            line(&format!("STRLEN {key}")),
            line(&format!("STRLEN filler:{}", number / 2)),
            line("EXISTS k"),
        ];
        writer.send(said.concat());
        assert_eq!(writer.line(), "+OK");
        let _lengths = (writer.line(), writer.line());
        if writer.line() == ":0" {
            break;
        }
    }
    near.expect(told("k"));
}

/// Two clients begin to track while another writes: who reads the old value is told, even if it is not the first to begin.
#[test]
fn who_begins_beside_another_misses_no_change() {
    const ROUNDS: usize = 500;
    let server = Fixture::with(both(), Wants::default());
    let mut writer = server.redis_client();
    ask(&mut writer, &line("SET k before"), b"+OK\r\n");
    let round = std::sync::Barrier::new(3);
    std::thread::scope(|scope| {
        let nears = [(); 2].map(|()| {
            let mut near = tracking(&server, "");
            ask(&mut near, &line("CLIENT TRACKING OFF"), b"+OK\r\n");
            let round = &round;
            scope.spawn(move || {
                let mut lost = 0;
                for number in 0..ROUNDS {
                    round.wait();
                    near.send([line("CLIENT TRACKING ON"), line("GET k")].concat());
                    near.expect(b"+OK\r\n");
                    let _len = near.line();
                    let is_old = near.line() != number.to_string();
                    // The write is answered.
                    round.wait();
                    near.send(line("CLIENT TRACKING OFF"));
                    let said: Vec<String> = std::iter::repeat_with(|| near.line())
                        .take_while(|line| line != "+OK")
                        .collect();
                    let is_told = said.iter().any(|line| line == "invalidate");
                    lost += usize::from(is_old && !is_told);
                }
                lost
            })
        });
        for number in 0..ROUNDS {
            round.wait();
            ask(&mut writer, &line(&format!("SET k {number}")), b"+OK\r\n");
            round.wait();
        }
        for near in nears {
            assert_eq!(near.join().unwrap(), 0);
        }
    });
}

/// The last of two counts, though both were ordered before anybody tracked.
#[test]
fn a_delayed_flush_is_told_when_it_comes() {
    let server = Fixture::with(both(), Wants::default());
    let mut text = server.client();
    text.send("set k 0 0 1\r\nv\r\nflush_all 2\r\nflush_all 4\r\n");
    for reply in ["STORED", "OK", "OK"] {
        assert_eq!(text.line(), reply);
    }
    let mut near = tracking(&server, "");
    ask(&mut near, &line("GET k"), b"$1\r\nv\r\n");
    near.expect(">2\r\n$10\r\ninvalidate\r\n_\r\n");
    ask(&mut near, &line("GET k"), b"_\r\n");
}

#[test]
fn a_redirection_to_nobody_is_shown() {
    let server = Fixture::with(both(), Wants::default());
    let mut other = server.redis_client();
    other.send(line("CLIENT ID"));
    let id = other.line();
    let mut near = server.redis_client();
    let begin = format!("CLIENT TRACKING ON REDIRECT {}", &id[1..]);
    ask(&mut near, &line(&begin), b"+OK\r\n");
    other.send(line("SUBSCRIBE __redis__:invalidate"));
    let replies = "*3\r\n$9\r\nsubscribe\r\n$20\r\n__redis__:invalidate\r\n:1\r\n";
    other.expect(replies);
    let refused = "-ERR Can't execute 'client|id': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed \
         in this context\r\n";
    other.send(line("CLIENT ID"));
    other.expect(refused);
    ask(&mut near, &line("FLUSHALL"), b"+OK\r\n");
    other.expect("*3\r\n$7\r\nmessage\r\n$20\r\n__redis__:invalidate\r\n$-1\r\n");
    other.send(line("QUIT"));
    other.expect("+OK\r\n");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        ask(&mut near, &line("GET k"), b"$-1\r\n");
        near.send(line("DEL k"));
        assert_eq!(near.line(), ":0");
        ask(&mut near, &line("FLUSHALL"), b"+OK\r\n");
        near.send([line("CLIENT TRACKINGINFO"), line("ECHO end")].concat());
        let said: Vec<String> = std::iter::repeat_with(|| near.line())
            .take_while(|line| line != "end")
            .collect();
        if said.iter().any(|line| line == "broken_redirect") {
            break;
        }
        // The server has not yet seen to the end of that connection.
        assert!(std::time::Instant::now() < deadline, "{said:?}");
    }
}

#[test]
fn a_prefix_has_a_limit() {
    let server = Fixture::with(both(), Wants::default());
    let mut near = tracking(&server, " BCAST PREFIX a");
    let mut begin = |len, reply: &[u8]| {
        let prefix = "b".repeat(len);
        let said = line(&format!("CLIENT TRACKING ON BCAST PREFIX {prefix}"));
        ask(&mut near, &said, reply);
    };
    begin(1025, b"-ERR prefix is longer than 1024 bytes\r\n");
    begin(1024, b"+OK\r\n");
    for (prefixes, words) in [
        (
            "PREFIX ab",
            "Prefix 'ab' overlaps with an existing prefix 'a'",
        ),
        (
            "PREFIX cd PREFIX e PREFIX c",
            "Prefix 'cd' overlaps with another provided prefix 'c'",
        ),
    ] {
        let said = line(&format!("CLIENT TRACKING ON BCAST {prefixes}"));
        let reply = format!("-ERR {words}. Prefixes for a single client must not overlap.\r\n");
        ask(&mut near, &said, reply.as_bytes());
    }
    let mut writer = server.redis_client();
    ask(&mut writer, &line("SET a 1"), b"+OK\r\n");
    near.expect(told("a"));
}

/// Alone with the engine, because of WATCH, or not.
#[test]
fn a_transaction_may_begin_to_track() {
    let server = Fixture::with(both(), Wants::default());
    let mut writer = server.redis_client();
    for (number, watch) in ["PING", "WATCH other"].into_iter().enumerate() {
        let mut near = tracking(&server, "");
        let said = [
            "CLIENT TRACKING OFF",
            watch,
            "MULTI",
            "CLIENT TRACKING ON",
            "STRLEN k",
            "EXEC",
        ];
        near.send(said.map(line).concat());
        for _ in 0..5 {
            near.line();
        }
        near.expect(format!("*2\r\n+OK\r\n:{number}\r\n"));
        ask(
            &mut writer,
            &line("APPEND k x"),
            format!(":{}\r\n", number + 1).as_bytes(),
        );
        near.expect(told("k"));
    }
}

/// What a near cache keeps is what there is, whatever writes there were beside its reads.
#[test]
fn a_near_cache_misses_no_change() {
    const WRITES: usize = 1000;
    let server = Fixture::with(both(), Wants::default());
    let mut near = tracking(&server, "");
    let writers: Vec<_> = (0..3).map(|_| server.redis_client()).collect();
    std::thread::scope(|scope| {
        for mut writer in writers {
            scope.spawn(move || {
                for _ in 0..WRITES {
                    writer.send(line("INCR n"));
                    writer.line();
                }
            });
        }
        let last = (3 * WRITES).to_string();
        let mut kept = String::new();
        while kept != last {
            near.send(line("GET n"));
            // The answer, and then what waits.
            loop {
                match near.line().as_str() {
                    "_" => break,
                    ">2" => (0..4).for_each(|_| drop(near.line())),
                    _ => {
                        kept = near.line();
                        break;
                    }
                }
            }
            if kept == last {
                break;
            }
            // It changes yet: who keeps this must be told.
            near.expect(told("n"));
        }
    });
}

/// Every message is compared with all patterns by its channel's name.
#[test]
fn a_channel_has_a_limit() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let mut try_with = |len: usize, words: [&str; 2], reply: &str| {
        let name = vec![b'c'; len];
        let mut said = vec![words[0].as_bytes(), &name];
        said.extend((!words[1].is_empty()).then_some(words[1].as_bytes()));
        ask(&mut client, &request(&said), reply.as_bytes());
    };
    let name = "-ERR name of a channel is longer than 1024 bytes\r\n";
    let pattern = "-ERR pattern is longer than 1024 bytes\r\n";
    for (words, refusal) in [
        (["PUBLISH", "text"], name),
        (["SPUBLISH", "text"], name),
        (["SUBSCRIBE", ""], name),
        (["SSUBSCRIBE", ""], name),
        (["PSUBSCRIBE", ""], pattern),
    ] {
        try_with(1025, words, refusal);
    }
    try_with(1024, ["PUBLISH", "text"], ":0\r\n");
}

/// A near cache that changes many keys with long names at once is told all the same, and stays.
#[test]
fn long_keys_do_not_end_their_writer() {
    let server = Fixture::with(both(), Wants::default());
    let mut near = tracking(&server, " BCAST");
    let words = [
        "CONFIG",
        "SET",
        "client-output-buffer-limit",
        "pubsub 1 0 0",
    ];
    ask(&mut near, &request(&words.map(str::as_bytes)), b"+OK\r\n");
    let keys: Vec<String> = (0..50).map(|number| format!("{number:0200}")).collect();
    let pairs = keys.iter().flat_map(|key| [key.as_bytes(), b"v"]);
    let said: Vec<&[u8]> = std::iter::once(&b"MSET"[..]).chain(pairs).collect();
    near.send(request(&said));
    near.expect("+OK\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n");
    ask(&mut near, b"", b"");
}

/// What a client is sent of its subscriptions is no answer.
#[test]
fn subscriptions_are_confirmed_to_who_wants_no_answers() {
    let server = Fixture::with(both(), Wants::default());
    let mut client = server.redis_client();
    let confirmed =
        |word: &str, count| format!("*3\r\n${}\r\n{word}\r\n$1\r\na\r\n:{count}\r\n", word.len());
    let said = ["CLIENT REPLY OFF", "PING", "SUBSCRIBE a", "PING", "GET k"];
    client.send(said.map(line).concat());
    client.expect(confirmed("subscribe", 1));
    let mut publisher = server.redis_client();
    ask(&mut publisher, &line("PUBLISH a hi"), b":1\r\n");
    client.expect("*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n");
    let said = ["UNSUBSCRIBE a", "PING", "CLIENT REPLY ON"];
    client.send(said.map(line).concat());
    client.expect(confirmed("unsubscribe", 0) + "+OK\r\n");
    let said = ["CLIENT REPLY SKIP", "PSUBSCRIBE a", "PING"];
    client.send(said.map(line).concat());
    client.expect(confirmed("psubscribe", 1) + "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
}

/// A client that has done nothing yet is told what another redirects to it, if it could tell that from an answer.
#[test]
fn who_is_redirected_to_needs_no_channel() {
    let server = Fixture::with(both(), Wants::default());
    let mut writer = server.redis_client();
    for (hello, reply) in [("HELLO 3", told("k")), ("PING", String::new())] {
        // On both workers.
        for _ in 0..4 {
            let mut target = server.redis_client();
            target.send([line(hello), line("CLIENT ID")].concat());
            let id = loop {
                let line = target.line();
                if line.starts_with(':') && line != ":3" {
                    break line;
                }
                if line == "$2" && target.line() == "id" {
                    let _of_hello = target.line();
                }
            };
            let mut near = tracking(&server, &format!(" REDIRECT {}", &id[1..]));
            ask(&mut target, b"", b"");
            ask(&mut near, &line("EXISTS k"), b":0\r\n");
            ask(&mut writer, &line("SET k v"), b"+OK\r\n");
            ask(&mut writer, &line("DEL k"), b":1\r\n");
            target.expect(&reply);
            ask(&mut target, b"", b"");
            drop(target);
            // Its end is noticed some time.
            loop {
                near.send(line("EXISTS k"));
                near.expect(":0\r\n");
                ask(&mut writer, &line("SET k v"), b"+OK\r\n");
                ask(&mut writer, &line("DEL k"), b":1\r\n");
                near.send(line("PING"));
                let said = near.line();
                if said == ">2" {
                    near.expect("$21\r\ntracking-redir-broken\r\n");
                    assert_eq!(near.line(), id);
                    near.expect("+PONG\r\n");
                    break;
                }
                assert_eq!(said, "+PONG");
            }
        }
    }
}

/// Class of fault: a connection that others redirect to is taken for closed, because it has no mailbox now.
#[test]
fn a_redirection_is_broken_only_by_the_end_of_its_connection() {
    let server = Fixture::with(
        Config {
            listeners: vec![any_port().of(Protocol::Any), any_port().of(Protocol::Redis)],
            ..config()
        },
        Wants::default(),
    );
    let mut writer = server.client();
    writer.send(line("CLIENT ID"));
    let own: u64 = writer.line()[1..].parse().unwrap();
    // Nobody knows yet what it speaks. The next is accepted behind it.
    let mut target = server.client();
    ask(&mut server.client(), &line("PING"), b"+PONG\r\n");
    let mut near = tracking(&server, &format!(" REDIRECT {}", own + 1));
    let mut change = |near: &mut Client| {
        ask(near, &line("EXISTS k"), b":0\r\n");
        ask(&mut writer, &line("SET k v"), b"+OK\r\n");
        ask(&mut writer, &line("DEL k"), b":1\r\n");
        ask(near, &line("PING"), b"+PONG\r\n");
    };
    let hello = |target: &mut Client| {
        target.send([line("HELLO 3"), line("PING")].concat());
        while target.line() != "+PONG" {}
    };
    change(&mut near);
    hello(&mut target);
    change(&mut near);
    target.expect(told("k"));
    ask(&mut target, &line("RESET"), b"+RESET\r\n");
    change(&mut near);
    hello(&mut target);
    change(&mut near);
    target.expect(told("k"));
}

/// A pattern is compared with some names at a time, while others are served, also within a transaction.
#[test]
fn many_channels_are_looked_through_by_a_pattern() {
    const NAMES: usize = 1000;
    let server = Fixture::with(both(), Wants::default());
    let mut subscriber = server.redis_client();
    for number in 0..NAMES {
        let name = format!("{}:{number}", number % 3);
        subscriber.send(request(&[b"SUBSCRIBE", name.as_bytes()]));
        subscriber.expect(format!(
            "*3\r\n$9\r\nsubscribe\r\n${}\r\n{name}\r\n:{}\r\n",
            name.len(),
            number + 1
        ));
    }
    let mut client = server.redis_client();
    let looks = [
        ("CHANNELS 1:*", 333),
        ("CHANNELS *", NAMES),
        ("CHANNELS", NAMES),
        ("CHANNELS none*", 0),
        ("SHARDCHANNELS *", 0),
    ];
    client.send(line("MULTI"));
    client.expect("+OK\r\n");
    for (look, _) in looks {
        client.send(line(&format!("PUBSUB {look}")));
        client.expect("+QUEUED\r\n");
    }
    client.send(line("EXEC"));
    client.expect(format!("*{}\r\n", looks.len()));
    let mut names_of = |look: &str, count: usize| {
        assert_eq!(client.line(), format!("*{count}"), "{look}");
        let names = (0..count).map(|_| (client.line(), client.line()).1);
        HashSet::from_iter(names)
    };
    for (look, count) in looks {
        let names: HashSet<String> = names_of(look, count);
        assert_eq!(names.len(), count);
        let is_meant = |name: &String| name.starts_with("1:") || look != "CHANNELS 1:*";
        assert!(names.iter().all(is_meant));
    }
}
