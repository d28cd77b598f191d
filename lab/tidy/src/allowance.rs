//! Lists of what offended a rule when it was made: a ratchet, whose numbers only fall.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{fs, io};

use crate::Fault;

/// A list: what is allowed to be more than the rule's limit, and how much it may be.
///
/// A line is `KEY = NUMBER`; what stands behind `#` is for people.
#[derive(Debug, Default)]
pub struct Allowances {
    /// The list's file, from the repository's root.
    pub path: PathBuf,
    text: String,
    allowed: BTreeMap<String, usize>,
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
    /// A list with this text. A line that is none counts as allowing nothing, so that it is noticed.
    pub fn read(path: &Path, text: &str) -> Self {
        let allowed = text
            .lines()
            .filter_map(|line| line.split('#').next())
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| match line.rsplit_once(" = ") {
                Some((key, number)) => (key.trim().to_owned(), number.parse().unwrap_or(0)),
                None => (line.to_owned(), 0),
            })
            .collect();
        Self {
            path: path.to_path_buf(),
            text: text.to_owned(),
            allowed,
        }
    }

    /// What is more than it may be, and what the list allows needlessly.
    pub fn faults(&self, found: &BTreeMap<String, Found>, limit: Limit) -> Vec<Fault> {
        let Limit { most, slack, unit } = limit;
        let mut faults = Vec::new();
        for (key, at) in found {
            let allowed = self.allowed.get(key).copied().unwrap_or(most);
            if at.number > allowed {
                let text = format!("{key} = {} {unit}; at most {allowed}", at.number);
                faults.push(Fault::new(&at.path, at.line, text));
            }
        }
        for (key, &allowed) in &self.allowed {
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

    /// The list's text with what was found in place of more, and without what needs no allowance.
    pub fn shrunk(&self, found: &BTreeMap<String, Found>, limit: Limit) -> String {
        let mut shrunk = String::new();
        for line in self.text.lines() {
            let (entry, comment) = match line.split_once('#') {
                Some((entry, comment)) => (entry, Some(comment)),
                None => (line, None),
            };
            let Some((key, number)) = entry.trim().rsplit_once(" = ") else {
                let _ = writeln!(shrunk, "{line}");
                continue;
            };
            let allowed = number.parse().unwrap_or(0);
            let number = found.get(key.trim()).map_or(0, |at| at.number);
            if number <= limit.most {
                continue;
            }
            let lowered = if number + limit.slack < allowed {
                number
            } else {
                allowed
            };
            let _ = write!(shrunk, "{} = {lowered}", key.trim());
            if let Some(comment) = comment {
                let _ = write!(shrunk, "  #{comment}");
            }
            shrunk.push('\n');
        }
        shrunk
    }

    /// Writes the list as [`shrunk`](Self::shrunk) has it.
    pub fn shrink(
        &self,
        root: &Path,
        found: &BTreeMap<String, Found>,
        limit: Limit,
    ) -> io::Result<()> {
        fs::write(root.join(&self.path), self.shrunk(found, limit))
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
        let list = Allowances::read(Path::new("list"), LIST);
        assert_eq!(
            list.shrunk(&found(&numbers), LINES),
            "# What is long.\na = 85\n"
        );
    }

    #[test]
    fn slack_leaves_room() {
        let list = Allowances::read(Path::new("list"), "a = 90\n");
        let limit = Limit { slack: 10, ..LINES };
        assert!(list.faults(&found(&[("a", 80)]), limit).is_empty());
        assert_eq!(list.faults(&found(&[("a", 79)]), limit).len(), 1);
        assert_eq!(list.shrunk(&found(&[("a", 80)]), limit), "a = 90\n");
        assert_eq!(list.shrunk(&found(&[("a", 79)]), limit), "a = 79\n");
    }

    #[test]
    fn shrinking_raises_nothing_and_keeps_comments() {
        let list = Allowances::read(Path::new("list"), LIST);
        let shrunk = list.shrunk(&found(&[("a", 95), ("b", 79), ("new", 99)]), LINES);
        assert_eq!(shrunk, "# What is long.\na = 90\nb = 79  # a table\n");
    }
}
