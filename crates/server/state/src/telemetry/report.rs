//! The writer of statistics: it passes names and values to a function.

use std::fmt::Display;

/// A function that receives statistics, a name and a value each.
pub type StatSink<'w> = dyn FnMut(&str, &str) + 'w;

/// Statistics under way to such a function.
pub struct Report<'w, 'h> {
    sink: &'w mut StatSink<'h>,
}

impl<'w, 'h> Report<'w, 'h> {
    /// A report to this function.
    pub fn new(sink: &'w mut StatSink<'h>) -> Self {
        Self { sink }
    }

    /// A name and its value.
    pub fn line(&mut self, name: &str, value: impl Display) {
        (self.sink)(name, &value.to_string());
    }

    /// A line of one of many things, by its number.
    pub fn line_of(&mut self, number: usize, name: &str, value: impl Display) {
        self.line(&format!("{number}:{name}"), value);
    }

    /// A line of a size class.
    pub fn line_of_items(&mut self, class: usize, name: &str, value: impl Display) {
        self.line(&format!("items:{class}:{name}"), value);
    }
}
