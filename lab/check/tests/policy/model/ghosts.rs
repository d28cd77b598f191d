//! Ghosts of items that have left a queue.

pub struct Ghosts {
    /// Buckets of eight, the newest first: fingerprint and epoch.
    all: Vec<[Option<(u64, u64)>; 8]>,
    pub buckets: usize,
    pub inserted: u64,
}

impl Ghosts {
    pub fn new(buckets_max: usize) -> Self {
        Self {
            all: vec![[None; 8]; buckets_max],
            buckets: 0,
            inserted: 0,
        }
    }

    pub fn most(&self) -> usize {
        self.all.len()
    }

    /// Reduces the buckets to `most`; returns how many were dropped.
    pub fn shrink(&mut self, most: usize) -> usize {
        let old = self.buckets;
        self.buckets = old.min(most.max(1));
        self.all[self.buckets..].fill([None; 8]);
        old - self.buckets
    }

    fn bucket(&self, hash: u64) -> usize {
        ((u128::from(hash) * self.buckets as u128) >> 64) as usize
    }

    /// Ghosts of an epoch: half as many as there are buckets.
    pub fn epoch_len(&self) -> u64 {
        (self.buckets as u64 / 2).max(1)
    }

    /// The epoch's number is known modulo 32.
    fn epoch(&self) -> u64 {
        self.inserted / self.epoch_len() % 32
    }

    pub fn insert(&mut self, hash: u64) {
        if self.buckets == 0 {
            return;
        }
        let ghost = (fingerprint(hash), self.epoch());
        self.inserted += 1;
        let bucket = self.bucket(hash);
        let bucket = &mut self.all[bucket];
        bucket.rotate_right(1);
        bucket[0] = Some(ghost);
    }

    /// Removes a ghost; returns about how many ghosts came after it.
    pub fn take(&mut self, hash: u64) -> Option<u64> {
        if self.buckets == 0 {
            return None;
        }
        let bucket = self.bucket(hash);
        let known = |ghost: &&mut Option<(u64, u64)>| {
            ghost.is_some_and(|(print, _)| print == fingerprint(hash))
        };
        let (_, epoch) = self.all[bucket].iter_mut().find(known)?.take()?;
        let epochs = self.epoch().wrapping_sub(epoch) % 32;
        let len = self.epoch_len();
        Some((epochs * len + self.inserted % len).saturating_sub(len / 2))
    }
}

fn fingerprint(hash: u64) -> u64 {
    (hash % 2048).max(1)
}
