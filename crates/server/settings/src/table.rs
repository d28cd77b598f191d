//! The declarations. A new setting is a new entry here, and the code that uses it: see CONTRIBUTING.md.
//!
//! The order is that of the help. What no entry has: flags that are no settings of a server (`--config`, `--check`,
//! `-V`), and those of a program's engines.

use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use nuthatch_security::passwords::Passwords;
use nuthatch_security::tls::{Tls, TlsSettings};

use crate::about::{About, Range, Reload, Setting};
use crate::administration::Actions;
use crate::config::{Listen, NewestTls, OnVerbosity};
use crate::forms::*;
use crate::key_events::KeyEvents;
use crate::persistence::Persistence;
use crate::shown::{self, yes_no};
use crate::{default_of, value_of};

settings! {
    config {
        /// Where to listen, and for which protocols: at one address at least.
        listeners: Vec<Listen> = Listen::everywhere_alone();
        /// The names and passwords of the file, if it has been read: see [`Config::read_passwords`].
        passwords: Option<Arc<Passwords>> = None;
        /// Certificates for listeners with TLS (`-Z`).
        tls: Option<TlsSettings> = None;
        /// The content of these certificates, if it has been read: see [`Config::read_certificates`].
        certificates: Option<Arc<Tls>> = None;
        /// Where to serve metrics by HTTP (`--metrics`). Of these, only addresses and names count.
        metrics: Vec<Listen> = Vec::new();
        /// Items that outlive the process.
        persistence: Persistence = Persistence::default();
        /// After a panic the server saves what it can. If that makes no progress for this long, because a lock of the
        /// engine is held for ever, the process ends.
        failure_patience: Duration = Duration::from_secs(300);
        /// Redis' clients have database 0 alone.
        has_one_database: bool = false;
        /// Where to write the ports that were bound (`MEMCACHED_PORT_FILENAME`).
        port_file: Option<PathBuf> = None;
        /// The engine's settings: lines that `stats settings` shows behind its own.
        engine_settings: Vec<(&'static str, String)> = Vec::new();
        /// Called with each new verbosity.
        on_verbosity: OnVerbosity = OnVerbosity::default();
        /// Lines that the log has lost. The writer of the log counts them.
        log_lost: Arc<AtomicU64> = Arc::default();
        /// Finds the certificates for `refresh_certs`.
        newest_tls: NewestTls = NewestTls::default();
    }
    flags {
        port: Port, "TCP port; 0 or -1: any free port" {
            name: "port", short: Some('p'), value: "NUM", default: "11211",
            manual: "TCP port; 0 or -1 takes a free one",
        }
        udp_port: Port, "UDP port, at the addresses of -l" {
            name: "udp-port", short: Some('U'), value: "NUM", default: "0, which is off",
            manual: "also take datagrams at this port of the addresses of `-l`: see below; -1: any free port",
            manual_default: "0, off", example: "0",
        }
        listen: List, "Addresses to listen on, with or without a port; may be repeated" {
            name: "listen", short: Some('l'), value: "ADDR", default: "all",
            manual: "addresses, with or without port, with commas or repeated; [words in front](#words-in-front-of-an-address) \
                     choose TLS and protocol of an address",
            example: "[\"127.0.0.1\", \"[::1]:11212\"]",
        }
        redis_port: Port, "Also listen for Redis' clients on this TCP port; 0 or -1: any free port" {
            name: "redis-port", value: "NUM", default: "none",
            manual: "also serve [Redis' clients](redis.md) at this port of the addresses of `-l`; 0 or -1: any free port",
            example: "6379",
        }
        unix_socket: Path, "Unix socket to listen on, instead of TCP" {
            name: "unix-socket", short: Some('s'), value: "FILE",
            manual: "a unix socket instead of TCP; one that a dead server left is replaced, and where another server \
                     listens, but for a handover, this one does not start",
            example: "\"/run/nuthatch.sock\"",
            stats: &[("domain_socket", shown::unix_socket)],
        }
        unix_mask: Octal, "Permissions of the unix socket, in octal" {
            name: "unix-mask", short: Some('a'), value: "MASK", default: "700",
            manual: "its permissions, octal", example: "\"700\"",
            stats: &[("umask", shown::unix_mask)],
        }
        shared: Path => fixed shared: Option<PathBuf>,
        "Let processes of this machine read the memory of the items, which they get at this unix socket" {
            name: "shared", value: "PATH",
            manual: "let processes of this machine read the items without a call, in memory that they get at this unix \
                     socket, which is made as that of `-s`: see [shared-memory.md](shared-memory.md)",
            example: "\"/run/nuthatch/shared\"",
        }
        shared_mask: Octal => fixed shared_mask: u32, "Permissions of the socket of --shared, in octal" {
            name: "shared-mask", value: "MASK", default: "700",
            manual: "its permissions, octal", example: "\"700\"",
        }
        shared_clients: Number<usize> => fixed shared_clients: NonZeroUsize,
        "Maximum number of processes that read the memory of --shared at the same time" {
            name: "shared-clients", value: "NUM", default: "64", range: Some(Range::new(1, 65536)),
            manual: "processes that read the memory of `--shared` at the same time; one more is refused",
        }
        memory_limit: Megabytes, "Memory for items and index, in megabytes or with a suffix k, m or g" {
            name: "memory-limit", short: Some('m'), value: "NUM", default: "64", reload: Reload::Own,
            manual: "[memory](#memory) for items and index, in megabytes or with k, m, g; 1 and up",
        }
        memory_limit_max: Megabytes, "The highest limit that cache_memlimit may set, in the units of -m" {
            name: "memory-limit-max", value: "NUM", default: "four times the limit",
            manual: "the highest limit that `cache_memlimit` may set, in the same units",
            manual_default: "four times `-m`", example: "256",
        }
        conn_limit: Number<usize> => live connections_max: NonZeroUsize,
        "Maximum number of simultaneous connections" {
            name: "conn-limit", short: Some('c'), value: "NUM", default: "1024", range: Some(Range::from(1)),
            manual: "connections at the same time; one more gets an error and is closed. Raises the limit of open files",
            stats: &[("maxconns", |now| now.live.connections_max.to_string())],
        }
        threads: Number<usize> => fixed threads: NonZeroUsize, "Threads that serve connections" {
            name: "threads", short: Some('t'), value: "NUM", default: "4", range: Some(Range::new(1, 1024)),
            stats: &[("num_threads", |now| now.config.threads.to_string())],
        }
        listen_backlog: Number<u32> => fixed backlog: u32,
        "Maximum number of connections that wait to be accepted" {
            name: "listen-backlog", short: Some('b'), value: "NUM", default: "1024",
            manual: "connections waiting to be accepted",
            stats: &[("tcp_backlog", |now| now.config.backlog.to_string())],
        }
        // memcached yields after 20 because it answers one by one. Here a turn is one batch, and a shorter one costs
        // all connections.
        max_reqs_per_event: Number<u32> => live commands_per_turn: NonZeroU32,
        "Maximum number of commands that a connection runs before other connections get their turn" {
            name: "max-reqs-per-event", short: Some('R'), value: "NUM", default: "1024", range: Some(Range::from(1)),
            manual: "commands of a connection, or as much work, before the server turns to other connections",
            stats: &[("reqs_per_event", |now| now.live.commands_per_turn.to_string())],
        }
        max_item_size: Bytes, "Size of the largest item, in bytes or with a suffix k, m or g; 1k to 1g" {
            name: "max-item-size", short: Some('I'), value: "NUM", default: "1m",
            manual: "the largest item, in bytes or with k, m, g; 1k to 1g, at most half of `-m`",
            manual_default: "1m, or half of `-m`", example: "\"1m\"",
        }
        slab_min_size: Number<usize>, "Size of the smallest chunk, in bytes" {
            name: "slab-min-size", short: Some('n'), value: "BYTES", range: Some(Range::from(1)),
            manual: "the smallest of the sizes by which `stats slabs` counts", manual_default: "32", example: "32",
        }
        slab_growth_factor: Real, "Ratio of neighbouring chunk sizes" {
            name: "slab-growth-factor", short: Some('f'), value: "NUM", default: "1.25",
            manual: "ratio of neighbours of these sizes",
        }
        disable_evictions: Switch, "Return an error when memory is full, instead of evicting items" {
            name: "disable-evictions", short: Some('M'),
            manual: "an error when memory is full, instead of evicting",
        }
        disable_flush_all: OffSwitch => live allow_flush: bool, "Refuse flush_all" {
            name: "disable-flush-all", short: Some('F'),
            manual: "refuse `flush_all`, FLUSHALL and FLUSHDB, and a memory limit below the memory in use, which would \
                     evict as much: see [administration](#administration-by-clients)",
            stats: &[("flush_enabled", |now| yes_no(now.live.allow_flush))],
        }
        disable_dumping: OffSwitch => live allow_dump: bool, "Refuse stats cachedump and lru_crawler metadump" {
            name: "disable-dumping", short: Some('X'),
            manual: "refuse `stats cachedump` and `lru_crawler metadump`",
            stats: &[("dump_enabled", |now| yes_no(now.live.allow_dump))],
        }
        disable_watch: OffSwitch => fixed allow_watch: bool, "Refuse watch" {
            name: "disable-watch", short: Some('W'), manual: "refuse `watch`",
        }
        prefix_delimiter: Colon => fixed count_prefixes: bool,
        "Count commands by key prefix from the start, as stats detail on does; CHAR ends a prefix and must be a colon" {
            name: "prefix-delimiter", short: Some('D'), value: "CHAR",
            manual: "count commands by key prefix from the start, as `stats detail on` does; CHAR is a colon",
            example: "\":\"",
            stats: &[("stat_key_prefix", |_| ":".to_owned())],
        }
        disable_cas: OffSwitch => live cas: bool, "Report in stats that cas is disabled; items have a cas in any case" {
            name: "disable-cas", short: Some('C'),
            manual: "say in stats that cas is off; items have one in any case",
            stats: &[("cas_enabled", |now| yes_no(now.live.cas))],
        }
        enable_shutdown: Switch => live allow_shutdown: bool, "Allow the shutdown command" {
            name: "enable-shutdown", short: Some('A'), manual: "allow the `shutdown` command",
            stats: &[("shutdown_command", |now| yes_no(now.live.allow_shutdown))],
        }
        lua: Switch => fixed lua: bool,
        "Run scripts of Redis' clients in Lua. Such a script has the engine to itself until it ends: see docs/redis.md" {
            name: "lua",
            manual: "run [scripts in Lua](redis.md#lua). While one runs, nobody else is served",
        }
        notify_keyspace_events: Letters => fixed key_events: KeyEvents,
        "Tell Redis' clients what happens to keys, by Redis' letters: Ex tells what has expired, KEA everything; none tells \
         nothing" {
            name: "notify-keyspace-events", value: "LETTERS",
            manual: "tell Redis' clients [what happens to keys](redis.md#events), by Redis' letters; CONFIG SET changes it",
            example: "\"\"",
        }
        enable_largepages: Switch,
        "Accepted for compatibility with memcached, without effect: large memory pages are used wherever the system has \
         them" {
            name: "enable-largepages", short: Some('L'),
            manual: "accepted: huge pages are used where the system has them",
        }
        lock_memory: Switch, "Lock all memory, so that nothing is paged out" {
            name: "lock-memory", short: Some('k'), manual: "nothing is paged out",
        }
        coredumps: Switch, "Let a crash leave a core file of any size" {
            name: "coredumps", short: Some('r'), alias: Some("enable-coredumps"),
            manual: "a crash leaves a core file, however large",
        }
        protocol: Text,
        "Protocol: ascii, binary, auto (ascii or binary, by the first byte of a connection) or any (also Redis' protocol)" {
            name: "protocol", short: Some('B'), value: "NAME", default: "auto",
            manual: "`ascii`, `binary`, or `auto`, which detects the protocol by the first byte of a connection; `any`, \
                     which detects [Redis'](redis.md) too",
            example: "\"auto\"",
            stats: &[("binding_protocol", shown::protocol)],
        }
        auth_file: Path => fixed auth_file: Option<PathBuf>,
        "Require clients to log in with a name and a password from this file, which has one line NAME:PASSWORD per user" {
            name: "auth-file", short: Some('Y'), value: "FILE",
            manual: "clients must send a name and its password first: see below",
            example: "\"/etc/nuthatch/users\"",
            stats: &[("auth_enabled_ascii", shown::auth_file)],
        }
        enable_sasl: Switch, "Enable SASL with the names and passwords of -Y; needs -Y, which enables SASL by itself" {
            name: "enable-sasl", short: Some('S'),
            manual: "SASL with the users of `-Y`, which enables it by itself; refused without `-Y`: memcached keeps separate \
                     users for SASL",
            stats: &[("auth_enabled_sasl", |now| yes_no(now.config.auth_file.is_some()))],
        }
        enable_ssl: Switch, "Enable TLS, with the certificate and key of -o ssl_chain_cert=FILE,ssl_key=FILE" {
            name: "enable-ssl", short: Some('Z'), manual: "TLS: see below",
            stats: &[("ssl_enabled", |now| yes_no(now.config.tls.is_some()))],
        }
        metrics: Text,
        "Serve metrics for Prometheus over HTTP at this address, with or without a port [default port: 9150]" {
            name: "metrics", value: "ADDR",
            manual: "serve metrics for Prometheus by HTTP at ADDR (`/metrics`, `/healthz`); port 9150 if ADDR has none",
            example: "\"127.0.0.1\"",
        }
        memory_file: Path,
        "Restore the items of the previous server from this file at the start, and write all items to it at the end" {
            name: "memory-file", short: Some('e'), value: "FILE",
            manual: "items outlive a restart: see below", example: "\"/var/lib/nuthatch/items\"",
            stats: &[("memory_file", shown::memory_file)],
        }
        load: Path,
        "Load the items of this file at the start, and keep the file; it may be missing only if it is also the file of \
         --save" {
            name: "load", value: "FILE", manual: "items of a copy that stays: see below",
            example: "\"/var/lib/nuthatch/copy\"",
        }
        save: Path, "Copy all items to this file every --save-every seconds, at SIGUSR2, and at the end" {
            name: "save", value: "FILE", manual: "copies of all items: see below",
            example: "\"/var/lib/nuthatch/copy\"",
        }
        save_every: Number<u32>, "Seconds between two copies of --save" {
            name: "save-every", value: "SECONDS", default: "300", range: Some(Range::from(1).of("second")),
            manual: "seconds between two copies of `--save`",
        }
        handover: Path => fixed handover: Option<PathBuf>,
        "Take over the sockets and the items of the server that listens at this unix socket, if there is one, and then \
         listen there for the next server" {
            name: "handover", value: "PATH",
            manual: "take over from the server that listens at this unix socket, if there is one, then listen there: see \
                     below",
            example: "\"/run/nuthatch/handover\"",
        }
        daemon: Switch, "Run in the background" {
            name: "daemon", short: Some('d'), manual: "run in the [background](#in-the-background)",
        }
        user: Text, "When started as root, run as this user" {
            name: "user", short: Some('u'), value: "USER", example: "\"nobody\"",
        }
        pidfile: Path, "Write the process id to this file" {
            name: "pidfile", short: Some('P'), value: "FILE",
            manual: "write the process id, and remove the file at the end. FILE must not be a link or have a second name, \
                     and must belong to this user or to root",
            example: "\"/run/nuthatch.pid\"",
        }
        verbose: Level => fixed verbosity: u32,
        "Log more: -v events, -vv also commands and replies, -vvv also batches and statistics; =NUM sets the level" {
            name: "verbose", short: Some('v'), value: "NUM", reload: Reload::Own,
            manual: "events; `-vv`: commands and replies; `-vvv`: batches and statistics too: see [the log](#the-log)",
            example: "0",
        }
        log: Text,
        "Destination of the log: stderr, stdout (also -), syslog, journald, or a file, which SIGHUP opens again" {
            name: "log", value: "DEST", default: "stderr",
            manual: "where the log goes: `stderr`, `stdout` (also `-`), `syslog`, `journald`, or a file",
            example: "\"stderr\"",
        }
        log_format: Choice, "Format of the log's lines" {
            name: "log-format", value: "FORM", default: "text",
            choices: &[
                ("text", "Lines for people to read"),
                ("json", "Lines for programs: one JSON object per line"),
            ],
            manual: "`text`, or `json`: an object a line", example: "\"text\"",
        }
        // Well above the number that an engine needs to overlap its cache misses. More would only delay replies, in an
        // engine that packs no messages.
        batch: Number<usize> => fixed batch_max: NonZeroUsize,
        "Maximum number of requests, from all connections of a thread, in one batch to the engine" {
            name: "batch", value: "NUM", default: "256", range: Some(Range::new(1, 8192)),
            manual: "requests of all connections of a thread that go to the engine at a time, 1 to 8192",
            stats: &[("batch_max", |now| now.config.batch_max.to_string())],
        }
        extended: MoreOptions,
        "More options, separated by commas: idle_timeout=SECONDS, hashpower=NUM, ssl_chain_cert=FILE, ... (--help lists \
         all)" {
            name: "extended", short: Some('o'), value: "OPTIONS", manual: "see below",
            example: "[\"idle_timeout=0\", \"hashpower=16\"]",
        }
    }
    options {
        idle_timeout: Number<u32> => live idle_timeout: Option<Duration>,
        "close TCP connections that are silent for this long; 0: never" {
            value: "SECONDS", stats: &[("idle_timeout", shown::idle_timeout)],
        }
        hashpower: Number<u32>, "room for 2^NUM items in the index from the start, 12 to 32" {
            // The most is memcached's table's.
            value: "NUM", range: Some(Range::new(12, 32)),
        }
        ssl_chain_cert: OptionFile, "with -Z: the server's certificate chain, in PEM" {
            value: "FILE", reload: Reload::Certificates, manual: "with `-Z`: the server's certificate with its chain, in PEM",
            stats: &[("ssl_chain_cert", |now| shown::path(&now.tls.chain_cert))],
        }
        ssl_key: OptionFile, "the key of that certificate, in PEM" {
            value: "FILE", reload: Reload::Certificates,
            stats: &[("ssl_key", |now| shown::path(&now.tls.key))],
        }
        ssl_keyformat: Pem, "the only supported format" {
            value: "PEM", manual: "PEM, or 1; others are refused",
        }
        ssl_ca_cert: OptionFile, "the CA certificates that sign clients' certificates, in PEM" {
            value: "FILE", reload: Reload::Certificates,
            stats: &[("ssl_ca_cert", |now| shown::path(now.tls.ca_cert.as_deref().unwrap_or("".as_ref())))],
        }
        ssl_verify_mode: Number<u32>,
        "clients' certificates are 0: not requested, 1: verified if presented, 2 or 3: required" {
            value: "NUM", range: Some(Range::new(0, 3)),
            manual: "clients' certificates: 0 requests none, 1 checks that `ssl_ca_cert` signed a certificate that a client \
                     presents, 2 and 3 demand one",
            stats: &[("ssl_verify_mode", |now| (now.tls.verify as u8).to_string())],
        }
        ssl_ciphers: Suites,
        "cipher suites by OpenSSL or IANA name; a TLS version without a named suite keeps its own" {
            value: "NAME:NAME",
            manual: "cipher suites by their OpenSSL or IANA names; a TLS version without a named suite keeps its own. A name \
                     that rustls does not know, or a class such as `HIGH`, is refused",
        }
        ssl_min_version: Number<u32>, "2: TLS 1.2, the lowest supported version; 3: TLS 1.3" {
            value: "NUM", manual: "2 is TLS 1.2 (the default, and the oldest version supported), 3 is TLS 1.3",
            stats: &[("ssl_min_version", |now| if now.tls.only_1_3 { "tlsv1.3" } else { "tlsv1.2" }.to_owned())],
        }
        ssl_session_cache: Bare, "clients may resume an earlier TLS session" {
            manual: "clients may resume an earlier session",
            stats: &[("ssl_session_cache", |now| yes_no(now.tls.session_cache))],
        }
        drop_privileges: Bare, "give up files, programs and system calls that a running server does not need" {
            manual: "give up what a running server does not need of files, system calls and connections: \
                     [operations.md](operations.md#who-may-connect). `no_drop_privileges` revokes it",
        }
        // A sender that forges an address can make the server send this much to it. The bounds are some numbers, and an
        // item of a megabyte.
        udp_reply_max: Number<usize> => live udp_reply_max: NonZeroUsize,
        "size of the longest answer to a datagram, 64 to 2097152" {
            value: "BYTES", default: "16384", range: Some(Range::new(64, 2 << 20).of("bytes")),
            manual: "the longest answer to a [datagram](#udp)",
        }
        login_timeout: Number<u32> => live login_timeout: Duration,
        "how long a client may take for its TLS handshake and its login" {
            value: "SECONDS", default: "30", range: Some(Range::from(1).of("second")),
            manual: "how long a client may take until it is [admitted](#passwords-and-tls); `login_kicks` counts those closed",
        }
        login_guesses: Number<u32> => live login_guesses: Option<NonZeroU32>,
        "different wrong passwords that an address may try per minute; 0: any number" {
            value: "NUM", default: "60",
            manual: "different wrong [passwords](#passwords-and-tls) that an address may try in a minute, over any number of \
                     connections; 0: any number",
        }
        unix_peers: Users => live unix_peers: Option<Vec<u32>>,
        "users, besides the server's own and root, whose processes may connect by unix sockets" {
            value: "USER:USER",
            manual: "users, by name or number, whose processes may connect by unix sockets, besides the server's own and \
                     root; others are closed, with a line in the log",
        }
        // No limit by default: a proxy has one address for many clients.
        conns_per_address: Number<usize> => live address_connections_max: Option<NonZeroUsize>,
        "connections that an address may have at once; 0: any number" {
            value: "NUM", default: "0",
            manual: "connections of an address (of IPv6 its first 64 bits) at once; 0: any number, as a proxy has one address \
                     for many clients. One more gets an error and is closed, with a line in the log; `rejected_by_address` \
                     counts it. Unix sockets have no address",
            stats: &[("conns_per_address", shown::address_connections_max)],
        }
        lua_steps: Number<u32> => live lua_steps: NonZeroU32,
        "with --lua: millions of steps after which a script is ended" {
            value: "NUM", default: "200", range: Some(Range::new(1, 1_000_000)),
            manual: "with `--lua`: millions of [steps](redis.md#lua) after which a script is ended",
        }
        lua_memory: Number<u32> => live lua_memory: NonZeroU32,
        "with --lua: megabytes of memory of the scripts of a thread, beside -m" {
            value: "MEGABYTES", default: "16", range: Some(Range::new(1, 1024)),
            manual: "with `--lua`: megabytes of memory that the scripts of a thread may have, beside `-m`",
        }
        lua_busy: Number<u32> => live lua_busy: Duration,
        "with --lua: seconds after which others hear BUSY while a script runs" {
            value: "SECONDS", default: "5", range: Some(Range::new(1, 3600)),
            manual: "with `--lua`: seconds after which other clients hear that the server is [busy](redis.md#lua)",
        }
        disable_admin: ActionList => live disabled_actions: Actions,
        "refuse commands that change the server for all: verbosity, cache_memlimit, CONFIG SET, refresh_certs, stats \
         reset, shutdown, flush_all; =verbosity:flush_all refuses these two. The users of -Y that a line :admin:NAME \
         names may send them" {
            manual: "refuse all commands that [administrate the server](#administration-by-clients); \
                     `disable_admin=NAME:NAME` these",
            stats: &[("disable_admin", shown::disabled_actions)],
        }
    }
}
