//! Histories as words: the format in which processes send their parts of one to the process that judges it.

use nuthatch_engine::{Expiry, Reply, StoreMode, Time};

use super::act::{Act, Observed, Text, Traits};
use super::{Event, Recorded};

const MODES: [StoreMode; 5] = [
    StoreMode::Set,
    StoreMode::Add,
    StoreMode::Replace,
    StoreMode::Append,
    StoreMode::Prepend,
];

/// Replies without an item.
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
const WORDS: usize = 16;

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

fn of_expiry(expiry: Expiry) -> u64 {
    match expiry {
        Expiry::Never => u64::MAX,
        Expiry::At(time) => time.0.into(),
    }
}

fn expiry_of(word: u64) -> Expiry {
    match word {
        u64::MAX => Expiry::Never,
        tick => Expiry::At(Time(tick as u32)),
    }
}

fn of_act(act: &Act) -> [u64; 4] {
    match *act {
        Act::Get => [0, 0, 0, 0],
        Act::Look => [1, 0, 0, 0],
        Act::Store(mode, text, end) => [2, place(&MODES, &mode), of_text(text), of_expiry(end)],
        Act::Cas(text, cas) => [3, cas, of_text(text), 0],
        Act::Delete => [4, 0, 0, 0],
        Act::DeleteCas(cas) => [5, cas, 0, 0],
        Act::Up(by) => [6, by.into(), 0, 0],
        Act::Vivify => [7, 0, 0, 0],
        Act::Win => [8, 0, 0, 0],
        Act::Touch(end) => [9, of_expiry(end), 0, 0],
        Act::GetAndTouch(end) => [10, of_expiry(end), 0, 0],
        Act::AppendOrStore(text, end) => [11, of_expiry(end), of_text(text), 0],
        Act::CasOrStale(text, cas) => [12, cas, of_text(text), 0],
        Act::Invalidate(cas) => [13, cas, 0, 0],
        Act::Empty(cas) => [14, cas, 0, 0],
        Act::UpOrStore(by, end) => [15, by.into(), of_expiry(end), 0],
        Act::Down(by) => [16, by.into(), 0, 0],
        Act::Flush(at) => [17, at.0.into(), 0, 0],
    }
}

fn act_of([kind, one, two, three]: [u64; 4]) -> Act {
    match kind {
        0 => Act::Get,
        1 => Act::Look,
        2 => Act::Store(MODES[one as usize], text_of(two), expiry_of(three)),
        3 => Act::Cas(text_of(two), one),
        4 => Act::Delete,
        5 => Act::DeleteCas(one),
        6 => Act::Up(one as u8),
        7 => Act::Vivify,
        8 => Act::Win,
        9 => Act::Touch(expiry_of(one)),
        10 => Act::GetAndTouch(expiry_of(one)),
        11 => Act::AppendOrStore(text_of(two), expiry_of(one)),
        12 => Act::CasOrStale(text_of(two), one),
        13 => Act::Invalidate(one),
        14 => Act::Empty(one),
        15 => Act::UpOrStore(one as u8, expiry_of(two)),
        16 => Act::Down(one as u8),
        _ => Act::Flush(Time(one as u32)),
    }
}

fn of_traits(traits: &Traits) -> [u64; 2] {
    let marks = [traits.stale, traits.won, traits.won_before].map(u64::from);
    let end = of_expiry(traits.expiry).min(u32::MAX.into());
    let marks = marks[0] | marks[1] << 1 | marks[2] << 2;
    [traits.cas, end << 3 | marks]
}

fn traits_of([cas, word]: [u64; 2]) -> Traits {
    let expiry = match word >> 3 {
        end if end == u64::from(u32::MAX) => Expiry::Never,
        end => expiry_of(end),
    };
    Traits {
        cas,
        expiry,
        stale: word & 1 != 0,
        won: word & 2 != 0,
        won_before: word & 4 != 0,
    }
}

fn of_told(told: &Observed) -> ([u64; 4], &[u8]) {
    match told {
        Observed::Value(value, traits) => {
            let [cas, rest] = of_traits(traits);
            ([0, value.len() as u64, cas, rest], value)
        }
        Observed::Item(len, traits) => {
            let [cas, rest] = of_traits(traits);
            ([1, *len as u64, cas, rest], b"")
        }
        Observed::New(len, cas) => ([2, *len as u64, *cas, 0], b""),
        Observed::Number(number, cas) => ([3, *number, *cas, 0], b""),
        Observed::Plain(reply) => ([4, place(&PLAIN, reply), 0, 0], b""),
        Observed::Nothing => ([5, 0, 0, 0], b""),
    }
}

fn told_of([kind, one, cas, rest]: [u64; 4], bytes: &[u64]) -> Observed {
    match kind {
        0 => {
            let bytes = bytes.iter().flat_map(|word| word.to_le_bytes());
            let value = bytes.take(one as usize).collect();
            Observed::Value(value, traits_of([cas, rest]))
        }
        1 => Observed::Item(one as usize, traits_of([cas, rest])),
        2 => Observed::New(one as usize, cas),
        3 => Observed::Number(one, cas),
        4 => Observed::Plain(PLAIN[one as usize]),
        _ => Observed::Nothing,
    }
}

/// Converts recorded events to words.
pub fn to_words(recorded: &[Recorded]) -> Vec<u64> {
    let mut words = Vec::new();
    for ((generation, key), event) in recorded {
        let (told, value) = of_told(&event.told);
        let places = [*generation, *key, event.thread, event.batch];
        words.extend(places.map(|place| place as u64));
        words.extend([event.began, event.ended].map(|time| time as u64));
        words.extend([event.now, event.until].map(|moment| u64::from(moment.0)));
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

/// Converts words back to recorded events. Panics if they encode none.
pub fn from_words(mut words: &[u64]) -> Vec<Recorded> {
    let mut recorded = Vec::new();
    while !words.is_empty() {
        let (head, rest) = words.split_at(WORDS);
        let told: [u64; 4] = head[12..].try_into().expect("four are left");
        let bytes = match told[0] {
            0 => (told[1] as usize).div_ceil(8),
            _ => 0,
        };
        let place = |at: usize| head[at] as usize;
        let event = Event {
            thread: place(2),
            batch: place(3),
            began: place(4),
            ended: place(5),
            now: Time(head[6] as u32),
            until: Time(head[7] as u32),
            act: act_of([head[8], head[9], head[10], head[11]]),
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
        let end = Expiry::At(Time(77));
        let acts = [
            Act::Get,
            Act::Look,
            Act::Win,
            Act::Touch(end),
            Act::GetAndTouch(Expiry::Never),
            Act::Vivify,
            Act::AppendOrStore(text, end),
            Act::Cas(text, 9),
            Act::CasOrStale(text, 9),
            Act::Delete,
            Act::DeleteCas(8),
            Act::Invalidate(7),
            Act::Empty(6),
            Act::Up(3),
            Act::UpOrStore(4, end),
            Act::Down(5),
            Act::Flush(Time(78)),
        ];
        let stores = MODES.map(|mode| Act::Store(mode, text, end));
        let traits = |cas, expiry| Traits {
            cas,
            expiry,
            stale: cas & 1 != 0,
            won: cas & 2 != 0,
            won_before: cas & 4 != 0,
        };
        let mut tolds = vec![
            Observed::Value(text.bytes(), traits(4, end)),
            Observed::Value(Vec::new(), traits(3, Expiry::Never)),
            Observed::Item(6, traits(5, end)),
            Observed::New(8, 9),
            Observed::Number(u64::MAX, 10),
            Observed::Nothing,
        ];
        tolds.extend(PLAIN.map(Observed::Plain));
        let all = acts.into_iter().chain(stores);
        let recorded: Vec<Recorded> = all
            .enumerate()
            .map(|(number, act)| {
                let event = Event {
                    thread: number,
                    batch: 2 * number,
                    now: Time(number as u32),
                    until: Time(2 * number as u32),
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
