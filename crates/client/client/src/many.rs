//! A get of many keys, divided among servers.

use crate::Error;
use crate::key::Key;
use crate::operation;
use crate::wire::{Reply, Request};

/// The most requests in one call, so that other calls come in between.
const REQUESTS_MAX: usize = 1024;

/// What a get of many keys found.
#[derive(Clone, Debug)]
pub struct Many {
    /// The values, in the order of the keys. None: there is none, or its server failed.
    pub values: Vec<Option<Vec<u8>>>,
    /// Which keys failed, by their places, and why.
    pub failed: Vec<(usize, Error)>,
}

/// Requests to one server, with their keys' places.
#[derive(Debug)]
pub(crate) struct Part<'a> {
    pub server: usize,
    pub requests: Vec<Request<'a>>,
    places: Vec<usize>,
}

/// All parts, by servers.
#[derive(Debug)]
pub(crate) struct Parts<'a> {
    of_servers: Vec<Vec<Part<'a>>>,
}

impl Many {
    pub(crate) fn new(keys: usize) -> Self {
        Self {
            values: vec![None; keys],
            failed: Vec::new(),
        }
    }

    /// The values, or the first error.
    pub fn complete(self) -> Result<Vec<Option<Vec<u8>>>, Error> {
        match self.failed.into_iter().next() {
            Some((_, error)) => Err(error),
            None => Ok(self.values),
        }
    }

    /// Takes the replies to a part. Returns why they can be no replies, if so: then the connection is of no more use.
    pub(crate) fn take(
        &mut self,
        part: &Part<'_>,
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
        for ((reply, request), &place) in replies.into_iter().zip(&part.requests).zip(&part.places)
        {
            let Request::Get { key, .. } = *request else {
                continue;
            };
            match operation::get(key).read(vec![reply]) {
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

impl<'a> Parts<'a> {
    /// Divides keys, which come with their places. Those that are none fail at once.
    pub fn new<K: AsRef<[u8]> + 'a>(
        keys: impl Iterator<Item = (usize, &'a K)>,
        requests_max: usize,
        server: impl Fn(&[u8]) -> usize,
        many: &mut Many,
    ) -> Self {
        let most = requests_max.clamp(1, REQUESTS_MAX);
        let mut of_servers: Vec<Vec<Part<'a>>> = Vec::new();
        for (place, key) in keys {
            let key = key.as_ref();
            let checked = match Key::new(key) {
                Ok(checked) => checked,
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
                of_servers.push(vec![Part::new(server)]);
                of_servers.len() - 1
            });
            let parts = &mut of_servers[at];
            if parts.last().is_none_or(|part| part.places.len() == most) {
                parts.push(Part::new(server));
            }
            if let Some(part) = parts.last_mut() {
                part.requests.push(operation::get(checked).request);
                part.places.push(place);
            }
        }
        // The first ones come off the end.
        of_servers.iter_mut().for_each(|parts| parts.reverse());
        Self { of_servers }
    }

    /// A part for each server that has one left, to be sent before any of them is waited for.
    pub fn next_round(&mut self) -> Option<Vec<Part<'a>>> {
        let round: Vec<_> = self.of_servers.iter_mut().filter_map(Vec::pop).collect();
        (!round.is_empty()).then_some(round)
    }
}

impl Part<'_> {
    fn new(server: usize) -> Self {
        Self {
            server,
            requests: Vec::new(),
            places: Vec::new(),
        }
    }
}
