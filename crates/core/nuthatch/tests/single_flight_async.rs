//! Computations of missing values: one at a time for each key, by tasks.
#![cfg(feature = "async")]

use std::future::{Future, pending, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use nuthatch::{Cache, Error, Lifetime, LoadError};

const KEPT: Lifetime = Lifetime::Default;

fn cache() -> Cache {
    Cache::new(16 << 20).unwrap()
}

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicU32);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Polls once; the second result counts how often the waker was used since.
fn poll<F: Future>(future: Pin<&mut F>) -> (Poll<F::Output>, Arc<Woken>) {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let polled = future.poll(&mut Context::from_waker(&waker));
    (polled, woken)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn exactly_one_task_computes() {
    let cache = cache();
    for round in 0..50_u32 {
        let computed = Arc::new(AtomicU32::new(0));
        let tasks: Vec<_> = (0..16)
            .map(|_| {
                let (cache, computed) = (cache.clone(), Arc::clone(&computed));
                tokio::spawn(async move {
                    let compute = async {
                        computed.fetch_add(1, Ordering::Relaxed);
                        tokio::task::yield_now().await;
                        "value"
                    };
                    cache
                        .get_or_insert_async(round.to_le_bytes(), KEPT, compute)
                        .await
                })
            })
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap().unwrap(), b"value");
        }
        assert_eq!(computed.load(Ordering::Relaxed), 1);
    }
}

/// Threads and tasks that ask for the same key make one computation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn threads_wait_for_tasks_and_tasks_for_threads() {
    let cache = cache();
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (finish, finished) = tokio::sync::oneshot::channel();
    let leader = {
        let cache = cache.clone();
        tokio::spawn(async move {
            let compute = async {
                begun.send(()).unwrap();
                finished.await.unwrap();
                "by the task"
            };
            cache.get_or_insert_async("k", KEPT, compute).await
        })
    };
    begins.await.unwrap();
    let thread = {
        let cache = cache.clone();
        std::thread::spawn(move || cache.get_or_insert_with("k", KEPT, || "by the thread"))
    };
    finish.send(()).unwrap();
    assert_eq!(leader.await.unwrap().unwrap(), b"by the task");
    assert_eq!(thread.join().unwrap().unwrap(), b"by the task");

    let (begun, begins) = tokio::sync::oneshot::channel();
    let (finish, finished) = std::sync::mpsc::channel();
    let thread = {
        let cache = cache.clone();
        std::thread::spawn(move || {
            cache.get_or_insert_with("t", KEPT, || {
                begun.send(()).unwrap();
                finished.recv().unwrap();
                "by the thread"
            })
        })
    };
    begins.await.unwrap();
    let mut follower = pin!(cache.get_or_insert_async("t", KEPT, ready("by the task")));
    assert!(poll(follower.as_mut()).0.is_pending());
    finish.send(()).unwrap();
    assert_eq!(follower.await.unwrap(), b"by the thread");
    assert_eq!(thread.join().unwrap().unwrap(), b"by the thread");
}

/// A leader that is dropped wakes the followers, and one of them computes.
#[test]
fn a_dropped_leader_is_replaced() {
    let cache = cache();
    let mut leader = Box::pin(cache.get_or_insert_async("k", KEPT, pending::<Vec<u8>>()));
    let mut first = pin!(cache.get_or_insert_async("k", KEPT, ready("first")));
    let mut second = pin!(cache.get_or_insert_async("k", KEPT, ready("second")));
    assert!(poll(leader.as_mut()).0.is_pending());
    let (polled, first_woken) = poll(first.as_mut());
    assert!(polled.is_pending());
    let (polled, second_woken) = poll(second.as_mut());
    assert!(polled.is_pending());
    assert_eq!(first_woken.0.load(Ordering::Relaxed), 0);
    drop(leader);
    for woken in [first_woken, second_woken] {
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    }
    assert_eq!(poll(second.as_mut()).0, Poll::Ready(Ok(b"second".to_vec())));
    assert_eq!(poll(first.as_mut()).0, Poll::Ready(Ok(b"second".to_vec())));
    assert_eq!(cache.get("k").unwrap(), b"second");
}

/// A follower may leave, and may be moved to another task; only the last waker is used.
#[test]
fn a_dropped_follower_is_forgotten() {
    let cache = cache();
    let (finish, finished) = tokio::sync::oneshot::channel::<&str>();
    let compute = async { finished.await.unwrap() };
    let mut leader = pin!(cache.get_or_insert_async("k", KEPT, compute));
    let mut left = Box::pin(cache.get_or_insert_async("k", KEPT, ready("left")));
    let mut stays = pin!(cache.get_or_insert_async("k", KEPT, ready("stays")));
    assert!(poll(leader.as_mut()).0.is_pending());
    let left_woken = poll(left.as_mut()).1;
    let old_woken = poll(stays.as_mut()).1;
    let new_woken = poll(stays.as_mut()).1;
    drop(left);
    finish.send("led").unwrap();
    assert_eq!(poll(leader.as_mut()).0, Poll::Ready(Ok(b"led".to_vec())));
    let woken = [left_woken, old_woken, new_woken].map(|woken| woken.0.load(Ordering::Relaxed));
    assert_eq!(woken, [0, 0, 1]);
    assert_eq!(poll(stays.as_mut()).0, Poll::Ready(Ok(b"led".to_vec())));
}

/// The same in an executor: tasks are aborted at any point, and the last one gets a value.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_may_be_aborted_at_any_point() {
    let cache = cache();
    for round in 0..200_u32 {
        let ask = |last: bool| {
            let cache = cache.clone();
            tokio::spawn(async move {
                let compute = async {
                    for _ in 0..5 {
                        tokio::task::yield_now().await;
                    }
                    if last { "last" } else { "early" }
                };
                cache
                    .get_or_insert_async(round.to_le_bytes(), KEPT, compute)
                    .await
            })
        };
        let early: Vec<_> = (0..8).map(|_| ask(false)).collect();
        let last = ask(true);
        early.iter().for_each(|task| task.abort());
        let value = last.await.unwrap().unwrap();
        assert!(value == b"last" || value == b"early");
    }
}

#[tokio::test]
async fn a_failed_computation_lets_another_try() {
    let cache = cache();
    let fail = async { Err::<Vec<u8>, _>("no") };
    let failed = cache.try_get_or_insert_async("k", KEPT, fail).await;
    assert_eq!(failed, Err(LoadError::Load("no")));
    let works = async { Ok::<_, &str>("yes") };
    let value = cache.try_get_or_insert_async("k", KEPT, works).await;
    assert_eq!(value, Ok(b"yes".to_vec()));
    let panics = {
        let cache = cache.clone();
        tokio::spawn(async move {
            let compute = async { panic!("as planned") as Vec<u8> };
            cache.get_or_insert_async("p", KEPT, compute).await
        })
    };
    assert!(panics.await.unwrap_err().is_panic());
    assert_eq!(
        cache
            .get_or_insert_async("p", KEPT, ready("works"))
            .await
            .unwrap(),
        b"works"
    );
}

#[tokio::test]
async fn a_value_that_cannot_be_stored_is_returned() {
    let cache = cache();
    let large = vec![7; 2 << 20];
    let value = cache
        .get_or_insert_async("k", KEPT, ready(large.clone()))
        .await;
    assert!(value.is_ok_and(|value| value == large));
    assert!(!cache.contains_key("k"));
    let refused = cache
        .get_or_insert_async("", KEPT, pending::<Vec<u8>>())
        .await;
    assert_eq!(refused, Err(Error::KeyLength));
}

/// A computation that waits for itself gets an error, also after it moved to another thread, and by either method.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn recursion_is_an_error() {
    let cache = cache();
    let compute = async {
        tokio::task::yield_now().await;
        let own = cache.get_or_insert_async("k", KEPT, ready("never")).await;
        assert_eq!(own, Err(Error::Recursion));
        let own = cache.get_or_insert_with("k", KEPT, || "never");
        assert_eq!(own, Err(Error::Recursion));
        let other = cache.get_or_insert_async("other", KEPT, ready("may")).await;
        [&other.unwrap()[..], b" be"].concat()
    };
    let value = cache.get_or_insert_async("k", KEPT, compute).await;
    assert_eq!(value.unwrap(), b"may be");
}

/// Between two polls of a computation its thread runs other tasks, which wait for it like any other.
#[tokio::test]
async fn another_task_of_the_thread_is_no_recursion() {
    let cache = cache();
    let (finish, finished) = tokio::sync::oneshot::channel::<&str>();
    let compute = async { finished.await.unwrap() };
    let leader = cache.get_or_insert_async("k", KEPT, compute);
    let follower = async {
        let value = cache.get_or_insert_async("k", KEPT, ready("never"));
        let mut value = pin!(value);
        assert!(poll(value.as_mut()).0.is_pending());
        finish.send("led").unwrap();
        value.await
    };
    let (led, followed) = tokio::join!(leader, follower);
    assert_eq!(
        (led.unwrap(), followed.unwrap()),
        (b"led".to_vec(), b"led".to_vec())
    );
}
