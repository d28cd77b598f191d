//! The parts of a document that are written here: between two lines with marks.
//!
//! ```text
//! <!-- figures: begin engines/items engines/messages. Any words -->
//! what was found of these two
//! <!-- figures: end -->
//! ```
//!
//! Without names it is the table of all figures.

/// Begins the first line; names may follow, and behind a full stop any words.
const BEGIN: &str = "<!-- figures: begin";
/// The last line.
const END: &str = "<!-- figures: end -->";

/// A part of a document that is written here.
#[derive(Debug, PartialEq, Eq)]
pub struct Part<'d> {
    /// The figures that it shows; none for the table of all.
    pub names: Vec<&'d str>,
    /// What stands between its marks.
    pub text: &'d str,
}

/// The parts of a document.
///
/// # Errors
/// In words: a mark without its partner.
#[cfg(test)]
pub fn parts(document: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = document;
    while let Some(next) = Next::of(rest)? {
        parts.push(next.part);
        rest = next.behind;
    }
    Ok(parts)
}

/// The document with what `write` makes of each part; nothing leaves the part as it is.
///
/// # Errors
/// In words: there is no part, a mark has no partner, and those of `write`.
pub fn renewed(
    document: &str,
    mut write: impl FnMut(&Part<'_>) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let mut text = String::new();
    let mut rest = document;
    let mut is_none = true;
    while let Some(next) = Next::of(rest)? {
        is_none = false;
        text.push_str(next.before);
        match write(&next.part)? {
            Some(new) => {
                text.push('\n');
                text.push_str(&new);
                text.push('\n');
            }
            None => text.push_str(next.part.text),
        }
        text.push_str(END);
        rest = next.behind;
    }
    if is_none {
        return Err(format!("no lines `{BEGIN} -->` and `{END}` in it"));
    }
    text.push_str(rest);
    Ok(text)
}

/// The first part of a text, and what stands around it.
struct Next<'d> {
    /// With the first line.
    before: &'d str,
    part: Part<'d>,
    /// Behind the last line's mark.
    behind: &'d str,
}

impl<'d> Next<'d> {
    fn of(text: &'d str) -> Result<Option<Self>, String> {
        let Some(begin) = text.find(BEGIN) else {
            return match text.contains(END) {
                true => Err(format!("`{END}` without `{BEGIN} -->` in front")),
                false => Ok(None),
            };
        };
        let unclosed = || {
            let line = text[begin..].lines().next().unwrap_or_default();
            format!("`{line}` without a line `{END}` behind it")
        };
        let length = text[begin..].find('\n').ok_or_else(unclosed)? + 1;
        let (before, rest) = text.split_at(begin + length);
        let end = rest.find(END).ok_or_else(unclosed)?;
        if rest[..end].contains(BEGIN) || text[..begin].contains(END) {
            return Err(unclosed());
        }
        let words = text[begin + BEGIN.len()..begin + length].trim_end();
        let words = words.strip_suffix("-->").ok_or_else(unclosed)?;
        // A name may have a full stop, but none in front of a space.
        let names = words.split(". ").next().unwrap_or_default();
        let part = Part {
            names: names.split_whitespace().collect(),
            text: &rest[..end],
        };
        let behind = &rest[end + END.len()..];
        Ok(Some(Self {
            before,
            part,
            behind,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::store;

    #[test]
    fn only_what_is_between_the_marks_changes() {
        let old = "# A\n\n<!-- figures: begin. Written -->\nold\n<!-- figures: end -->\n\nB\n\
                   <!-- figures: begin a/1 b/2.2. Written -->\nkept\n<!-- figures: end -->\n";
        let write = |part: &Part<'_>| Ok(part.names.is_empty().then(|| "new\n".to_owned()));
        let new = renewed(old, write).unwrap();
        assert_eq!(new, old.replace("\nold\n", "\n\nnew\n\n"));
        assert_eq!(renewed(&new, write).unwrap(), new);
        let parts = parts(&new).unwrap();
        assert_eq!(parts[0].names, Vec::<&str>::new());
        assert_eq!(parts[1].names, ["a/1", "b/2.2"]);
        assert_eq!(parts[1].text, "kept\n");
    }

    #[test]
    fn marks_without_partners_are_refused() {
        for text in [
            "# A\n",
            "<!-- figures: begin -->\n",
            "<!-- figures: end -->\n",
            "<!-- figures: begin -->\n<!-- figures: begin -->\n<!-- figures: end -->\n",
            "<!-- figures: end -->\n<!-- figures: begin -->\n<!-- figures: end -->\n",
            "<!-- figures: begin a\n-->\n<!-- figures: end -->\n",
        ] {
            assert!(renewed(text, |_| Ok(None)).is_err(), "{text}");
        }
    }

    /// Class of fault: a document that a report would refuse, or a table that was typed by hand.
    #[test]
    fn the_documents_name_figures_that_are_there_and_show_them() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut found = 0;
        for file in fs::read_dir(folder).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let parts = parts(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            for part in &parts {
                found += 1;
                for name in &part.names {
                    store::find(name).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                }
                // Until a run has filled it.
                if part.text.trim().is_empty() {
                    continue;
                }
                for name in &part.names {
                    let link = format!("lab/figures/{name}.toml");
                    let is_shown = part.text.contains(&link);
                    assert!(is_shown, "{}: {name} is not shown", path.display());
                }
                let is_table = part.text.contains("\n|---|");
                assert!(is_table, "{}: no table", path.display());
            }
        }
        assert!(found >= 2, "{found}");
    }
}
