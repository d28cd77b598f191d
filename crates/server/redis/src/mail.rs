//! What a connection has that is sent something unasked: a mailbox, its subscriptions, and the keys that it tracks.

use std::sync::Arc;

use nuthatch_channels::Call;
use nuthatch_channels::bell::Bell;
use nuthatch_channels::channels::Channels;
use nuthatch_channels::mailbox::Mailbox;
use nuthatch_channels::subscriptions::Subscriptions;
use nuthatch_channels::tracking::{Tracker, Tracking};
use nuthatch_resp::Version;
use nuthatch_state::server_state::ServerState;
use nuthatch_state::telemetry::connections::Info;
use nuthatch_state::worker::SharedWorker;

/// What a connection has that is sent something unasked.
pub struct Mail {
    pub mailbox: Arc<Mailbox>,
    pub subscriptions: Subscriptions,
    /// If its client tracks keys.
    pub tracked: Option<Tracked>,
    channels: Arc<Channels>,
}

impl Drop for Mail {
    fn drop(&mut self) {
        // Others may keep it a while. Their redirections are broken when the connection is closed.
        self.mailbox.close();
    }
}

impl Mail {
    /// That of a connection with this id at this worker.
    pub fn new(
        shared: &ServerState,
        worker: &Arc<SharedWorker>,
        id: usize,
        info: &Info,
        version: Version,
    ) -> Self {
        let bell = Bell::new(Arc::clone(worker) as Arc<dyn Call>, id);
        let bounds = Arc::clone(&shared.mail_bounds);
        let mailbox = Mailbox::new(info.serial(), bell, bounds, version);
        let channels = Arc::clone(&shared.channels);
        shared.tracking.enter(&mailbox);
        Self {
            subscriptions: Subscriptions::new(Arc::clone(&channels), Arc::clone(&mailbox)),
            mailbox,
            tracked: None,
            channels,
        }
    }

    /// RESET: it is as if new. The mailbox stays, because others may have redirected to it.
    pub fn reset(&mut self) {
        let mailbox = Arc::clone(&self.mailbox);
        self.subscriptions = Subscriptions::new(Arc::clone(&self.channels), mailbox);
        self.tracked = None;
        self.mailbox.set_subscribed(false);
        self.mailbox.set_version(Version::default());
    }

    /// Bytes of memory.
    pub fn memory(&self) -> usize {
        let tracked = self.tracked.as_ref().map_or(0, |it| it.memory);
        size_of::<Mailbox>() + self.mailbox.memory() + self.subscriptions.memory() + tracked
    }
}

/// The tracking of a connection. Dropping it ends it.
pub struct Tracked {
    pub tracker: Arc<Tracker>,
    pub tracking: Arc<Tracking>,
    /// Bytes of memory of its prefixes.
    pub memory: usize,
    /// CLIENT CACHING: of the next command, or the next transaction.
    pub announced: bool,
    /// The command under way is that CLIENT CACHING.
    pub announces: bool,
}

impl Tracked {
    /// True if what the command under way reads is tracked.
    pub fn is_wanted(&self) -> bool {
        let options = self.tracker.options;
        !options.broadcast
            && match (options.opt_in, options.opt_out) {
                (true, _) => self.announced,
                (_, true) => !self.announced,
                _ => true,
            }
    }
}

impl Drop for Tracked {
    fn drop(&mut self) {
        self.tracking.end(&self.tracker);
    }
}
