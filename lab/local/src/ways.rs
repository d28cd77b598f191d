//! The ways to reach the items: one more is one more line here.

use std::path::{Path, PathBuf};

use crate::client::{Means, Operation};
use crate::servers::{Server, Servers};

/// A way.
#[derive(Clone, Debug)]
pub struct Way {
    /// Its name in the report.
    pub name: String,
    /// What reaches them.
    pub by: By,
    /// Where they are.
    pub target: String,
    /// The process whose processor time counts beside the clients'.
    pub server: Option<u32>,
}

/// What reaches the items.
#[derive(Clone, Debug)]
pub enum By {
    /// This program.
    This(Means),
    /// The script in Python.
    Python {
        /// The interpreter.
        interpreter: PathBuf,
        /// The script.
        script: PathBuf,
        /// The client, by the script's name.
        client: &'static str,
    },
}

impl Way {
    fn this(name: &str, means: Means, target: impl Into<String>, server: Option<&Server>) -> Self {
        Self {
            name: name.to_owned(),
            by: By::This(means),
            target: target.into(),
            server: server.map(Server::pid),
        }
    }

    /// Whether it has such an operation at all.
    pub fn has(&self, operation: Operation) -> bool {
        operation == Operation::Get || !matches!(self.by, By::This(Means::Direct))
    }
}

/// One call after the other, by this program.
pub fn single(servers: &Servers) -> Vec<Way> {
    let (unix, tcp) = (&servers.unix, &servers.tcp);
    let shared = servers.shared.display().to_string();
    let mut ways = vec![
        Way::this("cache", Means::Cache, "", None),
        Way::this("direct", Means::Direct, &shared, Some(unix)),
        Way::this(
            "client shm",
            Means::Client,
            format!("shm://{shared}"),
            Some(unix),
        ),
    ];
    let mut sockets = vec![("", "unix", unix), ("", "tcp", tcp)];
    if let Ok([unix, tcp]) = &servers.memcached {
        sockets.extend([("memcached ", "unix", unix), ("memcached ", "tcp", tcp)]);
    }
    for (of, kind, server) in sockets {
        for (by, means) in [("client", Means::Client), ("plain", Means::Plain)] {
            let name = format!("{of}{by} {kind}");
            ways.push(Way::this(&name, means, &server.address, Some(server)));
        }
    }
    ways
}

/// Many callers at once, over TCP.
pub fn pipelining(servers: &Servers) -> Vec<Way> {
    let mut all = vec![("", &servers.tcp)];
    if let Ok([_, tcp]) = &servers.memcached {
        all.push(("memcached ", tcp));
    }
    let mut ways = Vec::new();
    for (of, server) in all {
        for (name, means) in [
            ("tasks, one connection", Means::Tasks),
            ("tasks, a connection each", Means::TasksEach),
            ("threads, one connection", Means::Threads),
            ("threads, a connection each", Means::ThreadsEach),
        ] {
            let name = format!("{of}{name}");
            ways.push(Way::this(&name, means, &server.address, Some(server)));
        }
    }
    ways
}

/// One call after the other, by clients in Python.
pub fn python(servers: &Servers, interpreter: &Path, script: &Path) -> Vec<Way> {
    let (unix, tcp) = (&servers.unix, &servers.tcp);
    let shared = servers.shared.display().to_string();
    let mut all = vec![
        ("dict", String::new(), None),
        ("nuthatch.Cache", String::new(), None),
        ("nuthatch.Direct", shared, Some(unix)),
        ("nuthatch.Client", unix.address.clone(), Some(unix)),
        ("nuthatch.Client", tcp.address.clone(), Some(tcp)),
        ("pymemcache", unix.address.clone(), Some(unix)),
        ("pymemcache", tcp.address.clone(), Some(tcp)),
        ("pylibmc", unix.address.clone(), Some(unix)),
        ("pylibmc", tcp.address.clone(), Some(tcp)),
        ("redis-py", servers.redis.clone(), Some(tcp)),
        (
            "diskcache",
            servers.path("diskcache").display().to_string(),
            None,
        ),
    ];
    if let Ok([unix, tcp]) = &servers.memcached {
        for client in ["pymemcache", "pylibmc"] {
            all.push((client, unix.address.clone(), Some(unix)));
            all.push((client, tcp.address.clone(), Some(tcp)));
        }
    }
    if let Some(manager) = &servers.manager {
        all.push(("multiprocessing", manager.address.clone(), Some(manager)));
    }
    let memcached = |server: &Server| {
        let rivals = servers.memcached.as_ref().ok();
        rivals.is_some_and(|rivals| rivals.iter().any(|rival| rival.pid() == server.pid()))
    };
    let way = |(client, target, server): (&'static str, String, Option<&Server>)| {
        let kind = ["unix", "tcp"]
            .into_iter()
            .find(|kind| target.starts_with(kind))
            .map(|kind| format!(" {kind}"))
            .unwrap_or_default();
        let of = if server.is_some_and(memcached) {
            "memcached "
        } else {
            ""
        };
        Way {
            name: format!("python {of}{client}{kind}"),
            by: By::Python {
                interpreter: interpreter.to_owned(),
                script: script.to_owned(),
                client,
            },
            target,
            server: server.map(Server::pid),
        }
    };
    all.into_iter().map(way).collect()
}
