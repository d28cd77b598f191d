//! What clients that track keys (CLIENT TRACKING) are told of a batch: see [`nuthatch_channels::tracking`].

use nuthatch_channels::tracking::Tracking;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Expiry, Item, Key, Op, Reply, Request, Time};

/// The changes of a batch.
pub struct Changes<'t> {
    /// `None` if nobody tracks.
    tracking: Option<&'t Tracking>,
    /// Requests that have changed their key.
    changed: Vec<usize>,
    /// Requests that have read an item which expires.
    expiring: Vec<(usize, Time)>,
}

/// The key as clients know it.
fn name<'k>(key: &Key<'k>) -> &'k [u8] {
    Namespace::split(key.bytes()).1
}

/// Those of the requests' keys that clients read.
pub fn reads<'r>(requests: &'r [Request<'_>]) -> impl Iterator<Item = &'r [u8]> {
    let reads = requests.iter();
    let reads = reads.filter(|request| matches!(request.op, Op::Get | Op::Read(_)));
    reads.map(|request| name(&request.key))
}

/// Tells the clients that track a request's key that it has changed. Returns how many are told.
pub fn tell(tracking: &Tracking, request: &Request<'_>, writer: Option<usize>) -> usize {
    match tracking.is_used() {
        true => tracking.changed(name(&request.key), writer),
        false => 0,
    }
}

impl<'t> Changes<'t> {
    /// None yet.
    pub fn new(tracking: &'t Tracking) -> Self {
        Self {
            tracking: Some(tracking).filter(|it| it.is_used()),
            changed: Vec::new(),
            expiring: Vec::new(),
        }
    }

    /// A read has found an item.
    pub fn read(&mut self, index: usize, op: &Op<'_>, item: &Item) {
        if self.tracking.is_none() {
            return;
        }
        if let Op::Read(read) = op
            && (read.touch.is_some() || read.vivify.is_some())
        {
            self.changed.push(index);
        } else if let Expiry::At(end) = item.expiry {
            self.expiring.push((index, end));
        }
    }

    /// A request has this reply, which has no value.
    pub fn replied(&mut self, index: usize, op: &Op<'_>, reply: &Reply) {
        match (op, reply) {
            (Op::Get | Op::Read(_), Reply::Found(item)) => self.read(index, op, item),
            (
                _,
                Reply::Miss
                | Reply::NotFound
                | Reply::NotStored
                | Reply::Exists
                | Reply::NotNumeric
                | Reply::TooLarge
                | Reply::OutOfMemory,
            ) => {}
            _ if self.tracking.is_some() => self.changed.push(index),
            _ => {}
        }
    }

    /// Tells them of these requests, each by the number of its writer. `told` gets how many are told of a request.
    pub fn tell(
        &self,
        requests: &[Request<'_>],
        writer: impl Fn(usize) -> usize,
        mut told: impl FnMut(usize, usize),
    ) {
        let Some(tracking) = self.tracking else {
            return;
        };
        for &index in &self.changed {
            let key = name(&requests[index].key);
            told(index, tracking.changed(key, Some(writer(index))));
        }
        for &(index, end) in &self.expiring {
            tracking.expire(name(&requests[index].key), end.0.into());
        }
    }
}
