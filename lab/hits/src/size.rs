//! Sizes of a cache, as typed, and converted to bytes or items of a trace.

use std::fmt::{self, Display};
use std::str::FromStr;

use clap::ValueEnum;

use crate::trace::Trace;

/// The unit of a cache's size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    /// Bytes of values, and --overhead for each item
    Bytes,
    /// Items, whatever their size
    Items,
}

/// The size of a cache.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheSize {
    /// As it was typed.
    text: String,
    amount: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Amount {
    Percent(f64),
    Absolute(u64),
}

impl CacheSize {
    /// For a trace: bytes or items, at least 1.
    pub fn of(&self, trace: &Trace, by: By) -> u64 {
        match self.amount {
            Amount::Absolute(size) => size,
            Amount::Percent(percent) => {
                let whole = whole(trace, by) as f64;
                ((whole * percent / 100.0).round() as u64).max(1)
            }
        }
    }

    /// The percentage, if it was given as one.
    pub fn percent(&self) -> Option<f64> {
        match self.amount {
            Amount::Percent(percent) => Some(percent),
            Amount::Absolute(_) => None,
        }
    }
}

/// 100 % of a trace: all its values, each key's once, or all its keys.
pub fn whole(trace: &Trace, by: By) -> u64 {
    match by {
        By::Bytes => trace.distinct_bytes(),
        By::Items => trace.keys.len() as u64,
    }
}

impl FromStr for CacheSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let amount = match text.strip_suffix('%') {
            Some(percent) => {
                let percent: Option<f64> = percent.parse().ok();
                percent
                    .filter(|percent| *percent > 0.0 && *percent <= 100.0)
                    .map(Amount::Percent)
                    .ok_or_else(|| format!("`{text}`: more than 0 and up to 100 % expected"))?
            }
            None => match nuthatch_program::size::parse(text).map_err(|error| error.to_string())? {
                0 => return Err("a size of at least 1 is expected".to_owned()),
                size => Amount::Absolute(size as u64),
            },
        };
        let text = text.to_owned();
        Ok(Self { text, amount })
    }
}

impl Display for CacheSize {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(&self.text)
    }
}

/// Bytes in words: three digits and a unit of a power of 1024.
pub fn bytes_in_words(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut amount = bytes as f64;
    let mut unit = 0;
    while amount >= 999.5 && unit + 1 < UNITS.len() {
        amount /= 1024.0;
        unit += 1;
    }
    let digits = match amount {
        _ if unit == 0 => 0,
        small if small < 9.95 => 2,
        middle if middle < 99.5 => 1,
        _ => 0,
    };
    format!("{amount:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::tests::{options, read};

    #[test]
    fn sizes_as_typed() {
        let trace = read("t", b"a 100\nb 300\na 7\n", &options()).unwrap();
        let of = |text: &str, by| text.parse::<CacheSize>().unwrap().of(&trace, by);
        assert_eq!(of("10%", By::Bytes), 40);
        assert_eq!(of("50%", By::Items), 1);
        assert_eq!(of("0.001%", By::Bytes), 1);
        assert_eq!(of("64k", By::Bytes), 65_536);
        assert_eq!(of("3", By::Items), 3);
        for wrong in ["", "0", "0%", "101%", "x", "nan%", "-1%"] {
            assert!(wrong.parse::<CacheSize>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_have_three_digits() {
        for (bytes, words) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "0.98 KiB"),
            (20_976_640, "20.0 MiB"),
            (1 << 40, "1.00 TiB"),
            (1_047_527_424, "999 MiB"),
        ] {
            assert_eq!(bytes_in_words(bytes), words);
        }
    }
}
