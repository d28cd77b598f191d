//! The class that `package/index.js` makes clients of, and the thread in which their calls are.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use napi::bindgen_prelude::{BigInt, Buffer, Either4, Env, Function, Null, Unknown};
use napi_derive::napi;
use nuthatch_client::tasks::Client;
use nuthatch_client::{
    CarriedOut, Compute, ComputeError, Error, Local, Login, Many, Options, Outcome,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

use crate::convert::{Bytes, Key, Value, duration, keep, lifetime, thrown};
use crate::outbox::{Answer, Batch, Outbox};

/// What fails is thrown, with its code. (The macro looks for this name.)
type Result<T, E = napi::Error<&'static str>> = std::result::Result<T, E>;

/// A call, which the thread carries out.
type Call = (
    u32,
    Pin<Box<dyn Future<Output = Result<Answer, Error>> + Send>>,
);

/// Computations that the thread waits for, by the numbers of their calls.
type Computations = Arc<Mutex<HashMap<u32, oneshot::Sender<Option<Vec<u8>>>>>>;

/// Who ends calls whose callers may leave, by the numbers of the calls.
type Leavers = Arc<Mutex<HashMap<u32, oneshot::Sender<()>>>>;

/// What is no part of the address. Times are in seconds.
#[napi(object)]
pub struct Settings {
    pub timeout: Option<f64>,
    pub connect_timeout: Option<f64>,
    pub near_seconds: Option<f64>,
    pub near_bytes: Option<f64>,
    pub user: Option<String>,
    pub password: Option<String>,
}

/// Calls of servers, by numbers. They are kept until `flush` sends them on.
#[napi]
pub struct Native {
    open: Rc<RefCell<Option<Open>>>,
    outbox: Arc<Outbox>,
    computations: Computations,
    leavers: Leavers,
    is_text: bool,
}

/// What `reader` says.
type Read = Either4<Value, u32, Null, bool>;

/// What ends when the client is closed.
struct Open {
    client: Client,
    kept: Vec<Call>,
    calls: UnboundedSender<Vec<Call>>,
}

impl From<Settings> for Options {
    fn from(settings: Settings) -> Self {
        let mut options = Self::default();
        if let Some(timeout) = settings.timeout {
            options.timeout = duration(timeout);
        }
        if let Some(timeout) = settings.connect_timeout {
            options.connect_timeout = duration(timeout);
        }
        options.near = settings.near_seconds.map(duration);
        if let Some(bytes) = settings.near_bytes {
            options.near_bytes = bytes as usize;
        }
        options.login = settings
            .user
            .zip(settings.password)
            .map(|(name, password)| Login { name, password });
        options
    }
}

/// Carries out calls until the client is closed.
async fn serve(mut calls: UnboundedReceiver<Vec<Call>>, outbox: Arc<Outbox>) {
    while let Some(calls) = calls.recv().await {
        for (number, call) in calls {
            let outbox = outbox.clone();
            tokio::spawn(async move {
                let answer = call.await;
                outbox.put(number, answer.unwrap_or_else(Answer::Failed));
            });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn started(error: std::io::Error) -> napi::Error<&'static str> {
    napi::Error::new("ERR_NUTHATCH_THREAD", format!("no thread: {error}"))
}

fn closed() -> napi::Error<&'static str> {
    napi::Error::new("ERR_NUTHATCH_CLOSED", "the client is closed")
}

/// Whether a change was made.
fn done(outcome: Result<Outcome, Error>) -> Result<Answer, Error> {
    outcome.map(|outcome| Answer::Flag(outcome == Outcome::Done))
}

/// What came of changes of many keys, each of which has failed for itself or was made.
fn all_done<T: Clone + Default>(
    many: Many<T>,
    answer: impl FnOnce(Vec<T>) -> Answer,
) -> Result<Answer, Error> {
    let is_maybe = |(_, error): &(usize, Error)| error.carried_out() == CarriedOut::Maybe;
    let in_part = many.failed.len() < many.values.len() || many.failed.iter().any(is_maybe);
    match many.complete() {
        Err(error) if in_part => Ok(Answer::FailedInPart(error)),
        outcome => outcome.map(answer),
    }
}

impl Native {
    /// Keeps a call of this number.
    fn keep<F>(&self, number: u32, call: impl FnOnce(Client) -> F) -> Result<()>
    where
        F: Future<Output = Result<Answer, Error>> + Send + 'static,
    {
        let mut open = self.open.borrow_mut();
        let open = open.as_mut().ok_or_else(closed)?;
        let call = call(open.client.clone());
        open.kept.push((number, Box::pin(call)));
        Ok(())
    }
}

/// What a call comes to, unless its caller leaves: then it is dropped, and with it what it was to compute.
async fn unless_left(
    call: impl Future<Output = Result<Answer, Error>>,
    left: Option<oneshot::Receiver<()>>,
) -> Result<Answer, Error> {
    let Some(mut left) = left else {
        return call.await;
    };
    let mut call = pin!(call);
    let ended = poll_fn(|context| match Pin::new(&mut left).poll(context) {
        Poll::Ready(_) => Poll::Ready(Ok(Answer::NotComputed)),
        Poll::Pending => call.as_mut().poll(context),
    });
    ended.await
}

/// What is known of a key.
fn local(open: &RefCell<Option<Open>>, key: &Key) -> Result<Local> {
    let open = open.borrow();
    let client = &open.as_ref().ok_or_else(closed)?.client;
    let local = key.bytes().and_then(|key| client.get_local(key));
    local.map_err(|error| thrown(&error))
}

fn owned(key: &Key) -> Result<Vec<u8>> {
    Ok(key.bytes().map_err(|error| thrown(&error))?.to_vec())
}

fn all_owned(keys: &[Key]) -> Result<Vec<Vec<u8>>> {
    keys.iter().map(owned).collect()
}

#[napi]
impl Native {
    /// Connects nothing yet. `take` gets what comes of calls, and short values by `room`.
    #[napi(constructor)]
    pub fn new(
        address: String,
        settings: Settings,
        is_text: bool,
        take: Function<'_, Batch, Unknown<'static>>,
        room: Buffer,
    ) -> Result<Self> {
        let client = Client::connect_with(&address, settings.into()).map_err(|e| thrown(&e))?;
        let outbox = Outbox::new(&take, is_text, room)
            .map_err(|error| napi::Error::new("ERR_NUTHATCH_THREAD", error.reason.clone()))?;
        let outbox = Arc::new(outbox);
        let (sender, calls) = unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(started)?;
        let of_thread = outbox.clone();
        std::thread::Builder::new()
            .name("nuthatch".to_owned())
            .spawn(move || runtime.block_on(serve(calls, of_thread)))
            .map_err(started)?;
        let open = Open {
            client,
            kept: Vec::new(),
            calls: sender,
        };
        Ok(Self {
            open: Rc::new(RefCell::new(Some(open))),
            outbox,
            computations: Computations::default(),
            leavers: Leavers::default(),
            is_text,
        })
    }

    /// Sends on what was kept.
    #[napi]
    pub fn flush(&self) {
        if let Some(open) = self.open.borrow_mut().as_mut() {
            // The thread ends after the client alone.
            let _ = open.calls.send(std::mem::take(&mut open.kept));
        }
    }

    /// Whether somebody waits, so that the process may not end.
    #[napi]
    pub fn hold(&self, env: &Env, somebody_waits: bool) {
        self.outbox.hold(env, somebody_waits);
    }

    /// Ends the thread and its connections.
    #[napi]
    pub fn close(&self) {
        self.open.take();
    }

    /// A function that says what is known of a key without asking: a value, or its length if it is put into `scratch`; undefined
    /// if there is none; null if only a server can say; and false if this key has no answer but what `check` throws. Beside a
    /// method such a function costs half.
    #[napi]
    pub fn reader<'env>(
        &self,
        env: &'env Env,
        scratch: Buffer,
    ) -> napi::Result<Function<'env, Unknown<'env>, Read>> {
        let (open, is_text, scratch) = (self.open.clone(), self.is_text, RefCell::new(scratch));
        env.create_function_from_closure("read", move |call| {
            let key: Key = call.first_arg()?;
            let Ok(local) = local(&open, &key) else {
                return Ok(Read::D(false));
            };
            let bytes = match local {
                Local::Value(bytes) => bytes,
                Local::Missing => {
                    return Ok(Read::A(Value {
                        bytes: None,
                        is_text,
                    }));
                }
                Local::Unknown => return Ok(Read::C(Null)),
            };
            let mut scratch = scratch.borrow_mut();
            if !is_text && let Some(room) = scratch.get_mut(..bytes.len()) {
                room.copy_from_slice(&bytes);
                return Ok(Read::B(bytes.len() as u32));
            }
            let bytes = Some(bytes);
            Ok(Read::A(Value { bytes, is_text }))
        })
    }

    /// Throws what is wrong with a key, or that the client is closed.
    #[napi]
    pub fn check(&self, key: Key) -> Result<()> {
        local(&self.open, &key).map(|_| ())
    }

    #[napi]
    pub fn get(&self, number: u32, key: Key) -> Result<()> {
        let key = owned(&key)?;
        self.keep(number, |client| async move {
            Ok(Answer::Value(client.get(key).await?))
        })
    }

    #[napi]
    pub fn get_item(&self, number: u32, key: Key) -> Result<()> {
        let key = owned(&key)?;
        self.keep(number, |client| async move {
            Ok(Answer::Item(client.get_item(key).await?))
        })
    }

    #[napi]
    pub fn get_and_touch(&self, number: u32, key: Key, seconds: f64) -> Result<()> {
        let (key, time) = (owned(&key)?, lifetime(seconds));
        self.keep(number, |client| async move {
            Ok(Answer::Value(client.get_and_touch(key, time).await?))
        })
    }

    #[napi]
    pub fn get_many(&self, number: u32, keys: Vec<Key>) -> Result<()> {
        let keys = all_owned(&keys)?;
        self.keep(number, |client| async move {
            let values = client.get_many(&keys).await.complete()?;
            Ok(Answer::Values(values))
        })
    }

    #[napi]
    pub fn set(&self, number: u32, key: Key, value: Bytes, seconds: f64) -> Result<()> {
        let (key, keep) = (owned(&key)?, keep(seconds));
        self.keep(number, move |client| async move {
            client.set(key, value.0, keep).await?;
            Ok(Answer::Done)
        })
    }

    #[napi]
    pub fn add(&self, number: u32, key: Key, value: Bytes, seconds: f64) -> Result<()> {
        let (key, keep) = (owned(&key)?, keep(seconds));
        self.keep(number, move |client| async move {
            done(client.add(key, value.0, keep).await)
        })
    }

    #[napi]
    pub fn replace(&self, number: u32, key: Key, value: Bytes, seconds: f64) -> Result<()> {
        let (key, keep) = (owned(&key)?, keep(seconds));
        self.keep(number, move |client| async move {
            done(client.replace(key, value.0, keep).await)
        })
    }

    #[napi]
    pub fn append(&self, number: u32, key: Key, value: Bytes) -> Result<()> {
        let key = owned(&key)?;
        self.keep(number, move |client| async move {
            done(client.append(key, value.0).await)
        })
    }

    #[napi]
    pub fn prepend(&self, number: u32, key: Key, value: Bytes) -> Result<()> {
        let key = owned(&key)?;
        self.keep(number, move |client| async move {
            done(client.prepend(key, value.0).await)
        })
    }

    #[napi]
    pub fn cas(
        &self,
        number: u32,
        key: Key,
        value: Bytes,
        cas: BigInt,
        seconds: f64,
    ) -> Result<()> {
        let (key, keep) = (owned(&key)?, keep(seconds));
        let (_, cas, _) = cas.get_u64();
        self.keep(number, move |client| async move {
            done(client.cas(key, value.0, keep, cas).await)
        })
    }

    #[napi]
    pub fn set_many(
        &self,
        number: u32,
        keys: Vec<Key>,
        values: Vec<Bytes>,
        seconds: f64,
    ) -> Result<()> {
        let keep = keep(seconds);
        let values = values.into_iter().map(|value| value.0);
        let items: Vec<_> = all_owned(&keys)?
            .into_iter()
            .zip(values)
            .map(|(key, value)| (key, value, keep))
            .collect();
        self.keep(number, |client| async move {
            all_done(client.set_many(&items).await, |_| Answer::Done)
        })
    }

    #[napi]
    pub fn count(&self, number: u32, key: Key, delta: BigInt, is_down: bool) -> Result<()> {
        let key = owned(&key)?;
        let (_, delta, _) = delta.get_u64();
        self.keep(number, move |client| async move {
            Ok(Answer::Count(match is_down {
                true => client.decr(key, delta).await?,
                false => client.incr(key, delta).await?,
            }))
        })
    }

    #[napi]
    pub fn touch(&self, number: u32, key: Key, seconds: f64) -> Result<()> {
        let (key, time) = (owned(&key)?, lifetime(seconds));
        self.keep(number, move |client| async move {
            done(client.touch(key, time).await)
        })
    }

    #[napi]
    pub fn delete(&self, number: u32, key: Key) -> Result<()> {
        let key = owned(&key)?;
        self.keep(
            number,
            |client| async move { done(client.delete(key).await) },
        )
    }

    #[napi]
    pub fn delete_many(&self, number: u32, keys: Vec<Key>) -> Result<()> {
        let keys = all_owned(&keys)?;
        self.keep(number, |client| async move {
            all_done(client.delete_many(&keys).await, Answer::Flags)
        })
    }

    #[napi]
    pub fn make_stale(&self, number: u32, key: Key, seconds: f64) -> Result<()> {
        let (key, time) = (owned(&key)?, duration(seconds));
        self.keep(number, move |client| async move {
            done(client.make_stale(key, time).await)
        })
    }

    #[napi]
    pub fn flush_all(&self, number: u32, delay: f64) -> Result<()> {
        let delay = duration(delay);
        self.keep(number, move |client| async move {
            client.flush_all(delay).await?;
            Ok(Answer::Done)
        })
    }

    /// Each server's version.
    #[napi]
    pub fn version(&self, number: u32) -> Result<()> {
        self.keep(number, |client| async move {
            let told = |(server, version): (String, Result<String, Error>)| {
                Ok((server, vec![("version".to_owned(), version?)]))
            };
            let versions = client.version().await.into_iter().map(told);
            Ok(Answer::Told(versions.collect::<Result<_, Error>>()?))
        })
    }

    /// Each server's statistics.
    #[napi]
    pub fn stats(&self, number: u32, kind: String) -> Result<()> {
        self.keep(number, |client| async move {
            let told = client.stats(&kind).await.into_iter();
            let told = told.map(|(server, stats)| Ok((server, stats?)));
            Ok(Answer::Told(told.collect::<Result<_, Error>>()?))
        })
    }

    /// The value under a key, which one of all that ask computes: the call is answered by `Compute`, and `computed` has the value.
    /// `leave` may end it.
    #[napi]
    pub fn get_or_compute(
        &self,
        number: u32,
        key: Key,
        seconds: f64,
        lease: Option<f64>,
        early: Option<f64>,
        may_be_left: bool,
    ) -> Result<()> {
        let key = owned(&key)?;
        let mut how = Compute::new(keep(seconds));
        if let Some(lease) = lease {
            how.lease = duration(lease);
        }
        how.early = early.map(duration);
        let (outbox, computations) = (self.outbox.clone(), self.computations.clone());
        let (leavers, left) = (self.leavers.clone(), may_be_left.then(oneshot::channel));
        let call = async move |client: Client| {
            let ask = async || {
                let (sender, computed) = oneshot::channel();
                lock(&computations).insert(number, sender);
                outbox.put(number, Answer::Compute);
                computed.await.ok().flatten().ok_or(())
            };
            match client.get_or_compute(key, how, ask).await {
                Ok(value) => Ok(Answer::Value(Some(value))),
                Err(ComputeError::Key(error)) => Err(error),
                Err(ComputeError::Computation(())) => Ok(Answer::NotComputed),
            }
        };
        let (leaver, left) = left.unzip();
        self.keep(number, |client| async move {
            let outcome = unless_left(call(client), left).await;
            lock(&leavers).remove(&number);
            outcome
        })?;
        lock(&self.leavers).extend(leaver.map(|leaver| (number, leaver)));
        Ok(())
    }

    /// Ends a call whose caller has left, if it has not ended: it is answered by `NotComputed`.
    #[napi]
    pub fn leave(&self, number: u32) {
        if let Some(leaver) = lock(&self.leavers).remove(&number) {
            // It may be ending now.
            let _ = leaver.send(());
        }
    }

    /// The value of a call that was answered by `Compute`; none, if it could not be computed.
    #[napi]
    pub fn computed(&self, number: u32, value: Option<Bytes>) {
        let waiting = lock(&self.computations).remove(&number);
        if let Some(waiting) = waiting {
            // Nobody may wait any more.
            let _ = waiting.send(value.map(|value| value.0));
        }
    }
}
