//! A session: a thread's way to all servers.
//!
//! * [`batch`]: a batch of requests, direct ones first, the others by messages
//! * [`direct`]: reading and writing blocks
//! * [`active`]: messages, and waiting for their replies
//! * [`directory`], [`selector`]: where pairs were; which way is cheaper

mod active;
mod batch;
mod direct;
pub(crate) mod directory;
#[cfg(test)]
mod elsewhere;
mod manage;
#[cfg(loom)]
mod modelled;
mod selector;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use nuthatch_base::sync::quiescence::Visitor;
use nuthatch_engine::Time;
use nuthatch_engine::counters::Counters;
use nuthatch_fabric::{Address, Fabric};

use crate::bars::{self, Bars};
use crate::checksum::Checksum;
use crate::config::{Clocks, Config};
use crate::control::{self, Control};
use crate::layout::Layout;
use crate::poll::{begin_poll, polled};
use crate::report::RequestCounts;
use crate::ring::{Receiver, Sender};
use crate::shift::Shift;
use crate::stats::{COUNTS, Count};
use batch::Wave;
use directory::Directory;
pub use selector::Kind;
use selector::Selector;

/// A session's state for one server.
struct Channel {
    sender: Sender,
    receiver: Receiver,
    /// Requests of the wave that are not answered, in order.
    waiting: VecDeque<usize>,
    selector: Selector,
    /// Its memory can be loaded and stored.
    reachable: bool,
    gone: bool,
    /// Its sweep has come round in the present maintenance, and is not asked for again before those of the others have.
    swept: bool,
    /// The session has reported that words sent there, or received from there, are no message.
    complained: bool,
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
    /// Loads see any writer's words in the order of its fences: every PE's memory can be loaded and stored, so no words
    /// come over a network, and the library's Puts were verified to be seen in order.
    in_order: bool,
    /// Inside while the session may access blocks.
    visitor: Visitor,
    /// Words of a key that was got beside a lock have perhaps not come yet.
    key_is_coming: bool,
    /// From the callers' clock to the store's; nothing before the session has polled that.
    shift: Option<Shift>,
    /// When the present poll of the store's clock began, by the callers' clock, if one is under way.
    clock_poll: Option<Time>,
    /// When the last completed poll began, and the time that it saw.
    clock_before: Option<(Time, Time)>,
    counts: Arc<Counters<COUNTS>>,
    requests: RequestCounts,
    wave: Wave,
    /// Words of a message that is being made.
    message: Vec<u64>,
    /// Words of a message that was read.
    reply: Vec<u64>,
    /// Words of a block that is read or written.
    block: Vec<u64>,
}

impl<F: Fabric> Client<F> {
    /// The `number`th session of this PE, in memory that is allocated and zero.
    pub fn new(
        fabric: Arc<F>,
        layout: Arc<Layout>,
        config: &Config,
        number: usize,
        counts: Arc<Counters<COUNTS>>,
    ) -> Self {
        let session = fabric.pe() * layout.sessions + number;
        let reaches = |pe| fabric.direct(pe, layout.bucket(0), 1).is_some();
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
            reachable: reaches(server),
            gone: false,
            swept: false,
            complained: false,
        };
        Self {
            channels: (0..layout.servers).map(channel).collect(),
            in_order: fabric.verified().ordered_for_loads && (0..fabric.pes()).all(reaches),
            checksum: Checksum::seeded(!config.seed),
            directory: Directory::new(config.directory),
            config: config.clone(),
            session,
            visitor: Visitor::default(),
            key_is_coming: false,
            shift: None,
            clock_poll: None,
            clock_before: None,
            counts,
            requests: (0..layout.servers).map(|_| AtomicU64::new(0)).collect(),
            wave: Wave::default(),
            message: Vec::new(),
            reply: Vec::new(),
            block: Vec::new(),
            fabric,
            layout,
        }
    }

    /// The control words that a server told last.
    #[inline]
    fn control(&self, server: usize) -> Control {
        let at = self.layout.control(server);
        Control::read(self.fabric.local(at, control::WORDS))
    }

    /// The expiration bars that a server told last.
    #[inline]
    fn bars(&self, server: usize) -> Bars<'_> {
        Bars::new(self.fabric.local(self.layout.bars(server), bars::WORDS))
    }

    /// The generation of pairs that are stored at a server, as the server told last.
    fn generation(&self, server: usize) -> u16 {
        self.control(server).flushes.generation
    }

    /// Brings the shift up to date with the clock that the first server tells; waits until the server has told it once.
    pub fn shift(&mut self, now: Time) -> Shift {
        if self.config.clocks == Clocks::Callers {
            return Shift::default();
        }
        match self.shift {
            Some(shift) => {
                let told = self.told_time();
                if shift.is_short(now, told) {
                    self.shift = Some(Shift::between(now, told));
                } else if shift.is_long(now, told) {
                    self.poll_clock(shift, now);
                }
            }
            None => self.shift = self.first_shift(now),
        }
        self.shift.unwrap_or_default()
    }

    /// The first server's tick in this PE's memory may be old: so its own word is got. Nothing if the server is gone.
    #[cold]
    fn first_shift(&mut self, now: Time) -> Option<Shift> {
        let mut attempt = 0;
        while self.told_time() == Time(0) {
            self.pause(0, attempt).ok()?;
            attempt = attempt.wrapping_add(1);
        }
        let mut word = [0];
        self.fabric.get(0, self.clock_at(), &mut word).ok()?;
        // The server puts its words to itself as to any PE, one after the other.
        let clock = Time(word[0] as u32).max(self.told_time());
        Some(Shift::between(now, clock))
    }

    /// The store's clock seems to be less far ahead than by the shift, or the tick in this PE's memory is old. Polls
    /// the clock, without waiting, since the server's link may be cut.
    #[cold]
    fn poll_clock(&mut self, shift: Shift, now: Time) {
        let into = self.layout.clock_seen(self.session);
        if self.clock_poll.is_none() && begin_poll(&*self.fabric, 0, self.clock_at(), into).is_ok()
        {
            self.clock_poll = Some(now);
        }
        if let Some(began) = self.clock_poll
            && let Some(word) = polled(&*self.fabric, into)
        {
            self.clock_poll = None;
            let clock = Time(word as u32);
            // A server that is kept from its core tells nothing while time goes on. But a clock that shows a later
            // moment than at the poll before has reached it since: so it was no further ahead at that poll.
            if let Some((before, was)) = self.clock_before.replace((began, clock))
                && clock > was
                && shift.is_long(before, clock)
            {
                self.shift = Some(Shift::between(before, clock));
            }
        }
    }

    #[inline]
    fn told_time(&self) -> Time {
        let at = self.layout.control(0);
        Control::read_clock(self.fabric.local(at, control::WORDS))
    }

    /// On the first server: the tick that it has told itself.
    fn clock_at(&self) -> Address {
        self.layout.control(0).plus(control::CLOCK)
    }

    /// From here on this session may access blocks that it knows. Notices that it does not see now, `Watch` makes wait.
    #[inline]
    fn enter(&mut self) {
        let at = self.layout.busy(self.session);
        self.visitor.enter(&self.fabric.local(at, 1)[0]);
    }

    /// The session accesses no block any more, but those that it has locked until its last word has arrived: its reads are
    /// done.
    #[inline]
    fn exit(&mut self) {
        let at = self.layout.busy(self.session);
        self.visitor.leave(&self.fabric.local(at, 1)[0]);
    }

    /// How often a page changed its class, as its server told.
    #[inline]
    fn page_changes(&self, server: usize, page: usize) -> u64 {
        let at = self.layout.generations(server).plus(page);
        // Acquire: behind the fence in `Visitor::enter`.
        self.fabric.local(at, 1)[0].load(Ordering::Acquire)
    }

    /// Counts one more request for a server.
    #[inline(always)]
    fn count_request(&self, server: usize) {
        let count = &self.requests[server];
        // Relaxed: a count, and this session is the only one that writes it.
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    /// How many requests there were for each server, as running counts.
    pub fn requests(&self) -> RequestCounts {
        Arc::clone(&self.requests)
    }

    /// This PE's end of the fabric.
    pub fn fabric(&self) -> &Arc<F> {
        &self.fabric
    }

    /// True if a server's memory can be loaded.
    pub fn reaches(&self, server: usize) -> bool {
        self.channels[server].reachable
    }

    /// Which way the session would choose now for operations of a kind on a server.
    pub fn choice(&self, server: usize, kind: Kind) -> String {
        self.channels[server].selector.choice(kind)
    }

    /// Counts one more.
    #[inline(always)]
    fn count(&self, count: Count) {
        self.counts.add(count as usize, 1);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::thread;

    use nuthatch_engine::counters::Registry;
    use nuthatch_engine::{Key, KeyHasher, Op, Request, Store};
    use nuthatch_fabric::Verified;
    use nuthatch_fabric::threads::Network;

    use super::*;
    use crate::block;
    use crate::config::Operations;
    use crate::interposed::{Interposed, LastValue, small};
    use crate::server::Server;

    #[test]
    fn of_several_servers_that_die_while_they_are_read_each_is_noticed() {
        let config = Config {
            servers: 2,
            memory: 128 << 10,
            memory_max: 128 << 10,
            item_size_max: 32 << 10,
            operations: Operations::Direct,
            ..Config::default()
        };
        let layout = Arc::new(Layout::new(&config, 3).unwrap());
        let names: Vec<_> = (0..16_u32).map(u32::to_le_bytes).collect();
        let hasher = KeyHasher::seeded(config.seed);
        let get = |name| Request {
            key: Key::new(name, &hasher),
            op: Op::Get,
        };
        let wave: Vec<_> = names.iter().map(|name| get(name)).collect();
        for seed in 0..20 {
            let network = Network::seeded(3, layout.words(), 1, seed);
            let end = network.ends().swap_remove(2);
            let counts = Registry::default().register();
            let own = (Arc::clone(&end), Arc::clone(&layout));
            let mut client = Client::new(own.0, own.1, &config, 0, counts);
            let _entered = end.enter(0);
            client.begin_reads(&wave);
            (0..2).for_each(|server| network.stop(server));
            client.end_reads();
            let gone: Vec<_> = client.channels.iter().map(|channel| channel.gone).collect();
            assert_eq!(gone, [true; 2], "seed {seed}");
        }
    }

    /// Otherwise a session that was silent for a while would hit pairs that have expired meanwhile.
    #[test]
    fn words_that_are_old_do_not_set_a_sessions_clock_back() {
        let config = Config {
            memory: 128 << 10,
            memory_max: 128 << 10,
            item_size_max: 32 << 10,
            clocks: Clocks::FirstServers,
            ..Config::default()
        };
        let layout = Arc::new(Layout::new(&config, 2).unwrap());
        let network = Network::free(2, layout.words());
        let ends = network.ends();
        let counts = Registry::default().register();
        let own = (Arc::clone(&ends[1]), Arc::clone(&layout));
        let mut client = Client::new(own.0, own.1, &config, 0, counts);
        let shows = |pe: usize, tick| {
            let at = layout.control(0).plus(control::CLOCK);
            ends[pe].local(at, 1)[0].store(tick, Ordering::Relaxed);
        };
        let mut moment = |now| client.shift(Time(now)).time(Time(now));
        shows(1, 1000);
        shows(0, 1010);
        assert_eq!(moment(500), Time(1010), "what it was told is old already");
        shows(0, 1030);
        assert_eq!(moment(520), Time(1030), "nothing has come since");
        shows(1, 1035);
        assert_eq!(moment(520), Time(1035), "it is as late as it was told");
        shows(0, 1036);
        moment(530);
        shows(0, 1037);
        assert_eq!(moment(531), Time(1038), "the server's clock is slower");
        shows(0, 1038);
        assert_eq!(moment(600), Time(1107), "that may be old, too");
        assert_eq!(
            moment(640),
            Time(1147),
            "the server may be kept from its core"
        );
        shows(0, 1039);
        assert_eq!(moment(641), Time(1040), "its host had slept, and its clock");
    }

    /// Otherwise the session would read a block only to find another pair in it.
    #[test]
    fn a_pointer_from_before_the_bar_is_dropped() {
        let config = Config {
            memory: 256 << 10,
            memory_max: 256 << 10,
            item_size_max: 4 << 10,
            operations: Operations::Direct,
            ..Config::default()
        };
        let layout = Arc::new(Layout::new(&config, 3).unwrap());
        let ends = Network::free(3, layout.words()).ends();
        let mut server = Server::new(Arc::clone(&ends[0]), Layout::clone(&layout), &config);
        let session = |pe: usize| {
            let counts = Registry::default().register();
            let own = (Arc::clone(&ends[pe]), Arc::clone(&layout));
            Client::new(own.0, own.1, &config, 0, counts)
        };
        let (mut one, mut other) = (session(1), session(2));
        let hasher = KeyHasher::seeded(config.seed);
        let key = Key::new(b"key", &hasher);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| server.run(&stop));
            let execute = |client: &mut Client<_>, tick, key: Key<'_>, op: Op<'_>| {
                let mut value = LastValue::default();
                client.execute(Time(tick), &[Request { key, op }], &mut value);
            };
            let value = [7; 1000];
            execute(&mut one, 1000, key, Op::Store(Store::set(&value)));
            execute(&mut one, 1000, key, Op::Get);
            let epoch = one.control(0).epoch;
            assert!(one.hint(0, key.hash(), epoch).is_some());
            // Another session fills the memory twice, with an epoch every 20 pairs.
            for number in 0..500_u32 {
                let name = number.to_le_bytes();
                let new = Key::new(&name, &hasher);
                let tick = 1000 + number * 16 / 20;
                execute(&mut other, tick, new, Op::Store(Store::set(&value)));
            }
            // The server puts its bars with the control words, soon.
            let class = layout.classes.class_of(block::pair_words(3, value.len()));
            while one.bars(0).of(class.unwrap()) <= epoch + 2 {
                thread::yield_now();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let present = one.control(0).epoch;
        assert!(one.hint(0, key.hash(), present).is_none());
        assert!(one.directory.find(key.hash()).is_none());
    }

    #[test]
    fn a_key_with_anothers_hash_does_not_overwrite_its_pair() {
        let config = Config {
            memory: 128 << 10,
            memory_max: 128 << 10,
            item_size_max: 32 << 10,
            operations: Operations::Direct,
            ..Config::default()
        };
        let layout = Arc::new(Layout::new(&config, 2).unwrap());
        let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
        // Memory that the session can load, and memory that it cannot.
        for reachable in [2, 0] {
            let ends = Network::free(2, layout.words()).ends();
            let mut server = Server::new(Arc::clone(&ends[0]), Layout::clone(&layout), &config);
            let fabric = Interposed::new(Arc::clone(&ends[1]), reachable);
            let registry = Registry::default();
            let own = (fabric, Arc::clone(&layout));
            let mut client = Client::new(own.0, own.1, &config, 0, registry.register());
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| server.run(&stop));
                let mut request = |key, op| {
                    let mut value = LastValue::default();
                    client.execute(Time(1000), &[Request { key, op }], &mut value);
                    value.bytes()
                };
                request(key, Op::Store(Store::set(b"a value")));
                for other in [&b"kez"[..], b"keys", b"a much longer key"] {
                    let other = Key::hashed(other, key.hash());
                    request(other, Op::Store(Store::set(b"another")));
                    let found = request(key, Op::Get);
                    assert_eq!(found, b"a value", "{reachable}");
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
    }

    /// Each wait is a round trip.
    #[test]
    fn a_set_over_a_network_waits_for_its_lock_alone() {
        let standard = Verified::default();
        let lands_alone = Verified {
            lands_alone: true,
            ..standard
        };
        // Where nothing says that words arrive without a `quiet`, sets of a wave wait for that together.
        for (verified, expected) in [(lands_alone, [1, 3]), (standard, [2, 4])] {
            assert_eq!(waits_of_sets(verified), expected);
        }
    }

    /// The waits of a set of a known pair over a network, and of three such sets in a wave.
    fn waits_of_sets(verified: Verified) -> [u64; 2] {
        let config = Config {
            memory: 128 << 10,
            memory_max: 128 << 10,
            item_size_max: 32 << 10,
            operations: Operations::Direct,
            ..Config::default()
        };
        let layout = Arc::new(Layout::new(&config, 2).unwrap());
        let ends = Network::free(2, layout.words()).ends();
        let mut server = Server::new(Arc::clone(&ends[0]), Layout::clone(&layout), &config);
        let fabric = Interposed::beyond_standard(Arc::clone(&ends[1]), 0, verified);
        let registry = Registry::default();
        let own = (Arc::clone(&fabric), Arc::clone(&layout));
        let mut client = Client::new(own.0, own.1, &config, 0, registry.register());
        let hasher = KeyHasher::seeded(config.seed);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| server.run(&stop));
            let mut waits_for = |names: &[&'static [u8]]| {
                let set = |name: &&'static [u8]| Request {
                    key: Key::new(name, &hasher),
                    op: Op::Store(Store::set(b"a value")),
                };
                let wave: Vec<_> = names.iter().map(set).collect();
                let before = fabric.waits.load(Ordering::Relaxed);
                client.execute(Time(1000), &wave, &mut LastValue::default());
                fabric.waits.load(Ordering::Relaxed) - before
            };
            let three: [&[u8]; 3] = [b"one", b"two", b"three"];
            // The server's: the keys are new, and its control words may be on their way.
            waits_for(&three);
            while waits_for(&three) == 0 {}
            let waits = [waits_for(&three[..1]), waits_for(&three)];
            stop.store(true, Ordering::Relaxed);
            waits
        })
    }

    /// What the operations of a fabric take, in nanoseconds: a call for whose answer the PE waits, a message.
    #[derive(Clone, Copy)]
    struct Prices {
        wait: u64,
        message: u64,
    }

    /// As measured: docs/cluster.md, latency.
    const SHARED_MEMORY: Prices = Prices {
        wait: 100,
        message: 1600,
    };
    const OVER_TCP: Prices = Prices {
        wait: 11_500,
        message: 31_000,
    };

    /// How many of the last 100 sets, in waves of `together`, are messages, if a session chooses by such prices.
    fn messages_of_sets(prices: Prices, reachable: usize, together: usize) -> u64 {
        let config = Config {
            operations: Operations::Chosen,
            ..small()
        };
        let layout = Arc::new(Layout::new(&config, 2).unwrap());
        let ends = Network::free(2, layout.words()).ends();
        let mut server = Server::new(Arc::clone(&ends[0]), Layout::clone(&layout), &config);
        let fabric = Interposed::new(Arc::clone(&ends[1]), reachable);
        fabric.prices[0].store(prices.wait, Ordering::Relaxed);
        fabric.prices[1].store(prices.message, Ordering::Relaxed);
        let registry = Registry::default();
        let own = (Arc::clone(&fabric), Arc::clone(&layout));
        let mut client = Client::new(own.0, own.1, &config, 0, registry.register());
        let hasher = KeyHasher::seeded(config.seed);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| server.run(&stop));
            let names: Vec<_> = (0..together as u32).map(u32::to_le_bytes).collect();
            let set = |name| Request {
                key: Key::new(name, &hasher),
                op: Op::Store(Store::set(b"a value")),
            };
            let wave: Vec<_> = names.iter().map(|name| set(name)).collect();
            let mut sets = |count| {
                let before = registry.sums()[Count::Active as usize];
                for _ in 0..count {
                    client.execute(Time(1000), &wave, &mut LastValue::default());
                }
                registry.sums()[Count::Active as usize] - before
            };
            // Both ways are measured.
            sets(50);
            let messages = sets(100);
            stop.store(true, Ordering::Relaxed);
            messages
        })
    }

    #[test]
    fn the_faster_way_is_chosen_by_what_each_takes_on_its_fabric() {
        assert_eq!(messages_of_sets(SHARED_MEMORY, 1, 1), 0);
        assert_eq!(messages_of_sets(OVER_TCP, 0, 1), 0);
        // Messages travel together, and compare-swaps one behind the other.
        assert_eq!(messages_of_sets(OVER_TCP, 0, 32), 3200);
        let slow_locks = Prices {
            wait: 40_000,
            ..OVER_TCP
        };
        assert_eq!(messages_of_sets(slow_locks, 0, 1), 100);
    }

    /// Otherwise another writer's words could mix with them, or a page change its class before the last one arrives.
    #[test]
    fn a_block_is_locked_until_all_has_arrived_that_its_session_left_under_way() {
        let config = Config {
            memory: 128 << 10,
            memory_max: 128 << 10,
            item_size_max: 32 << 10,
            operations: Operations::Direct,
            ..Config::default()
        };
        let layout = Arc::new(Layout::new(&config, 2).unwrap());
        let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
        let (mut direct, mut left) = (0, 0);
        for seed in 0..50 {
            let network = Network::seeded(2, layout.words(), 2, seed);
            let ends = network.ends();
            let server = Server::new(Arc::clone(&ends[0]), Layout::clone(&layout), &config);
            let registry = Registry::default();
            let counts = registry.register();
            let own = (Arc::clone(&ends[1]), Arc::clone(&layout));
            let mut client = Client::new(own.0, own.1, &config, 0, counts);
            let stop = AtomicBool::new(false);
            thread::scope(|scope| {
                scope.spawn(|| {
                    let mut server = server;
                    let _entered = ends[0].enter(0);
                    server.run(&stop);
                });
                let _entered = ends[1].enter(1);
                // The first set is a message; after it the session knows the block.
                for value in [b"value 0", b"value 1", b"value 2", b"value 3"] {
                    let op = Op::Store(Store::set(value));
                    let request = Request { key, op };
                    client.execute(Time(1000), &[request], &mut LastValue::default());
                    let (_, hint) = client.directory.find(key.hash()).unwrap();
                    let block = layout.block(hint.pointer);
                    let words = ends[0].local(block, layout.block_words(hint.pointer));
                    // The tail first: the head may arrive meanwhile.
                    let [tail, head] = [words.len() - 1, block::HEAD]
                        .map(|word| words[word].load(Ordering::Relaxed));
                    let set = block::Tail(hint.tail).version();
                    assert_eq!(block::Tail(tail).version(), set, "seed {seed}");
                    if head == set {
                        let words: Vec<u64> = words
                            .iter()
                            .map(|word| word.load(Ordering::Relaxed))
                            .collect();
                        let found = block::judge(&words, b"key", Some(&client.checksum));
                        assert!(matches!(found, block::Found::Pair(_)), "seed {seed}");
                    }
                    left += u64::from(head != set);
                }
                stop.store(true, Ordering::Relaxed);
            });
            direct += registry.sums()[Count::DirectSets as usize];
        }
        // With some seeds the control words arrive late, and all sets are messages.
        assert!(direct > 50 && left > 10, "{direct} {left}");
    }
}
