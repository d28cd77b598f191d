//! A figure's file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::statement::Statement;
use crate::template;

/// How much of a figure is run, the least first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// Seconds: the commands work. The numbers are worthless, and no statement is judged.
    Smoke,
    /// All figures together in some twenty minutes: shapes can be seen.
    Quick,
    /// As near to the paper as this machine allows.
    Full,
}

/// A figure or a table of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Where it is in the paper, as in `CPHash, Figure 5`.
    pub source: String,
    /// What it shows.
    pub title: String,
    /// What the paper concludes from it.
    pub paper: String,
    /// What a reader should know about this run; may be empty.
    #[serde(default)]
    pub note: String,
    /// How it is drawn.
    #[serde(default)]
    pub chart: Chart,
    /// What changes along the horizontal axis.
    pub x: Axis,
    /// What is measured.
    pub y: Axis,
    /// The paper's parameters, and this run's where they differ.
    #[serde(default)]
    pub parameter: Vec<Parameter>,
    /// How often all commands run; their results are compared round by round.
    #[serde(default = "once")]
    pub rounds: BySize<usize>,
    /// What the machine must have.
    #[serde(default)]
    pub needs: Needs,
    /// Why it cannot be run here; then it has no commands.
    pub why: Option<String>,
    /// The commands.
    #[serde(default)]
    pub run: Vec<Run>,
    /// The shape that the paper's figure has.
    #[serde(default)]
    pub statement: Vec<Statement>,
}

/// How a figure is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Chart {
    /// A line for each series.
    #[default]
    Lines,
    /// A dot with its spread for each series and each place on the horizontal axis.
    Dots,
    /// A panel of bars for each series, with a bar for each place on the horizontal axis; what comes from a model is an
    /// outline over each.
    Bars,
    /// A table: a row for each place on the horizontal axis, a column for each series.
    Table,
}

/// An axis.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// What it shows, with its unit.
    pub label: String,
    /// How its values are spaced.
    #[serde(default)]
    pub scale: Scale,
}

/// How an axis's values are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Equal steps for equal differences.
    #[default]
    Linear,
    /// Equal steps for equal ratios.
    Logarithmic,
    /// The same, with powers of two.
    Binary,
    /// Names, in the order in which they are met.
    Names,
}

/// A parameter of the paper's run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// The paper's value.
    pub paper: String,
    /// This run's, if it is another.
    pub here: Option<String>,
    /// Why it is another.
    pub why: Option<String>,
}

/// What the machine must have. Otherwise the command is left out, with the reason.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Free memory, as in `4G`.
    pub memory: Option<BySize<String>>,
    /// Cores.
    pub cores: Option<usize>,
    /// Programs and folders beside this one, by their placeholder: `memcached`, `traces`.
    #[serde(default)]
    pub programs: Vec<String>,
    /// What the help of such a program names, since not every build of it has the option.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
    /// The right to make network namespaces, with addresses of their own: several hosts on one machine.
    #[serde(default)]
    pub namespaces: bool,
    /// Words of this program that must succeed: a file system that tells where its blocks are, say.
    pub command: Option<String>,
}

/// A command line, or several that differ in the values of their lists.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The program; by default this one.
    #[serde(default = "this_program")]
    pub program: String,
    /// Its words, quoted as in a shell. `{name}` is a value of `each` or `with`, or a program.
    pub words: String,
    /// Lists: the command runs for each combination of their values.
    #[serde(default)]
    pub each: BTreeMap<String, BySize<Vec<Scalar>>>,
    /// Values.
    #[serde(default)]
    pub with: BTreeMap<String, BySize<Scalar>>,
    /// The results come from a model and not from a measurement.
    #[serde(default)]
    pub modelled: bool,
    /// What the machine must have for it, beside what the figure needs.
    #[serde(default)]
    pub needs: Needs,
    /// How its output becomes points.
    pub read: Vec<Read>,
}

/// How the JSON that a command printed becomes points.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Read {
    /// The path to the objects that are points: `working_sets[].engines[]`. By default the whole output is one.
    #[serde(default)]
    pub rows: String,
    /// Only rows whose fields have these values.
    #[serde(default, rename = "where")]
    pub only: BTreeMap<String, Scalar>,
    /// The name of the series. Here and below `{name}` is as in `words`, and `{@path}` a field of the row, or of an object
    /// around it.
    pub series: String,
    /// The place on the horizontal axis.
    pub x: String,
    /// The value.
    pub y: String,
    /// The least value of the command's own rounds.
    pub low: Option<String>,
    /// The greatest.
    pub high: Option<String>,
    /// The value is multiplied by this.
    #[serde(default = "unit")]
    pub times: f64,
    /// What the output says of whether the value is one. A point that is none in any round is left out.
    pub valid: Option<Valid>,
    /// These points come from a model, though others of the run are measured.
    #[serde(default)]
    pub modelled: bool,
}

/// Whether a value is one.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Valid {
    /// `true` or `false`: `{@kept}`.
    pub is: String,
    /// Why it is none, if it is `false`.
    pub otherwise: String,
}

/// A value that a file has as a text or as a number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Scalar {
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
    /// True or false.
    Flag(bool),
    /// A text.
    Text(String),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(value) => value.fmt(out),
            Self::Number(value) => value.fmt(out),
            Self::Flag(value) => value.fmt(out),
            Self::Text(value) => out.write_str(value),
        }
    }
}

/// A value that may differ by the size of the run.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum BySize<T> {
    /// One for each.
    Each {
        /// For [`Size::Full`].
        full: T,
        /// For [`Size::Quick`].
        quick: T,
        /// For [`Size::Smoke`].
        smoke: T,
    },
    /// One for all.
    Same(T),
}

impl<T> BySize<T> {
    /// The value for this size.
    pub fn of(&self, size: Size) -> &T {
        match (self, size) {
            (Self::Same(value), _) => value,
            (Self::Each { full, .. }, Size::Full) => full,
            (Self::Each { quick, .. }, Size::Quick) => quick,
            (Self::Each { smoke, .. }, Size::Smoke) => smoke,
        }
    }
}

fn once() -> BySize<usize> {
    BySize::Same(1)
}

fn this_program() -> String {
    "{lab}".to_owned()
}

fn unit() -> f64 {
    1.0
}

impl Figure {
    /// From its file's text.
    ///
    /// # Errors
    /// In words: TOML that is none, an unknown or missing key, a placeholder that nothing fills, a scaling without a
    /// reason.
    pub fn parse(text: &str) -> Result<Self, String> {
        let figure: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        figure.check()?;
        Ok(figure)
    }

    fn check(&self) -> Result<(), String> {
        if self.why.is_some() {
            return match self.run.is_empty() && self.statement.is_empty() {
                true => Ok(()),
                false => Err("a figure with `why` has no [[run]] and no [[statement]]".to_owned()),
            };
        }
        if self.run.is_empty() || self.run.iter().any(|run| run.read.is_empty()) {
            return Err(
                "a figure has at least one [[run]], each with a [[run.read]], or says `why` not"
                    .to_owned(),
            );
        }
        for parameter in &self.parameter {
            if parameter.here.is_some() != parameter.why.is_some() {
                let name = &parameter.name;
                return Err(format!("parameter {name}: `here` and `why` go together"));
            }
        }
        for statement in &self.statement {
            statement.check()?;
            self.check_series(&statement.series)?;
            statement
                .other()
                .map_or(Ok(()), |series| self.check_series(series))?;
        }
        Ok(())
    }

    /// Refuses a series that no command can give. What placeholders stand for is not known before a run.
    fn check_series(&self, series: &str) -> Result<(), String> {
        let mut reads = self.run.iter().flat_map(|run| &run.read);
        match reads.any(|read| template::may_be(&read.series, series)) {
            true => Ok(()),
            false => Err(format!(
                "a statement is about {series}, and no [[run.read]] has such a series"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "source = \"A, 1\"\ntitle = \"b\"\npaper = \"c\"\n";
    const AXES: &str = "[x]\nlabel = \"d\"\n[y]\nlabel = \"e\"\n";

    fn parsed(why: &str, more: &str) -> Result<Figure, String> {
        Figure::parse(&format!("{HEAD}{why}{AXES}{more}"))
    }

    #[test]
    fn a_figure_has_commands_or_says_why_not() {
        let why = "why = \"it needs a mainframe\"\n";
        let figure = parsed(why, "").unwrap();
        assert_eq!(figure.why.as_deref(), Some("it needs a mainframe"));
        assert!(parsed("", "").unwrap_err().contains("`why`"));
        let run = "[[run]]\nwords = \"\"\n[[run.read]]\nseries = \"s\"\nx = \"1\"\ny = \"1\"\n";
        assert!(parsed("", run).is_ok());
        assert!(parsed(why, run).unwrap_err().contains("no [[run]]"));
        let absent = format!("{run}[[statement]]\nseries = \"s\"\nabove = \"t\"\n");
        assert!(parsed("", &absent).unwrap_err().contains("is about t"));
        let known = absent.replace("\"t\"", "\"s\"");
        assert!(parsed("", &known).is_ok());
        let statement = "[[statement]]\nseries = \"s\"\nabove = \"t\"\n";
        assert!(
            parsed(why, statement)
                .unwrap_err()
                .contains("[[statement]]")
        );
    }
}
