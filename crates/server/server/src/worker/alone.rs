//! A worker without a server around it, for tests: whoever holds it says when it has a turn.

use std::io;
use std::num::NonZeroUsize;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use mio::{Events, Poll, Waker};
use nuthatch_engine::AnyEngine;
use nuthatch_settings::config::{Config, Protocol};
use nuthatch_state::server_state::ServerState;
use nuthatch_state::shutdown::Shutdown;
use nuthatch_state::stream::{Socket, Stream};
use nuthatch_state::telemetry::connections::Peer;
use nuthatch_state::telemetry::sizes::SizeClasses;
use nuthatch_state::worker::{Arrival, SharedWorker};

use super::{WAKE, Worker};
use crate::datagrams::DatagramSocket;

/// The worker, and what it shares with those that a server would have.
pub(crate) struct Alone {
    pub(crate) shared: Arc<ServerState>,
    own: Arc<SharedWorker>,
    worker: Worker,
    events: Events,
}

impl Alone {
    /// With these settings, but for listeners and threads.
    pub(crate) fn start(
        config: Config,
        engine: Arc<AnyEngine>,
        datagram_sockets: Vec<DatagramSocket>,
    ) -> io::Result<Self> {
        let config = Config {
            listeners: Vec::new(),
            threads: NonZeroUsize::MIN,
            ..config
        };
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKE)?);
        let own = Arc::new(SharedWorker::new(waker, SizeClasses::of(&engine)));
        let workers = vec![Arc::clone(&own)];
        let shared = ServerState::new(config, engine, Vec::new(), workers, Shutdown::default());
        let shared = Arc::new(shared);
        let (given, its) = (Arc::clone(&shared), Arc::clone(&own));
        let mut worker = Worker::new(given, its, poll, datagram_sockets);
        worker.register_datagrams()?;
        Ok(Self {
            shared,
            own,
            worker,
            events: Events::with_capacity(64),
        })
    }

    /// A client. Its socket does not block.
    pub(crate) fn connect(&self, protocol: Protocol) -> io::Result<UnixStream> {
        let (client, server) = UnixStream::pair()?;
        client.set_nonblocking(true)?;
        server.set_nonblocking(true)?;
        let socket = Socket::Unix(mio::net::UnixStream::from_std(server));
        let registry = &self.shared.telemetry.registry;
        self.own.leave(Arrival {
            stream: Stream::new(socket, None),
            info: registry.enter(Peer::Unix, None, 0, self.shared.clock.now()),
            seat: None,
            protocol,
            login: false,
        });
        Ok(client)
    }

    /// Gives the worker a turn. True if there was something to do.
    pub(crate) fn turn(&mut self) -> io::Result<bool> {
        self.worker.turn_now(&mut self.events)
    }

    /// Bytes of buffers that its connections hold.
    pub(crate) fn memory(&self) -> usize {
        self.worker.memory()
    }
}
