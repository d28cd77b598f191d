//! How a store is opened: all PEs of a job do it together.

use std::sync::Arc;
#[cfg(not(loom))]
use std::thread;

use nuthatch_engine::counters::Registry;
use nuthatch_fabric::Fabric;
#[cfg(not(loom))]
use nuthatch_fabric::threads::{Network, ThreadsFabric};

use crate::agreement::{agree, settings};
use crate::client::Client;
use crate::config::{Config, ConfigError};
use crate::engine::Cluster;
use crate::layout::Layout;
use crate::server::Server;
#[cfg(not(loom))]
use crate::serving::Serving;
use crate::stats::COUNTS;

/// A PE's part of a store.
pub struct Member<F: Fabric> {
    fabric: Arc<F>,
    layout: Arc<Layout>,
    config: Config,
}

impl<F: Fabric> Member<F> {
    /// Opens a store. Collective: every PE passes the same settings, except for the seed, which is taken from the first
    /// PE. If a PE has others, all PEs get an error that says which.
    pub fn open(fabric: Arc<F>, config: &Config) -> Result<Self, ConfigError> {
        // First of all: settings that are the same are valid on all PEs or on none, so no PE is left waiting for one that
        // gives up.
        agree(&*fabric, settings(config))?;
        let mut config = config.clone();
        let layout = Layout::new(&config, fabric.pes())?.allocate(&*fabric)?;
        layout.zero(&*fabric);
        let mut seed = [config.seed];
        // No PE accesses another PE's memory before that PE has zeroed it.
        fabric.broadcast(0, &mut seed);
        config.seed = seed[0];
        Ok(Self {
            fabric,
            layout: Arc::new(layout),
            config,
        })
    }

    /// True if this PE serves.
    pub fn is_server(&self) -> bool {
        self.fabric.pe() < self.layout.servers
    }

    /// This PE's server, which one thread is to run. Panics if this PE does not serve.
    pub fn server(&self) -> Server<F> {
        assert!(self.is_server(), "the first PEs serve");
        let layout = Layout::clone(&self.layout);
        Server::new(Arc::clone(&self.fabric), layout, &self.config)
    }

    fn clients(&self, counts: &Registry<COUNTS>) -> impl Iterator<Item = Client<F>> {
        (0..self.layout.sessions).map(|number| {
            Client::new(
                Arc::clone(&self.fabric),
                Arc::clone(&self.layout),
                &self.config,
                number,
                counts.register(),
            )
        })
    }

    /// The engine that this PE's threads use. Each PE calls this once.
    pub fn engine(&self) -> Arc<Cluster<F>> {
        let counts = Arc::new(Registry::default());
        let clients = self.clients(&counts).collect();
        let layout = Arc::clone(&self.layout);
        Arc::new(Cluster::new(clients, layout, &self.config, counts, None))
    }
}

/// A store in one process: its servers are threads, and each of `clients` PEs has its sessions.
///
/// Errors: invalid settings.
#[cfg(not(loom))]
pub fn in_process(
    config: &Config,
    clients: usize,
) -> Result<Arc<Cluster<ThreadsFabric>>, ConfigError> {
    let pes = config.servers + clients;
    let words = Layout::new(config, pes)?.words();
    on_network(config, Network::free(pes, words))
}

/// The same on a network, which has room for [`Config::symmetric_words`]. The PEs behind the servers are clients.
#[cfg(not(loom))]
pub fn on_network(
    config: &Config,
    network: Arc<Network>,
) -> Result<Arc<Cluster<ThreadsFabric>>, ConfigError> {
    let ends = network.ends();
    let members: Vec<_> = thread::scope(|scope| {
        let opening: Vec<_> = ends
            .into_iter()
            .map(|end| scope.spawn(|| Member::open(end, config)))
            .collect();
        opening
            .into_iter()
            .map(|opening| opening.join().expect("opening a store does not panic"))
            .collect::<Result<_, _>>()
    })?;
    let counts = Arc::new(Registry::default());
    let sessions = members[config.servers..]
        .iter()
        .flat_map(|member| member.clients(&counts))
        .collect();
    let layout = Arc::clone(&members[0].layout);
    let config = members[0].config.clone();
    let serving = members[..config.servers].iter().map(|member| {
        let (network, pe) = (Arc::clone(&network), member.fabric.pe());
        Serving::start(member, move || network.stop(pe))
    });
    let keeper: Vec<_> = serving.collect();
    let engine = Cluster::new(sessions, layout, &config, counts, Some(Box::new(keeper)));
    Ok(Arc::new(engine))
}
