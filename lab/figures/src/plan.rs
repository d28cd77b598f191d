//! The command lines of a figure, in one size.

use std::collections::BTreeMap;

use crate::command::Programs;
use crate::figure::{Figure, Run, Scalar, Size};
use crate::template::fill;

/// Values of variables.
pub type Variables = BTreeMap<String, String>;

/// One command line.
pub struct Planned<'f> {
    /// The run that it belongs to.
    pub run: &'f Run,
    /// The values of its lists.
    pub variables: Variables,
    /// The program and its words.
    pub line: Vec<String>,
}

/// All command lines of a figure, in the order in which they run in each round.
///
/// # Errors
/// In words: a placeholder that nothing fills, quotes that are not closed.
pub fn plan<'f>(
    figure: &'f Figure,
    size: Size,
    programs: &Programs,
) -> Result<Vec<Planned<'f>>, String> {
    let mut lines = Vec::new();
    for run in &figure.run {
        for variables in combinations(run, size) {
            let value = |name: &str| value(name, &variables, programs);
            let mut line = vec![fill(&run.program, value)?];
            let words = shlex::split(&run.words)
                .ok_or_else(|| format!("`{}`: a quote is not closed", run.words))?;
            for word in words {
                line.push(fill(&word, value)?);
            }
            lines.push(Planned {
                run,
                variables,
                line,
            });
        }
    }
    Ok(lines)
}

/// The value of a variable or the path of a program.
///
/// # Errors
/// In words, if there is none of this name.
pub fn value(name: &str, variables: &Variables, programs: &Programs) -> Result<String, String> {
    variables
        .get(name)
        .cloned()
        .or_else(|| programs.path(name))
        .ok_or_else(|| format!("{{{name}}}: nothing has this name"))
}

/// Each combination of the values of the run's lists, with its other values.
fn combinations(run: &Run, size: Size) -> Vec<Variables> {
    let with = run.with.iter();
    let fixed = with.map(|(name, value)| (name.clone(), value.of(size).to_string()));
    let mut all = vec![fixed.collect::<Variables>()];
    for (name, values) in &run.each {
        let values: &[Scalar] = values.of(size);
        all = all
            .iter()
            .flat_map(|one| values.iter().map(move |value| (one, value)))
            .map(|(one, value)| {
                let mut one = one.clone();
                one.insert(name.clone(), value.to_string());
                one
            })
            .collect();
    }
    all
}
