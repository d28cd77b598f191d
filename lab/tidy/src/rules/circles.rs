//! Imports run in one direction: no file of these packages needs another that needs it in turn, through whatever files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::{Fault, Package, Tree};

/// The packages without circles.
pub const WITHOUT: &[&str] = &["nuthatch-commands", "nuthatch-redis"];

/// A module by its path from the package's root; the root is empty.
type Module = Vec<String>;

/// What each module names of the others.
type Imports = BTreeMap<Module, BTreeSet<Module>>;

/// The circles in the packages that are to have none.
pub fn faults(tree: &Tree) -> Vec<Fault> {
    let packages = tree.packages.iter();
    packages
        .filter(|package| WITHOUT.contains(&package.name.as_str()))
        .flat_map(|package| circles_of(tree, package))
        .collect()
}

fn circles_of(tree: &Tree, package: &Package) -> Vec<Fault> {
    let folder = package.folder.join("src");
    let files: BTreeMap<Module, (&Path, &str)> = tree
        .texts_with("rs")
        .filter_map(|(path, text)| Some((module(path.strip_prefix(&folder).ok()?), (path, text))))
        .collect();
    let modules: BTreeSet<Module> = files.keys().cloned().collect();
    let imports = files
        .iter()
        .map(|(module, (_, text))| (module.clone(), imports(module, text, &modules)))
        .collect();
    circles(&imports)
        .into_iter()
        .map(|circle| {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            let text = format!("a circle of imports: {}", names.join(", "));
            Fault::new(files[&circle[0]].0, 0, text)
        })
        .collect()
}

/// The module of a file below `src`.
fn module(path: &Path) -> Module {
    let path = path.with_extension("");
    let names = path.iter().map(|name| name.to_string_lossy().into_owned());
    let mut names: Module = names.collect();
    let last = names.last().map(String::as_str);
    if last == Some("mod") || (names.len() == 1 && matches!(last, Some("lib" | "main"))) {
        names.pop();
    }
    names
}

/// The modules that a file names, without itself and the root. What only its tests name does not count.
fn imports(module: &Module, text: &str, modules: &BTreeSet<Module>) -> BTreeSet<Module> {
    let mut paths = Vec::new();
    // What is no Rust is another rule's.
    walk(text.parse().unwrap_or_default(), &[], &mut paths);
    let named = paths.iter().filter_map(|path| find(module, path, modules));
    named
        .filter(|named| named != module && !named.is_empty())
        .collect()
}

/// Collects the paths of at least one `::`. What stands in the braces behind `prefix` goes on with that.
fn walk(tokens: TokenStream, prefix: &[String], paths: &mut Vec<Vec<String>>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(name) if name == "mod" && is_tests(&tokens[at + 1..]) => at += 3,
            TokenTree::Ident(name) => {
                let mut path = prefix.to_vec();
                path.push(name.to_string());
                at += 1;
                while is_colons(&tokens[at..]) {
                    at += 2;
                    match tokens.get(at) {
                        Some(TokenTree::Ident(name)) => path.push(name.to_string()),
                        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                            walk(group.stream(), &path, paths);
                        }
                        _ => break,
                    }
                    at += 1;
                }
                if path.len() > 1 {
                    paths.push(path);
                }
            }
            TokenTree::Group(group) => {
                walk(group.stream(), &[], paths);
                at += 1;
            }
            _ => at += 1,
        }
    }
}

fn is_tests(behind: &[TokenTree]) -> bool {
    matches!(behind, [TokenTree::Ident(name), TokenTree::Group(_), ..] if name == "tests")
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(one), TokenTree::Punct(two), ..]
        if one.as_char() == ':' && two.as_char() == ':')
}

/// The innermost module that a path in `module` leads to.
fn find(module: &Module, path: &[String], modules: &BTreeSet<Module>) -> Option<Module> {
    let mut base = module.clone();
    let mut rest = &path[1..];
    match path[0].as_str() {
        "crate" => base.clear(),
        "self" => {}
        "super" => {
            base.pop();
            while rest.first().is_some_and(|name| name == "super") {
                base.pop();
                rest = &rest[1..];
            }
        }
        // A child of this module, or another crate's or a type's name.
        child => base.push(child.to_owned()),
    }
    if !modules.contains(&base) {
        return None;
    }
    for name in rest {
        base.push(name.clone());
        if !modules.contains(&base) {
            base.pop();
            break;
        }
    }
    Some(base)
}

/// The sets of modules that reach each other, each once.
fn circles(imports: &Imports) -> Vec<Vec<Module>> {
    let reached: Imports = imports
        .keys()
        .map(|module| (module.clone(), reached_from(module, imports)))
        .collect();
    let circles: BTreeSet<Vec<Module>> = reached
        .iter()
        .filter(|(module, reached)| reached.contains(*module))
        .map(|(module, from)| {
            let both = from.iter().filter(|it| reached[*it].contains(module));
            both.cloned().collect()
        })
        .collect();
    circles.into_iter().collect()
}

fn reached_from(module: &Module, imports: &Imports) -> BTreeSet<Module> {
    let mut reached = BTreeSet::new();
    let mut next = vec![module];
    while let Some(module) = next.pop() {
        for named in imports.get(module).into_iter().flatten() {
            if reached.insert(named.clone()) {
                next.push(named);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{made, said};

    fn circles_in(files: &[(&str, &str)]) -> Vec<String> {
        let mut tree = made(files);
        tree.packages[0].name = WITHOUT[0].into();
        said(faults(&tree))
    }

    #[test]
    fn a_circle_is_found_whoever_closes_it() {
        let root = ("src/lib.rs", "mod a;\nmod b;\nmod c;\n");
        let files = |c| {
            [
                root,
                ("src/a/mod.rs", "pub mod deep;\nuse crate::b::{B, self};\n"),
                ("src/a/deep.rs", "pub struct Deep;\n"),
                ("src/b.rs", "fn f() { super::c::g() }\n"),
                ("src/c.rs", c),
            ]
        };
        let circle = ["src/a/mod.rs: a circle of imports: a, b, c"];
        assert_eq!(circles_in(&files("use crate::{a::A, b};\n")), circle);
        for without in [
            "use crate::a::deep::Deep;\n",
            "use std::b::a;\n// crate::a::A\n",
            "#[cfg(test)]\nmod tests { use crate::a::A; }\n",
        ] {
            assert!(circles_in(&files(without)).is_empty(), "{without}");
        }
        let child = ("src/a/deep.rs", "use super::A;\n");
        let parent = ("src/a/mod.rs", "mod deep;\nfn f() { deep::g() }\n");
        let circle = ["src/a/mod.rs: a circle of imports: a, a::deep"];
        assert_eq!(circles_in(&[root, parent, child]), circle);
    }

    #[test]
    fn other_packages_may_have_circles() {
        let tree = made(&[
            ("src/lib.rs", "mod a;\nmod b;\n"),
            ("src/a.rs", "use crate::b::B;\n"),
            ("src/b.rs", "use crate::a::A;\n"),
        ]);
        assert!(faults(&tree).is_empty());
    }
}
