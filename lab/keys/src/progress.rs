//! Progress on standard error, if somebody looks at it there.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// Keys counted for whoever waits.
pub struct Progress(ProgressBar);

impl Progress {
    /// Begins. `what` names what is being counted; `total` is there if it is known.
    pub fn new(what: &'static str, total: Option<u64>) -> Self {
        // Hidden by itself where standard error is no terminal.
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

    /// So many more.
    pub fn add(&self, count: u64) {
        self.0.inc(count);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
