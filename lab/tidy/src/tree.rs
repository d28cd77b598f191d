//! What the rules look at: the files of a repository, and its packages.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::{env, fs, io};

use serde_json::Value;

use crate::rust::Source;

/// All files, by their paths from the root, and all packages. A test makes one in memory.
#[derive(Debug, Default)]
pub struct Tree {
    /// What each file contains.
    pub files: BTreeMap<PathBuf, Vec<u8>>,
    /// What each symbolic link says.
    pub links: BTreeMap<PathBuf, PathBuf>,
    /// The packages, those of other workspaces in the repository too.
    pub packages: Vec<Package>,
    sources: OnceLock<BTreeMap<PathBuf, Source>>,
}

/// A package of Cargo's.
#[derive(Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Where its manifest lies, from the root.
    pub folder: PathBuf,
    /// What Cargo builds of it.
    pub targets: Vec<Target>,
}

/// A library, program, test or the like.
#[derive(Debug)]
pub struct Target {
    /// Its first file, from the root.
    pub path: PathBuf,
    /// True for tests, benches and examples: what nobody else's program contains.
    pub test: bool,
}

/// A Rust file as a part of a package.
#[derive(Debug)]
pub struct Part<'a> {
    /// The file, from the root.
    pub path: PathBuf,
    /// What it contains.
    pub source: &'a Source,
    /// True if only tests contain it.
    pub test: bool,
}

impl Tree {
    /// The repository that has this folder in it; `None` if git does not know which files are its own.
    pub fn of_repository(folder: &Path) -> io::Result<Option<Self>> {
        let metadata = metadata(&folder.join("Cargo.toml"))?;
        let root = PathBuf::from(text(&metadata["workspace_root"]));
        let git = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(&root)
            .output();
        let Some(listed) = git.ok().filter(|git| git.status.success()) else {
            return Ok(None);
        };
        let mut tree = Self::default();
        for path in String::from_utf8_lossy(&listed.stdout).split_terminator('\0') {
            let at = root.join(path);
            // What is deleted and not yet committed so is neither.
            if let Ok(link) = fs::read_link(&at) {
                tree.links.insert(path.into(), link);
            } else if at.is_file() {
                tree.files.insert(path.into(), fs::read(at)?);
            }
        }
        tree.add_packages(&root, &metadata);
        // What is no member is a workspace of its own, such as the fuzz targets.
        let manifests: Vec<PathBuf> = tree
            .files
            .keys()
            .filter(|path| path.ends_with("Cargo.toml"))
            .cloned()
            .collect();
        for manifest in manifests {
            let known = |package: &Package| package.folder.join("Cargo.toml") == manifest;
            if manifest != Path::new("Cargo.toml") && !tree.packages.iter().any(known) {
                tree.add_packages(&root, &self::metadata(&root.join(&manifest))?);
            }
        }
        Ok(Some(tree))
    }

    fn add_packages(&mut self, root: &Path, metadata: &Value) {
        let relative = |path: &Value| {
            let path = Path::new(text(path));
            path.strip_prefix(root).unwrap_or(path).to_path_buf()
        };
        for package in list(&metadata["packages"]) {
            let mut folder = relative(&package["manifest_path"]);
            folder.pop();
            let targets = list(&package["targets"])
                .iter()
                .map(|target| Target {
                    path: relative(&target["src_path"]),
                    test: list(&target["kind"])
                        .iter()
                        .any(|kind| ["test", "bench", "example"].contains(&text(kind))),
                })
                .collect();
            self.packages.push(Package {
                name: text(&package["name"]).to_owned(),
                folder,
                targets,
            });
        }
    }

    /// A file's text; `None` if there is no such file, or if it is no text.
    pub fn text(&self, path: &Path) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    /// All files that are text, with their text.
    pub fn texts(&self) -> impl Iterator<Item = (&Path, &str)> {
        self.files
            .iter()
            .filter_map(|(path, bytes)| Some((path.as_path(), std::str::from_utf8(bytes).ok()?)))
    }

    /// Those with this extension.
    pub fn texts_with(&self, extension: &str) -> impl Iterator<Item = (&Path, &str)> {
        self.texts()
            .filter(move |(path, _)| path.extension().is_some_and(|is| is == extension))
    }

    /// True for a file, and for a folder with a file in it.
    pub fn exists(&self, path: &Path) -> bool {
        path.as_os_str().is_empty()
            || self
                .files
                .range(path.to_path_buf()..)
                .next()
                .is_some_and(|(first, _)| first.starts_with(path))
    }

    /// The Rust files read, once for all rules: each by its path.
    pub fn sources(&self) -> &BTreeMap<PathBuf, Source> {
        self.sources.get_or_init(|| {
            self.texts_with("rs")
                .map(|(path, text)| (path.to_path_buf(), Source::read(text)))
                .collect()
        })
    }

    /// The Rust files that a package consists of: those of its targets, and those that these declare.
    pub fn parts(&self, package: &Package) -> Vec<Part<'_>> {
        let sources = self.sources();
        let mut found: BTreeMap<PathBuf, bool> = BTreeMap::new();
        let mut open: Vec<(PathBuf, bool, bool)> = package
            .targets
            .iter()
            .map(|target| (target.path.clone(), target.test, true))
            .collect();
        // Each file is seen at most twice: once as a part of tests, once as what is no test.
        while let Some((path, test, is_root)) = open.pop() {
            let Some(source) = sources.get(&path) else {
                continue;
            };
            if found.get(&path).is_some_and(|&before| !before || test) {
                continue;
            }
            for module in &source.modules {
                for file in module.files(&path, is_root) {
                    let is_root = module.path.is_some() || file.ends_with("mod.rs");
                    open.push((file, test || module.test, is_root));
                }
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            for included in &source.includes {
                open.push((normal(&folder.join(included)), test, true));
            }
            found.insert(path, test);
        }
        found
            .into_iter()
            .filter_map(|(path, test)| {
                let source = sources.get(&path)?;
                Some(Part { path, source, test })
            })
            .collect()
    }
}

impl Package {
    /// A file of this package as the lists name it: package and path within it, whichever folder the package lies in.
    pub fn key(&self, path: &Path) -> String {
        let within = path.strip_prefix(&self.folder).unwrap_or(path);
        format!("{} {}", self.name, within.display())
    }
}

/// A path without `.` and `..`.
pub fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            std::path::Component::ParentDir => {
                normal.pop();
            }
            std::path::Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// What Cargo says of a workspace, without asking the network.
fn metadata(manifest: &Path) -> io::Result<Value> {
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let said = Command::new(cargo)
        .args(["metadata", "--no-deps", "--offline", "--format-version=1"])
        .arg("--manifest-path")
        .arg(manifest)
        .output()?;
    if !said.status.success() {
        return Err(io::Error::other(String::from_utf8_lossy(&said.stderr)));
    }
    Ok(serde_json::from_slice(&said.stdout)?)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
