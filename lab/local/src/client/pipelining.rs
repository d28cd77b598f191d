//! Many callers of nuthatch-client at once, on one connection or with a connection each. Gets only.

use std::cell::RefCell;
use std::rc::Rc;
use std::thread;
use std::time::Instant;

use nuthatch_client::{Client, Error, tasks};

use super::Job;
use super::calls::{MISSING, right};
use crate::found::{Begun, Found, Times};
use crate::items::{self, Numbers};

/// So many clients: the same one again and again, or each its own.
fn clients<C: Clone>(
    job: &Job,
    shared: bool,
    connect: impl Fn(&str) -> Result<C, Error>,
) -> Result<Vec<C>, String> {
    let connected = || connect(&job.target).map_err(|error| error.to_string());
    match shared {
        true => Ok(vec![connected()?; job.callers]),
        false => (0..job.callers).map(|_| connected()).collect(),
    }
}

fn checked(job: &Job, key: &[u8], got: Result<Option<Vec<u8>>, Error>) -> Result<(), String> {
    match got {
        Ok(Some(value)) => right(&value, key, job.value_size),
        Ok(None) => Err(MISSING.to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Tasks of a runtime with one thread.
pub fn tasks(
    job: &Job,
    shared: bool,
) -> Result<impl FnOnce() -> Result<Found, String> + use<>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let clients = clients(job, shared, tasks::Client::connect)?;
    // A call: the first one connects.
    runtime.block_on(async {
        for client in &clients {
            let found = client.get(items::key(0)).await;
            found.map_err(|error| error.to_string())?;
        }
        Ok::<(), String>(())
    })?;
    let job = Rc::new(job.clone());
    Ok(move || {
        let times = Rc::new(RefCell::new(Times::new()));
        let begun = Begun::now();
        let end = begun.at() + job.time();
        let set = tokio::task::LocalSet::new();
        let callers = (0..).zip(clients).map(|(number, client)| {
            let (job, times) = (job.clone(), times.clone());
            set.spawn_local(task(job, client, number, end, times))
        });
        let callers: Vec<_> = callers.collect();
        set.block_on(&runtime, async {
            for caller in callers {
                caller.await.map_err(|error| error.to_string())??;
            }
            Ok::<(), String>(())
        })?;
        Ok(begun.end(&times.borrow(), 1))
    })
}

async fn task(
    job: Rc<Job>,
    client: tasks::Client,
    number: u32,
    end: Instant,
    times: Rc<RefCell<Times>>,
) -> Result<(), String> {
    let mut numbers = Numbers::new(job.keys, job.seed + number);
    let mut last = Instant::now();
    while last < end {
        let key = items::key(numbers.draw());
        checked(&job, &key, client.get(key).await)?;
        let now = Instant::now();
        times.borrow_mut().record(now - last);
        last = now;
    }
    Ok(())
}

/// Threads.
pub fn threads(
    job: &Job,
    shared: bool,
) -> Result<impl FnOnce() -> Result<Found, String> + use<>, String> {
    let clients = clients(job, shared, Client::connect)?;
    for client in &clients {
        let found = client.get(items::key(0));
        found.map_err(|error| error.to_string())?;
    }
    let job = job.clone();
    Ok(move || {
        let begun = Begun::now();
        let end = begun.at() + job.time();
        let each: Vec<Result<Times, String>> = thread::scope(|scope| {
            let callers = (0..).zip(&clients).map(|(number, client)| {
                let job = &job;
                scope.spawn(move || caller(job, client, number, end))
            });
            let callers: Vec<_> = callers.collect();
            let joined = callers.into_iter().map(|caller| {
                caller
                    .join()
                    .unwrap_or_else(|_| Err("a thread panicked".to_owned()))
            });
            joined.collect()
        });
        let mut times = Times::new();
        for one in each {
            times.join(&one?);
        }
        Ok(begun.end(&times, 1))
    })
}

fn caller(job: &Job, client: &Client, number: u32, end: Instant) -> Result<Times, String> {
    let mut numbers = Numbers::new(job.keys, job.seed + number);
    let mut times = Times::new();
    let mut last = Instant::now();
    while last < end {
        let key = items::key(numbers.draw());
        checked(job, &key, client.get(key))?;
        let now = Instant::now();
        times.record(now - last);
        last = now;
    }
    Ok(times)
}
