//! The engine of `nuthatch`: cuckoo over the log.
//!
//! It is the one that docs/engines.md recommends wherever no paper is to be repeated, and it has one eviction: on the
//! traces of docs/hits.md the others, SIEVE in the log and CLOCK in size classes, are better next to nowhere. All are run
//! by `nuthatch-lab serve`.

use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use nuthatch_client::{Client, Options};
use nuthatch_cuckoo::layout::EightWay;
use nuthatch_cuckoo::{Cuckoo, CuckooConfig};
use nuthatch_engine::settings::LOG_MIN;
use nuthatch_engine::{CommonSettings, Engine};
use nuthatch_upstream::Upstream;
use serde::{Deserialize, Serialize};

use crate::engine::{ChosenEngine, EngineFlags};
use crate::file::File;

/// The flags of `nuthatch` for its engine. (If a second policy of the log comes to be worth an operator's choice, a
/// flag `eviction` here takes the names of [`POLICIES`](nuthatch_cuckoo::config::POLICIES).)
#[derive(Args, Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct DefaultEngine {
    /// Be a near cache of other memcached servers, as tcp://a:11211,b:11211
    #[arg(long, value_name = "ADDR")]
    upstream: Option<String>,
    /// Milliseconds for which a copy of their items is used: others' changes are seen so much later [default: 1000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=LIFETIME_MAX))]
    upstream_lifetime: Option<u64>,
}

/// How long a copy is used, unless a flag says otherwise, and the longest such time: a day. In milliseconds.
const LIFETIME: u64 = 1000;
const LIFETIME_MAX: u64 = 24 * 60 * 60 * 1000;

/// How long a worker waits for a connection to a server behind this one, and for an answer, unless the address says otherwise:
/// its other clients wait meanwhile. A connection whose oldest answer is late by as much again is left, so that a server that
/// hangs is found out by the next one, and then costs nobody's time.
const PATIENCE: Duration = Duration::from_millis(250);

/// The same once a server has failed, or was left: a thread of its own connects to it. One of the same network that is well has
/// mostly greeted by then.
const RETRY_WAIT: Duration = Duration::from_millis(10);

/// Flags that `nuthatch` had, and `nuthatch-lab serve` has.
const OF_LAB: [&str; 6] = [
    "engine",
    "eviction",
    "partitions",
    "server-threads",
    "pin",
    "cpserver",
];

/// Where a flag of this long name went, if it is one that `nuthatch` had.
pub fn went_where(name: &str) -> Option<&'static str> {
    OF_LAB.contains(&name).then_some(
        "nuthatch has no such setting; `nuthatch-lab serve` has it, which is the same server on any engine",
    )
}

impl EngineFlags for DefaultEngine {
    fn take_from(file: &mut File) -> Result<Self, String> {
        file.refuse(went_where)?;
        file.take()
    }

    fn over(self, file: Self) -> Self {
        Self {
            upstream: self.upstream.or(file.upstream),
            upstream_lifetime: self.upstream_lifetime.or(file.upstream_lifetime),
        }
    }

    fn engine(&self, common: CommonSettings) -> Result<ChosenEngine, String> {
        let config = CuckooConfig::from(&common);
        let mut lines = common.lines(usize::MAX, LOG_MIN);
        lines.push(("eviction", config.eviction.name.to_owned()));
        let upstream = self.upstream()?;
        if let Some((_, lifetime)) = &upstream {
            let address = self.upstream.clone().unwrap_or_default();
            lines.push(("upstream", address));
            lines.push(("upstream_lifetime", lifetime.as_millis().to_string()));
        }
        Ok(ChosenEngine {
            memory_limit: common.memory_limit,
            item_size_max: config.item_size_max,
            // Those by which a log counts its items.
            has_size_classes: true,
            gains_by_large_batches: false,
            lines,
            holds_copies: upstream.is_some(),
            build: Box::new(move || {
                let engine = Arc::new(Cuckoo::<EightWay>::new(config.clone())?);
                Ok(match upstream.clone() {
                    Some((client, lifetime)) => {
                        Arc::new(Upstream::new(engine, client, lifetime)).any()
                    }
                    None => engine.any(),
                })
            }),
            flag: |_| None,
        })
    }

    fn cpserver(&self) -> Option<Vec<String>> {
        None
    }
}

impl DefaultEngine {
    /// The client of the servers behind this one, and how long a copy is used. None: there are none.
    fn upstream(&self) -> Result<Option<(Client, Duration)>, String> {
        let typed = self.upstream.as_deref().filter(|typed| !typed.is_empty());
        let Some(address) = typed else {
            return match self.upstream_lifetime {
                Some(_) => Err("--upstream-lifetime: needs --upstream".to_owned()),
                None => Ok(None),
            };
        };
        if address.starts_with("shm:") {
            return Err(format!(
                "--upstream {address}: the servers of a pool are asked by tcp://, tls:// or unix://"
            ));
        }
        let mut options = Options::default();
        (options.timeout, options.connect_timeout) = (PATIENCE, PATIENCE);
        options.late_max = PATIENCE;
        options.retry_wait = Some(RETRY_WAIT);
        options.passes_on = true;
        let client = Client::connect_with(address, options);
        let client = client.map_err(|error| format!("--upstream {address}: {error}"))?;
        let lifetime = self.upstream_lifetime.unwrap_or(LIFETIME);
        if !(1..=LIFETIME_MAX).contains(&lifetime) {
            return Err(format!("--upstream-lifetime: from 1 to {LIFETIME_MAX}"));
        }
        Ok(Some((client, Duration::from_millis(lifetime))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(upstream: &str, lifetime: Option<u64>) -> Result<ChosenEngine, String> {
        let own = DefaultEngine {
            upstream: Some(upstream.to_owned()),
            upstream_lifetime: lifetime,
        };
        own.engine(CommonSettings::default())
    }

    #[test]
    fn an_address_that_is_none_is_refused() {
        for address in [
            "a:11211",
            "tcp://",
            "tcp://a:0x",
            "shm:///run/s",
            "tcp://a?timeout_ms=x",
        ] {
            let error = checked(address, None).unwrap_err();
            assert!(error.starts_with("--upstream"), "{error}");
        }
        assert!(checked("tcp://a?timeout_ms=9", Some(0)).is_err());
        assert!(
            checked("", Some(1))
                .unwrap_err()
                .contains("needs --upstream")
        );
    }

    #[test]
    fn without_an_address_items_are_the_servers_own() {
        assert!(!checked("", None).unwrap().holds_copies);
        let chosen = checked("tcp://127.0.0.1:1,127.0.0.1:2", Some(50)).unwrap();
        assert!(chosen.holds_copies);
        assert!(
            chosen
                .lines
                .contains(&("upstream_lifetime", "50".to_owned()))
        );
    }
}
