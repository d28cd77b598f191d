//! A session: a thread's way to all servers.
//!
//! * [`batch`]: a batch of requests, direct ones first, the others by messages
//! * [`direct`]: reading and writing blocks
//! * [`active`]: messages, and waiting for their replies
//! * [`directory`], [`selector`]: where pairs were; which way is cheaper

mod active;
mod batch;
mod direct;
mod directory;
mod manage;
mod selector;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use nuthatch_engine::Time;
use nuthatch_fabric::{Address, Fabric};

use crate::checksum::Checksum;
use crate::config::Config;
use crate::control::{self, Control};
use crate::layout::Layout;
use crate::ring::{Receiver, Sender};
use crate::stats::{ClientCounts, ClientStats};
use batch::Wave;
use directory::Directory;
use selector::Selector;

/// Batches after which counts are added to those of the PE: a look at shared memory takes as long as a Get.
const BATCHES_COUNTED: u32 = 256;

/// What a session has to do with one server.
struct Channel {
    sender: Sender,
    receiver: Receiver,
    /// Requests of the wave that are not answered, in order.
    waiting: VecDeque<usize>,
    selector: Selector,
    /// Its memory can be loaded and stored.
    reachable: bool,
    gone: bool,
}

/// A session.
pub struct Client<F: Fabric> {
    fabric: Arc<F>,
    layout: Arc<Layout>,
    config: Config,
    session: usize,
    checksum: Checksum,
    directory: Directory,
    channels: Vec<Channel>,
    /// Odd while it may be at blocks.
    busy: u64,
    counts: ClientStats,
    batches: u32,
    totals: Arc<ClientCounts>,
    wave: Wave,
    /// Words of a message that is made.
    message: Vec<u64>,
    /// Words of a message that was read.
    reply: Vec<u64>,
    /// Words of a block that is written.
    block: Vec<u64>,
}

impl<F: Fabric> Client<F> {
    /// The `number`th session of this PE, in memory that is allocated and zero.
    pub fn new(
        fabric: Arc<F>,
        layout: Arc<Layout>,
        config: &Config,
        number: usize,
        totals: Arc<ClientCounts>,
    ) -> Self {
        let session = fabric.pe() * layout.sessions + number;
        let channel = |server| Channel {
            sender: Sender::new(
                server,
                layout.requests(session),
                layout.requests_staged(session, server),
            ),
            receiver: Receiver::new(
                server,
                layout.replies(session, server),
                layout.replies_staged(session),
            ),
            waiting: VecDeque::new(),
            selector: Selector::new(config.operations),
            reachable: fabric.direct(server, layout.bucket(0), 1).is_some(),
            gone: false,
        };
        Self {
            channels: (0..layout.servers).map(channel).collect(),
            checksum: Checksum::seeded(!config.seed),
            directory: Directory::new(config.directory),
            config: config.clone(),
            session,
            busy: 0,
            counts: ClientStats::default(),
            batches: 0,
            totals,
            wave: Wave::default(),
            message: Vec::new(),
            reply: Vec::new(),
            block: Vec::new(),
            fabric,
            layout,
        }
    }

    /// What a server told last.
    #[inline]
    fn control(&self, server: usize) -> Control {
        let at = self.layout.control(server);
        Control::read(self.fabric.local(at, control::WORDS))
    }

    /// The generation of what is stored at a server now.
    fn generation(&self, server: usize, now: Time) -> u16 {
        self.control(server).flushes.at(now)
    }

    fn busy_at(&self) -> Address {
        self.layout.busy(self.session)
    }

    /// From here on this session may be at blocks that it knows.
    #[inline]
    fn enter(&mut self) {
        self.store_busy();
        // SeqCst: pairs with the quiet between a server's Put of a page's count and its fetch of this word.
        fence(Ordering::SeqCst);
    }

    /// It is at no block any more: what it read is there, and what it wrote has arrived.
    #[inline]
    fn exit(&mut self) {
        self.store_busy();
    }

    fn store_busy(&mut self) {
        self.busy += 1;
        // Release: what was read lies before it.
        self.fabric.local(self.busy_at(), 1)[0].store(self.busy, Ordering::Release);
    }

    /// Low bits of how often a page changed its class, as its server told.
    #[inline]
    fn page_changes(&self, server: usize, page: usize) -> u16 {
        let at = self.layout.generations(server).plus(page);
        // Acquire: behind the fence in `enter`.
        self.fabric.local(at, 1)[0].load(Ordering::Acquire) as u16
    }

    /// Now and then, adds what was counted to the PE's sums.
    #[inline]
    fn count_batch(&mut self) {
        self.batches = self.batches.wrapping_add(1);
        if self.batches.is_multiple_of(BATCHES_COUNTED) {
            self.settle_counts();
        }
    }

    /// Adds what was counted to the PE's sums.
    pub fn settle_counts(&mut self) {
        self.totals.add(&self.counts);
        self.counts = ClientStats::default();
    }
}
