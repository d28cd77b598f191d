//! The text of INFO.

use std::fmt::{self, Display, Write};

/// Sections of lines of a name and a value.
#[derive(Debug, Default)]
pub struct InfoLines(String);

impl InfoLines {
    /// Begins a section.
    pub fn section(&mut self, name: &str) {
        if !self.0.is_empty() {
            self.0 += "\r\n";
        }
        // A write to a String does not fail.
        let _ = write!(self.0, "# {name}\r\n");
    }

    /// Adds a line.
    pub fn line(&mut self, name: &str, value: impl Display) {
        // A write to a String does not fail.
        let _ = write!(self.0, "{name}:{value}\r\n");
    }

    /// The text.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// Bytes as Redis shows them to people: `1.50M`.
#[derive(Clone, Copy, Debug)]
pub struct HumanBytes(pub u64);

impl Display for HumanBytes {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut number = self.0 as f64;
        for unit in ["B", "K", "M", "G"] {
            if number < 1024.0 {
                return match unit {
                    "B" => write!(out, "{}B", self.0),
                    unit => write!(out, "{number:.2}{unit}"),
                };
            }
            number /= 1024.0;
        }
        write!(out, "{number:.2}T")
    }
}

#[cfg(test)]
mod tests {
    use super::HumanBytes;

    #[test]
    fn sizes_are_shown_as_in_redis() {
        for (bytes, shown) in [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.00K"),
            (1_572_864, "1.50M"),
            (1 << 30, "1.00G"),
            (3 << 40, "3.00T"),
        ] {
            assert_eq!(HumanBytes(bytes).to_string(), shown);
        }
    }
}
