//! The calls of both clients, written once: for threads as they stand, for tasks with `async` and `.await`.

/// The calls, and what they stand on: `run` carries out an operation on a key, `each` asks all servers.
macro_rules! calls {
    ($function:ident; $($async:ident)?; $($wait:tt)*) => {
        /// The value under a key. None: there is none. With the option `near` it may be one that this client read a while ago.
        pub $($async)? fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
            let (key, near) = (key.as_ref(), &self.pool.near);
            if let Some(value) = near.get(key) {
                return Ok(Some(value));
            }
            let found = match self.pool.read(key, false)? {
                Some(found) => found.map(|item| item.value),
                None => self.run(key, operation::get)$($wait)*?,
            };
            near.keep(key, found.as_ref());
            Ok(found)
        }

        /// What can be said of a key without asking a server: by the option `near`, and by a server's memory (`shm://`). A
        /// connection that has not been made, or has ended, is not made here, and without one there is no memory.
        pub fn get_local(&self, key: impl AsRef<[u8]>) -> Result<Local, Error> {
            let key = key.as_ref();
            if let Some(value) = self.pool.near.get(key) {
                return Ok(Local::Value(value));
            }
            Ok(match self.pool.read(key, false)? {
                Some(Some(item)) => Local::Value(item.value),
                Some(None) => Local::Missing,
                None => {
                    Key::new(key)?;
                    Local::Unknown
                }
            })
        }

        /// What a server's memory (`shm://`) says of a key, without how long the item has to live. None: nothing, only the server
        /// can say. As `get_local` it waits for nothing, and asks nobody.
        pub fn get_item_local(&self, key: impl AsRef<[u8]>) -> Result<Option<Option<Item>>, Error> {
            let key = key.as_ref();
            let read = self.pool.read(key, false)?;
            if read.is_none() {
                Key::new(key)?;
            }
            Ok(read)
        }

        /// The value under a key, and the flags with which it was stored.
        pub $($async)? fn get_with_flags(&self, key: impl AsRef<[u8]>) -> Result<Option<(Vec<u8>, u32)>, Error> {
            let key = key.as_ref();
            match self.pool.read(key, false)? {
                Some(found) => Ok(found.map(|item| (item.value, item.flags))),
                None => self.run(key, operation::get_with_flags)$($wait)*,
            }
        }

        /// The value under a key, and what else the server knows of it.
        pub $($async)? fn get_item(&self, key: impl AsRef<[u8]>) -> Result<Option<Item>, Error> {
            let key = key.as_ref();
            match self.pool.read(key, true)? {
                Some(found) => Ok(found),
                None => self.run(key, operation::get_item)$($wait)*,
            }
        }

        /// The value under a key, which from now on has this lifetime. None: without an end.
        pub $($async)? fn get_and_touch(
            &self,
            key: impl AsRef<[u8]>,
            lifetime: Option<Duration>,
        ) -> Result<Option<Vec<u8>>, Error> {
            self.run(key.as_ref(), |key| operation::get_and_touch(key, lifetime))$($wait)*
        }

        /// The value under a key, and what else the server knows of it. From now on the item has this lifetime. None: without
        /// an end.
        pub $($async)? fn get_item_and_touch(
            &self,
            key: impl AsRef<[u8]>,
            lifetime: Option<Duration>,
        ) -> Result<Option<Item>, Error> {
            self.run(key.as_ref(), |key| operation::get_item_and_touch(key, lifetime))$($wait)*
        }

        /// Stores a value, whatever there was.
        pub $($async)? fn set(
            &self,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
            keep: impl Into<Keep>,
        ) -> Result<(), Error> {
            self.run(key.as_ref(), |key| {
                operation::set(key, value.as_ref(), keep.into())
            })$($wait)*
        }

        /// Stores a value if there is none.
        pub $($async)? fn add(
            &self,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
            keep: impl Into<Keep>,
        ) -> Result<Outcome, Error> {
            self.store(key.as_ref(), value.as_ref(), Mode::Add, keep.into(), None)$($wait)*
        }

        /// Stores a value if there is one.
        pub $($async)? fn replace(
            &self,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
            keep: impl Into<Keep>,
        ) -> Result<Outcome, Error> {
            self.store(
                key.as_ref(),
                value.as_ref(),
                Mode::Replace,
                keep.into(),
                None,
            )$($wait)*
        }

        /// Adds bytes behind the value there is. Flags and lifetime stay.
        pub $($async)? fn append(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<Outcome, Error> {
            self.store(
                key.as_ref(),
                value.as_ref(),
                Mode::Append,
                Keep::FOREVER,
                None,
            )$($wait)*
        }

        /// Adds bytes in front of the value there is. Flags and lifetime stay.
        pub $($async)? fn prepend(
            &self,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
        ) -> Result<Outcome, Error> {
            self.store(
                key.as_ref(),
                value.as_ref(),
                Mode::Prepend,
                Keep::FOREVER,
                None,
            )$($wait)*
        }

        /// Stores a value if nobody has changed the item since [`Client::get_item`] gave this number.
        pub $($async)? fn cas(
            &self,
            key: impl AsRef<[u8]>,
            value: impl AsRef<[u8]>,
            keep: impl Into<Keep>,
            cas: u64,
        ) -> Result<Outcome, Error> {
            self.store(
                key.as_ref(),
                value.as_ref(),
                Mode::Set,
                keep.into(),
                Some(cas),
            )$($wait)*
        }

        /// Adds to a number, which is stored as decimal digits, and returns the sum. It wraps around at 2^64. None: there is no item.
        pub $($async)? fn incr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>, Error> {
            self.run(key.as_ref(), |key| operation::count(key, delta, false))$($wait)*
        }

        /// Subtracts from a number, down to 0. None: there is no item.
        pub $($async)? fn decr(&self, key: impl AsRef<[u8]>, delta: u64) -> Result<Option<u64>, Error> {
            self.run(key.as_ref(), |key| operation::count(key, delta, true))$($wait)*
        }

        /// Gives an item this lifetime. None: without an end.
        pub $($async)? fn touch(
            &self,
            key: impl AsRef<[u8]>,
            lifetime: Option<Duration>,
        ) -> Result<Outcome, Error> {
            self.run(key.as_ref(), |key| operation::touch(key, lifetime))$($wait)*
        }

        /// Removes an item.
        pub $($async)? fn delete(&self, key: impl AsRef<[u8]>) -> Result<Outcome, Error> {
            self.run(key.as_ref(), |key| operation::delete(key, None))$($wait)*
        }

        /// Removes an item if nobody has changed it since [`Client::get_item`] gave this number.
        pub $($async)? fn delete_cas(&self, key: impl AsRef<[u8]>, cas: u64) -> Result<Outcome, Error> {
            self.run(key.as_ref(), |key| operation::delete(key, Some(cas)))$($wait)*
        }

        /// Keeps an item as out of date for this long. Of those that ask with `get_or_compute`, one computes it anew, and the others
        /// get the old value meanwhile. The server takes a plain get that comes first for the one that computes: such a key is
        /// read by `get_or_compute` alone.
        pub $($async)? fn make_stale(&self, key: impl AsRef<[u8]>, lifetime: Duration) -> Result<Outcome, Error> {
            self.run(key.as_ref(), |key| operation::make_stale(key, lifetime))$($wait)*
        }

        /// The value under a key; if there is none, it is computed and stored. Of all that ask at a time, in this process and in
        /// others, one computes, and the others wait for it, or get the old value if there is one.
        ///
        /// If the server cannot be asked, the value is computed here and not stored. If the computation fails, or takes longer
        /// than its lease, or this call is dropped, one of those that wait computes; who has waited for two leases computes, too. An
        /// empty value looks like none while another client computes it anew: who asks then, waits.
        pub $($async)? fn get_or_compute<E>(
            &self,
            key: impl AsRef<[u8]>,
            how: Compute,
            compute: impl $function() -> Result<Vec<u8>, E>,
        ) -> Result<Vec<u8>, ComputeError<E>> {
            self.compute_while(key.as_ref(), how, compute, || Ok(()))$($wait)*
        }

        $($async)? fn compute_while<E>(
            &self,
            key: &[u8],
            how: Compute,
            compute: impl $function() -> Result<Vec<u8>, E>,
            go_on: impl Fn() -> Result<(), E>,
        ) -> Result<Vec<u8>, ComputeError<E>> {
            let leased = self.lease_while(key, how, go_on)$($wait)*;
            let (cas, is_new) = match leased.map_err(ComputeError::Computation)? {
                Ok(Leased::Value(value, _)) => return Ok(value),
                Ok(Leased::Mine { cas, old }) => (cas, old.is_none()),
                Err(error @ Error::Key { .. }) => return Err(ComputeError::Key(error)),
                Err(_) => (None, false),
            };
            let Some(cas) = cas else {
                return compute()$($wait)*.map_err(ComputeError::Computation);
            };
            // It may panic, or be dropped, up to the reply to its store: others would wait until the lease is over.
            let unless_computed = OnDrop::new(|| if is_new { self.give_up(key, cas) });
            let value = compute()$($wait)*;
            // Whether the server takes it changes nothing about the value.
            let is_stored = match &value {
                Ok(value) => {
                    let stored = self.store(key, value, Mode::Set, how.keep, Some(cas))$($wait)*;
                    stored == Ok(Outcome::Done)
                }
                Err(_) => false,
            };
            unless_computed.forget();
            // Others wait for this one: now they need not.
            if is_new && !is_stored {
                let _ = self.delete_cas(key, cas)$($wait)*;
            }
            value.map_err(ComputeError::Computation)
        }

        /// The value under a key, or the task to compute it, as [`Client::get_or_compute`] divides it: for computations that
        /// cannot run within a call. If another client computes it, and there is no old one, this waits for it.
        pub $($async)? fn lease(&self, key: impl AsRef<[u8]>, how: Compute) -> Result<Leased, Error> {
            match self.lease_while(key.as_ref(), how, || Ok::<(), Infallible>(()))$($wait)* {
                Ok(leased) => leased,
            }
        }

        /// The same, until an error of `go_on`, which is asked before each pause.
        $($async)? fn lease_while<E>(
            &self,
            key: &[u8],
            how: Compute,
            go_on: impl Fn() -> Result<(), E>,
        ) -> Result<Result<Leased, Error>, E> {
            let known = self.pool.read(key, how.early.is_some());
            match known.and_then(|known| Key::new(key).map(|_| known)) {
                // An empty value may be the place that is kept for who computes.
                Ok(Some(Some(item))) if how.is_fresh(&item) => return Ok(Ok(Leased::Value(item.value, item.flags))),
                Ok(_) => {}
                Err(error) => return Ok(Err(error)),
            }
            for pause in Pauses::new(how.lease) {
                return Ok(match self.run(key, |key| operation::lease(key, how.lease, how.early))$($wait)* {
                    Ok(Lease::Hit((value, flags)) | Lease::Taken { old: Some((value, flags)) }) => {
                        Ok(Leased::Value(value, flags))
                    }
                    Ok(Lease::Won { cas, old }) => Ok(Leased::Mine { cas: Some(cas), old }),
                    Ok(Lease::Taken { old: None }) => {
                        go_on()?;
                        Self::pause(pause)$($wait)*;
                        continue;
                    }
                    Err(error) => Err(error),
                });
            }
            Ok(Ok(Leased::Mine { cas: None, old: None }))
        }

        /// Removes all items of all servers, after a delay in whole seconds. All servers are asked, and the first error is returned.
        pub $($async)? fn flush_all(&self, delay: Duration) -> Result<(), Error> {
            let flushed = self.each(&operation::flush(delay))$($wait)*;
            self.pool.near.forget_all();
            flushed.into_iter().try_for_each(|(_, outcome)| outcome)
        }

        /// Each server's address and version.
        pub $($async)? fn version(&self) -> Vec<(String, Result<String, Error>)> {
            self.each(&operation::version())$($wait)*
        }

        /// Each server's address and statistics: all, or those of a kind that memcached has, as `items`. Errors: the kind has
        /// other characters than letters, digits, `_` and `-`.
        pub $($async)? fn stats(&self, kind: &str) -> Vec<(String, Result<Vec<(String, String)>, Error>)> {
            let is_known = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            if !kind.bytes().all(is_known) {
                let words = format!("{kind:?} is no kind of statistics");
                return vec![(String::new(), Err(Error::Refused(words)))];
            }
            self.each(&operation::stats(kind))$($wait)*
        }

        $($async)? fn store(
            &self,
            key: &[u8],
            value: &[u8],
            mode: Mode,
            keep: Keep,
            cas: Option<u64>,
        ) -> Result<Outcome, Error> {
            self.run(key, |key| operation::store(key, value, mode, keep, cas))$($wait)*
        }

        /// The address of the server that has the key now.
        pub fn server_of(&self, key: impl AsRef<[u8]>) -> String {
            let server = self.pool.server(key.as_ref());
            self.pool.links[server].site().name.to_string()
        }

        /// Carries out an operation on a key, at the key's server.
        $($async)? fn run<'a, T>(
            &self,
            key: &'a [u8],
            operation: impl FnOnce(Key<'a>) -> Operation<'a, T>,
        ) -> Result<T, Error> {
            let deadline = self.pool.options.deadline();
            let operation = operation(Key::new(key)?).checked(&self.pool.options)?;
            let mut server = self.pool.server(key);
            let mut outcome = self.ask(server, &operation, deadline)$($wait)*;
            for _ in 1..self.pool.links.len() {
                let Some(next) = self.pool.next(key, server, &outcome) else { break };
                server = next;
                outcome = self.ask(server, &operation, deadline)$($wait)*;
            }
            // Also if it failed: it may have been carried out.
            if !operation.request.is_read() {
                self.pool.near.forget(key);
            }
            outcome
        }

        $($async)? fn ask<T>(&self, server: usize, operation: &Operation<'_, T>, deadline: Instant) -> Result<T, Error> {
            let link = &self.pool.links[server];
            let requests = std::slice::from_ref(&operation.request);
            let outcome = operation.read(link.call(requests, deadline)$($wait)*?);
            if let Err(Error::Unexpected(reason)) = &outcome {
                link.end(reason);
            }
            outcome
        }

        $($async)? fn each<T>(&self, operation: &Operation<'_, T>) -> Vec<(String, Result<T, Error>)> {
            let deadline = self.pool.options.deadline();
            let mut all = Vec::new();
            for (server, link) in self.pool.links.iter().enumerate() {
                let outcome = self.ask(server, operation, deadline)$($wait)*;
                all.push((link.site().name.to_string(), outcome));
            }
            all
        }
    };
}

pub(crate) use calls;
