//! The client for asyncio: calls go to a thread with tokio's tasks, and what came of them back to the loop.
//!
//! The thread never touches a Python object. It puts what came of a call into a list under the call's number, and wakes the
//! loop by a byte in a socket if the list was empty; the loop takes the whole list. So what many tasks wait for costs one
//! wake-up, and an interpreter that ends waits for nobody.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nuthatch_client::tasks::Client;
use nuthatch_client::{Compute, ComputeError, Error, Item, Keep, Outcome};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

use crate::client::{Stats, compute, each, options, prefixed};
use crate::convert::{delta, duration, expire, value};
use crate::errors::{class, internal, made, not_pickled};

/// What came of a call.
enum Answer {
    Item(Option<Item>),
    Items(Vec<Option<Item>>),
    Value(Vec<u8>),
    Outcome(Outcome),
    Number(Option<u64>),
    Many,
    Told(Vec<(String, Stats)>),
    Failed(Error),
    /// Python has to compute the value first.
    Compute,
    /// It failed to, and knows why.
    NotComputed,
}

/// A request, which owns what it sends.
enum Ask {
    Get(Vec<u8>),
    Touching(Vec<u8>, Option<std::time::Duration>),
    GetMany(Vec<Vec<u8>>, bool),
    Store(Way, Vec<u8>, Vec<u8>, Keep),
    SetMany(Vec<(Vec<u8>, Vec<u8>, Keep)>),
    Cas(Vec<u8>, Vec<u8>, Keep, u64),
    Count(Vec<u8>, u64, bool),
    Touch(Vec<u8>, Option<std::time::Duration>),
    Delete(Vec<u8>),
    DeleteMany(Vec<Vec<u8>>),
    Compute(Vec<u8>, Compute),
    Flush(std::time::Duration),
    Version,
    Stats(String),
}

#[derive(Clone, Copy)]
enum Way {
    Set,
    Add,
    Replace,
    Append,
    Prepend,
}

/// What the loop tells the thread.
enum Word {
    Call(u64, Ask),
    Cancel(u64),
    /// A value that Python has computed; none if it could not.
    Computed(u64, Option<Vec<u8>>),
}

/// What came of calls, for the loop.
struct Outbox {
    answers: Mutex<Vec<(u64, Answer)>>,
    bell: UnixStream,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Vec<(u64, Answer)>> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, number: u64, answer: Answer) {
        let mut answers = self.lock();
        answers.push((number, answer));
        if answers.len() == 1 {
            // A full socket has woken the loop already; a closed one has nobody to wake.
            let _ = (&self.bell).write(&[1]);
        }
    }
}

/// What tasks of the thread share: calls under way, and computations that wait for Python.
#[derive(Default)]
struct Desk {
    calls: HashMap<u64, AbortHandle>,
    computations: HashMap<u64, oneshot::Sender<Option<Vec<u8>>>>,
}

#[derive(Clone)]
struct Thread {
    client: Client,
    outbox: Arc<Outbox>,
    desk: Arc<Mutex<Desk>>,
}

impl Thread {
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves the loop until it closes its side.
    async fn serve(self, mut words: UnboundedReceiver<Vec<Word>>) {
        while let Some(words) = words.recv().await {
            for word in words {
                self.hear(word);
            }
        }
    }

    fn hear(&self, word: Word) {
        match word {
            Word::Call(number, ask) => {
                let thread = self.clone();
                let task = tokio::spawn(async move {
                    let answer = thread.answer(number, ask).await;
                    thread.desk().calls.remove(&number);
                    thread
                        .outbox
                        .put(number, answer.unwrap_or_else(Answer::Failed));
                });
                // The thread's tasks run after this one.
                self.desk().calls.insert(number, task.abort_handle());
            }
            Word::Cancel(number) => {
                let mut desk = self.desk();
                desk.computations.remove(&number);
                if let Some(call) = desk.calls.remove(&number) {
                    call.abort();
                }
            }
            Word::Computed(number, value) => {
                let waiting = self.desk().computations.remove(&number);
                if let Some(waiting) = waiting {
                    let _ = waiting.send(value);
                }
            }
        }
    }

    async fn answer(&self, number: u64, ask: Ask) -> Result<Answer, Error> {
        let client = &self.client;
        Ok(match ask {
            Ask::Get(key) => Answer::Item(client.get_item(key).await?),
            Ask::Touching(key, time) => Answer::Item(client.get_item_and_touch(key, time).await?),
            Ask::GetMany(keys, is_part_enough) => {
                let many = client.get_many_items(&keys).await;
                Answer::Items(if is_part_enough {
                    many.values
                } else {
                    many.complete()?
                })
            }
            Ask::Store(way, key, value, keep) => Answer::Outcome(match way {
                Way::Set => client.set(key, value, keep).await.map(|()| Outcome::Done)?,
                Way::Add => client.add(key, value, keep).await?,
                Way::Replace => client.replace(key, value, keep).await?,
                Way::Append => client.append(key, value).await?,
                Way::Prepend => client.prepend(key, value).await?,
            }),
            Ask::SetMany(items) => {
                client.set_many(&items).await.complete()?;
                Answer::Many
            }
            Ask::Cas(key, value, keep, cas) => {
                Answer::Outcome(client.cas(key, value, keep, cas).await?)
            }
            Ask::Count(key, delta, false) => Answer::Number(client.incr(key, delta).await?),
            Ask::Count(key, delta, true) => Answer::Number(client.decr(key, delta).await?),
            Ask::Touch(key, time) => Answer::Outcome(client.touch(key, time).await?),
            Ask::Delete(key) => Answer::Outcome(client.delete(key).await?),
            Ask::DeleteMany(keys) => {
                client.delete_many(&keys).await.complete()?;
                Answer::Many
            }
            Ask::Compute(key, how) => return self.compute(number, key, how).await,
            Ask::Flush(delay) => {
                client.flush_all(delay).await?;
                Answer::Many
            }
            Ask::Version => {
                let versions = each(client.version().await)?.into_iter();
                let told = |(server, version)| (server, vec![("version".to_owned(), version)]);
                Answer::Told(versions.map(told).collect())
            }
            Ask::Stats(kind) => Answer::Told(each(client.stats(&kind).await)?),
        })
    }

    /// Asks Python to compute, if nobody else does.
    async fn compute(&self, number: u64, key: Vec<u8>, how: Compute) -> Result<Answer, Error> {
        let ask = async || {
            let (sender, computed) = oneshot::channel();
            self.desk().computations.insert(number, sender);
            self.outbox.put(number, Answer::Compute);
            computed.await.ok().flatten().ok_or(())
        };
        match self.client.get_or_compute(key, how, ask).await {
            Ok(value) => Ok(Answer::Value(value)),
            Err(ComputeError::Key(error)) => Err(error),
            Err(ComputeError::Computation(())) => Ok(Answer::NotComputed),
        }
    }
}

/// Calls of servers, for one asyncio loop. `nuthatch.aio.Client` is made of it.
///
/// Each call has a number of the caller's. Calls are kept until `flush` sends them on; `drain` has what came of them.
#[pyclass(frozen, module = "nuthatch._nuthatch")]
pub(crate) struct Tasks {
    process: u32,
    kept: Mutex<Vec<Word>>,
    words: Mutex<Option<UnboundedSender<Vec<Word>>>>,
    outbox: Arc<Outbox>,
    bell: UnixStream,
    prefix: Vec<u8>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tasks {
    fn keep(&self, word: Word) {
        lock(&self.kept).push(word);
    }

    fn key(&self, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        Ok(prefixed(&self.prefix, object)?.into_owned())
    }

    fn keys(&self, keys: &[Bound<'_, PyAny>]) -> PyResult<Vec<Vec<u8>>> {
        keys.iter().map(|key| self.key(key)).collect()
    }
}

#[pymethods]
impl Tasks {
    #[new]
    #[pyo3(signature = (address, timeout=None, connect_timeout=None, login=None, prefix=vec![]))]
    fn new(
        py: Python<'_>,
        address: &str,
        timeout: Option<f64>,
        connect_timeout: Option<f64>,
        login: Option<(String, String)>,
        prefix: Vec<u8>,
    ) -> PyResult<Self> {
        let options = options(timeout, connect_timeout, login)?;
        let client = Client::connect_with(address, options)
            .map_err(|error| made(py, class(&error), error.to_string()))?;
        let (bell, ring) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ring.set_nonblocking(true)?;
        let outbox = Arc::new(Outbox {
            answers: Mutex::default(),
            bell: ring,
        });
        let (sender, receiver) = unbounded_channel();
        let thread = Thread {
            client,
            outbox: Arc::clone(&outbox),
            desk: Arc::default(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let name = std::thread::Builder::new().name("nuthatch-aio".to_owned());
        name.spawn(move || runtime.block_on(thread.serve(receiver)))?;
        Ok(Self {
            process: std::process::id(),
            kept: Mutex::default(),
            words: Mutex::new(Some(sender)),
            outbox,
            bell,
            prefix,
        })
    }

    /// The socket that can be read when there is something to drain.
    fn fileno(&self) -> i32 {
        self.bell.as_raw_fd()
    }

    /// The process in which the thread runs.
    #[getter]
    fn process(&self) -> u32 {
        self.process
    }

    /// Sends on what was kept.
    fn flush(&self) -> PyResult<()> {
        let kept = std::mem::take(&mut *lock(&self.kept));
        let sent = lock(&self.words).as_ref().map(|words| words.send(kept));
        match sent {
            Some(Ok(())) => Ok(()),
            _ => Err(internal("the client is closed")),
        }
    }

    /// What came of calls: tuples of their numbers, a word for what it is, and what it is.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        while let Err(error) = (&self.bell).read(&mut [0; 64]) {
            match error.kind() {
                ErrorKind::Interrupted => {}
                _ => break,
            }
        }
        let answers = std::mem::take(&mut *self.outbox.lock());
        let drained = PyList::empty(py);
        for (number, answer) in answers {
            drained.append(told(py, number, answer)?)?;
        }
        Ok(drained)
    }

    /// Ends the thread and its connections. A child of the process has neither.
    fn close(&self) {
        if self.process == std::process::id() {
            lock(&self.words).take();
        }
    }

    /// A call that was begun is of no more interest.
    fn cancel(&self, number: u64) {
        self.keep(Word::Cancel(number));
    }

    /// The value that Python has computed; none, if it could not.
    #[pyo3(signature = (number, computed))]
    fn computed(&self, number: u64, computed: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let computed = computed.map(|computed| PyResult::Ok(value(computed)?.into_owned()));
        self.keep(Word::Computed(number, computed.transpose()?));
        Ok(())
    }

    fn get(&self, number: u64, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let ask = Ask::Get(self.key(key)?);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn get_and_touch(
        &self,
        number: u64,
        key: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let ask = Ask::Touching(self.key(key)?, expire(time)?);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    /// `is_part_enough`: what servers do not answer is missing.
    fn get_many(
        &self,
        number: u64,
        keys: Vec<Bound<'_, PyAny>>,
        is_part_enough: bool,
    ) -> PyResult<()> {
        let ask = Ask::GetMany(self.keys(&keys)?, is_part_enough);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    /// Stores a value in a way: "set", "add", "replace", "append" or "prepend".
    fn store(
        &self,
        number: u64,
        way: &str,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<()> {
        let way = match way {
            "set" => Way::Set,
            "add" => Way::Add,
            "replace" => Way::Replace,
            "append" => Way::Append,
            "prepend" => Way::Prepend,
            _ => return Err(internal("no such way to store")),
        };
        let keep = Keep::from(expire(time)?).flags(flags);
        let value = crate::convert::value(value)?.into_owned();
        let ask = Ask::Store(way, self.key(key)?, value, keep);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn set_many(
        &self,
        number: u64,
        items: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>, u32)>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let keep = Keep::from(expire(time)?);
        let mut stored = Vec::with_capacity(items.len());
        for (key, object, flags) in &items {
            let value = value(object)?.into_owned();
            stored.push((self.key(key)?, value, keep.flags(*flags)));
        }
        self.keep(Word::Call(number, Ask::SetMany(stored)));
        Ok(())
    }

    fn cas(
        &self,
        number: u64,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        cas: u64,
        time: &Bound<'_, PyAny>,
        flags: u32,
    ) -> PyResult<()> {
        let keep = Keep::from(expire(time)?).flags(flags);
        let value = crate::convert::value(value)?.into_owned();
        let ask = Ask::Cas(self.key(key)?, value, keep, cas);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn count(
        &self,
        number: u64,
        key: &Bound<'_, PyAny>,
        by: &Bound<'_, PyAny>,
        is_down: bool,
    ) -> PyResult<()> {
        let ask = Ask::Count(self.key(key)?, delta(by)?, is_down);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn touch(&self, number: u64, key: &Bound<'_, PyAny>, time: &Bound<'_, PyAny>) -> PyResult<()> {
        let ask = Ask::Touch(self.key(key)?, expire(time)?);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn delete(&self, number: u64, key: &Bound<'_, PyAny>) -> PyResult<()> {
        let ask = Ask::Delete(self.key(key)?);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn delete_many(&self, number: u64, keys: Vec<Bound<'_, PyAny>>) -> PyResult<()> {
        let ask = Ask::DeleteMany(self.keys(&keys)?);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    #[pyo3(signature = (number, key, time, lease=None, early=None))]
    fn get_or_compute(
        &self,
        number: u64,
        key: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
        lease: Option<&Bound<'_, PyAny>>,
        early: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let how = compute(expire(time)?, lease, early)?;
        let ask = Ask::Compute(self.key(key)?, how);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn flush_all(&self, number: u64, delay: f64) -> PyResult<()> {
        let ask = Ask::Flush(duration(delay)?);
        self.keep(Word::Call(number, ask));
        Ok(())
    }

    fn version(&self, number: u64) {
        self.keep(Word::Call(number, Ask::Version));
    }

    fn stats(&self, number: u64, kind: String) -> PyResult<()> {
        if kind.is_empty() || kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            self.keep(Word::Call(number, Ask::Stats(kind)));
            return Ok(());
        }
        Err(PyValueError::new_err("not a kind of statistics"))
    }

    fn __reduce__(&self) -> PyResult<()> {
        Err(not_pickled("client"))
    }
}

/// An answer as the loop takes it.
fn told(py: Python<'_>, number: u64, answer: Answer) -> PyResult<Bound<'_, PyTuple>> {
    let item = |item: Item| (PyBytes::new(py, &item.value), item.flags, item.cas);
    match answer {
        Answer::Item(found) => (number, "done", found.map(item)).into_pyobject(py),
        Answer::Items(found) => {
            let items: Vec<_> = found.into_iter().map(|found| found.map(item)).collect();
            (number, "done", items).into_pyobject(py)
        }
        Answer::Value(value) => (number, "done", PyBytes::new(py, &value)).into_pyobject(py),
        Answer::Outcome(Outcome::Done) => (number, "done", true).into_pyobject(py),
        Answer::Outcome(Outcome::NotFound) => (number, "done", py.None()).into_pyobject(py),
        Answer::Outcome(_) => (number, "done", false).into_pyobject(py),
        Answer::Number(found) => (number, "done", found).into_pyobject(py),
        Answer::Many => (number, "done", true).into_pyobject(py),
        Answer::Told(servers) => (number, "done", servers).into_pyobject(py),
        Answer::Failed(error) => {
            let exception = made(py, class(&error), error.to_string());
            (number, "failed", exception.into_value(py)).into_pyobject(py)
        }
        Answer::Compute => (number, "compute", py.None()).into_pyobject(py),
        Answer::NotComputed => (number, "not computed", py.None()).into_pyobject(py),
    }
}
