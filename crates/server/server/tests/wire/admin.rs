//! Commands about the server itself.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use super::fixture::{Fixture, Wants, any_port, config};
use nuthatch_server::{Config, Protocol};

#[test]
fn what_buffers_may_hold_follows_the_memory_and_the_connections() {
    let server = Fixture::new();
    let mut client = server.client();
    let mut number = |topic: &str, name: &str| {
        let all = client.stats(topic);
        all[name].parse::<usize>().unwrap()
    };
    let mut bound = || number("settings", "read_buf_mem_limit");
    let at_first = bound();
    assert!(at_first > 10 << 20);
    let controls = server.handle().controls();
    let is_smaller = controls.set_memory_limit(64 << 20).is_ok();
    if is_smaller {
        assert_eq!(bound(), 10 << 20);
    }
    let more = Config {
        connections_max: NonZeroUsize::new(32_768).unwrap(),
        ..config()
    };
    controls.apply(&more);
    // As many as the process may have files.
    let connections = number("", "max_connections");
    let of_connections = connections * (4 << 10);
    let of_memory = if is_smaller { 10 << 20 } else { at_first };
    assert_eq!(
        number("settings", "read_buf_mem_limit"),
        of_memory.max(of_connections)
    );
    controls.set_memory_limit(256 << 20).unwrap();
    assert_eq!(
        number("settings", "read_buf_mem_limit"),
        of_connections.max(16 << 20)
    );
}

#[test]
fn flush_all_empties_now_or_later() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(
        "set k 0 0 1\r\na\r\nflush_all\r\nget k\r\n",
        "STORED\r\nOK\r\nEND\r\n",
    );
    client.ask(
        "set k 0 0 1\r\na\r\nflush_all 1000\r\nget k\r\n",
        "STORED\r\nOK\r\nVALUE k 0 1\r\na\r\nEND\r\n",
    );
    client.ask("flush_all 0\r\nget k\r\n", "OK\r\nEND\r\n");
    assert_eq!(client.stat("cmd_flush"), 3);
    for (delay, found) in [
        ("-1", ""),
        ("-2147483648", ""),
        ("1", ""),
        ("1 noreply", ""),
        ("2", "VALUE k 0 1\r\na\r\n"),
        ("2147483647", "VALUE k 0 1\r\na\r\n"),
        // Nothing was stored before this server's start.
        ("2592001", "VALUE k 0 1\r\na\r\n"),
    ] {
        let ok = if delay.ends_with("noreply") {
            ""
        } else {
            "OK\r\n"
        };
        client.ask(
            format!("set k 0 0 1\r\na\r\nflush_all {delay}\r\nget k\r\nflush_all\r\n"),
            format!("STORED\r\n{ok}{found}END\r\nOK\r\n"),
        );
        // An item that is stored behind a flush stays.
        client.ask(
            format!("flush_all {delay}\r\nset k 0 0 1\r\na\r\nget k\r\n"),
            format!("{ok}STORED\r\nVALUE k 0 1\r\na\r\nEND\r\n"),
        );
    }
}

#[test]
fn what_is_switched_off_says_so() {
    let off = Config {
        allow_flush: false,
        allow_dump: false,
        allow_watch: false,
        ..config()
    };
    let server = Fixture::with(off, Wants::default());
    let mut client = server.client();
    client.ask("flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n");
    client.ask(
        "lru_crawler metadump all\r\n",
        "ERROR metadump not allowed\r\n",
    );
    client.ask(
        "lru_crawler mgdump all\r\n",
        "ERROR key dump not allowed\r\n",
    );
    client.ask(
        "stats cachedump 1 1\r\n",
        "CLIENT_ERROR stats cachedump not allowed\r\n",
    );
    client.ask(
        "stats detail on\r\n",
        "CLIENT_ERROR stats detail not allowed\r\n",
    );
    let shutdown = "SERVER_ERROR: shutdown not enabled\r\n";
    client.ask("shutdown\r\nshutdown x\r\n", shutdown.repeat(2));
    client.ask("shutdown noreply\r\n", "");
    client.ask("watch\r\n", "CLIENT_ERROR watch commands not allowed\r\n");
}

#[test]
fn switches_of_memcacheds_inside_answer() {
    let server = Fixture::new();
    let mut client = server.client();
    for (request, reply) in [
        ("verbosity 1", "OK"),
        (
            "slabs reassign 1 2",
            "CLIENT_ERROR slab reassignment disabled",
        ),
        ("slabs automove 1", "OK"),
        ("slabs automove 9", "ERROR"),
        ("slabs automove window 30 x", "OK"),
        ("lru tune 10 25 0.1 2.0", "OK"),
        ("lru mode flat", "ERROR"),
        ("lru_crawler sleep 10", "OK"),
        (
            "lru_crawler sleep 1000001",
            "CLIENT_ERROR sleep must be one second or less",
        ),
        ("lru_crawler tocrawl 10", "OK"),
        ("lru_crawler crawl all", "OK"),
        ("lru_crawler crawl x", "BADCLASS invalid class id"),
        ("lru_crawler metadump 300", "BADCLASS invalid class id"),
        ("lru_crawler disable", "OK"),
        (
            "lru_crawler metadump all",
            "CLIENT_ERROR lru crawler disabled",
        ),
        ("lru_crawler enable", "OK"),
        ("lru_crawler", "ERROR"),
        ("cache_memlimit 100", "OK"),
        (
            "cache_memlimit 1",
            "MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m",
        ),
        ("cache_memlimit x", "ERROR"),
        ("stats nonsense", "ERROR"),
        ("stats reset", "RESET"),
    ] {
        client.ask(format!("{request}\r\n"), format!("{reply}\r\n"));
    }
}

#[test]
fn stats_count_what_was_done() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask(
        "set a 0 0 1\r\n1\r\nadd a 0 0 1\r\n1\r\n",
        "STORED\r\nNOT_STORED\r\n",
    );
    client.ask("get a b\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n");
    client.ask(
        "incr a 1\r\ndecr a 1\r\nincr b 1\r\ndecr b 1\r\n",
        "2\r\n1\r\nNOT_FOUND\r\nNOT_FOUND\r\n",
    );
    // Neither a hit nor a miss.
    client.ask("ma c N0 J7 v\r\nmd c q\r\n", "VA 1\r\n7\r\n");
    client.ask("touch a 0\r\ntouch b 0\r\n", "TOUCHED\r\nNOT_FOUND\r\n");
    client.ask(
        "delete a\r\ndelete a\r\nmg a\r\n",
        "DELETED\r\nNOT_FOUND\r\nEN\r\n",
    );
    let stats = client.stats("");
    for (name, value) in [
        ("cmd_get", 3),
        ("get_hits", 1),
        ("get_misses", 2),
        ("cmd_set", 2),
        ("incr_hits", 1),
        ("incr_misses", 1),
        ("decr_hits", 1),
        ("decr_misses", 1),
        ("cmd_touch", 2),
        ("touch_hits", 1),
        ("touch_misses", 1),
        ("delete_hits", 2),
        ("delete_misses", 1),
        ("curr_connections", 1),
        ("total_connections", 1),
        ("curr_items", 0),
        ("threads", 2),
    ] {
        assert_eq!(stats[name], value.to_string(), "{name}");
    }
    for name in [
        "pid",
        "uptime",
        "time",
        "version",
        "rusage_user",
        "limit_maxbytes",
        "bytes",
    ] {
        assert!(stats.contains_key(name), "{name}");
    }
    assert!(client.stat("bytes_read") > 100 && client.stat("bytes_written") > 100);
    client.ask("stats reset\r\n", "RESET\r\n");
    assert_eq!(client.stat("get_hits"), 0);
}

/// memcached counts a store when its line is there, before its block, and a flush before its time.
#[test]
fn what_is_refused_late_is_counted() {
    let server = Fixture::new();
    let mut client = server.client();
    let bad_chunk = "CLIENT_ERROR bad data chunk\r\n";
    client.ask("set a 0 0 1\r\n1xx", bad_chunk);
    client.ask("cas a 0 0 1 5\r\n1xx", bad_chunk);
    client.ask("ms a 1\r\n1xx", bad_chunk);
    assert_eq!(client.stat("cmd_set"), 3);
    assert_eq!(client.stat("cas_misses"), 0);
    for line in ["set a 0 0 100000", "ms a 100000"] {
        client.ask(format!("{line}\r\n{}xx", "v".repeat(100_000)), bad_chunk);
    }
    assert_eq!(client.stat("cmd_set"), 5);
    // Without a length nothing was to be stored.
    client.ask(
        "set a 0 0 -1\r\n",
        "CLIENT_ERROR bad command line format\r\n",
    );
    assert_eq!(client.stat("cmd_set"), 5);
    let bad_time = "CLIENT_ERROR invalid exptime argument\r\n";
    client.ask("flush_all x\r\n", bad_time);
    client.ask("touch a x\r\n", bad_time);
    assert_eq!(client.stat("cmd_flush"), 1);
}

#[test]
fn the_other_stats_have_their_lines() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("set a 0 0 1\r\n1\r\n", "STORED\r\n");
    let settings = client.stats("settings");
    assert_eq!(settings["num_threads"], "2");
    assert_eq!(settings["tcpport"], server.address().port().to_string());
    let items = client.stats("items");
    let numbers = items.iter().filter(|(name, _)| name.ends_with(":number"));
    assert_eq!(
        numbers.map(|(_, number)| &number[..]).collect::<Vec<_>>(),
        ["1"]
    );
    let slabs = client.stats("slabs");
    assert!(
        slabs
            .iter()
            .any(|(name, number)| name.ends_with(":used_chunks") && number == "1")
    );
    assert!(slabs.contains_key("active_slabs"));
    let mut sizes = client.stats("sizes");
    assert_eq!(sizes.remove("sizes_status").as_deref(), Some("enabled"));
    assert_eq!(sizes.into_values().collect::<Vec<_>>(), ["1"]);
    let conns = client.conns();
    assert_eq!(conns["0:state"], "conn_listening");
    assert_eq!(conns["0:addr"], format!("tcp:{}", server.address()));
    assert_eq!(conns["1:state"], "conn_parse_cmd");
    assert_eq!(conns["1:listen_addr"], conns["0:addr"]);
}

#[test]
fn hits_tell_where_the_memory_goes() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("set a 0 0 5\r\n12345\r\n", "STORED\r\n");
    let hits = client.stats("hits");
    let number = |name: &str| hits[name].parse::<u64>().unwrap();
    let (limit, used) = (number("memory_limit"), number("memory_used"));
    assert_eq!(number("memory_free"), limit - used);
    assert_eq!(["items", "evictions", "expired"].map(number), [1, 0, 0]);
    // An engine that reports the use of its memory accounts for each byte.
    if hits.contains_key("memory_values") {
        assert_eq!(["memory_values", "memory_keys"].map(number), [5, 1]);
        let parts = [
            "values",
            "keys",
            "headers",
            "padding",
            "gaps",
            "bookkeeping",
            "index",
            "ghosts",
        ];
        let parts = parts.map(|part| number(&format!("memory_{part}")));
        assert_eq!(parts.iter().sum::<u64>(), used);
        assert_eq!(number("flushed"), 0);
    }
    if hits.contains_key("page_bytes") {
        assert_eq!(number("more_hits_10"), 0);
    }
}

#[test]
fn detail_counts_by_prefix() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("stats detail on\r\n", "OK\r\n");
    client.ask(
        "set u:1 0 0 1\r\n1\r\nget u:1 u:2\r\ndelete u:1\r\n",
        "STORED\r\nVALUE u:1 0 1\r\n1\r\nEND\r\nDELETED\r\n",
    );
    client.ask(
        "stats detail off\r\nset u:1 0 0 1\r\n1\r\n",
        "OK\r\nSTORED\r\n",
    );
    client.ask(
        "stats detail dump\r\n",
        "PREFIX u get 2 hit 1 set 1 del 1\r\nEND\r\n",
    );
    client.ask(
        "stats detail\r\n",
        "CLIENT_ERROR usage: stats detail on|off|dump\r\n",
    );
}

#[test]
fn detail_counts_no_key_that_could_end_its_line() {
    let both = Config {
        listeners: vec![any_port(), any_port().of(Protocol::CpServer)],
        ..config()
    };
    let server = Fixture::with(both, Wants::default());
    let mut client = server.client();
    client.ask("stats detail on\r\n", "OK\r\n");
    // "a\r\nEND\r\n:" in base64: what is dumped must not be taken for other lines.
    client.ask(
        "ms YQ0KRU5EDQo6 1 b\r\n1\r\nmg YQ0KRU5EDQo6 b v\r\nmd YQ0KRU5EDQo6 b\r\n",
        "HD\r\nVA 1\r\n1\r\nHD\r\n",
    );
    // And CPServer's LOOKUP of the number whose bytes are "\r\nEND\r\n:": its answer is a length of 0.
    let mut other = server.cpserver_client();
    other.send([&[0; 8][..], b"\r\nEND\r\n:"].concat());
    other.expect([0; 4]);
    client.ask("stats detail dump\r\n", "END\r\n");
    // A key without a colon has no prefix; what is large is counted as what is small.
    let large = "x".repeat(500_000);
    client.ask("set plain 0 0 1\r\n1\r\n", "STORED\r\n");
    client.ask(format!("set u:1 0 0 500000\r\n{large}\r\n"), "STORED\r\n");
    client.ask(
        "stats detail dump\r\nstats reset\r\nstats detail dump\r\n",
        "PREFIX u get 0 hit 0 set 1 del 0\r\nEND\r\nRESET\r\nEND\r\n",
    );
}

#[test]
fn dumps_write_no_key_that_could_end_its_line() {
    let server = Fixture::new();
    let mut client = server.client();
    client.ask("ms YQ0KRU5EDQo6 1 b F5\r\n1\r\n", "HD\r\n");
    client.send("lru_crawler metadump all\r\n");
    assert_eq!(client.line(), "OK");
    let line = client.line();
    assert!(line.starts_with("key=a%0D%0AEND%0D%0A%3A exp=-1 la="));
    assert!(line.ends_with(" flags=5"), "{line}");
    client.expect("END\r\n");
    client.ask(
        "lru_crawler mgdump all\r\n",
        "OK\r\nmg YQ0KRU5EDQo6 b\r\nEN\r\n",
    );
    for class in 1..64 {
        client.ask(format!("stats cachedump {class} 0\r\n"), "END\r\n");
    }
}

#[test]
fn dumps_tell_every_item_once() {
    const ITEMS: usize = 20_000;
    let server = Fixture::new();
    let mut client = server.client();
    for number in 0..ITEMS {
        client.send(format!("set key{number} 0 100 1 noreply\r\n1\r\n"));
    }
    client.ask("", "");
    client.send("lru_crawler metadump all\r\n");
    assert_eq!(client.line(), "OK");
    let keys: Vec<String> = client
        .lines_until("END")
        .iter()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(keys.len(), ITEMS);
    assert_eq!(keys.iter().collect::<HashSet<_>>().len(), ITEMS);
    assert!(keys.contains(&"key=key19999".to_owned()));

    client.send("lru_crawler mgdump hash\r\n");
    assert_eq!(client.line(), "OK");
    let keys = client.lines_until("EN");
    assert_eq!(keys.len(), ITEMS);
    assert!(keys.contains(&"mg key7".to_owned()));

    client.send("stats cachedump 1 10\r\n");
    let items = client.lines_until("END");
    assert!(items.len() <= 10);
    assert!(
        items
            .iter()
            .all(|item| item.starts_with("ITEM key") && item.contains(" [1 b; "))
    );
    client.ask(
        "stats cachedump 64 1\r\n",
        "CLIENT_ERROR Illegal slab id\r\n",
    );
    // The connection goes on as before.
    client.ask("get none\r\n", "END\r\n");
}

#[test]
fn only_one_dump_runs_and_it_waits_for_its_client() {
    const ITEMS: usize = 100_000;
    let server = Fixture::new();
    let mut other = server.client();
    for number in 0..ITEMS {
        other.send(format!(
            "set a-rather-long-name-of-an-item-{number} 0 0 1 noreply\r\n1\r\n"
        ));
    }
    other.ask("", "");
    // This client does not read: its dump is longer than the sockets' buffers.
    let mut slow = server.client();
    slow.send("lru_crawler metadump all\r\n");
    assert_eq!(slow.line(), "OK");
    let first = slow.line();
    other.ask(
        "lru_crawler mgdump all\r\n",
        "BUSY currently processing crawler request\r\n",
    );
    other.ask("get none\r\n", "END\r\n");
    assert_eq!(slow.lines_until("END").len() + 1, ITEMS);
    assert!(first.starts_with("key=a-rather"));
    // A client that leaves in the middle of a dump gives the right to it back.
    slow.send("lru_crawler metadump all\r\n");
    slow.line();
    drop(slow);
    other.until("lru_crawler_running", |running| running == 0);
    other.send("lru_crawler mgdump 63\r\n");
    other.expect("OK\r\nEN\r\n");
}
