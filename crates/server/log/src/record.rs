//! A copy of an event that outlives its call, so that another thread can write it.

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{self, Debug};
use std::mem::size_of;

use tracing::field::{Field, Value, Visit, display};
use tracing::{Event, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};

/// An event, its fields and its time.
pub struct Record {
    metadata: &'static Metadata<'static>,
    time: String,
    /// In the order of the event's fields; each field has at most one value.
    values: Vec<Option<Box<dyn Value + Send>>>,
    text_bytes: usize,
}

thread_local! {
    /// The time of the event that this thread writes now.
    static TIME: RefCell<String> = const { RefCell::new(String::new()) };
}

impl Record {
    /// The record of an event that happens now.
    pub fn of(event: &Event<'_>) -> Self {
        let mut time = String::with_capacity(size_of::<[u8; 32]>());
        // Writing to a String does not fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let metadata = event.metadata();
        let mut record = Self {
            metadata,
            time,
            values: metadata.fields().iter().map(|_| None).collect(),
            text_bytes: 0,
        };
        event.record(&mut record);
        record
    }

    /// Sends the event to another subscriber, which gets the time by [`TimeOfEvent`].
    pub fn replay(&self, to: &dyn Subscriber) {
        TIME.with_borrow_mut(|time| time.clone_from(&self.time));
        let values = self.values.iter();
        let values: Vec<_> = values
            .map(|value| value.as_deref().map(|value| value as &dyn Value))
            .collect();
        // tracing's own macros expand to the same.
        let values = self.metadata.fields().value_set_all(&values);
        to.event(&Event::new(self.metadata, &values));
    }

    /// About how much memory it holds, in bytes.
    pub fn bytes(&self) -> usize {
        let value = size_of::<Option<Box<dyn Value>>>() + size_of::<String>();
        size_of::<Self>() + self.time.len() + self.values.len() * value + self.text_bytes
    }

    fn keep(&mut self, field: &Field, value: impl Value + Send + 'static) {
        if let Some(place) = self.values.get_mut(field.index()) {
            *place = Some(Box::new(value));
        }
    }

    fn keep_text(&mut self, field: &Field, text: String) {
        self.text_bytes += text.len();
        self.keep(field, display(text));
    }
}

/// Numbers and texts keep their types, by which JSON writes them; of any other value its text is kept.
impl Visit for Record {
    fn record_f64(&mut self, field: &Field, value: f64) {
        self.keep(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.keep(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.keep(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.keep(field, value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.text_bytes += value.len();
        self.keep(field, value.to_owned());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        self.keep_text(field, value.to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.keep_text(field, format!("{value:?}"));
    }
}

/// The time of the record that is being written, not of its writing.
pub struct TimeOfEvent;

impl FormatTime for TimeOfEvent {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        TIME.with_borrow(|time| out.write_str(time))
    }
}
