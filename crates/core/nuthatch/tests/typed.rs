//! Keys and values with types: what a caller sees of a typed cache.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use nuthatch::typed::{CodecError, Decode, Encode};
use nuthatch::{Cache, Error, KEY_LEN_MAX, Lifetime, TypedCache, TypedError};

const MIB: usize = 1 << 20;

fn cache<K, V>() -> TypedCache<K, V> {
    TypedCache::new(16 * MIB).unwrap()
}

#[test]
fn keys_and_values_are_passed_as_they_are_borrowed() {
    let names: TypedCache<u64, String> = cache();
    names.insert(7, "Ada").unwrap();
    let owned = String::from("Grace");
    names.insert(8, &owned).unwrap();
    assert_eq!(names.get(7).unwrap().as_deref(), Some("Ada"));
    assert_eq!(names.get_with(8, str::len).unwrap(), Some(5));
    assert_eq!(names.get(9).unwrap(), None);
    assert!(names.contains_key(7).unwrap());
    assert_eq!(names.remove(7).unwrap().as_deref(), Some("Ada"));
    assert_eq!(names.remove(7).unwrap(), None);
    assert!(names.invalidate(8).unwrap());
    assert!(!names.invalidate(8).unwrap());

    let ages: TypedCache<(String, [u8; 2]), Option<i32>> = cache();
    assert!(ages.add((&owned, b"DE"), None, Lifetime::Default).unwrap());
    assert!(
        !ages
            .add((&owned, b"DE"), Some(1), Lifetime::Default)
            .unwrap()
    );
    assert_eq!(ages.get(("Grace", b"DE")).unwrap(), Some(None));
    ages.insert_for(("Grace", b"DE"), Some(-3), Duration::ZERO)
        .unwrap();
    assert_eq!(ages.get(("Grace", b"DE")).unwrap(), None);
    assert!(!ages.touch(("Grace", b"DE"), Lifetime::Unlimited).unwrap());
}

/// What is handed out is a handle: clones and the cache of bytes are one cache, and need nothing of the types.
#[test]
fn a_typed_cache_is_a_handle() {
    struct NotClone;
    let typed: TypedCache<u32, u32> = Cache::builder().build_typed().unwrap();
    let clone = typed.clone();
    typed.insert(1, 2).unwrap();
    assert_eq!(clone.get(1).unwrap(), Some(2));
    assert_eq!(
        typed.bytes().get(1_u32.to_le_bytes()),
        Some(2_u32.to_le_bytes().to_vec())
    );
    typed.bytes().invalidate_all();
    assert_eq!(clone.get(1).unwrap(), None);
    let other = TypedCache::<NotClone, NotClone>::of(typed.bytes().clone());
    assert!(format!("{:?}", other.clone()).starts_with("TypedCache(Cache {"));
    fn shared<T: Send + Sync + std::panic::UnwindSafe>(_: T) {}
    shared(other);
}

#[test]
fn a_key_has_as_many_bytes_as_any_other() {
    let cache: TypedCache<String, u8> = cache();
    let longest = "k".repeat(KEY_LEN_MAX);
    cache.insert(&longest, 1).unwrap();
    assert_eq!(cache.get(&longest).unwrap(), Some(1));
    for key in ["", &"k".repeat(KEY_LEN_MAX + 1)] {
        let refused = cache.insert(key, 1);
        assert!(matches!(refused, Err(TypedError::Cache(Error::KeyLength))));
        assert_eq!(cache.get(key).unwrap(), None);
        assert_eq!(cache.get_many([key, &longest]).unwrap(), [None, Some(1)]);
        let computed = cache.get_or_insert_with(key, Lifetime::Default, || unreachable!());
        assert!(matches!(computed, Err(TypedError::Cache(Error::KeyLength))));
    }
}

#[test]
fn many_keys_are_looked_up_in_their_order() {
    let cache: TypedCache<(u16, String), Vec<u8>> = cache();
    for number in 0..100 {
        cache.insert((number, "even"), &[number as u8; 3]).unwrap();
    }
    let keys = (0..200).map(|number| (number, if number % 2 == 0 { "even" } else { "odd" }));
    let values = cache.get_many(keys.clone()).unwrap();
    assert_eq!(values.len(), 200);
    for (number, value) in values.into_iter().enumerate() {
        let expected = (number < 100 && number % 2 == 0).then(|| vec![number as u8; 3]);
        assert_eq!(value, expected);
    }
    let mut seen = Vec::new();
    let see = |index: usize, value: Result<Option<&[u8]>, TypedError>| {
        // A closure that is lent a value may use the cache, and the buffers that keys are written to.
        assert_eq!(cache.get((index as u16, "nothing")).unwrap(), None);
        seen.push((index, value.unwrap().map(<[u8]>::len)));
    };
    cache.get_many_with(keys, see).unwrap();
    assert_eq!(seen[..3], [(0, Some(3)), (1, None), (2, Some(3))]);
    assert_eq!(seen.len(), 200);
    let stats = cache.bytes().stats();
    assert_eq!((stats.hits, stats.misses), (100, 500));
}

/// Class: an answer that cannot be read ends the program, or hides the others.
#[test]
fn bytes_that_are_no_value_are_an_error_that_names_the_types() {
    let cache: TypedCache<u32, String> = cache();
    cache.insert(1, "one").unwrap();
    cache.bytes().insert(2_u32.to_le_bytes(), b"\xff").unwrap();
    let message = cache.get(2).unwrap_err().to_string();
    assert!(
        message.contains("u32") && message.contains("alloc::string::String"),
        "{message}"
    );
    assert!(std::error::Error::source(&cache.get(2).unwrap_err()).is_some());
    let wrong = |error: &TypedError| matches!(error, TypedError::Decode { .. });
    assert!(cache.get_with(2, |_| ()).is_err_and(|error| wrong(&error)));
    assert!(cache.get_many([1, 2]).is_err_and(|error| wrong(&error)));
    let mut lent = Vec::new();
    cache
        .get_many_with([2, 1], |_, value| {
            lent.push(value.ok().flatten().map(str::to_owned))
        })
        .unwrap();
    assert_eq!(lent, [None, Some("one".to_owned())]);
    let computed = cache.get_or_insert_with(2, Lifetime::Default, || unreachable!());
    assert!(computed.is_err_and(|error| wrong(&error)));
    cache.bytes().insert("a key of five", "or so").unwrap();
    assert_eq!(
        cache
            .iter()
            .filter(|item| item.as_ref().is_err_and(wrong))
            .count(),
        2
    );
    assert_eq!(
        cache.iter().filter_map(Result::ok).collect::<Vec<_>>(),
        [(1, "one".to_owned())]
    );
    // It can be got rid of, and be overwritten.
    assert!(cache.remove(2).is_err_and(|error| wrong(&error)));
    assert_eq!(cache.get(2).unwrap(), None);
}

/// As the documentation says: two types over one cache of bytes share the keys with equal bytes.
#[test]
fn types_over_one_cache_of_bytes_share_keys_with_equal_bytes() {
    let bytes = Cache::new(16 * MIB).unwrap();
    let numbers = TypedCache::<u8, u16>::of(bytes.clone());
    let names = TypedCache::<String, String>::of(bytes.clone());
    numbers.insert(b'a', 513).unwrap();
    assert_eq!(names.get("a").unwrap().as_deref(), Some("\u{1}\u{2}"));
    names.insert("a", "three bytes").unwrap();
    assert!(matches!(numbers.get(b'a'), Err(TypedError::Decode { .. })));
    // A part in front keeps them apart.
    let users = TypedCache::<(u8, u32), u16>::of(bytes.clone());
    let pages = TypedCache::<(u8, String), String>::of(bytes);
    users.insert((1, 0x6161_6161), 1).unwrap();
    pages.insert((2, "aaaa"), "page").unwrap();
    assert_eq!(users.get((1, 0x6161_6161)).unwrap(), Some(1));
    assert_eq!(pages.get((2, "aaaa")).unwrap().as_deref(), Some("page"));
}

/// A kind that some values have no bytes in, and whose view is something else than the value.
struct Even;

impl Encode for Even {
    type Owned = u64;
    type Given<'a> = u64;

    fn given(owned: &u64) -> u64 {
        *owned
    }

    fn encode(given: u64, into: &mut Vec<u8>) -> Result<(), CodecError> {
        if given % 2 == 1 {
            return Err(format!("{given} is odd").into());
        }
        u64::encode(given / 2, into)
    }
}

impl Decode for Even {
    type View<'a> = &'a [u8];

    fn view(bytes: &[u8]) -> Result<&[u8], CodecError> {
        Ok(bytes)
    }

    fn decode(bytes: &[u8]) -> Result<u64, CodecError> {
        Ok(u64::decode(bytes)? * 2)
    }
}

#[test]
fn what_has_no_bytes_is_an_error_and_changes_nothing() {
    let cache: TypedCache<Even, Even> = cache();
    cache.insert(2, 4).unwrap();
    assert_eq!(cache.get(2).unwrap(), Some(4));
    let none = |error: &TypedError| matches!(error, TypedError::Encode { .. });
    for refused in [
        cache.insert(2, 5),
        cache.insert(3, 4),
        cache.get(3).map(drop),
    ] {
        let error = refused.unwrap_err();
        assert!(none(&error));
        assert!(
            error.to_string().contains("Even") && error.to_string().contains("is odd"),
            "{error}"
        );
    }
    assert!(cache.get_many([2, 3]).is_err_and(|error| none(&error)));
    assert!(
        cache
            .get_or_insert_with(4, Lifetime::Default, || 7)
            .is_err_and(|error| none(&error))
    );
    assert_eq!(cache.get(4).unwrap(), None);
    // The flight has ended: the next caller computes.
    assert_eq!(
        cache
            .get_or_insert_with(4, Lifetime::Default, || 8)
            .unwrap(),
        8
    );
    assert_eq!(cache.bytes().entry_count(), 2);
}

#[test]
fn one_of_all_callers_computes() {
    let cache: TypedCache<(u8, String), Vec<u8>> = cache();
    let computed = AtomicU32::new(0);
    let threads = 8;
    let ready = Arc::new(Barrier::new(threads));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                ready.wait();
                let compute = || {
                    computed.fetch_add(1, Ordering::Relaxed);
                    vec![5; 100]
                };
                let value = cache.get_or_insert_with((1, "key"), Lifetime::Default, compute);
                assert_eq!(value.unwrap(), vec![5; 100]);
            });
        }
    });
    assert_eq!(computed.into_inner(), 1);
    // Each call is one read, as of the cache of bytes.
    let stats = cache.bytes().stats();
    assert_eq!(stats.hits + stats.misses, threads as u64);
}

#[test]
fn a_computations_error_is_its_callers() {
    let cache: TypedCache<String, u32> = cache();
    let fail = || "many".parse::<u32>();
    let failed = cache.try_get_or_insert_with("k", Lifetime::Default, fail);
    let Err(TypedError::Load(error)) = &failed else {
        panic!("{failed:?}")
    };
    assert_eq!(failed.as_ref().unwrap_err().to_string(), error.to_string());
    let inner = Cell::new(None);
    let outer = cache.get_or_insert_with("k", Lifetime::Default, || {
        inner.set(Some(cache.get_or_insert_with("k", Lifetime::Default, || 1)));
        2
    });
    assert_eq!(outer.unwrap(), 2);
    assert!(matches!(
        inner.into_inner(),
        Some(Err(TypedError::Cache(Error::Recursion)))
    ));
    assert_eq!(
        cache
            .try_get_or_insert_with("k", Lifetime::Default, fail)
            .unwrap(),
        2
    );
}

#[cfg(feature = "async")]
mod tasks {
    use super::*;

    /// Also: the future can be sent to another thread, with whatever key.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_of_all_tasks_computes() {
        let cache: TypedCache<(u8, String), String> = cache();
        let computed = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let (cache, computed) = (cache.clone(), Arc::clone(&computed));
                tokio::spawn(async move {
                    let name = String::from("key");
                    let compute = async {
                        tokio::task::yield_now().await;
                        computed.fetch_add(1, Ordering::Relaxed);
                        Ok::<_, Error>("value".to_owned())
                    };
                    (cache.try_get_or_insert_async((1, &name), Lifetime::Default, compute)).await
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap().unwrap(), "value");
        }
        assert_eq!(computed.load(Ordering::Relaxed), 1);
        let stats = cache.bytes().stats();
        assert_eq!(stats.hits + stats.misses, 16);
        let again =
            cache.get_or_insert_async((1, "key"), Lifetime::Default, async { unreachable!() });
        assert_eq!(again.await.unwrap(), "value");
    }

    #[tokio::test]
    async fn a_tasks_error_is_its_callers() {
        let cache: TypedCache<u8, Even> = cache();
        let failed = cache.try_get_or_insert_async(1, Lifetime::Default, async { Err("failed") });
        assert!(matches!(failed.await, Err(TypedError::Load("failed"))));
        let odd = cache
            .get_or_insert_async(1, Lifetime::Default, async { 3 })
            .await;
        assert!(matches!(odd, Err(TypedError::Encode { .. })));
        assert_eq!(
            cache
                .get_or_insert_async(1, Lifetime::Default, async { 2 })
                .await
                .unwrap(),
            2
        );
    }
}
