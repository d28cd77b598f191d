//! Arguments that several commands share, and their parsers.

use clap::{Args, ValueEnum};
use nuthatch_flow::{ENTRIES_MAX, Vector};
use nuthatch_program::size;
use nuthatch_workload::Distribution;

use crate::design::OneOrAll;

/// Flows that are generated, and copies of captured ones, at most.
pub(crate) const FLOWS_MAX: u64 = 1 << 30;

/// How popular keys or flows are.
#[derive(Args, Clone, Copy, Debug)]
pub struct Skew {
    /// Distribution of the keys' popularity
    #[arg(long, value_enum, default_value_t = DistName::Uniform)]
    pub dist: DistName,
    /// Exponent of zipf: 0 is uniform, YCSB uses 0.99
    #[arg(long, default_value_t = 0.99, value_parser = not_negative)]
    pub theta: f64,
}

/// Distributions of popularity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DistName {
    /// All keys equally popular
    Uniform,
    /// The key of rank r with a popularity proportional to 1 / r^theta
    Zipf,
}

impl Skew {
    /// The distribution.
    pub fn distribution(&self) -> Distribution {
        match self.dist {
            DistName::Uniform => Distribution::Uniform,
            DistName::Zipf => Distribution::Zipf { theta: self.theta },
        }
    }

    /// True if all keys are equally popular: then theory has an expected value.
    pub fn is_uniform(&self) -> bool {
        self.dist == DistName::Uniform || self.theta == 0.0
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self.dist {
            DistName::Uniform => "uniform".to_owned(),
            DistName::Zipf => format!("zipf {}", self.theta),
        }
    }
}

/// A number of entries, flows or packets, as people type it.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    let count = size::parse(text).map_err(|error| error.to_string())?;
    Ok(count as u64)
}

/// Entries of a table, which rounds them up.
pub(crate) fn entries(text: &str) -> Result<u64, String> {
    match count(text)? {
        count if count > ENTRIES_MAX => Err(format!("at most {ENTRIES_MAX}")),
        count => Ok(count),
    }
}

/// An oversubscription factor.
pub(crate) fn factor(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(factor) if factor > 0.0 && factor <= 1000.0 => Ok(factor),
        _ => Err("a factor is above 0 and at most 1000".to_owned()),
    }
}

/// A number from 0 on.
pub(crate) fn not_negative(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number >= 0.0 && number.is_finite() => Ok(number),
        _ => Err("a number from 0 on".to_owned()),
    }
}

/// A count of at least 1.
pub(crate) fn positive_count(text: &str) -> Result<u64, String> {
    match count(text)? {
        0 => Err("at least 1".to_owned()),
        count => Ok(count),
    }
}

/// Flows, or copies of them, up to the limit.
pub(crate) fn flow_count(text: &str) -> Result<u64, String> {
    match positive_count(text)? {
        count if count > FLOWS_MAX => Err(format!("at most {FLOWS_MAX}")),
        count => Ok(count),
    }
}

/// A comparison that this machine has, or all of them.
pub(crate) fn vector(name: &str) -> Result<OneOrAll<Vector>, String> {
    if name == "all" {
        return Ok(OneOrAll::All);
    }
    Vector::available()
        .find(|vector| vector.name() == name)
        .map(OneOrAll::One)
        .ok_or_else(|| {
            let names: Vec<_> = Vector::available().map(Vector::name).collect();
            format!("this machine has: {}", names.join(", "))
        })
}

/// A number from 0 to 1.
pub(crate) fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&number) => Ok(number),
        _ => Err("a number from 0 to 1".to_owned()),
    }
}

/// A share of packets, below all of them.
pub(crate) fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.0..1.0).contains(&share) => Ok(share),
        _ => Err("a share from 0 to below 1".to_owned()),
    }
}
