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

/// Command lines that a figure may have: a list too many multiplies them.
const COMMANDS_MAX: usize = 10_000;

/// All command lines of a figure, in the order in which they run in each round.
///
/// # Errors
/// In words: more command lines than a figure may have, a placeholder that nothing fills, quotes that are not closed.
pub fn plan<'f>(
    figure: &'f Figure,
    size: Size,
    programs: &Programs,
) -> Result<Vec<Planned<'f>>, String> {
    let mut lines = Vec::new();
    let mut planned = 0_usize;
    for run in &figure.run {
        // Before any is made.
        let lists = run.each.values().map(|values| values.of(size).len());
        let combined = lists.fold(1, usize::saturating_mul);
        planned = planned.saturating_add(combined);
        if planned > COMMANDS_MAX {
            return Err(format!(
                "`{}`: {combined} combinations of its lists, and a figure has at most {COMMANDS_MAX} commands",
                run.words
            ));
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(lists: &[usize]) -> Figure {
        let head = "source = \"A\"\ntitle = \"b\"\npaper = \"c\"\nx = { label = \"d\" }\ny = { label = \"e\" }\n\
                    [[run]]\nwords = \"bench\"\nread = [{ series = \"s\", x = \"1\", y = \"1\" }]\n";
        let lists = lists.iter().enumerate().map(|(number, &length)| {
            let values: Vec<usize> = (0..length).collect();
            format!("each.v{number} = {values:?}\n")
        });
        Figure::parse(&format!("{head}{}", lists.collect::<String>())).unwrap()
    }

    /// Class of fault: a file of some hundred bytes that takes all memory.
    #[test]
    fn lists_that_multiply_to_too_many_commands_are_refused() {
        let programs = Programs::find().unwrap();
        let planned = |lists: &[usize]| {
            let figure = figure(lists);
            let lines = plan(&figure, Size::Full, &programs);
            lines.map(|lines| lines.len())
        };
        assert_eq!(planned(&[100, 100]), Ok(10_000));
        assert_eq!(planned(&[]), Ok(1));
        assert_eq!(planned(&[7, 0]), Ok(0));
        let error = planned(&[100, 101]).unwrap_err();
        assert!(error.contains("`bench`: 10100 combinations"), "{error}");
        assert!(error.contains("at most 10000 commands"), "{error}");
        assert!(planned(&[100; 40]).is_err());
    }
}
