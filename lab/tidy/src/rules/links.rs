//! Links lead somewhere: symbolic ones to a file, and those in documents to a file or folder of the repository and to a
//! heading that is there. So do those in comments of Rust that name files. (rustdoc judges its own, to items.)

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::tree::normal;
use crate::{Fault, Tree};

/// The links that lead nowhere.
pub fn faults(tree: &Tree) -> Vec<Fault> {
    let documents: BTreeMap<&Path, Document> = tree
        .texts_with("md")
        .map(|(path, text)| (path, Document::read(text)))
        .collect();
    let mut faults = Vec::new();
    for (path, link) in &tree.links {
        let folder = path.parent().unwrap_or(Path::new(""));
        if !tree.exists(&normal(&folder.join(link))) {
            let why = format!("leads to {}, which does not exist", link.display());
            faults.push(Fault::new(path, 0, why));
        }
    }
    for (&path, document) in &documents {
        for (line, link) in &document.links {
            if let Err(why) = leads(tree, &documents, path, link) {
                faults.push(Fault::new(path, *line, why));
            }
        }
    }
    for (path, text) in tree.texts_with("rs") {
        for (first, comment) in documentation(text) {
            for (line, link) in Document::read(&comment).links {
                // The others are items.
                let is_file = link.contains('/') || link.contains(".md");
                if !is_file {
                    continue;
                }
                if let Err(why) = leads(tree, &documents, path, &link) {
                    faults.push(Fault::new(path, first + line - 1, why));
                }
            }
        }
    }
    faults
}

/// What a document leads to, and what of it can be led to.
struct Document {
    /// Each with its line.
    links: Vec<(usize, String)>,
    anchors: BTreeSet<String>,
}

impl Document {
    fn read(text: &str) -> Self {
        let mut links = Vec::new();
        let mut anchors = BTreeSet::new();
        let mut heading: Option<String> = None;
        let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
        // A reference that is defined nowhere is text, and no link.
        for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    let line = 1 + text[..range.start].matches('\n').count();
                    links.push((line, dest_url.into_string()));
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let anchor = anchor(&heading.take().unwrap_or_default());
                    // The second of one name gets a number.
                    let mut numbered = anchor.clone();
                    let mut number = 0;
                    while !anchors.insert(numbered) {
                        number += 1;
                        numbered = format!("{anchor}-{number}");
                    }
                }
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::Html(html) | Event::InlineHtml(html) => anchors.extend(named(&html)),
                _ => {}
            }
        }
        Self { links, anchors }
    }
}

/// A heading's anchor, as GitHub makes it.
fn anchor(heading: &str) -> String {
    heading
        .trim()
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || [' ', '-', '_'].contains(letter))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

/// The anchors of `<a id="...">`.
fn named(html: &str) -> Option<String> {
    let (_, behind) = html
        .split_once(" id=\"")
        .or_else(|| html.split_once(" name=\""))?;
    Some(behind.split_once('"')?.0.to_owned())
}

/// Why a link leads nowhere, if so.
fn leads(
    tree: &Tree,
    documents: &BTreeMap<&Path, Document>,
    from: &Path,
    link: &str,
) -> Result<(), String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = match link.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (link, None),
    };
    let to = if file.is_empty() {
        from.to_path_buf()
    } else if let Some(file) = file.strip_prefix('/') {
        file.into()
    } else {
        normal(&from.parent().unwrap_or(Path::new("")).join(file))
    };
    if !tree.exists(&to) {
        return Err(format!("`{link}` leads nowhere"));
    }
    match (anchor, documents.get(to.as_path())) {
        (Some(anchor), Some(document)) if !document.anchors.contains(anchor) => {
            Err(format!("`{link}`: no such heading"))
        }
        _ => Ok(()),
    }
}

/// The comments of a Rust file that document it, each with its first line.
fn documentation(text: &str) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    let mut before = None;
    for (line, text) in (1..).zip(text.lines()) {
        let text = text.trim_start();
        let comment = ["///", "//!"]
            .into_iter()
            .find_map(|mark| Some((mark, text.strip_prefix(mark)?)));
        if let Some((mark, comment)) = comment {
            if before != Some(mark) {
                found.push((line, String::new()));
            }
            if let Some((_, all)) = found.last_mut() {
                all.push_str(comment.strip_prefix(' ').unwrap_or(comment));
                all.push('\n');
            }
        }
        before = comment.map(|(mark, _)| mark);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{made, said};

    #[test]
    fn what_leads_nowhere_is_found() {
        let tree = made(&[
            (
                "README.md",
                "[a](docs/a.md)\n[b](docs/b.md)\n[c](#here)\n\n![p](p.svg)\n[d][e]\n\n[e]: gone/\n",
            ),
            (
                "docs/a.md",
                "# `-o` of *A*: one, two\n\n[up](../README.md#there)\n",
            ),
            (
                "src/lib.rs",
                "//! One.\n//! [b](../docs/b.md)\n\n/// [`f`](Self::f) and [a](../docs/a.md#-o-of-a-one-two)\nfn f() {}\n",
            ),
        ]);
        let expected = [
            "README.md:2: `docs/b.md` leads nowhere",
            "README.md:3: `#here`: no such heading",
            "README.md:5: `p.svg` leads nowhere",
            "README.md:6: `gone/` leads nowhere",
            "docs/a.md:3: `../README.md#there`: no such heading",
            "src/lib.rs:2: `../docs/b.md` leads nowhere",
        ];
        assert_eq!(said(faults(&tree)), expected);
    }

    #[test]
    fn symbolic_links_lead_somewhere() {
        let mut tree = made(&[("LICENSE", "")]);
        for path in ["a/LICENSE", "a/b/LICENSE"] {
            tree.links.insert(path.into(), "../LICENSE".into());
        }
        let expected = ["a/b/LICENSE: leads to ../LICENSE, which does not exist"];
        assert_eq!(said(faults(&tree)), expected);
    }

    #[test]
    fn what_leads_somewhere_is_not() {
        let tree = made(&[
            (
                "README.md",
                "# A b\n# A b\n<a id=\"x\"></a>\n[1](#a-b-1) [2](#x) [3](docs) [4](/docs/a.md#c_d) [5](https://a.b/c#d)\n\n    [6](gone.md)\n",
            ),
            ("docs/a.md", "## c_d\n`[7](gone.md)`\n"),
        ]);
        assert_eq!(said(faults(&tree)), [""; 0]);
    }
}
