//! A Rust file, read as tokens: what the rules ask about it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, Group, Span, TokenStream, TokenTree};

/// What a Rust file contains. Lines are counted from 1.
#[derive(Debug, Default)]
pub struct Source {
    /// All functions with a body.
    pub functions: Vec<Function>,
    /// The modules that it declares and that are in other files.
    pub modules: Vec<Module>,
    /// The files that it includes as code.
    pub includes: Vec<String>,
    /// The atomic operations that order other memory, outside of tests.
    pub orderings: Vec<Ordered>,
    /// The lines with `unsafe`, outside of tests; a line as often as it has it.
    pub unsafes: Vec<usize>,
    /// The lines with code, outside of tests: no blank lines, no comments.
    pub code: BTreeSet<usize>,
    /// The lines with a comment, and what it says.
    pub comments: BTreeMap<usize, String>,
    /// Why it cannot be read, if so.
    pub error: Option<String>,
}

/// A function with a body.
#[derive(Debug, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// How many lines it has, without blank ones and comments.
    pub lines: usize,
}

/// A module that is in a file of its own.
#[derive(Debug, PartialEq, Eq)]
pub struct Module {
    /// Its name.
    pub name: String,
    /// What a `path` attribute says.
    pub path: Option<String>,
    /// The modules within the file that it is declared in.
    pub inside: Vec<String>,
    /// True if only tests have it.
    pub test: bool,
}

/// An atomic operation that orders other memory.
#[derive(Debug, PartialEq, Eq)]
pub struct Ordered {
    /// The line with its ordering.
    pub line: usize,
    /// The line of its function's `fn`.
    pub function: usize,
    /// The first line of its function with its documentation and attributes.
    pub first: usize,
}

/// The orderings that have a partner.
pub const ORDERINGS: [&str; 4] = ["Acquire", "Release", "AcqRel", "SeqCst"];

impl Source {
    /// Reads a file.
    pub fn read(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let tokens: TokenStream = match text.parse() {
            Ok(tokens) => tokens,
            Err(error) => {
                return Self {
                    error: Some(error.to_string()),
                    ..Self::default()
                };
            }
        };
        let mut reader = Reader::default();
        reader.walk(tokens, &Context::default());
        let Reader {
            mut source, lines, ..
        } = reader;
        for (function, last) in source.functions.iter_mut().zip(&reader.last_lines) {
            function.lines = lines.range(function.line..=*last).count();
        }
        source.comments = comments(text, &lines, &reader.ends);
        source
    }
}

impl Module {
    /// The files that may have it if the file at `path` declares it. `is_root` says that this is a target's first file,
    /// a `mod.rs`, or named by an attribute.
    pub fn files(&self, path: &Path, is_root: bool) -> Vec<PathBuf> {
        let beside = path.parent().unwrap_or(Path::new(""));
        let mut folder = match path.file_stem() {
            Some(stem) if !is_root => beside.join(stem),
            _ => beside.to_path_buf(),
        };
        folder.extend(&self.inside);
        match &self.path {
            Some(named) if self.inside.is_empty() => vec![crate::tree::normal(&beside.join(named))],
            Some(named) => vec![crate::tree::normal(&folder.join(named))],
            None => vec![
                folder.join(format!("{}.rs", self.name)),
                folder.join(&self.name).join("mod.rs"),
            ],
        }
    }
}

/// What surrounds tokens.
#[derive(Debug, Default, Clone)]
struct Context {
    test: bool,
    inside: Vec<String>,
    /// The innermost function: the line of its `fn`, and its first.
    function: Option<(usize, usize)>,
}

/// What belongs to the item that comes next.
#[derive(Debug, Default)]
struct Item {
    test: bool,
    path: Option<String>,
    first: Option<usize>,
    is_known: bool,
}

#[derive(Debug, Default)]
struct Reader {
    source: Source,
    /// The last line of each function.
    last_lines: Vec<usize>,
    /// All lines with code.
    lines: BTreeSet<usize>,
    /// Where the last token of a line ends, in characters.
    ends: BTreeMap<usize, usize>,
}

impl Reader {
    fn walk(&mut self, tokens: TokenStream, context: &Context) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut context = context.clone();
        let mut item = Item::default();
        // The body of a function or module that has begun, and what surrounds what is in it.
        let mut body: Option<(usize, Context)> = None;
        let mut at = 0;
        while at < tokens.len() {
            let token = &tokens[at];
            let test = context.test || item.test;
            item.first.get_or_insert(token.span().start().line);
            if let Some(after) = self.attribute(&tokens, at, &mut item, &mut context) {
                at = after;
                continue;
            }
            self.cover(token.span(), test);
            match token {
                TokenTree::Ident(name) => {
                    let name = name.to_string();
                    match name.as_str() {
                        "mod" => body = self.module(&tokens, at, &item, &context).or(body),
                        "fn" => body = self.function(&tokens, at, &item, &context).or(body),
                        "include" => self.include(&tokens[at..]),
                        "unsafe" if !test => {
                            self.source.unsafes.push(token.span().start().line);
                        }
                        _ if !test => self.ordering(&tokens[..=at], &name, &context),
                        _ => {}
                    }
                    item.is_known |= is_item(&name);
                }
                TokenTree::Group(group) => {
                    let mut inner = context.clone();
                    if let Some((_, of_body)) = body.take_if(|(body, _)| *body == at) {
                        inner = of_body;
                    }
                    inner.test |= item.test;
                    self.group(group, test, &inner);
                    if group.delimiter() == Delimiter::Brace {
                        item = Item::default();
                    }
                }
                TokenTree::Punct(punct) => {
                    if punct.as_char() == ';' || (punct.as_char() == ',' && !item.is_known) {
                        item = Item::default();
                    }
                }
                TokenTree::Literal(_) => {}
            }
            at += 1;
        }
    }

    fn group(&mut self, group: &Group, test: bool, inner: &Context) {
        self.cover(group.span_open(), test);
        self.walk(group.stream(), inner);
        self.cover(group.span_close(), test);
    }

    /// Notes a token's lines as code. A group is noted by its delimiters.
    fn cover(&mut self, span: Span, test: bool) {
        let (start, end) = (span.start(), span.end());
        if start.line != end.line
            && span
                .source_text()
                .is_some_and(|text| text.starts_with(['{', '(', '[']))
        {
            return;
        }
        for line in start.line..=end.line {
            self.lines.insert(line);
            if !test {
                self.source.code.insert(line);
            }
        }
        let column = self.ends.entry(end.line).or_default();
        *column = end.column.max(*column);
    }

    /// An attribute or a comment for documentation, if one begins here: what comes after it.
    fn attribute(
        &mut self,
        tokens: &[TokenTree],
        at: usize,
        item: &mut Item,
        context: &mut Context,
    ) -> Option<usize> {
        let TokenTree::Punct(hash) = &tokens[at] else {
            return None;
        };
        let inner =
            matches!(tokens.get(at + 1), Some(TokenTree::Punct(bang)) if bang.as_char() == '!');
        let group_at = at + 1 + usize::from(inner);
        let Some(TokenTree::Group(group)) = tokens.get(group_at) else {
            return None;
        };
        if hash.as_char() != '#' || group.delimiter() != Delimiter::Bracket {
            return None;
        }
        // That of a comment is as long as the comment.
        let span = hash.span();
        let is_comment =
            span.end().line != span.start().line || span.end().column > span.start().column + 1;
        if is_comment {
            return Some(group_at + 1);
        }
        let words = words(group.stream());
        let is = |word: &str| words.iter().any(|is| is == word);
        let test = match words.first().map(String::as_str) {
            Some("cfg") => is("test") && !is("not"),
            Some(_) => words.last().is_some_and(|last| last == "test"),
            None => false,
        };
        if inner {
            context.test |= test;
        } else {
            item.test |= test;
        }
        if words.first().is_some_and(|first| first == "path") {
            item.path = literal(group.stream());
        }
        let test = context.test || item.test;
        for line in span.start().line..=group.span_close().end().line {
            self.lines.insert(line);
            if !test {
                self.source.code.insert(line);
            }
        }
        let end = group.span_close().end();
        self.ends.insert(end.line, end.column);
        Some(group_at + 1)
    }

    /// A module: noted if it is in another file; otherwise where its body is, and what surrounds what is in it.
    fn module(
        &mut self,
        tokens: &[TokenTree],
        at: usize,
        item: &Item,
        context: &Context,
    ) -> Option<(usize, Context)> {
        let Some(TokenTree::Ident(name)) = tokens.get(at + 1) else {
            return None;
        };
        match tokens.get(at + 2)? {
            TokenTree::Punct(end) if end.as_char() == ';' => {
                self.source.modules.push(Module {
                    name: name.to_string(),
                    path: item.path.clone(),
                    inside: context.inside.clone(),
                    test: context.test || item.test,
                });
                None
            }
            TokenTree::Group(_) => {
                let mut inner = context.clone();
                inner.inside.push(name.to_string());
                Some((at + 2, inner))
            }
            _ => None,
        }
    }

    /// A function: noted if it has a body; where that is, and what surrounds what is in it.
    fn function(
        &mut self,
        tokens: &[TokenTree],
        at: usize,
        item: &Item,
        context: &Context,
    ) -> Option<(usize, Context)> {
        let Some(TokenTree::Ident(name)) = tokens.get(at + 1) else {
            return None;
        };
        let is = |token: &TokenTree, of: &[char]| matches!(token, TokenTree::Punct(punct) if of.contains(&punct.as_char()));
        for (body, token) in tokens.iter().enumerate().skip(at + 2) {
            if is(token, &[';']) {
                return None;
            }
            let TokenTree::Group(group) = token else {
                continue;
            };
            // Other braces are constants among generic arguments.
            if group.delimiter() != Delimiter::Brace || is(&tokens[body - 1], &['<', ',']) {
                continue;
            }
            let line = tokens[at].span().start().line;
            self.source.functions.push(Function {
                name: name.to_string(),
                line,
                lines: 0,
            });
            self.last_lines.push(group.span_close().end().line);
            let mut inner = context.clone();
            inner.function = Some((line, item.first.unwrap_or(line)));
            return Some((body, inner));
        }
        None
    }

    fn include(&mut self, tokens: &[TokenTree]) {
        if let [_, TokenTree::Punct(bang), TokenTree::Group(group), ..] = tokens
            && bang.as_char() == '!'
        {
            self.source.includes.extend(literal(group.stream()));
        }
    }

    /// Notes `Ordering::NAME` in a function, whose tokens are the last of these.
    fn ordering(&mut self, tokens: &[TokenTree], name: &str, context: &Context) {
        let Some((function, first)) = context.function else {
            return;
        };
        let is_path = matches!(tokens, [.., TokenTree::Ident(of), TokenTree::Punct(_), TokenTree::Punct(_), _]
            if *of == "Ordering");
        if ORDERINGS.contains(&name) && is_path {
            self.source.orderings.push(Ordered {
                line: tokens[tokens.len() - 1].span().start().line,
                function,
                first,
            });
        }
    }
}

fn is_item(word: &str) -> bool {
    [
        "fn",
        "struct",
        "enum",
        "union",
        "impl",
        "trait",
        "mod",
        "const",
        "static",
        "use",
        "type",
        "macro_rules",
        "let",
    ]
    .contains(&word)
}

/// All names among tokens, in groups too.
fn words(tokens: TokenStream) -> Vec<String> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Ident(word) => found.push(word.to_string()),
            TokenTree::Group(group) => found.extend(words(group.stream())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
    found
}

/// The first string among tokens, without its quotes.
fn literal(tokens: TokenStream) -> Option<String> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Literal(literal) => {
            let text = literal.to_string();
            Some(text.strip_prefix('"')?.strip_suffix('"')?.to_owned())
        }
        _ => None,
    })
}

/// What stands on lines without code, and behind the code of others.
fn comments(
    text: &str,
    code: &BTreeSet<usize>,
    ends: &BTreeMap<usize, usize>,
) -> BTreeMap<usize, String> {
    let mut comments = BTreeMap::new();
    for (line, text) in (1..).zip(text.lines()) {
        let comment = match ends.get(&line) {
            Some(&end) => {
                let behind: String = text.chars().skip(end).collect();
                behind.trim().to_owned()
            }
            None if code.contains(&line) => continue,
            None => text.trim().to_owned(),
        };
        if comment.starts_with("//") || (!comment.is_empty() && !code.contains(&line)) {
            comments.insert(line, comment);
        }
    }
    comments
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_have_the_lines_of_their_code() {
        let source = Source::read(
            "/// Docs.\nfn one() -> Of<{ 1 }> {\n    // why\n\n    two(\"a\n{b\");\n}\nfn none();\nimpl A { fn two(f: fn(u8)) {} }\n",
        );
        let functions: Vec<_> = source
            .functions
            .iter()
            .map(|f| (f.name.as_str(), f.line, f.lines))
            .collect();
        assert_eq!(functions, [("one", 2, 4), ("two", 9, 1)]);
    }

    #[test]
    fn modules_are_where_they_are_declared() {
        let source = Source::read(
            "mod a;\n#[cfg(test)]\nmod b;\n#[path = \"../x.rs\"]\nmod c;\nmod d { mod e; }\n#[cfg(not(test))] mod f;\n",
        );
        let files = |at: usize, path: &str, root| source.modules[at].files(Path::new(path), root);
        assert_eq!(
            files(0, "src/lib.rs", true),
            [Path::new("src/a.rs"), Path::new("src/a/mod.rs")]
        );
        assert_eq!(files(0, "src/m.rs", false)[0], Path::new("src/m/a.rs"));
        assert_eq!(files(2, "src/t/m.rs", false), [Path::new("src/x.rs")]);
        assert_eq!(files(3, "src/lib.rs", true)[0], Path::new("src/d/e.rs"));
        let tests: Vec<bool> = source.modules.iter().map(|module| module.test).collect();
        assert_eq!(tests, [false, true, false, false, false]);
    }

    #[test]
    fn comments_and_tests_are_no_code() {
        let source = Source::read(
            "//! Docs.\n\nuse a::b; // why\n/* c\n c */\n#[cfg(test)]\nmod tests {\n    fn t() { unsafe {} }\n}\nfn f() {\n    unsafe { \"//\" }\n}\n",
        );
        assert_eq!(Vec::from_iter(source.code), [3, 10, 11, 12]);
        assert_eq!(source.unsafes, [11]);
        assert_eq!(
            Vec::from_iter(source.comments.keys().copied()),
            [1, 3, 4, 5]
        );
        assert_eq!(source.comments[&3], "// why");
    }

    #[test]
    fn orderings_are_those_of_operations() {
        let source = Source::read(
            "use std::sync::atomic::Ordering::Acquire;\n/// Docs.\nfn f() {\n    x.load(Ordering::Acquire);\n    x.load(Ordering::Relaxed);\n}\n#[test]\nfn t() {\n    x.load(Ordering::SeqCst);\n}\n",
        );
        let expected = Ordered {
            line: 4,
            function: 3,
            first: 2,
        };
        assert_eq!(source.orderings, [expected]);
    }
}
