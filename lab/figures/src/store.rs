//! The figures' files, compiled into the program.

use std::fmt::Display;
use std::fs;
use std::path::Path;

use include_dir::{Dir, include_dir};

use crate::figure::Figure;

static FILES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR");

/// All figures, paper by paper, in the order of their names: numbers before what stands behind them.
///
/// # Errors
/// In words: the file, and what is wrong in it.
pub fn all() -> Result<Vec<(String, Figure)>, String> {
    let mut names: Vec<(String, &str)> = Vec::new();
    for folder in FILES.dirs() {
        for file in folder.files() {
            let path = file.path();
            if path.extension().is_none_or(|extension| extension != "toml") {
                continue;
            }
            let name = path.with_extension("").to_string_lossy().into_owned();
            let text = file.contents_utf8();
            names.push((
                name,
                text.ok_or_else(|| format!("{}: no text", path.display()))?,
            ));
        }
    }
    names.sort_by_cached_key(|(name, _)| in_order(name));
    let figures = names.into_iter().map(|(name, text)| {
        let figure = Figure::parse(text).map_err(|error| format!("{name}.toml: {error}"))?;
        Ok((name, figure))
    });
    figures.collect()
}

/// The figure of this name.
///
/// # Errors
/// In words, if there is none, or its file is wrong.
pub fn find(name: &str) -> Result<Figure, String> {
    let found = all()?.into_iter().find(|(other, _)| other == name);
    let (_, figure) =
        found.ok_or_else(|| format!("{name}: no figure; `nuthatch-lab figure list` shows all"))?;
    Ok(figure)
}

/// The figure of a file, and its name: that of its folder, and its own.
///
/// # Errors
/// In words: the file, and what is wrong with it.
pub fn read(path: &Path) -> Result<(String, Figure), String> {
    let named = |error: &dyn Display| format!("{}: {error}", path.display());
    let whole = fs::canonicalize(path).map_err(|error| named(&error))?;
    let folder = whole.parent().and_then(Path::file_name).unwrap_or_default();
    let name = Path::new(folder).join(whole.file_stem().unwrap_or_default());
    let text = fs::read_to_string(&whole).map_err(|error| named(&error))?;
    let figure = Figure::parse(&text).map_err(|error| named(&error))?;
    Ok((name.to_string_lossy().into_owned(), figure))
}

/// A name's paper, and its number with what stands behind it.
fn in_order(name: &str) -> (String, u32, String) {
    let (paper, rest) = name.split_once('/').unwrap_or(("", name));
    let digits = rest.trim_start_matches(|character: char| !character.is_ascii_digit());
    let kind = &rest[..rest.len() - digits.len()];
    let end = digits.find(|character: char| !character.is_ascii_digit());
    let (number, behind) = digits.split_at(end.unwrap_or(digits.len()));
    (
        format!("{paper}/{kind}"),
        number.parse().unwrap_or(u32::MAX),
        behind.to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Programs;
    use crate::figure::Size;
    use crate::plan::plan;

    #[test]
    fn every_file_is_a_figure_whose_commands_can_be_planned() {
        let programs = Programs::find().unwrap();
        let all = all().unwrap();
        assert!(!all.is_empty());
        for (name, figure) in all {
            for size in [Size::Full, Size::Quick, Size::Smoke] {
                let planned = plan(&figure, size, &programs);
                let planned = planned.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!(
                    planned.is_empty(),
                    figure.why.is_some(),
                    "{name} runs nothing in {size:?}"
                );
            }
        }
    }

    /// Class of fault: a claim without its measurement, or a measurement that nobody finds.
    #[test]
    fn the_readme_leads_to_each_of_its_figures() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
        let readme = fs::read_to_string(path).unwrap();
        let own = all().unwrap().into_iter().map(|(name, _)| name);
        for name in own.filter(|name| name.starts_with("nuthatch/")) {
            let link = format!("](lab/figures/{name}.toml)");
            assert!(readme.contains(&link), "{name}");
        }
    }

    #[test]
    fn numbers_are_sorted_as_numbers() {
        let mut names = ["a/10", "a/5b", "a/9", "a/5a", "a/table-2"];
        names.sort_by_cached_key(|name| in_order(name));
        assert_eq!(names, ["a/5a", "a/5b", "a/9", "a/10", "a/table-2"]);
    }
}
