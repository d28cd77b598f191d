//! The metrics of a server, each declared once in [`declared`]: its name in `stats`, its place on the page for
//! Prometheus, its kind, its unit, its meaning, and where it is read. What follows from the declaration: the counters of
//! the threads with their sums and their reset, `stats` and `stats hits`, the [`mod@page`], the tables in docs/statistics.md,
//! and the check that the dashboard in dist/ shows everything.
//!
//! This file has the words of the declaration.

#[cfg(test)]
mod checks;
mod counters_macro;
pub mod declared;
#[cfg(test)]
mod document;
mod exposition;
mod families;
mod page;
mod reading;

use std::fmt;

pub use self::exposition::Format;
pub use self::page::page;
pub use self::reading::Reading;

use crate::telemetry::Report;

/// How a metric may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It only rises, until `stats reset` or a restart.
    Counter,
    /// It rises and falls.
    Gauge,
    /// Counts below ends of buckets, their number and their sum.
    Histogram,
    /// It is no number. Only `stats` shows it.
    Text,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Seconds.
    Seconds,
    /// Microseconds in `stats`, seconds for Prometheus, which wants base units.
    Microseconds,
}

/// A value at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// There is none, so the metric is left out.
    Absent,
    /// Any number that is never negative.
    Number(u64),
    /// A number that may be negative.
    Signed(i64),
    /// `stats` shows six digits behind the point.
    Float(f64),
    /// Only for `stats`.
    Text(&'static str),
}

/// Names and values of labels. The values have no character that needs an escape.
pub type Labels<'l> = &'l [(&'l str, &'l str)];

/// Metrics that Prometheus has under one name, with different labels.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The name, for a counter without `_total`.
    pub name: &'static str,
    /// How its metrics may change.
    pub kind: Kind,
    /// What they count.
    pub unit: Unit,
    /// What the family is, for Prometheus.
    pub help: &'static str,
    /// The family is left out unless this holds.
    pub when: Condition,
}

impl Family {
    /// The name of its samples: of a histogram, without what distinguishes them.
    pub fn sample_name(&self) -> String {
        match self.kind {
            Kind::Counter => format!("{}_total", self.name),
            Kind::Gauge | Kind::Histogram | Kind::Text => self.name.to_owned(),
        }
    }
}

/// The place of a metric on the page for Prometheus.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// It is not there.
    Nowhere,
    /// It is a family by itself, with this name.
    Own(&'static str),
    /// It is a sample of a family, with these labels.
    Sample(&'static Family, Labels<'static>),
}

/// What a server must have or do so that it shows a metric.
#[derive(Clone, Copy)]
pub struct Condition {
    /// In words: "with UDP".
    pub words: &'static str,
    is_met: fn(&Reading<'_>) -> bool,
}

impl Condition {
    /// It always holds.
    pub const ALWAYS: Self = Self::new("", |_| true);

    /// The condition that `is_met` decides.
    pub const fn new(words: &'static str, is_met: fn(&Reading<'_>) -> bool) -> Self {
        Self { words, is_met }
    }

    /// True if it holds now.
    pub fn holds(&self, at: &Reading<'_>) -> bool {
        (self.is_met)(at)
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.words)
    }
}

/// A metric.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// The name in `stats`. `None`: it is for Prometheus only.
    pub stat: Option<&'static str>,
    /// The place on the page for Prometheus.
    pub place: Place,
    /// How it may change.
    pub kind: Kind,
    /// What it counts.
    pub unit: Unit,
    /// What it is, in a sentence. Prometheus gets it, too.
    pub help: &'static str,
    /// What the documents say besides, in Markdown.
    pub note: &'static str,
    /// It is left out unless this holds.
    pub when: Condition,
    read: fn(&Reading<'_>) -> Value,
}

/// A metric that only rises, still without a name and a source.
pub const fn counter(help: &'static str) -> Metric {
    Metric {
        stat: None,
        place: Place::Nowhere,
        kind: Kind::Counter,
        unit: Unit::Count,
        help,
        note: "",
        when: Condition::ALWAYS,
        read: |_| Value::Absent,
    }
}

/// A metric that rises and falls, the same way.
pub const fn gauge(help: &'static str) -> Metric {
    let mut metric = counter(help);
    metric.kind = Kind::Gauge;
    metric
}

/// A text, the same way.
pub const fn text(help: &'static str) -> Metric {
    let mut metric = counter(help);
    metric.kind = Kind::Text;
    metric
}

/// A name of memcached's that has no meaning in this server. It is reported all the same, with the value of a memcached
/// in which the event never happened: exporters, dashboards and scripts take a server that lacks a name for another
/// program, or for one that is down.
pub const fn never() -> Metric {
    counter(NEVER).read(|_| Value::Number(0))
}

/// The meaning of such a name.
pub const NEVER: &str = "Always 0: there is no such mechanism.";

/// The parts of a declaration.
impl Metric {
    /// The name in `stats`.
    pub const fn named(mut self, name: &'static str) -> Self {
        self.stat = Some(name);
        self
    }

    /// Where it is read.
    pub const fn read(mut self, read: fn(&Reading<'_>) -> Value) -> Self {
        self.read = read;
        self
    }

    /// A family by itself for Prometheus. A counter's name is without `_total`.
    pub const fn page(mut self, name: &'static str) -> Self {
        self.place = Place::Own(name);
        self
    }

    /// A sample of a family for Prometheus.
    pub const fn of(mut self, family: &'static Family, labels: Labels<'static>) -> Self {
        self.place = Place::Sample(family, labels);
        self
    }

    /// What it counts, if that is not things.
    pub const fn unit(mut self, unit: Unit) -> Self {
        self.unit = unit;
        self
    }

    /// What the documents say besides.
    pub const fn note(mut self, note: &'static str) -> Self {
        self.note = note;
        self
    }

    /// It is left out unless this holds.
    pub const fn when(mut self, when: Condition) -> Self {
        self.when = when;
        self
    }
}

/// What is done with a metric.
impl Metric {
    /// The value at this moment.
    pub fn value(&self, at: &Reading<'_>) -> Value {
        match self.when.holds(at) {
            true => (self.read)(at),
            false => Value::Absent,
        }
    }

    /// The line in `stats`, if there is one now.
    pub fn report(&self, report: &mut Report<'_, '_>, at: &Reading<'_>) {
        let Some(name) = self.stat else { return };
        match self.value(at) {
            Value::Absent => {}
            Value::Number(number) => report.line(name, number),
            Value::Signed(number) => report.line(name, number),
            Value::Float(number) => report.line(name, format_args!("{number:.6}")),
            Value::Text(text) => report.line(name, text),
        }
    }

    /// Its family for Prometheus.
    pub fn family(&self) -> Option<Family> {
        match self.place {
            Place::Nowhere => None,
            Place::Own(name) => Some(Family {
                name,
                kind: self.kind,
                unit: self.unit,
                help: self.help,
                when: self.when,
            }),
            Place::Sample(family, _) => Some(*family),
        }
    }

    /// True if it is a sample of the family with this name.
    pub fn is_of(&self, name: &str) -> bool {
        match self.place {
            Place::Nowhere => false,
            Place::Own(own) => own == name,
            Place::Sample(family, _) => family.name == name,
        }
    }

    /// Its labels.
    pub fn labels(&self) -> Labels<'static> {
        match self.place {
            Place::Sample(_, labels) => labels,
            Place::Nowhere | Place::Own(_) => &[],
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Self::Number(number)
    }
}

impl From<u32> for Value {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Self::Number(number as u64)
    }
}

impl From<bool> for Value {
    fn from(is: bool) -> Self {
        Self::Number(is.into())
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Signed(number)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Float(number)
    }
}

impl From<&'static str> for Value {
    fn from(text: &'static str) -> Self {
        Self::Text(text)
    }
}

impl<V: Into<Self>> From<Option<V>> for Value {
    fn from(value: Option<V>) -> Self {
        value.map_or(Self::Absent, V::into)
    }
}
