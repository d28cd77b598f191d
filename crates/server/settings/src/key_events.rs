//! Which events about keys a server tells to those who have subscribed to them: Redis' `notify-keyspace-events`.

use std::fmt;
use std::str::FromStr;

/// What may happen to a key, or is told of it. Its bit in a set is its place here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Told by the key: `__keyspace@0__:KEY`.
    ByKey,
    /// Told by the event: `__keyevent@0__:EVENT`.
    ByEvent,
    /// What happens to a key whatever its type is: it is removed, gets a lifetime or another name.
    Generic,
    /// What happens to a plain value.
    Text,
    /// Its lifetime has ended.
    Expired,
    /// It was evicted because memory was short.
    Evicted,
}

/// The letters, in the order in which they are shown. Of what has no class there is nothing to tell here: data structures.
const LETTERS: [(char, Option<Class>); 12] = [
    ('g', Some(Class::Generic)),
    ('$', Some(Class::Text)),
    ('l', None),
    ('s', None),
    ('h', None),
    ('z', None),
    ('x', Some(Class::Expired)),
    ('e', Some(Class::Evicted)),
    ('t', None),
    ('d', None),
    ('K', Some(Class::ByKey)),
    ('E', Some(Class::ByEvent)),
];

/// How many of them `A` stands for, from the first on.
const ALL: usize = 10;
const ALL_BITS: u16 = (1 << ALL) - 1;

/// What was asked for, a bit for each letter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyEvents(u16);

impl KeyEvents {
    /// The set with these bits.
    pub fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// True if this is asked for.
    pub fn has(self, class: Class) -> bool {
        let mut letters = LETTERS.iter();
        let place = letters.position(|(_, its)| *its == Some(class));
        place.is_some_and(|place| self.0 & (1 << place) != 0)
    }

    /// True if anybody can be told of anything.
    pub fn tell_anything(self) -> bool {
        let ways = [Class::ByKey, Class::ByEvent];
        let classes = [Class::Generic, Class::Text, Class::Expired, Class::Evicted];
        ways.into_iter().any(|way| self.has(way))
            && classes.into_iter().any(|class| self.has(class))
    }
}

/// Redis' letters. Errors: one is none of them, or means what is not told here.
impl FromStr for KeyEvents {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let bits = text.chars().try_fold(0, |bits, letter| match letter {
            'A' => Ok(bits | ALL_BITS),
            'm' => Err("key misses (m) are not told here"),
            'n' => Err("new keys (n) are not told here"),
            _ => match LETTERS.iter().position(|(its, _)| *its == letter) {
                Some(place) => Ok(bits | (1 << place)),
                None => Err("Invalid event class character. Use 'Ag$lshzxeKEtd'."),
            },
        });
        bits.map(Self)
    }
}

/// As Redis shows them.
impl fmt::Display for KeyEvents {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = match self.0 & ALL_BITS == ALL_BITS {
            true => {
                out.write_str("A")?;
                ALL
            }
            false => 0,
        };
        for (place, (letter, _)) in LETTERS.iter().enumerate().skip(first) {
            if self.0 & (1 << place) != 0 {
                write!(out, "{letter}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Redis 8.0 shows what it was given.
    #[test]
    fn letters_are_shown_as_redis_shows_them() {
        for (given, shown) in [
            ("KEA", "AKE"),
            ("g$lshzxetdKE", "AKE"),
            ("", ""),
            ("A", "A"),
            ("ExK", "xKE"),
            ("KEg$lshzxet", "g$lshzxetKE"),
            ("tzhs$Kg", "g$shztK"),
        ] {
            let events: KeyEvents = given.parse().unwrap();
            assert_eq!(events.to_string(), shown, "{given}");
        }
        for wrong in ["KEq", "KEAm", "n", "K E"] {
            assert!(wrong.parse::<KeyEvents>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn it_takes_a_way_and_a_class_to_tell_anything() {
        for (text, tells) in [
            ("", false),
            ("K", false),
            ("A", false),
            ("Klshztd", false),
            ("Ex", true),
            ("Kg", true),
        ] {
            let events: KeyEvents = text.parse().unwrap();
            assert_eq!(events.tell_anything(), tells, "{text}");
        }
        let expired: KeyEvents = "Ex".parse().unwrap();
        assert!(expired.has(Class::Expired) && !expired.has(Class::Evicted));
        assert!(expired.has(Class::ByEvent) && !expired.has(Class::ByKey));
    }
}
