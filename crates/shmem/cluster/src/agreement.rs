//! Whether all PEs have the same settings. If they had not, one PE would put words where another one looks for
//! something else, and requests would wait for ever.

use nuthatch_fabric::Fabric;

use crate::config::{Config, ConfigError, Difference};

/// Checks that these settings, by their names, are the same on all PEs. Collective: every PE gets the same result.
pub fn agree<const N: usize>(
    fabric: &impl Fabric,
    settings: [(&'static str, u64); N],
) -> Result<(), ConfigError> {
    // Each PE's in turn, so that every PE knows who has which. It takes no symmetric memory, which there may be too
    // little of on one PE alone.
    let told: Vec<[u64; N]> = (0..fabric.pes())
        .map(|pe| {
            let mut words = settings.map(|(_, word)| word);
            fabric.broadcast(pe, &mut words);
            words
        })
        .collect();
    let Some(pe) = told.iter().position(|words| *words != told[0]) else {
        return Ok(());
    };
    let differences = (0..N)
        .map(|at| Difference {
            name: settings[at].0,
            first: told[0][at],
            other: told[pe][at],
        })
        .filter(|difference| difference.first != difference.other)
        .collect();
    Err(ConfigError::Unequal { pe, differences })
}

/// What PEs compare of a store's settings.
pub fn settings(config: &Config) -> [(&'static str, u64); 11] {
    // All fields: who adds one decides whether PEs may differ in it.
    let Config {
        servers,
        memory,
        memory_max,
        item_size_max,
        evicts,
        sessions,
        directory,
        // By their number.
        buckets: _,
        operations,
        clocks,
        // The first PE's is taken.
        seed: _,
        fault,
    } = config;
    [
        ("servers", *servers as u64),
        ("memory", *memory as u64),
        ("memory_max", *memory_max as u64),
        ("item_size_max", *item_size_max as u64),
        ("evicts", u64::from(*evicts)),
        ("sessions", *sessions as u64),
        ("directory", *directory as u64),
        ("buckets", config.bucket_count() as u64),
        ("operations", *operations as u64),
        ("clocks", *clocks as u64),
        ("fault", *fault as u64),
    ]
}

#[cfg(test)]
mod tests {
    use std::thread;

    use nuthatch_fabric::threads::Network;

    use super::*;
    use crate::store::Member;

    /// What is done to settings.
    type Change = fn(&mut Config);

    /// How opening a store ends on each PE, if the third one's settings are changed.
    fn open(change: impl Fn(&mut Config)) -> Vec<Result<(), ConfigError>> {
        let config = Config {
            memory: 1 << 20,
            memory_max: 1 << 20,
            item_size_max: 64 << 10,
            ..Config::default()
        };
        let mut other = config.clone();
        change(&mut other);
        let ends = Network::free(4, 1 << 20).ends();
        thread::scope(|scope| {
            let opening: Vec<_> = ends
                .into_iter()
                .map(|end| {
                    let config = if end.pe() == 2 { &other } else { &config };
                    scope.spawn(move || Member::open(end, config).map(|_| ()))
                })
                .collect();
            let joined = opening.into_iter().map(|opening| opening.join().unwrap());
            joined.collect()
        })
    }

    #[test]
    fn other_settings_on_one_pe_are_an_error_on_all() {
        let changes: [(&str, Change); 9] = [
            ("servers 2", |config| config.servers = 2),
            // Not valid either: who has it leaves no other waiting.
            ("servers 9", |config| config.servers = 9),
            ("memory 524288", |config| config.memory = 512 << 10),
            ("memory_max 2097152", |config| config.memory_max = 2 << 20),
            ("item_size_max 32768", |config| {
                config.item_size_max = 32 << 10;
            }),
            ("evicts 0", |config| config.evicts = false),
            ("sessions 2", |config| config.sessions = 2),
            ("directory 16", |config| config.directory = 16),
            ("buckets 64", |config| config.buckets = Some(64)),
        ];
        for (says, change) in changes {
            for opened in open(change) {
                let error = opened.expect_err(says);
                assert!(
                    matches!(error, ConfigError::Unequal { pe: 2, .. }),
                    "{error:?}"
                );
                let text = error.to_string();
                assert!(text.contains("PE 2") && text.contains(says), "{text}");
            }
        }
    }

    #[test]
    fn another_seed_is_no_other_setting() {
        assert!(open(|config| config.seed = 7).iter().all(Result::is_ok));
    }
}
