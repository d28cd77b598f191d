//! One connection for tasks. One task sends what waits, and one reads.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::sync::Mutex;
use tokio::task::{AbortHandle, yield_now};
use tokio::time::timeout_at;

use crate::attempts::Ends;
use crate::call::{Call, Waiter};
use crate::connection::{Outgoing, Sending};
use crate::input::{Input, said};
use crate::options::WhenFull;
use crate::queue::Queue;
use crate::transport::Transport;
use crate::wire::{Reply, Request};
use crate::{CarriedOut, Error, Options};

/// How often the task that sends goes on before it lets others have their turn.
const ROUNDS: usize = 16;

/// A connection. Its tasks end with it.
#[derive(Debug)]
pub(crate) struct Connection {
    shared: Arc<Shared>,
    tasks: [AbortHandle; 2],
}

#[derive(Debug)]
struct Shared {
    queue: Queue,
    transport: Transport,
    options: Arc<Options>,
    /// Held by the call that is next to find room. The others stand in line behind it: so one is woken for each that enters, and
    /// a call of many requests is not overtaken by single ones for ever.
    line: Mutex<()>,
}

/// Held by a task of a connection. Whatever ends the task, also its runtime's end, ends the connection.
#[derive(Debug)]
struct Held(Arc<Shared>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.queue.die("the connection's runtime has ended");
    }
}

/// A call that waits for its replies. It is abandoned if nobody waits for them to the end.
#[derive(Debug)]
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    call: Arc<Call>,
    is_through: bool,
}

impl Ends for Connection {
    fn has_ended(&self) -> bool {
        self.shared.queue.lock().is_dead()
    }

    fn end(&self, reason: &str) {
        self.end(reason);
    }

    fn has_answered(&self) -> bool {
        self.shared.queue.lock().has_answered()
    }

    fn was_late(&self) -> bool {
        self.shared.queue.lock().was_late()
    }
}

impl Connection {
    /// It has to be called in a runtime with time and I/O.
    pub fn new(transport: Transport, options: Arc<Options>) -> Self {
        let shared = Arc::new(Shared {
            queue: Queue::new(options.requests_max, options.bytes_max),
            transport,
            options,
            line: Mutex::default(),
        });
        let tasks = [
            tokio::spawn(send(Held(shared.clone()))).abort_handle(),
            tokio::spawn(receive(Held(shared.clone()))).abort_handle(),
        ];
        Self { shared, tasks }
    }

    /// Ends it: what came can be no reply.
    pub fn end(&self, reason: &str) {
        self.shared.queue.die(reason);
    }

    /// Adds a call, which is sent with what else waits.
    pub async fn start(
        &self,
        requests: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Ticket, Error> {
        let carried_out = CarriedOut::No;
        let entered = timeout_at(deadline.into(), self.enter(requests)).await;
        let entered = entered.unwrap_or(Err(Error::Timeout { carried_out }));
        Ok(Ticket {
            call: entered.inspect_err(|_| self.shared.end_if_late())?,
            shared: self.shared.clone(),
            is_through: false,
        })
    }

    /// Finds room for a call.
    async fn enter(&self, requests: &[Request<'_>]) -> Result<Arc<Call>, Error> {
        let Shared { queue, line, .. } = &*self.shared;
        let waits = self.shared.options.when_full == WhenFull::Wait;
        let _turn = if waits { Some(line.lock().await) } else { None };
        poll_fn(|context| {
            let mut state = queue.lock();
            match queue
                .enter(&mut state, requests, Instant::now())
                .transpose()
            {
                Some(entered) => Poll::Ready(entered),
                None if !waits => Poll::Ready(Err(Error::Full)),
                None => {
                    state.wait_first_for_room(Waiter::Task(context.waker().clone()));
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.end("the connection was dropped");
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

impl Ticket {
    /// Waits for the call's replies.
    pub async fn finish(mut self, deadline: Instant) -> Result<Vec<Reply>, Error> {
        let finished = |context: &mut Context<'_>| {
            let waiter = Waiter::Task(context.waker().clone());
            self.call
                .take_or_wait(waiter)
                .map_or(Poll::Pending, Poll::Ready)
        };
        let carried_out = CarriedOut::Maybe;
        let Ok(outcome) = timeout_at(deadline.into(), poll_fn(finished)).await else {
            return Err(Error::Timeout { carried_out });
        };
        self.is_through = true;
        outcome
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if !self.is_through {
            self.shared.queue.abandon(&self.call);
            self.shared.end_if_late();
        }
    }
}

/// Sends what waits, again and again, until the connection is over.
async fn send(held: Held) {
    let shared = &*held.0;
    let mut outgoing = Outgoing::default();
    while shared.has_output().await {
        // Tasks that are ready to run add theirs first. When there are none, this takes no time.
        yield_now().await;
        if let Err(error) = send_all(shared, &mut outgoing).await {
            shared.queue.die(&said(error));
        }
    }
}

async fn send_all(shared: &Shared, outgoing: &mut Outgoing) -> io::Result<()> {
    loop {
        match outgoing.send(&shared.transport, &shared.queue, ROUNDS)? {
            Sending::Through => return Ok(()),
            Sending::More => yield_now().await,
            Sending::Blocked => shared.transport.socket().writable().await?,
        }
    }
}

/// Reads and hands out, until the connection is over.
async fn receive(held: Held) {
    let shared = &*held.0;
    let mut input = Input::new(shared.options.value_max);
    let reason = loop {
        if let Err(error) = shared.transport.socket().readable().await {
            break said(error);
        }
        if let Err(reason) = input.receive(&shared.transport, &shared.queue) {
            break reason;
        }
        // The rest of a handshake, say, for which the socket had no room.
        while let Ok(false) = shared.transport.flush() {
            if shared.transport.socket().writable().await.is_err() {
                break;
            }
        }
    };
    shared.queue.die(&reason);
}

impl Shared {
    /// Ends the connection if its oldest reply is too late. Who fails asks for that: else nobody would notice while there is no
    /// room.
    fn end_if_late(&self) {
        if let Some(reason) = self.queue.too_late(&self.options) {
            self.queue.die(&reason);
        }
    }

    /// Waits for something to be sent. False: the connection is over.
    async fn has_output(&self) -> bool {
        poll_fn(|context| {
            let mut state = self.queue.lock();
            if state.is_dead() {
                return Poll::Ready(false);
            }
            if state.has_output() {
                return Poll::Ready(true);
            }
            state.wake_sender(context.waker());
            Poll::Pending
        })
        .await
    }
}
