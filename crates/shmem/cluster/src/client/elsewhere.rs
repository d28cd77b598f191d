//! Tests of a session that loads a server's memory where other PEs' words are stored in any order: those of PEs on other
//! hosts, and all where nothing more than the standard's promises was verified for the library.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuthatch_engine::counters::Registry;
use nuthatch_engine::{Key, KeyHasher, Op, Request, Store, Time};
use nuthatch_fabric::threads::Network;
use nuthatch_fabric::{Fabric, Verified};

use super::Client;
use crate::interposed::{Interposed, LastValue, small};
use crate::layout::Layout;
use crate::server::Server;

const NOW: Time = Time(1000);

#[test]
fn equal_versions_are_not_believed_while_a_pe_is_on_another_host() {
    let verified = Verified {
        ordered_for_loads: true,
        ..Verified::default()
    };
    equal_versions_are_not_believed(2, verified);
}

#[test]
fn equal_versions_are_not_believed_where_no_order_was_verified() {
    equal_versions_are_not_believed(3, Verified::default());
}

/// A session that can load the memory of the first `reachable` of three PEs.
fn equal_versions_are_not_believed(reachable: usize, verified: Verified) {
    let config = small();
    let layout = Layout::new(&config, 3).unwrap();
    let ends = Network::free(3, layout.words()).ends();
    let mut server = Server::new(Arc::clone(&ends[0]), layout.clone(), &config);
    let fabric = Interposed::beyond_standard(Arc::clone(&ends[1]), reachable, verified);
    let counts = Registry::default().register();
    let own = (Arc::clone(&fabric), Arc::new(layout.clone()));
    let mut client = Client::new(own.0, own.1, &config, 0, counts);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| server.run(&stop));
        let key = Key::new(b"key", &KeyHasher::seeded(config.seed));
        let mut request = |op| {
            let mut value = LastValue::default();
            client.execute(NOW, &[Request { key, op }], &mut value);
            value.bytes()
        };
        request(Op::Store(Store::set(b"a value")));
        request(Op::Get);
        let (_, hint) = client.directory.find(key.hash()).unwrap();
        // A word of the value has not arrived yet, though those at the ends have.
        let at = layout.block(hint.pointer).plus(crate::block::KEY + 1);
        let word = &ends[0].local(at, 1)[0];
        let right = word.swap(0, Ordering::Relaxed);
        let end = Arc::clone(&ends[0]);
        *fabric.before_get.lock() = Some(Box::new(move || {
            end.local(at, 1)[0].store(right, Ordering::Relaxed);
        }));
        let mut value = LastValue::default();
        client.execute(NOW, &[Request { key, op: Op::Get }], &mut value);
        stop.store(true, Ordering::Relaxed);
        assert_eq!(value.bytes(), b"a value");
    });
}
