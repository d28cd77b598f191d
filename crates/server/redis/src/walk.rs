//! KEYS, SCAN, RANDOMKEY, DBSIZE: walks over the items; CLIENT LIST, a walk over the connections; PUBSUB CHANNELS, one over
//! names.

use std::collections::{HashSet, TryReserveError};

use nuthatch_base::memory::reserve::spare;
use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_engine::namespace::Namespace;
use nuthatch_engine::{Cursor, Engine, Handle};
use nuthatch_resp::{Error, Glob, Scan, Version, Writer};
use nuthatch_state::keyspace::{self, Count};
use nuthatch_state::scans::Position;
use nuthatch_state::telemetry::connections::Info;

use crate::channel_names::ChannelNames;
use crate::clients;

/// Places that a step of a KEYS looks at.
const KEYS_STEP: usize = 256;

/// The most bytes of the answer to KEYS: all of it must be in memory before its first byte is sent, because its header
/// has the number of keys. For more keys there is SCAN.
const KEYS_LEN_MAX: usize = 16 << 20;

/// The most items that a SCAN looks at.
const SCAN_MAX: u64 = 1000;

/// The most places that a SCAN looks at, most of them without an item: with a smaller number, a client of a server with
/// few items would get empty answers again and again.
const SCAN_PLACES: usize = 16 << 10;

/// Places that a SCAN looks at in one go where there are no items.
const SCAN_STRIDE: usize = 1 << 10;

/// The most bytes of keys that a SCAN compares, as often as its pattern has words: then it has done the work of a turn.
const SCAN_BYTES: usize = 1 << 20;

/// Of so many places as many as are looked at in one go, if their keys are compared with a pattern of so many words. Keys
/// may have 64 KiB, and patterns 16 words.
fn at_once(places: usize, words: usize) -> usize {
    (places / (words * words)).max(4)
}

/// Places that the first step of a RANDOMKEY looks at. The next begins behind them, so a larger number would leave more
/// items out.
const RANDOM_STEP: usize = 64;

/// Places that a step looks at where there are few items: of a DBSIZE, and of a RANDOMKEY that has found nothing.
const STRIDE: usize = 1 << 10;

/// Connections that a step of a CLIENT LIST looks at: none can be accepted or closed meanwhile.
const LIST_STEP: usize = 64;

/// A walk in progress: each step is short, and other connections are served between the steps of several turns.
pub enum Walk {
    /// Over the items.
    Items { cursor: Cursor, search: Search },
    /// CLIENT LIST, over the connections.
    Clients {
        /// The next place.
        place: usize,
        listed: Listed,
        text: String,
    },
    /// PUBSUB CHANNELS with a pattern.
    Channels(ChannelNames),
}

/// The connections that a CLIENT LIST shows.
pub enum Listed {
    All,
    /// Those that have subscribed, or those that have not.
    Subscribers(bool),
    /// Those with these serials.
    Of(HashSet<u64>),
}

impl Listed {
    fn has(&self, info: &Info) -> bool {
        // Its worker may not have closed it yet.
        if info.is_ended() {
            return false;
        }
        match self {
            Self::All => true,
            Self::Subscribers(those) => info.is_subscriber() == *those,
            Self::Of(serials) => serials.contains(&info.serial()),
        }
    }

    fn memory(&self) -> usize {
        match self {
            Self::All | Self::Subscribers(_) => 0,
            Self::Of(serials) => serials.capacity() * size_of::<(u64, u8)>(),
        }
    }
}

/// What a walk over the items looks for.
pub enum Search {
    /// KEYS: all keys of a namespace that match.
    Keys {
        namespace: Namespace,
        pattern: Glob,
        found: usize,
        /// The keys found, in the format of the answer.
        answer: Vec<u8>,
    },
    /// The number of items of each database.
    Each { count: Count, purpose: Purpose },
    /// RANDOMKEY: the key of an item of a namespace.
    Any {
        namespace: Namespace,
        key: Option<Box<[u8]>>,
        /// Places of the next step.
        step: usize,
        /// How often the walk was at the end. After the second time it has passed all items.
        ends: u32,
    },
}

/// Why the items of each database are counted.
pub enum Purpose {
    /// DBSIZE of the database that has this namespace.
    Size(Namespace),
    /// INFO, behind this text.
    Info(String),
}

impl Walk {
    /// True if it looks at no item.
    pub fn is_beside_items(&self) -> bool {
        matches!(self, Self::Clients { .. } | Self::Channels(_))
    }

    pub fn memory(&self) -> usize {
        let walked = match self {
            Self::Items { search, .. } => search.memory(),
            Self::Clients { listed, text, .. } => text.capacity() + listed.memory(),
            Self::Channels(names) => names.memory(),
        };
        size_of::<Self>() + walked
    }

    /// Looks at some more places. True if that was the last step. Errors: there is no memory for what was found.
    pub fn step(
        &mut self,
        cx: &mut Context<'_, '_>,
        version: Version,
    ) -> Result<bool, TryReserveError> {
        match self {
            Self::Items { cursor, search } => search.step(cx, cursor, version),
            Self::Channels(names) => names.step(cx),
            Self::Clients {
                place,
                listed,
                text,
            } => {
                let mut found = String::new();
                let registry = &cx.shared.telemetry.registry;
                let next = registry.some(*place, LIST_STEP, |info| {
                    if listed.has(info) {
                        found += &clients::line(info, cx.now);
                        found.push('\n');
                    }
                });
                cx.work.add(Work::of_commands(LIST_STEP));
                cx.work.add(Work::of_bytes(found.len()));
                spare(|| text.try_reserve(found.len()))?;
                text.push_str(&found);
                *place = next.unwrap_or_default();
                Ok(next.is_none())
            }
        }
    }

    /// Answers the command.
    pub fn answer(self, cx: &Context<'_, '_>, turn: &mut Turn, version: Version) {
        match self {
            Self::Items { cursor, search } => search.answer(cx, turn, version, cursor),
            Self::Channels(names) => names.answer(turn, version),
            Self::Clients { text, .. } => {
                match turn.makes_room(text.len()) {
                    true => Writer::new(turn.output.text(), version).text(&text),
                    false => Writer::new(turn.output.text(), version).error(&Error::OUT_OF_MEMORY),
                }
                turn.spend(Work::of_bytes(text.len()));
            }
        }
    }
}

impl Search {
    fn memory(&self) -> usize {
        match self {
            Self::Keys {
                pattern, answer, ..
            } => pattern.memory() + answer.capacity(),
            Self::Each { purpose, .. } => match purpose {
                Purpose::Size(_) => 0,
                Purpose::Info(text) => text.capacity(),
            },
            Self::Any { key, .. } => key.as_ref().map_or(0, |key| key.len()),
        }
    }

    /// Looks at some more places. True if that was the last step. Errors: there is no memory for what was found.
    fn step(
        &mut self,
        cx: &mut Context<'_, '_>,
        cursor: &mut Cursor,
        version: Version,
    ) -> Result<bool, TryReserveError> {
        let (places, weight) = match self {
            Self::Keys { pattern, .. } => (at_once(KEYS_STEP, pattern.words()), pattern.words()),
            Self::Each { .. } => (STRIDE, 1),
            Self::Any { step, .. } => (*step, 1),
        };
        // An engine copies an item to show it.
        let mut shown = 0;
        // Not into the answer, which may be large: whoever is called by the engine cannot fail.
        let mut matching = Vec::new();
        let next = cx.handle.visit(cx.now, *cursor, places, &mut |visit| {
            shown += visit.key.len() + visit.value.len();
            let (its, name) = Namespace::split(visit.key);
            match self {
                Self::Keys {
                    namespace,
                    pattern,
                    found,
                    ..
                } => {
                    if *namespace == its && pattern.matches(name) {
                        Writer::new(&mut matching, version).bulk(name);
                        *found += 1;
                    }
                }
                Self::Each { count, .. } => count.add(its),
                Self::Any { namespace, key, .. } => {
                    if *namespace == its {
                        key.get_or_insert_with(|| name.into());
                    }
                }
            }
        });
        cx.work.add(Work::of_places(places).times(weight));
        cx.work.add(Work::of_bytes(shown).times(weight));
        *cursor = next.unwrap_or_default();
        let at_end = next.is_none();
        Ok(match self {
            Self::Keys { answer, .. } => {
                spare(|| answer.try_reserve(matching.len()))?;
                answer.extend_from_slice(&matching);
                at_end || is_too_long(answer, cx)
            }
            Self::Each { .. } => at_end,
            Self::Any {
                key, step, ends, ..
            } => {
                *step = (2 * *step).min(STRIDE);
                *ends += u32::from(at_end);
                key.is_some() || *ends == 2
            }
        })
    }

    /// Answers the command.
    fn answer(self, cx: &Context<'_, '_>, turn: &mut Turn, version: Version, cursor: Cursor) {
        let is_answered = match &self {
            Self::Keys { answer, .. } => turn.makes_room(answer.len()),
            _ => true,
        };
        let mut writer = Writer::new(turn.output.text(), version);
        match self {
            _ if !is_answered => writer.error(&Error::OUT_OF_MEMORY),
            Self::Keys { answer, .. } if is_too_long(&answer, cx) => {
                writer.error(&Error::KEYS_TOO_MANY);
            }
            Self::Keys { found, answer, .. } => {
                writer.array(found);
                turn.output.text().extend_from_slice(&answer);
                turn.spend(Work::of_bytes(answer.len()));
            }
            Self::Each { count, purpose } => {
                cx.shared.walks.count.set(count, cx.now);
                match purpose {
                    // Zero: it had been flushed when the walk began.
                    Purpose::Size(of) => writer.integer(count.of(of).unwrap_or(0) as i64),
                    Purpose::Info(text) => {
                        let live = count.by_database(&cx.shared.databases.mapping());
                        writer.text(&(text + &keyspace::lines(&live)));
                    }
                }
            }
            Self::Any { key, .. } => {
                cx.shared.walks.set_random(cursor);
                match key {
                    Some(key) => writer.bulk(&key),
                    None => writer.null(),
                }
            }
        }
    }
}

/// True if the answer to a KEYS is longer than allowed, or if its connection would be closed for what it holds.
fn is_too_long(answer: &Vec<u8>, cx: &Context<'_, '_>) -> bool {
    answer.len() > KEYS_LEN_MAX || answer.capacity() > cx.shared.accounts.buffers.bound() / 8 * 7
}

/// A CLIENT LIST of these connections.
pub fn list(listed: Listed) -> Walk {
    Walk::Clients {
        place: 0,
        listed,
        text: String::new(),
    }
}

/// A count of the items of each database.
pub fn each(cx: &Context<'_, '_>, purpose: Purpose) -> Walk {
    Walk::Items {
        cursor: Cursor::default(),
        search: Search::Each {
            count: Count::new(cx.now, cx.shared.databases.mapping()),
            purpose,
        },
    }
}

/// KEYS.
pub fn keys(pattern: &[u8], namespace: Namespace) -> Walk {
    Walk::Items {
        cursor: Cursor::default(),
        search: Search::Keys {
            namespace,
            pattern: Glob::new(pattern),
            found: 0,
            answer: Vec::new(),
        },
    }
}

/// RANDOMKEY: the key of some item, of another one each time, in an order that a client cannot know. `None` if there is
/// no item.
pub fn random(cx: &Context<'_, '_>) -> Option<Walk> {
    (cx.shared.engine.stats().items > 0).then(|| Walk::Items {
        cursor: cx.shared.walks.random(),
        search: Search::Any {
            namespace: cx.namespace,
            key: None,
            step: RANDOM_STEP,
            ends: 0,
        },
    })
}

/// DBSIZE: the number of items, if it is known.
pub fn size(cx: &Context<'_, '_>) -> Result<Walk, u64> {
    match keyspace::known_of(cx.shared, cx.now, cx.namespace) {
        Some(items) => Err(items),
        None => Ok(each(cx, Purpose::Size(cx.namespace))),
    }
}

/// SCAN.
pub fn scan(cx: &mut Context<'_, '_>, turn: &mut Turn, version: Version, scan: &Scan<'_>) {
    let scans = &cx.shared.walks.scans;
    let mut next = match scans.find(scan.cursor) {
        Some(Position::At(cursor)) => Some(cursor),
        Some(Position::End) => None,
        None => return Writer::new(turn.output.text(), version).error(&Error::CURSOR_UNKNOWN),
    };
    let (own, pattern) = (cx.namespace, scan.pattern.map(Glob::new));
    let mut found = 0;
    let mut keys = Vec::new();
    let budget = scan.count.min(SCAN_MAX) as usize;
    let weight = pattern.as_ref().map_or(1, Glob::words);
    let few = at_once(budget, weight).min(budget);
    let many = at_once(SCAN_STRIDE.max(budget), weight);
    let (mut looked_at, mut places, mut stride) = (0, 0, few);
    let (mut shown, mut compared) = (0, 0);
    while let Some(cursor) = next
        && looked_at < budget
        && places < SCAN_PLACES
        && compared * weight < SCAN_BYTES
    {
        let before = looked_at;
        next = cx.handle.visit(cx.now, cursor, stride, &mut |visit| {
            looked_at += 1;
            compared += visit.key.len();
            shown += visit.key.len() + visit.value.len();
            let (its, name) = Namespace::split(visit.key);
            let wanted = its == own && pattern.as_ref().is_none_or(|pattern| pattern.matches(name));
            if wanted && scan.of_values {
                Writer::new(&mut keys, version).bulk(name);
                found += 1;
            }
        });
        places += stride;
        stride = match looked_at == before {
            true => (2 * stride).min(many),
            false => few,
        };
    }
    let number = next.map_or(0, |next| scans.keep(next));
    let mut writer = Writer::new(turn.output.text(), version);
    writer.array(2);
    writer.bulk(number.to_string().as_bytes());
    writer.array(found);
    turn.output.text().extend_from_slice(&keys);
    turn.spend(Work::of_places(places).times(weight));
    turn.spend(Work::of_bytes(shown).times(weight));
}
