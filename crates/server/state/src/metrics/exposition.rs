//! A writer of Prometheus' text format and of OpenMetrics 1.0: families of samples with types, units and help.
//!
//! Scrapers ask for either, so it is written here. `prometheus-client`, which has a collector for values that are summed
//! on request as ours are, writes OpenMetrics only; `prometheus` and the exporter of `metrics` write the older format
//! only, and the latter counts in atomics that all threads share. `fastmetrics` writes both, but is young.
//! prometheus_client of Python and promtool read each page in the tests.

use std::fmt::{Display, Write};

use super::{Family, Kind, Labels, Unit};

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format, version 0.0.4.
    Prometheus,
    /// OpenMetrics, version 1.0.
    OpenMetrics,
}

impl Format {
    /// The content type in HTTP.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// A page of families.
pub struct Page {
    format: Format,
    text: String,
    /// The name of the samples of the present family.
    name: String,
}

impl Page {
    pub fn new(format: Format) -> Self {
        Self {
            format,
            text: String::new(),
            name: String::new(),
        }
    }

    /// The whole text.
    pub fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// Begins a family. The samples behind it are its own.
    pub fn family(&mut self, family: &Family) {
        self.name = family.sample_name();
        // Prometheus' format has one name for family and sample.
        let name = match self.format {
            Format::Prometheus => &self.name,
            Format::OpenMetrics => family.name,
        };
        let kind = match family.kind {
            Kind::Counter => "counter",
            Kind::Gauge | Kind::Text => "gauge",
            Kind::Histogram => "histogram",
        };
        // Writing to a String does not fail, here and below.
        let _ = writeln!(self.text, "# HELP {name} {}", family.help);
        let _ = writeln!(self.text, "# TYPE {name} {kind}");
        let unit = match family.unit {
            Unit::Bytes => "bytes",
            Unit::Seconds | Unit::Microseconds => "seconds",
            Unit::Count => return,
        };
        if self.format == Format::OpenMetrics {
            let _ = writeln!(self.text, "# UNIT {name} {unit}");
        }
    }

    /// A sample of a counter or a gauge.
    pub fn sample(&mut self, labels: Labels<'_>, value: impl Display) {
        self.line("", labels, value);
    }

    /// A sample of a histogram: the cumulated counts below bucket ends, the number of all counts, and the sum of the
    /// values.
    pub fn histogram(
        &mut self,
        [command, size]: [(&str, &str); 2],
        buckets: impl Iterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        for (end, below) in buckets {
            let end = end.to_string();
            self.line("_bucket", &[command, size, ("le", &end)], below);
        }
        self.line("_bucket", &[command, size, ("le", "+Inf")], count);
        self.line("_count", &[command, size], count);
        self.line("_sum", &[command, size], sum);
    }

    fn line(&mut self, suffix: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(&self.name);
        self.text.push_str(suffix);
        for (at, (label, said)) in labels.iter().enumerate() {
            let before = if at == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{said}\"");
        }
        if !labels.is_empty() {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::{Condition, counter, gauge};

    fn page(format: Format) -> String {
        let mut page = Page::new(format);
        let bytes = counter("Bytes sent.").unit(Unit::Bytes).page("sent_bytes");
        page.family(&bytes.family().unwrap());
        page.sample(&[], 7);
        page.family(&gauge("Items.").page("items").family().unwrap());
        page.sample(&[("kind", "hot"), ("a", "b")], 2);
        page.family(&Family {
            name: "took_seconds",
            kind: Kind::Histogram,
            unit: Unit::Seconds,
            help: "Time.",
            when: Condition::ALWAYS,
        });
        page.histogram([("c", "get"), ("s", "1")], [(0.5, 1)].into_iter(), 3, 2.5);
        page.end()
    }

    #[test]
    fn both_formats() {
        let histogram = "took_seconds_bucket{c=\"get\",s=\"1\",le=\"0.5\"} 1\n\
                         took_seconds_bucket{c=\"get\",s=\"1\",le=\"+Inf\"} 3\n\
                         took_seconds_count{c=\"get\",s=\"1\"} 3\ntook_seconds_sum{c=\"get\",s=\"1\"} 2.5\n";
        let expected = "# HELP sent_bytes_total Bytes sent.\n# TYPE sent_bytes_total counter\n\
                        sent_bytes_total 7\n# HELP items Items.\n# TYPE items gauge\n\
                        items{kind=\"hot\",a=\"b\"} 2\n\
                        # HELP took_seconds Time.\n# TYPE took_seconds histogram\n";
        assert_eq!(page(Format::Prometheus), format!("{expected}{histogram}"));
        let expected = "# HELP sent_bytes Bytes sent.\n# TYPE sent_bytes counter\n# UNIT sent_bytes bytes\n\
                        sent_bytes_total 7\n# HELP items Items.\n# TYPE items gauge\n\
                        items{kind=\"hot\",a=\"b\"} 2\n\
                        # HELP took_seconds Time.\n# TYPE took_seconds histogram\n# UNIT took_seconds seconds\n";
        assert_eq!(
            page(Format::OpenMetrics),
            format!("{expected}{histogram}# EOF\n")
        );
    }
}
