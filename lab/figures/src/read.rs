//! Reads points out of what a command printed.

use serde_json::Value;

use crate::command::Programs;
use crate::figure::{Read, Valid};
use crate::found::X;
use crate::plan::{Planned, value};
use crate::template::fill;

/// One value of one round.
#[derive(Debug, PartialEq)]
pub struct Reading {
    /// The series.
    pub series: String,
    /// The place on the horizontal axis.
    pub x: X,
    /// The value.
    pub y: f64,
    /// The least and the greatest of the command's own rounds.
    pub ends: Option<(f64, f64)>,
    /// It comes from a model.
    pub modelled: bool,
    /// Why it does not count, if it does not.
    pub invalid: Option<String>,
}

/// A row: the object, and the objects around it from the inside out.
type Row<'v> = Vec<&'v Value>;

/// The points of a command's output.
///
/// # Errors
/// In words: there is no row, or a row has no such field, or what should be a number is none, or is none once it is
/// multiplied.
pub fn readings(
    output: &Value,
    planned: &Planned<'_>,
    programs: &Programs,
) -> Result<Vec<Reading>, String> {
    let mut all = Vec::new();
    for read in &planned.run.read {
        let mut rows = vec![vec![output]];
        for step in read.rows.split('.').filter(|step| !step.is_empty()) {
            rows = rows
                .into_iter()
                .flat_map(|row| follow(&row, step))
                .collect();
        }
        rows.retain(|row| chosen(row, read));
        if rows.is_empty() {
            return Err(format!("`{}`: the output has no such rows", read.rows));
        }
        for row in &rows {
            all.push(reading(row, read, planned, programs)?);
        }
    }
    Ok(all)
}

/// The objects at `name` or `name[]` of a row; `[]` alone is each of the row itself, or the row if it is no list.
fn follow<'v>(row: &Row<'v>, step: &str) -> Vec<Row<'v>> {
    let (name, is_list) = match step.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (step, false),
    };
    let value = match name {
        "" => Some(row[0]),
        name => row[0].get(name),
    };
    let inside = |value: &'v Value| {
        let mut inside = vec![value];
        inside.extend(row);
        inside
    };
    match value {
        Some(Value::Array(values)) if is_list => values.iter().map(inside).collect(),
        // A command that prints a line for each row may print one.
        Some(value) if !is_list || name.is_empty() => vec![inside(value)],
        _ => Vec::new(),
    }
}

/// The field at a path of a row, or of the nearest object around it that has it. `$` is the row itself.
fn field<'v>(row: &Row<'v>, path: &str) -> Option<&'v Value> {
    if path == "$" {
        return row.first().copied();
    }
    row.iter().find_map(|object| {
        path.split('.')
            .try_fold(*object, |value, name| match value {
                Value::Array(values) => values.get(name.parse::<usize>().ok()?),
                value => value.get(name),
            })
    })
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

fn chosen(row: &Row<'_>, read: &Read) -> bool {
    let mut wanted = read.only.iter();
    wanted.all(|(path, wanted)| {
        field(row, path).is_some_and(|value| text(value) == wanted.to_string())
    })
}

fn reading(
    row: &Row<'_>,
    read: &Read,
    planned: &Planned<'_>,
    programs: &Programs,
) -> Result<Reading, String> {
    let filled = |template: &str| {
        fill(template, |name| match name.strip_prefix('@') {
            Some(path) => field(row, path)
                .map(text)
                .ok_or_else(|| format!("{{@{path}}}: the output has no such field")),
            None => value(name, &planned.variables, programs),
        })
    };
    let number = |template: &str| -> Result<f64, String> {
        let text = filled(template)?;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let number = number.ok_or_else(|| format!("{template}: `{text}` is no number"))?;
        let product = number * read.times;
        match product.is_finite() {
            true => Ok(product),
            // A file cannot keep it.
            false => {
                let times = read.times;
                Err(format!("{template}: {text} times {times:e} is no number"))
            }
        }
    };
    let ends = match (&read.low, &read.high) {
        (Some(low), Some(high)) => Some((number(low)?, number(high)?)),
        _ => None,
    };
    Ok(Reading {
        series: filled(&read.series)?,
        x: X::of(&filled(&read.x)?),
        y: number(&read.y)?,
        ends,
        modelled: planned.run.modelled || read.modelled,
        invalid: match &read.valid {
            Some(valid) => invalid(valid, &filled(&valid.is)?)?,
            None => None,
        },
    })
}

/// Why a value does not count, by what the output says of it.
fn invalid(Valid { is, otherwise }: &Valid, says: &str) -> Result<Option<String>, String> {
    match says {
        "true" => Ok(None),
        "false" => Ok(Some(otherwise.clone())),
        says => Err(format!("{is}: `{says}` is neither true nor false")),
    }
}

/// The series and places that a command is to give. What only its output tells stays as its placeholder.
///
/// # Errors
/// In words: a placeholder that nothing fills.
pub fn promised(planned: &Planned<'_>, programs: &Programs) -> Result<Vec<(String, X)>, String> {
    let filled = |template: &str| {
        fill(template, |name| match name.starts_with('@') {
            true => Ok(format!("{{{name}}}")),
            false => value(name, &planned.variables, programs),
        })
    };
    let reads = planned.run.read.iter();
    reads
        .map(|read| Ok((filled(&read.series)?, X::of(&filled(&read.x)?))))
        .collect()
}

/// Texts that a command warns with: at most so many are kept of a figure.
const WARNINGS: usize = 20;

/// Adds what the output warns of: the texts of its fields `warning`.
pub fn warnings(output: &Value, all: &mut Vec<String>) {
    match output {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get("warning")
                && !text.is_empty()
                && !all.contains(text)
                && all.len() < WARNINGS
            {
                all.push(text.clone());
            }
            fields.values().for_each(|value| warnings(value, all));
        }
        Value::Array(values) => values.iter().for_each(|value| warnings(value, all)),
        _ => {}
    }
}
