//! A writer of Prometheus' text format and of OpenMetrics 1.0: families of samples with types, units and help.

use std::fmt::{Display, Write};

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

/// Names and values of labels. The values have no character that needs an escape.
pub type Labels<'l> = &'l [(&'l str, &'l str)];

/// A page of families.
pub struct Page {
    format: Format,
    text: String,
}

impl Page {
    pub fn new(format: Format) -> Self {
        Self {
            format,
            text: String::new(),
        }
    }

    /// The whole text.
    pub fn end(mut self) -> String {
        if self.format == Format::OpenMetrics {
            self.text.push_str("# EOF\n");
        }
        self.text
    }

    /// A counter, which only rises. `name` is without `_total`.
    pub fn counter<'l>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, u64)>,
    ) {
        let total = format!("{name}_total");
        // Prometheus' format has one name for family and sample.
        let family = match self.format {
            Format::Prometheus => &total,
            Format::OpenMetrics => name,
        };
        self.head(family, "counter", help);
        for (labels, value) in samples {
            self.sample(&total, labels, value);
        }
    }

    /// A counter of seconds.
    pub fn seconds(&mut self, name: &str, help: &str, samples: &[(Labels<'_>, f64)]) {
        let total = format!("{name}_total");
        let family = match self.format {
            Format::Prometheus => &total,
            Format::OpenMetrics => name,
        };
        self.head(family, "counter", help);
        for (labels, value) in samples {
            self.sample(&total, labels, value);
        }
    }

    /// A gauge, which rises and falls.
    pub fn gauge<'l, V: Display>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'l>, V)>,
    ) {
        self.head(name, "gauge", help);
        for (labels, value) in samples {
            self.sample(name, labels, value);
        }
    }

    /// Begins a family of [`Self::histogram`].
    pub fn histograms(&mut self, name: &str, help: &str) {
        self.head(name, "histogram", help);
    }

    /// The cumulated counts below bucket ends, the number of all counts, and the sum of the values.
    pub fn histogram(
        &mut self,
        name: &str,
        [command, size]: [(&str, &str); 2],
        buckets: impl Iterator<Item = (f64, u64)>,
        count: u64,
        sum: f64,
    ) {
        for (end, below) in buckets {
            let end = end.to_string();
            self.sample(
                &format!("{name}_bucket"),
                &[command, size, ("le", &end)],
                below,
            );
        }
        self.sample(
            &format!("{name}_bucket"),
            &[command, size, ("le", "+Inf")],
            count,
        );
        self.sample(&format!("{name}_count"), &[command, size], count);
        self.sample(&format!("{name}_sum"), &[command, size], sum);
    }

    fn head(&mut self, family: &str, kind: &str, help: &str) {
        // Writing to a String does not fail, here and below.
        let _ = writeln!(self.text, "# HELP {family} {help}");
        let _ = writeln!(self.text, "# TYPE {family} {kind}");
        let name = family.strip_suffix("_total").unwrap_or(family);
        let unit = ["seconds", "bytes"]
            .into_iter()
            .find(|unit| name.ends_with(unit));
        if let (Some(unit), Format::OpenMetrics) = (unit, self.format) {
            let _ = writeln!(self.text, "# UNIT {family} {unit}");
        }
    }

    fn sample(&mut self, name: &str, labels: Labels<'_>, value: impl Display) {
        self.text.push_str(name);
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

    fn page(format: Format) -> String {
        let mut page = Page::new(format);
        page.counter("sent_bytes", "Bytes sent.", [(&[][..], 7)]);
        page.gauge("items", "Items.", [(&[("kind", "hot"), ("a", "b")][..], 2)]);
        page.end()
    }

    #[test]
    fn both_formats() {
        let expected = "# HELP sent_bytes_total Bytes sent.\n# TYPE sent_bytes_total counter\n\
                        sent_bytes_total 7\n# HELP items Items.\n# TYPE items gauge\n\
                        items{kind=\"hot\",a=\"b\"} 2\n";
        assert_eq!(page(Format::Prometheus), expected);
        let expected = "# HELP sent_bytes Bytes sent.\n# TYPE sent_bytes counter\n# UNIT sent_bytes bytes\n\
                        sent_bytes_total 7\n# HELP items Items.\n# TYPE items gauge\n\
                        items{kind=\"hot\",a=\"b\"} 2\n# EOF\n";
        assert_eq!(page(Format::OpenMetrics), expected);
    }
}
