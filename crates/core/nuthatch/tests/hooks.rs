//! What other people's recorders and subscribers are told.

#![cfg(any(feature = "metrics", feature = "tracing"))]

use nuthatch::{Cache, Lifetime};

#[cfg(feature = "metrics")]
mod recorders {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
        with_local_recorder,
    };

    use super::*;

    /// Keeps what it is told.
    #[derive(Default)]
    struct Kept {
        numbers: Mutex<BTreeMap<String, Arc<AtomicU64>>>,
        described: Mutex<BTreeMap<String, (Option<Unit>, String)>>,
    }

    impl Kept {
        fn number(&self, key: &Key) -> Arc<AtomicU64> {
            let labels: Vec<_> = key
                .labels()
                .map(|one| format!("{}={}", one.key(), one.value()))
                .collect();
            let name = format!("{}{{{}}}", key.name(), labels.join(","));
            Arc::clone(self.numbers.lock().unwrap().entry(name).or_default())
        }

        fn describe(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
            let named = (unit, text.into_owned());
            self.described
                .lock()
                .unwrap()
                .insert(name.as_str().to_owned(), named);
        }
    }

    impl Recorder for Kept {
        fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
            self.describe(name, unit, text);
        }

        fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
            self.describe(name, unit, text);
        }

        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
            unreachable!("there are none");
        }

        fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
            Counter::from_arc(self.number(key))
        }

        fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
            Gauge::from_arc(self.number(key))
        }

        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            unreachable!("there are none")
        }
    }

    #[test]
    fn a_recorder_gets_all_numbers_when_they_are_published() {
        let kept = Kept::default();
        let caches = [Cache::new(1 << 20).unwrap(), Cache::new(2 << 20).unwrap()];
        caches[0].insert("a", "1").unwrap();
        caches[0].get_many(&["a", "a", "b"]);
        with_local_recorder(&kept, || {
            nuthatch::describe_metrics();
            for _ in 0..2 {
                caches[0].stats().publish("one");
                caches[1].stats().publish(String::from("two"));
            }
        });
        let numbers = kept.numbers.lock().unwrap();
        let number = |name: &str| numbers[name].load(Ordering::Relaxed);
        // Totals are set, not added to, when they are published again.
        assert_eq!(number("nuthatch_hits_total{cache=one}"), 2);
        assert_eq!(number("nuthatch_misses_total{cache=one}"), 1);
        assert_eq!(number("nuthatch_insertions_total{cache=one}"), 1);
        assert_eq!(number("nuthatch_hits_total{cache=two}"), 0);
        // The atomic number of a gauge holds the bits of an `f64`.
        let gauge = |name| f64::from_bits(number(name));
        assert_eq!(gauge("nuthatch_entries{cache=one}"), 1.0);
        assert_eq!(
            gauge("nuthatch_memory_limit_bytes{cache=two}"),
            f64::from(2 << 20)
        );
        // Each is described, and the other way round.
        let described = kept.described.lock().unwrap();
        let published: Vec<&str> = numbers
            .keys()
            .filter_map(|name| name.strip_suffix("{cache=one}"))
            .collect();
        assert_eq!(published, described.keys().collect::<Vec<_>>());
        for (name, (unit, text)) in &*described {
            let of_bytes = *unit == Some(Unit::Bytes);
            assert_eq!(of_bytes, name.ends_with("_bytes"), "{name}");
            assert!(text.ends_with('.'), "{name}");
        }
    }

    #[test]
    fn without_a_recorder_nothing_happens() {
        Cache::new(1 << 20)
            .unwrap()
            .stats()
            .publish("nobody hears it");
    }
}

#[cfg(feature = "tracing")]
mod subscribers {
    use std::io::{self, Write};
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::fmt::format::FmtSpan;

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What a subscriber writes while `done` is done.
    fn told(done: impl FnOnce()) -> Vec<String> {
        let lines = Lines::default();
        let to = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_span_events(FmtSpan::NEW | FmtSpan::CLOSE)
            .with_writer(move || to.clone())
            .without_time()
            .with_ansi(false)
            .finish();
        tracing::subscriber::with_default(subscriber, done);
        let written = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        written.lines().map(|line| line.trim().to_owned()).collect()
    }

    fn has(lines: &[String], words: &[&str]) -> bool {
        lines
            .iter()
            .any(|line| words.iter().all(|word| line.contains(word)))
    }

    #[test]
    fn a_computation_is_a_span_and_its_end_says_how_long_it_took() {
        let cache = Cache::new(1 << 20).unwrap();
        let lines = told(|| {
            let compute = || {
                tracing::info!("within");
                "secret"
            };
            cache
                .get_or_insert_with("password", Lifetime::Default, compute)
                .unwrap();
            // Found: nothing is computed.
            cache
                .get_or_insert_with("password", Lifetime::Default, || "")
                .unwrap();
            let failed =
                cache.try_get_or_insert_with("other", Lifetime::Default, || Err::<&str, _>(1));
            assert!(failed.is_err());
        });
        assert!(
            has(&lines, &["INFO", "compute{key_len=8}", "within"]),
            "{lines:#?}"
        );
        assert!(has(
            &lines,
            &[
                "DEBUG",
                "compute{key_len=8}",
                "computed",
                "elapsed_us=",
                "value_len=6"
            ]
        ));
        assert!(has(
            &lines,
            &[
                "compute{key_len=5}",
                "the computation failed",
                "elapsed_us="
            ]
        ));
        assert_eq!(
            lines.iter().filter(|line| line.contains("close")).count(),
            2
        );
        assert!(!has(&lines, &["secret"]) && !has(&lines, &["password"]));
    }

    #[test]
    fn what_is_refused_is_told_and_loudly_if_nobody_else_learns_it() {
        let cache = Cache::builder()
            .memory_limit(1 << 20)
            .item_size_max(1 << 10)
            .build()
            .unwrap();
        let large = vec![0; 2 << 10];
        let lines = told(|| {
            assert!(cache.insert("key", &large).is_err());
            cache
                .get_or_insert_with("load", Lifetime::Default, || large.clone())
                .unwrap();
        });
        assert!(
            has(
                &lines,
                &[
                    "DEBUG",
                    "refused",
                    "larger than the cache allows",
                    "key_len=3"
                ]
            ),
            "{lines:#?}"
        );
        assert!(has(
            &lines,
            &[
                "WARN",
                "a computed value was not stored",
                "key_len=4",
                "value_len=2048"
            ]
        ));
    }

    #[cfg(feature = "async")]
    #[test]
    fn a_tasks_span_is_entered_when_it_is_polled() {
        let cache = Cache::new(1 << 20).unwrap();
        let lines = told(|| {
            let tasks = tokio::runtime::Builder::new_current_thread()
                .build()
                .unwrap();
            let compute = async {
                tokio::task::yield_now().await;
                tracing::info!("polled again");
                "value"
            };
            let computed = cache.get_or_insert_async("key", Lifetime::Default, compute);
            let outside = async {
                tokio::task::yield_now().await;
                tracing::info!("another task");
            };
            tasks.block_on(async { tokio::join!(async { computed.await.unwrap() }, outside) });
        });
        assert!(
            has(&lines, &["INFO", "compute{key_len=3}", "polled again"]),
            "{lines:#?}"
        );
        assert!(has(&lines, &["another task"]) && !has(&lines, &["compute", "another task"]));
    }
}
