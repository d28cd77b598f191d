//! Settings of Redis that its clients set and that change nothing here: they are checked, kept and shown.

use std::collections::BTreeMap;

use nuthatch_base::sync::mutex::Mutex;

/// The form of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// A number, which may be negative.
    Number,
    /// yes or no.
    YesNo,
}

/// The settings, with what Redis has by default.
const SETTINGS: &[(&str, Form, &str)] = &[
    ("activedefrag", Form::YesNo, "no"),
    ("activerehashing", Form::YesNo, "yes"),
    ("busy-reply-threshold", Form::Number, "5000"),
    ("hz", Form::Number, "10"),
    ("latency-monitor-threshold", Form::Number, "0"),
    ("lazyfree-lazy-eviction", Form::YesNo, "no"),
    ("lazyfree-lazy-expire", Form::YesNo, "no"),
    ("lazyfree-lazy-server-del", Form::YesNo, "no"),
    ("lazyfree-lazy-user-del", Form::YesNo, "no"),
    ("lazyfree-lazy-user-flush", Form::YesNo, "no"),
    ("lfu-decay-time", Form::Number, "1"),
    ("lfu-log-factor", Form::Number, "10"),
    ("maxmemory-samples", Form::Number, "5"),
    ("slowlog-log-slower-than", Form::Number, "10000"),
    ("slowlog-max-len", Form::Number, "128"),
    ("tcp-keepalive", Form::Number, "300"),
];

/// Why a value is refused, in Redis' words.
pub type Reason = &'static str;

/// What was set.
#[derive(Default)]
pub struct Noted {
    changed: Mutex<BTreeMap<&'static str, String>>,
}

impl Noted {
    /// All settings, with their values.
    pub fn all(&self) -> Vec<(&'static str, String)> {
        let changed = self.changed.lock();
        let value = |name, default: &str| match changed.get(name) {
            Some(value) => value.clone(),
            None => default.to_owned(),
        };
        let settings = SETTINGS.iter();
        settings
            .map(|(name, _, default)| (*name, value(name, default)))
            .collect()
    }

    /// The value to be kept of a setting. `None` if it is not one of these.
    pub fn check(&self, name: &str, value: &[u8]) -> Option<Result<String, Reason>> {
        let (_, form, _) = SETTINGS.iter().find(|(known, ..)| *known == name)?;
        Some(match form {
            Form::Number => number(value).ok_or("argument couldn't be parsed into an integer"),
            Form::YesNo => yes_no(value).ok_or("argument must be 'yes' or 'no'"),
        })
    }

    /// Keeps values that were checked.
    pub fn keep(&self, values: impl IntoIterator<Item = (&'static str, String)>) {
        self.changed.lock().extend(values);
    }
}

fn number(value: &[u8]) -> Option<String> {
    let number: i64 = std::str::from_utf8(value).ok()?.parse().ok()?;
    Some(number.to_string())
}

fn yes_no(value: &[u8]) -> Option<String> {
    let mut words = ["yes", "no"].into_iter();
    let word = words.find(|word| value.eq_ignore_ascii_case(word.as_bytes()))?;
    Some(word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_set_is_shown() {
        let noted = Noted::default();
        assert!(SETTINGS.is_sorted_by_key(|(name, ..)| *name));
        assert_eq!(noted.check("maxmemory", b"5"), None);
        let value = noted.check("hz", b"100").unwrap().unwrap();
        noted.keep([("hz", value)]);
        assert!(noted.all().contains(&("hz", "100".to_owned())));
        assert!(noted.check("hz", b"many").unwrap().is_err());
        assert_eq!(
            noted.check("activedefrag", b"YES"),
            Some(Ok("yes".to_owned()))
        );
        assert!(noted.check("activedefrag", b"1").unwrap().is_err());
        assert_eq!(noted.all().len(), SETTINGS.len());
    }
}
