//! An operation on many keys, divided among servers.

use crate::key::Key;
use crate::operation::Operation;
use crate::wire::{Code, Details, Reply, Request};
use crate::{Error, Options};

/// The most requests in one call, so that other calls come in between.
const REQUESTS_MAX: usize = 1024;

/// What an operation on many keys found, or did: `T` is what the one for a single key returns.
#[derive(Clone, Debug)]
pub struct Many<T = Option<Vec<u8>>> {
    /// What came of it, in the order of the keys. The default, which is none for a get, where a key failed.
    pub values: Vec<T>,
    /// Which keys failed, by their places, and why.
    pub failed: Vec<(usize, Error)>,
}

/// Requests to one server, with their keys' places.
#[derive(Debug)]
pub(crate) struct Part<'a, T> {
    pub server: usize,
    pub requests: Vec<Request<'a>>,
    places: Vec<usize>,
    /// What a reply means, which is the same for all.
    read: fn(Code, Details) -> Option<Result<T, Error>>,
    /// Bytes of all values.
    bytes: usize,
}

/// The values that are known before anybody was asked.
#[derive(Debug)]
pub(crate) struct Known<T> {
    pub many: Many<T>,
    /// By the keys' places; empty if nothing is.
    pub is_known: Vec<bool>,
}

impl<T: Clone + Default> Known<T> {
    /// Nothing about so many keys.
    pub fn nothing(keys: usize) -> Self {
        Self {
            many: Many::new(keys),
            is_known: Vec::new(),
        }
    }
}

/// All parts, by servers.
#[derive(Debug)]
pub(crate) struct Parts<'a, T> {
    of_servers: Vec<Vec<Part<'a, T>>>,
}

impl<T: Clone + Default> Many<T> {
    pub(crate) fn new(keys: usize) -> Self {
        Self {
            values: vec![T::default(); keys],
            failed: Vec::new(),
        }
    }

    /// The values, or the first error.
    pub fn complete(self) -> Result<Vec<T>, Error> {
        match self.failed.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self.values),
        }
    }

    /// Takes the replies to a part. Returns why they can be no replies, if so: then the connection is of no more use.
    pub(crate) fn take(
        &mut self,
        part: &Part<'_, T>,
        replies: Result<Vec<Reply>, Error>,
    ) -> Option<String> {
        let replies = match replies {
            Ok(replies) => replies,
            Err(error) => {
                self.failed
                    .extend(part.places.iter().map(|&place| (place, error.clone())));
                return None;
            }
        };
        let mut fault = None;
        for ((reply, &request), &place) in replies.into_iter().zip(&part.requests).zip(&part.places)
        {
            let operation = Operation {
                request,
                read: part.read,
            };
            match operation.read(vec![reply]) {
                Ok(value) => self.values[place] = value,
                Err(error) => {
                    if let Error::Unexpected(reason) = &error {
                        fault = Some(reason.clone());
                    }
                    self.failed.push((place, error));
                }
            }
        }
        fault
    }
}

impl<'a, T: Clone + Default> Parts<'a, T> {
    /// Divides the operations on these keys, which `operation` makes of a key's place and the key. Those that cannot be sent
    /// fail at once. What is known already is not sent.
    pub fn new<K: AsRef<[u8]>>(
        keys: &'a [K],
        is_known: &[bool],
        options: &Options,
        server: impl Fn(&[u8]) -> usize,
        operation: impl Fn(usize, Key<'a>) -> Operation<'a, T>,
        many: &mut Many<T>,
    ) -> Self {
        let most = options.requests_max.clamp(1, REQUESTS_MAX);
        let mut of_servers: Vec<Vec<Part<'a, T>>> = Vec::new();
        for (place, key) in keys.iter().enumerate() {
            if is_known.get(place) == Some(&true) {
                continue;
            }
            let key = key.as_ref();
            let checked = Key::new(key).and_then(|key| operation(place, key).checked(options));
            let operation = match checked {
                Ok(operation) => operation,
                Err(error) => {
                    many.failed.push((place, error));
                    continue;
                }
            };
            let server = server(key);
            let at = of_servers
                .iter()
                .position(|parts| parts[0].server == server);
            let at = at.unwrap_or_else(|| {
                of_servers.push(vec![Part::new(server, operation.read)]);
                of_servers.len() - 1
            });
            let parts = &mut of_servers[at];
            // Large values travel in several parts: a part is copied as a whole.
            let is_full =
                |part: &Part<'_, T>| part.places.len() == most || part.bytes >= options.bytes_max;
            if parts.last().is_none_or(is_full) {
                parts.push(Part::new(server, operation.read));
            }
            if let Some(part) = parts.last_mut() {
                part.bytes += operation.request.value_length();
                part.requests.push(operation.request);
                part.places.push(place);
            }
        }
        // The first ones come off the end.
        of_servers.iter_mut().for_each(|parts| parts.reverse());
        Self { of_servers }
    }

    /// A part for each server that has one left, to be sent before any of them is waited for.
    pub fn next_round(&mut self) -> Option<Vec<Part<'a, T>>> {
        let round: Vec<_> = self.of_servers.iter_mut().filter_map(Vec::pop).collect();
        (!round.is_empty()).then_some(round)
    }
}

impl<T> Part<'_, T> {
    fn new(server: usize, read: fn(Code, Details) -> Option<Result<T, Error>>) -> Self {
        Self {
            server,
            requests: Vec::new(),
            places: Vec::new(),
            read,
            bytes: 0,
        }
    }
}
