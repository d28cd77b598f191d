//! The way to one server, for tasks: a connection, and another one after it.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Instant;

use tokio::net::{TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::task::spawn_blocking;
use tokio::time::timeout_at;

use super::connection::{Connection, Ticket};
use super::task_ring::TaskRing;
use crate::Error;
use crate::address::Endpoint;
use crate::attempts::Step;
use crate::input::said;
use crate::memory::View;
use crate::site::Site;
use crate::transport::Socket;
use crate::way::{Connected, State, Way, may_be_repeated};
use crate::wire::{Reply, Request};

/// The way to one server, for tasks.
pub(crate) type Link = Way<Connection, Notify>;

/// Somebody connects. If the task is dropped meanwhile, somebody else may.
struct Connecting<'a> {
    state: &'a State<Connection, Notify>,
    is_through: bool,
}

impl Drop for Connecting<'_> {
    fn drop(&mut self) {
        if !self.is_through {
            self.state.attempts().gave_up();
        }
        self.state.changed.notify_waiters();
    }
}

impl Link {
    /// Sends requests and waits for their replies. What the server surely has not carried out, and what changes nothing, is sent
    /// once more if the connection ends.
    pub async fn call(
        &self,
        requests: &[Request<'_>],
        mut deadline: Instant,
    ) -> Result<Vec<Reply>, Error> {
        let started = self.start(requests, &mut deadline).await;
        self.finish(started, requests, &mut deadline).await
    }

    /// The first half of [`Link::call`]: it sends them. If it has to connect, the deadline is put off by the time that takes.
    pub async fn start(
        &self,
        requests: &[Request<'_>],
        deadline: &mut Instant,
    ) -> Result<Ticket, Error> {
        let connection = self.connection(deadline).await;
        Self::send(connection, requests, *deadline).await
    }

    /// The same by a connection that was asked for before.
    pub async fn send(
        connection: Result<Arc<Connection>, Error>,
        requests: &[Request<'_>],
        deadline: Instant,
    ) -> Result<Ticket, Error> {
        connection?.start(requests, deadline).await
    }

    /// The second half: it waits for the replies.
    pub async fn finish(
        &self,
        started: Result<Ticket, Error>,
        requests: &[Request<'_>],
        deadline: &mut Instant,
    ) -> Result<Vec<Reply>, Error> {
        let outcome = match started {
            Ok(ticket) => ticket.finish(*deadline).await,
            Err(error) => Err(error),
        };
        match outcome {
            Err(error) if may_be_repeated(&error, requests) => {
                let ticket = self.start(requests, deadline).await?;
                ticket.finish(*deadline).await
            }
            outcome => outcome,
        }
    }

    /// The present connection, or a new one.
    pub async fn connection(&self, deadline: &mut Instant) -> Result<Arc<Connection>, Error> {
        let state = self.state();
        loop {
            let mut changed = std::pin::pin!(state.changed.notified());
            // From here on no change is missed.
            changed.as_mut().enable();
            let step = state.attempts().step(self.site());
            let patience_ends = match step {
                Step::Use(connection) => {
                    self.look_for_memory(&connection).await;
                    return Ok(connection);
                }
                Step::Fail(error) => return Err(error),
                // A task of its own would belong to a runtime that may not go on, and to wait for this one holds up no thread.
                Step::Connect | Step::ConnectAside => break,
                Step::Wait(end) => end,
            };
            let end = patience_ends.map_or(*deadline, |end| end.min(*deadline));
            if timeout_at(end.into(), changed).await.is_err() {
                let attempts = state.attempts();
                return Err(attempts.no_connection_yet(self.site(), patience_ends.is_some()));
            }
        }
        let mut connecting = Connecting {
            state,
            is_through: false,
        };
        let began = Instant::now();
        let connected = timeout_at(self.site().connect_deadline().into(), self.connect()).await;
        *deadline += began.elapsed();
        let connected = connected.unwrap_or_else(|_| Err("no connection in time".to_owned()));
        connecting.is_through = true;
        state.conclude(self.site(), connected)
    }

    /// If the server's memory was not to be had when the connection was made, asks for it again now and then.
    async fn look_for_memory(&self, connection: &Arc<Connection>) {
        // Without it the connection serves as well.
        if self.wants_memory()
            && let Some(view) = self.view().await
        {
            self.found_memory(connection, view);
        }
    }

    /// The server's memory, if it gives that to this process.
    async fn view(&self) -> Option<Arc<View>> {
        let path = self.site().endpoint.shared()?.to_owned();
        let patience = self.site().options.connect_timeout;
        let view = spawn_blocking(move || View::connect(&path, patience)).await;
        view.ok()?.ok().map(Arc::new)
    }

    /// A connection, and the memory if there is one.
    async fn connect(&self) -> Result<Connected<Connection>, String> {
        let site = self.site();
        let Some(path) = site.endpoint.shared() else {
            return Ok((self.connect_to(&site.endpoint).await?, None));
        };
        let (path, patience) = (path.to_owned(), site.options.connect_timeout);
        let made = spawn_blocking(move || View::connect_with_ring(&path, patience)).await;
        let made = made.unwrap_or_else(|error| Err(error.to_string()));
        match (made, &site.or) {
            (Ok((view, ring)), _) => {
                let ring = TaskRing::new(ring).map_err(said)?;
                let connection = self.greet(Socket::TaskRing(ring)).await?;
                Ok((connection, Some(Arc::new(view))))
            }
            // Memory last: that of an earlier server than the connection's would not show what is stored through that.
            (Err(_), Some(or)) => Ok((self.connect_to(or).await?, self.view().await)),
            (Err(refusal), None) => Err(refusal),
        }
    }

    async fn connect_to(&self, endpoint: &Endpoint) -> Result<Arc<Connection>, String> {
        let socket = match endpoint {
            Endpoint::Tcp { host, port } => {
                let stream = TcpStream::connect((host.as_str(), *port)).await;
                stream.map(Socket::TaskTcp)
            }
            Endpoint::Unix(path) => UnixStream::connect(path).await.map(Socket::TaskUnix),
            // It comes with the server's memory.
            Endpoint::Shared(_) => Err(ErrorKind::Unsupported.into()),
        };
        self.greet(socket.map_err(said)?).await
    }

    /// A connection by this socket, on which the server has answered.
    async fn greet(&self, socket: Socket) -> Result<Arc<Connection>, String> {
        let site = self.site();
        let deadline = site.connect_deadline();
        let connection = Connection::new(site.transport(socket)?, site.options.clone());
        for greeting in site.greetings() {
            let requests = std::slice::from_ref(&greeting);
            let replies = match connection.start(requests, deadline).await {
                Ok(ticket) => ticket.finish(deadline).await,
                Err(error) => Err(error),
            };
            Site::welcome(&greeting, replies)?;
        }
        Ok(Arc::new(connection))
    }
}
