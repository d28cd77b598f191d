//! A progress bar on standard error, if that is a terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A count that goes up, shown while it does.
pub struct Progress(ProgressBar);

impl Progress {
    /// Begins. `what` names the things that are counted; `total` is their number, if it is known.
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        // The bar hides itself where standard error is no terminal.
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::no_length(),
        };
        let template = match total {
            Some(_) => "{msg} [{bar:40}] {human_pos} of {human_len}, {per_sec}",
            None => "{spinner} {msg} {human_pos}, {per_sec}",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what);
        if !bar.is_hidden() {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// Begins a command of `steps` steps, each of which has a name.
    pub fn steps(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64);
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len} {msg} {eta}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Shows the name of the step that begins.
    pub fn step(&self, name: impl Into<String>) {
        self.0.set_message(name.into());
    }

    /// Adds to the count.
    pub fn add(&self, count: u64) {
        self.0.inc(count);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
