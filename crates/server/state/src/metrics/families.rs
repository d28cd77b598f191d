//! Families of several metrics on the page for Prometheus, and conditions under which metrics are shown.

use super::{Condition, Family, Kind, Unit};

/// There are UDP addresses.
pub const WITH_UDP: Condition = Condition::new("with UDP", |at| {
    let mut addresses = at.shared.addresses.iter();
    addresses.any(|(address, _)| address.is_udp())
});

pub const WITH_TLS: Condition = Condition::new("with TLS", |at| at.shared.security.tls.is_some());

pub const WITH_TLS_SESSIONS: Condition = Condition::new("with `ssl_session_cache`", |at| {
    let settings = at.shared.config.tls.as_ref();
    at.shared.security.tls.is_some() && settings.is_some_and(|settings| settings.session_cache)
});

pub const WITH_SAVE: Condition = Condition::new("with `--save`", |at| {
    at.shared.config.persistence.save.is_some()
});

/// The engine's items lie in a log.
pub const WITH_LOG: Condition = Condition::new("in a log", |at| at.engine.log.is_some());

/// The engine reports the uses of its memory.
pub const WITH_MEMORY_USE: Condition = Condition::new("in a log or size classes", |at| {
    at.engine.memory_use.is_some()
});

/// The engine has server threads, to which others send messages.
pub const WITH_SERVER_THREADS: Condition =
    Condition::new("on the engine cphash", |at| at.messages.is_some());

/// The items are copies of other servers'.
pub const WITH_UPSTREAM: Condition =
    Condition::new("with `--upstream`", |at| at.upstream.is_some());

const fn family(name: &'static str, kind: Kind, unit: Unit, help: &'static str) -> Family {
    let when = Condition::ALWAYS;
    Family {
        name,
        kind,
        unit,
        help,
        when,
    }
}

const fn counters(name: &'static str, help: &'static str) -> Family {
    family(name, Kind::Counter, Unit::Count, help)
}

const fn of_log(mut family: Family) -> Family {
    family.when = WITH_LOG;
    family
}

pub static CPU: Family = family(
    "nuthatch_cpu_seconds",
    Kind::Counter,
    Unit::Seconds,
    "Processor time.",
);
pub static CLOSED: Family = counters(
    "nuthatch_connections_closed",
    "Connections that the server closed, by the reason.",
);
pub static LOGINS: Family = counters("nuthatch_logins", "Logins.");
pub static COMMANDS: Family = counters("nuthatch_commands", "Commands, by what became of them.");
pub static KEYS_REFUSED: Family = counters(
    "nuthatch_keys_refused",
    "Keys of Redis' clients that no item can have, by the reason.",
);
pub static SAVES: Family = Family {
    when: WITH_SAVE,
    ..counters(
        "nuthatch_saves",
        "Copies of all items that were to be taken.",
    )
};
pub static DATAGRAMS_FAILED: Family = Family {
    when: WITH_UDP,
    ..counters(
        "nuthatch_datagrams_failed",
        "Requests that got no whole answer by UDP, by the reason.",
    )
};
pub static MEMORY: Family = Family {
    when: WITH_MEMORY_USE,
    ..family(
        "nuthatch_memory_bytes",
        Kind::Gauge,
        Unit::Bytes,
        "What the memory in use is used for.",
    )
};
pub static ITEMS_REMOVED: Family = counters(
    "nuthatch_items_removed",
    "Items that left without being asked to, by the reason.",
);
pub static ITEMS_REMOVED_UNFETCHED: Family = counters(
    "nuthatch_items_removed_unfetched",
    "Those of them that no get had hit, by the reason.",
);
pub static LOG_PAGES: Family = of_log(family(
    "nuthatch_log_pages",
    Kind::Gauge,
    Unit::Count,
    "Pages of the log, by their queue.",
));
pub static LOG_EVICTIONS: Family = of_log(counters(
    "nuthatch_log_evictions",
    "Live items evicted, by the queue of their page; bucket: both buckets of a new key were full.",
));
pub static LOG_KEPT_ITEMS: Family = of_log(counters(
    "nuthatch_log_kept_items",
    "Items in use that stayed when their page was emptied, by its queue.",
));
pub static MORE_MEMORY_HITS: Family = of_log(counters(
    "nuthatch_more_memory_hits",
    "An estimate: hits that so much more memory would have given.",
));

/// What runs. Its labels are known only when it runs.
pub static BUILD: Family = family(
    "nuthatch_build_info",
    Kind::Gauge,
    Unit::Count,
    "1, with what runs.",
);
/// Latencies, by command and size.
pub static DURATIONS: Family = family(
    "nuthatch_request_duration_seconds",
    Kind::Histogram,
    Unit::Seconds,
    "From the read that brought a request to the write of its answer.",
);

/// Both of them, for the document and the checks.
#[cfg(test)]
pub static BY_HAND: [&Family; 2] = [&BUILD, &DURATIONS];
