//! The writer of statistics: a name and a value each, to a function.

use std::fmt::Display;

/// Hears of statistics, a name and a value each.
pub type StatSink<'w> = dyn FnMut(&str, &str) + 'w;

/// Statistics on their way to who hears of them.
pub struct Report<'w, 'h> {
    hear: &'w mut StatSink<'h>,
}

impl<'w, 'h> Report<'w, 'h> {
    /// For who hears of them.
    pub fn new(hear: &'w mut StatSink<'h>) -> Self {
        Self { hear }
    }

    /// A name and its value.
    pub fn line(&mut self, name: &str, value: impl Display) {
        (self.hear)(name, &value.to_string());
    }

    /// One of many things, by its number.
    pub fn line_of(&mut self, number: usize, name: &str, value: impl Display) {
        self.line(&format!("{number}:{name}"), value);
    }

    /// One of a size class.
    pub fn line_of_items(&mut self, class: usize, name: &str, value: impl Display) {
        self.line(&format!("items:{class}:{name}"), value);
    }
}
