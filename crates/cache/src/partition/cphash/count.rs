//! What server threads and clients count, each for itself.

use crate::stats::MessageStats;

/// Counters of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    /// Requests carried out for clients.
    Operations,
    /// Message lines that clients sent.
    LinesSent,
    /// Messages in them.
    MessagesSent,
    /// Lines of answers that clients received.
    LinesReceived,
    /// Answers in them.
    AnswersReceived,
    /// Messages that server threads took.
    Served,
    /// Nanoseconds that server threads spent serving.
    BusyNanos,
    /// Nanoseconds that they looked for work and found none.
    PollingNanos,
    /// Nanoseconds that they slept while they owned partitions.
    SleepingNanos,
    /// How often a partition changed its owner.
    HandOvers,
}

/// How many there are.
pub(super) const COUNTS: usize = Count::HandOvers as usize + 1;

impl MessageStats {
    pub(super) fn of(sums: &[u64; COUNTS], server_threads: usize) -> Self {
        let count = |count: Count| sums[count as usize];
        Self {
            operations: count(Count::Operations),
            lines_sent: count(Count::LinesSent),
            messages_sent: count(Count::MessagesSent),
            lines_received: count(Count::LinesReceived),
            answers_received: count(Count::AnswersReceived),
            messages_served: count(Count::Served),
            busy_nanos: count(Count::BusyNanos),
            polling_nanos: count(Count::PollingNanos),
            sleeping_nanos: count(Count::SleepingNanos),
            hand_overs: count(Count::HandOvers),
            server_threads: server_threads as u64,
        }
    }

    /// Messages in a line that a client sent.
    pub fn messages_a_line(&self) -> f64 {
        ratio(self.messages_sent, self.lines_sent)
    }

    /// Lines an operation, sent and received together.
    pub fn lines_an_operation(&self) -> f64 {
        ratio(self.lines_sent + self.lines_received, self.operations)
    }

    /// Share of the server threads' time, sleep included, that they spent serving: 0 to 1.
    pub fn busy_share(&self) -> f64 {
        ratio(
            self.busy_nanos,
            self.busy_nanos + self.polling_nanos + self.sleeping_nanos,
        )
    }

    /// Nanoseconds of a server thread's serving for each message.
    pub fn nanos_a_message(&self) -> f64 {
        ratio(self.busy_nanos, self.messages_served)
    }
}

fn ratio(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
