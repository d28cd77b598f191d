//! Lists of what offended a rule when it was made: a ratchet, whose numbers only fall.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::Fault;

/// A list: what is allowed to be more than the rule's limit, and how much it may be.
///
/// A line is `KEY = NUMBER`, perhaps with a reason behind `#`. Lines that begin with `#` stand above all others.
#[derive(Debug, Default)]
pub struct Allowances {
    /// The list's file, from the repository's root.
    pub path: PathBuf,
    head: String,
    allowed: BTreeMap<String, Allowed>,
}

#[derive(Debug, Default)]
struct Allowed {
    number: usize,
    reason: Option<String>,
}

/// How a list is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Only what it allows needlessly changes.
    Shrink,
    /// All becomes as it was found: for a change whose reviewers see what grows, and for new names of packages.
    Raise,
}

/// What a rule allows.
#[derive(Debug, Clone, Copy)]
pub struct Limit {
    /// What needs no allowance.
    pub most: usize,
    /// How far an allowance may be above what was found before it must be lowered.
    pub slack: usize,
    /// What is counted.
    pub unit: &'static str,
}

/// How much was found under a key, and where.
#[derive(Debug, Clone)]
pub struct Found {
    /// How much.
    pub number: usize,
    /// The file.
    pub path: PathBuf,
    /// The line; 0 if it is the whole file.
    pub line: usize,
}

impl Allowances {
    /// A list with this text. A line that is none allows nothing, so that it is noticed.
    pub fn read(path: &Path, text: &str) -> Self {
        let mut list = Self {
            path: path.to_path_buf(),
            ..Self::default()
        };
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            if line.starts_with('#') {
                let _ = writeln!(list.head, "{line}");
                continue;
            }
            let (entry, reason) = match line.split_once('#') {
                Some((entry, reason)) => (entry.trim(), Some(reason.trim().to_owned())),
                None => (line.trim(), None),
            };
            let (key, number) = entry.rsplit_once(" = ").unwrap_or((entry, "0"));
            let number = number.parse().unwrap_or(0);
            list.allowed
                .insert(key.to_owned(), Allowed { number, reason });
        }
        list
    }

    /// What is more than it may be, and what the list allows needlessly.
    pub fn faults(&self, found: &BTreeMap<String, Found>, limit: Limit) -> Vec<Fault> {
        let Limit { most, slack, unit } = limit;
        let mut faults = Vec::new();
        for (key, at) in found {
            let allowed = self.allowed.get(key).map_or(most, |allowed| allowed.number);
            if at.number > allowed {
                let text = format!("{key} = {} {unit}; at most {allowed}", at.number);
                faults.push(Fault::new(&at.path, at.line, text));
            }
        }
        for (
            key,
            &Allowed {
                number: allowed, ..
            },
        ) in &self.allowed
        {
            let number = found.get(key).map_or(0, |at| at.number);
            if number <= most {
                let text = format!("`{key}` needs no allowance any more; TIDY=shrink removes it");
                faults.push(Fault::new(&self.path, 0, text));
            } else if number + slack < allowed {
                let text = format!(
                    "`{key}` has {number} {unit}, {allowed} allowed; TIDY=shrink lowers it"
                );
                faults.push(Fault::new(&self.path, 0, text));
            }
        }
        faults
    }

    /// The list's text with what was found in place of what it allows, as far as this change goes.
    pub fn changed(&self, found: &BTreeMap<String, Found>, limit: Limit, change: Change) -> String {
        let mut text = self.head.clone();
        for (key, at) in found.iter().filter(|(_, at)| at.number > limit.most) {
            let before = self.allowed.get(key);
            let allowed = before.map_or(0, |allowed| allowed.number);
            let number = if at.number > allowed && change == Change::Raise {
                // Room for more, where there is to be some.
                at.number + limit.slack / 2
            } else if at.number + limit.slack < allowed {
                at.number
            } else if before.is_some() {
                allowed
            } else {
                continue;
            };
            let _ = write!(text, "{key} = {number}");
            if let Some(reason) = before.and_then(|allowed| allowed.reason.as_ref()) {
                let _ = write!(text, "  # {reason}");
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: Limit = Limit {
        most: 70,
        slack: 0,
        unit: "lines",
    };
    const LIST: &str = "# What is long.\na = 90\nb = 80  # a table\ngone = 99\n";

    fn found(numbers: &[(&str, usize)]) -> BTreeMap<String, Found> {
        numbers
            .iter()
            .map(|&(key, number)| {
                let at = Found {
                    number,
                    path: "x.rs".into(),
                    line: 1,
                };
                (key.to_owned(), at)
            })
            .collect()
    }

    fn texts(numbers: &[(&str, usize)]) -> Vec<String> {
        Allowances::read(Path::new("list"), LIST)
            .faults(&found(numbers), LINES)
            .into_iter()
            .map(|fault| fault.text)
            .collect()
    }

    fn changed(numbers: &[(&str, usize)], change: Change) -> String {
        Allowances::read(Path::new("list"), LIST).changed(&found(numbers), LINES, change)
    }

    #[test]
    fn what_is_listed_may_stay_as_it_is() {
        assert_eq!(
            texts(&[("a", 90), ("b", 80), ("gone", 99), ("c", 70)]),
            [""; 0]
        );
    }

    #[test]
    fn nothing_grows() {
        let texts = texts(&[("a", 91), ("b", 80), ("gone", 99), ("c", 71)]);
        assert_eq!(
            texts,
            ["a = 91 lines; at most 90", "c = 71 lines; at most 70"]
        );
    }

    #[test]
    fn what_shrinks_shrinks_in_the_list() {
        let numbers = [("a", 85), ("b", 70)];
        let texts = texts(&numbers);
        assert_eq!(texts.len(), 3, "{texts:?}");
        assert!(texts[0].starts_with("`a` has 85 lines, 90 allowed"));
        assert!(texts[1].starts_with("`b` needs no allowance"));
        assert!(texts[2].starts_with("`gone` needs no allowance"));
        assert_eq!(
            changed(&numbers, Change::Shrink),
            "# What is long.\na = 85\n"
        );
    }

    #[test]
    fn slack_leaves_room() {
        let list = Allowances::read(Path::new("list"), "a = 90\n");
        let limit = Limit { slack: 10, ..LINES };
        let text = |number, change| list.changed(&found(&[("a", number)]), limit, change);
        assert!(list.faults(&found(&[("a", 80)]), limit).is_empty());
        assert_eq!(list.faults(&found(&[("a", 79)]), limit).len(), 1);
        assert_eq!(text(80, Change::Shrink), "a = 90\n");
        assert_eq!(text(79, Change::Shrink), "a = 79\n");
        assert_eq!(text(91, Change::Raise), "a = 96\n");
    }

    #[test]
    fn shrinking_raises_nothing_and_keeps_reasons() {
        let numbers = [("a", 95), ("b", 79), ("new", 99)];
        let shrunk = "# What is long.\na = 90\nb = 79  # a table\n";
        assert_eq!(changed(&numbers, Change::Shrink), shrunk);
        let raised = "# What is long.\na = 95\nb = 79  # a table\nnew = 99\n";
        assert_eq!(changed(&numbers, Change::Raise), raised);
    }
}
