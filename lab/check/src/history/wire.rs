//! Histories as words: what processes that recorded parts of one send to the one that judges it.

use nuthatch_engine::{Reply, StoreMode};

use super::act::{Act, Observed, Text};
use super::{Event, Recorded};

const MODES: [StoreMode; 5] = [
    StoreMode::Set,
    StoreMode::Add,
    StoreMode::Replace,
    StoreMode::Append,
    StoreMode::Prepend,
];

/// Replies that say nothing of an item.
const PLAIN: [Reply; 8] = [
    Reply::Miss,
    Reply::NotStored,
    Reply::Exists,
    Reply::NotFound,
    Reply::Removed,
    Reply::NotNumeric,
    Reply::TooLarge,
    Reply::OutOfMemory,
];

/// Words of an event, before the bytes of its value.
const WORDS: usize = 13;

fn place<T: PartialEq>(all: &[T], one: &T) -> u64 {
    let at = all.iter().position(|other| other == one);
    at.expect("the list has all that histories know") as u64
}

fn of_text(text: Text) -> u64 {
    u64::from(text.digit) << 32 | text.len as u64
}

fn text_of(word: u64) -> Text {
    Text {
        digit: (word >> 32) as u8,
        len: word as u32 as usize,
    }
}

fn of_act(act: &Act) -> [u64; 3] {
    match *act {
        Act::Get => [0, 0, 0],
        Act::Look => [1, 0, 0],
        Act::Store(mode, text) => [2, place(&MODES, &mode), of_text(text)],
        Act::Cas(text, cas) => [3, cas, of_text(text)],
        Act::Delete => [4, 0, 0],
        Act::DeleteCas(cas) => [5, cas, 0],
        Act::Up(by) => [6, by.into(), 0],
        Act::Vivify => [7, 0, 0],
    }
}

fn act_of([kind, one, other]: [u64; 3]) -> Act {
    match kind {
        0 => Act::Get,
        1 => Act::Look,
        2 => Act::Store(MODES[one as usize], text_of(other)),
        3 => Act::Cas(text_of(other), one),
        4 => Act::Delete,
        5 => Act::DeleteCas(one),
        6 => Act::Up(one as u8),
        _ => Act::Vivify,
    }
}

fn of_told(told: &Observed) -> ([u64; 4], &[u8]) {
    match told {
        Observed::Value(value, cas) => ([0, *cas, value.len() as u64, 0], value),
        Observed::Item(len, cas, won) => ([1, *cas, *len as u64, u64::from(*won)], b""),
        Observed::New(len, cas) => ([2, *cas, *len as u64, 0], b""),
        Observed::Number(number, cas) => ([3, *cas, *number, 0], b""),
        Observed::Plain(reply) => ([4, 0, place(&PLAIN, reply), 0], b""),
    }
}

fn told_of([kind, cas, one, other]: [u64; 4], bytes: &[u64]) -> Observed {
    match kind {
        0 => {
            let bytes = bytes.iter().flat_map(|word| word.to_le_bytes());
            Observed::Value(bytes.take(one as usize).collect(), cas)
        }
        1 => Observed::Item(one as usize, cas, other != 0),
        2 => Observed::New(one as usize, cas),
        3 => Observed::Number(one, cas),
        _ => Observed::Plain(PLAIN[one as usize]),
    }
}

/// What was recorded, as words.
pub fn to_words(recorded: &[Recorded]) -> Vec<u64> {
    let mut words = Vec::new();
    for ((generation, key), event) in recorded {
        let (told, value) = of_told(&event.told);
        let places = [*generation, *key, event.thread, event.batch];
        words.extend(places.map(|place| place as u64));
        words.extend([event.began, event.ended].map(|time| time as u64));
        words.extend(of_act(&event.act));
        words.extend(told);
        words.extend(value.chunks(8).map(|bytes| {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_le_bytes(word)
        }));
    }
    words
}

/// What these words say was recorded. Panics if they say nothing.
pub fn from_words(mut words: &[u64]) -> Vec<Recorded> {
    let mut recorded = Vec::new();
    while !words.is_empty() {
        let (head, rest) = words.split_at(WORDS);
        let told: [u64; 4] = head[9..].try_into().expect("four are left");
        let bytes = match told[0] {
            0 => (told[2] as usize).div_ceil(8),
            _ => 0,
        };
        let place = |at: usize| head[at] as usize;
        let event = Event {
            thread: place(2),
            batch: place(3),
            began: place(4),
            ended: place(5),
            act: act_of([head[6], head[7], head[8]]),
            told: told_of(told, &rest[..bytes]),
        };
        recorded.push(((place(0), place(1)), event));
        words = &rest[bytes..];
    }
    recorded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_comes_back() {
        let text = Text {
            digit: b'7',
            len: 20_000,
        };
        let acts = [
            Act::Get,
            Act::Look,
            Act::Cas(text, 9),
            Act::Delete,
            Act::DeleteCas(8),
            Act::Up(3),
            Act::Vivify,
        ];
        let stores = MODES.map(|mode| Act::Store(mode, text));
        let mut tolds = vec![
            Observed::Value(text.bytes(), 4),
            Observed::Value(Vec::new(), 5),
            Observed::Item(6, 7, true),
            Observed::New(8, 9),
            Observed::Number(u64::MAX, 10),
        ];
        tolds.extend(PLAIN.map(Observed::Plain));
        let all = acts.into_iter().chain(stores);
        let recorded: Vec<Recorded> = all
            .enumerate()
            .map(|(number, act)| {
                let event = Event {
                    thread: number,
                    batch: 2 * number,
                    act,
                    told: tolds[number % tolds.len()].clone(),
                    began: 3 * number,
                    ended: super::super::PENDING,
                };
                ((number, 1), event)
            })
            .collect();
        let back = from_words(&to_words(&recorded));
        assert_eq!(format!("{back:?}"), format!("{recorded:?}"));
    }
}
