//! What came of calls, on its way from the thread to JavaScript.
//!
//! The thread never touches an object of JavaScript. It puts what came of a call into a list under the call's number, and wakes
//! the loop if the list was empty; the loop takes the whole list. So what many promises wait for costs one wake-up.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use napi::bindgen_prelude::{Buffer, Env, Function, Unknown};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Status, sys};
use nuthatch_client::{Error, Item};

/// What came of a call.
pub(crate) enum Answer {
    Done,
    Flag(bool),
    Flags(Vec<bool>),
    Value(Option<Vec<u8>>),
    Values(Vec<Option<Vec<u8>>>),
    Item(Option<Item>),
    Count(Option<u64>),
    /// Each server's address and what it says of itself.
    Told(Vec<(String, Vec<(String, String)>)>),
    Failed(Error),
    /// A change of many keys, of which some may have been made.
    FailedInPart(Error),
    /// JavaScript has to compute the value first.
    Compute,
    /// It failed to, and knows why.
    NotComputed,
}

/// Answers by the numbers of their calls.
pub struct Batch {
    pub(crate) answers: Vec<(u32, Answer)>,
    /// Values are strings, else buffers.
    pub(crate) is_text: bool,
    /// Where the bytes of short values are put, one behind the other.
    pub(crate) room: Rc<RefCell<Buffer>>,
}

type Waiting = Arc<Mutex<Vec<(u32, Answer)>>>;

/// It does not keep the loop alive, but while somebody waits (`hold`).
type Bell = ThreadsafeFunction<(), Unknown<'static>, Batch, Status, false, true>;

/// Answers that the loop has not taken.
pub(crate) struct Outbox {
    waiting: Waiting,
    bell: Bell,
}

fn lock(waiting: &Waiting) -> MutexGuard<'_, Vec<(u32, Answer)>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Outbox {
    /// `take` gets each batch, and reads what is in `room` before it returns.
    pub fn new(
        take: &Function<'_, Batch, Unknown<'static>>,
        is_text: bool,
        room: Buffer,
    ) -> napi::Result<Self> {
        let room = Rc::new(RefCell::new(room));
        let waiting = Waiting::default();
        let taken = waiting.clone();
        let bell = take
            .build_threadsafe_function()
            .weak::<true>()
            .build_callback(move |_| {
                let answers = std::mem::take(&mut *lock(&taken));
                let room = room.clone();
                Ok(Batch {
                    answers,
                    is_text,
                    room,
                })
            })?;
        Ok(Self { waiting, bell })
    }

    /// Puts an answer, and wakes the loop when the tasks have run that are ready now, so that it takes what they put as well. It is
    /// called in the thread's runtime.
    pub fn put(self: &Arc<Self>, number: u32, answer: Answer) {
        let mut waiting = lock(&self.waiting);
        waiting.push((number, answer));
        if waiting.len() == 1 {
            let outbox = self.clone();
            tokio::spawn(async move { outbox.ring() });
        }
    }

    fn ring(&self) {
        // A loop that has ended has nobody to wake.
        let _ = self.bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }

    /// Whether somebody waits, so that the process may not end.
    pub fn hold(&self, env: &Env, somebody_waits: bool) {
        let bell = self.bell.raw();
        // SAFETY: the environment is that of the running call, in whose thread the function was made; and the function lives at
        // least as long as `self.bell`.
        // It fails only for a function that is closing: then there is no loop to hold.
        let _ = unsafe {
            match somebody_waits {
                true => sys::napi_ref_threadsafe_function(env.raw(), bell),
                false => sys::napi_unref_threadsafe_function(env.raw(), bell),
            }
        };
    }
}
