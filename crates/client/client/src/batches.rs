//! The calls with many keys of both clients, written once, as `calls.rs` has the others.

/// The calls. They stand on `batch`, which asks all servers at once.
macro_rules! batches {
    ($($async:ident)?; $($wait:tt)*) => {
        /// The values under these keys. All servers are asked at once. What a server that failed has is missing, and said.
        pub $($async)? fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Many {
            let known = self.pool.read_many(keys, false, |item| item.value);
            self.batch(keys, known, |_, key| operation::get(key))$($wait)*
        }

        /// The same, with what else the servers know of each item.
        pub $($async)? fn get_many_items<K: AsRef<[u8]>>(&self, keys: &[K]) -> Many<Option<Item>> {
            let known = self.pool.read_many(keys, true, |item| item);
            self.batch(keys, known, |_, key| operation::get_item(key))$($wait)*
        }

        /// Stores each key's value, whatever there was. What a server that failed has is not stored, and said.
        pub $($async)? fn set_many<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, items: &[(K, V, Keep)]) -> Many<()> {
            let keys: Vec<&[u8]> = items.iter().map(|(key, ..)| key.as_ref()).collect();
            let stored = self.batch(&keys, Known::nothing(keys.len()), |place, key| {
                let (_, value, keep) = &items[place];
                operation::set(key, value.as_ref(), *keep)
            })$($wait)*;
            keys.iter().for_each(|key| self.pool.near.forget(key));
            stored
        }

        /// Removes items. Each key's value says whether there was one.
        pub $($async)? fn delete_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Many<bool> {
            let deleted = self.batch(keys, Known::nothing(keys.len()), |_, key| operation::remove(key))$($wait)*;
            keys.iter().for_each(|key| self.pool.near.forget(key.as_ref()));
            deleted
        }

        /// Carries out meta commands of the caller's own. All servers are asked at once; commands of one key are carried out in
        /// their order, unless a server fails meanwhile. The near cache and the memory of a server (`shm://`) answer none of them.
        pub $($async)? fn commands(&self, commands: &[Command<'_>]) -> Many<Answer> {
            let answers = self.batch(commands, Known::nothing(commands.len()), |place, key| {
                meta::operation(key, &commands[place])
            })$($wait)*;
            let changes = commands.iter().filter(|command| !command.is_read);
            changes.for_each(|command| self.pool.near.forget(command.key));
            answers
        }

        $($async)? fn batch<'a, K: AsRef<[u8]>, T: Clone + Default>(
            &self,
            keys: &'a [K],
            known: Known<T>,
            operation: impl Fn(usize, Key<'a>) -> Operation<'a, T>,
        ) -> Many<T> {
            let Pool { links, options, .. } = &*self.pool;
            let mut deadline = options.deadline();
            let Known { mut many, is_known } = known;
            let server = |key: &[u8]| self.pool.server(key);
            let mut parts = Parts::new(keys, &is_known, options, server, operation, &mut many);
            while let Some(round) = parts.next_round() {
                // First, because one that has to be made puts the deadline off, for all servers.
                let mut connections = Vec::with_capacity(round.len());
                for part in &round {
                    connections.push(links[part.server].connection(&mut deadline)$($wait)*);
                }
                let mut sent = Vec::with_capacity(round.len());
                for (part, connection) in round.iter().zip(connections) {
                    sent.push(Link::send(connection, &part.requests, deadline)$($wait)*);
                }
                for (part, sent) in round.iter().zip(sent) {
                    let link = &links[part.server];
                    let replies = link.finish(sent, &part.requests, &mut deadline)$($wait)*;
                    if let Some(reason) = many.take(part, replies) {
                        link.end(&reason);
                    }
                }
            }
            many
        }
    };
}

pub(crate) use batches;
