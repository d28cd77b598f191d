//! The counters of server threads and clients, one set for each thread.

use nuthatch_engine::stats::MessageStats;

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
    /// Messages that clients took themselves, while a partition's owner slept.
    SelfServed,
    /// Nanoseconds that server threads spent serving.
    BusyNanos,
    /// Nanoseconds that they polled for work and found none.
    PollingNanos,
    /// Nanoseconds that they slept while they owned partitions.
    SleepingNanos,
    /// Nanoseconds that they slept while they owned none.
    UnneededNanos,
    /// How often a partition changed its owner.
    HandOvers,
}

/// The number of counters.
pub(super) const COUNTS: usize = Count::HandOvers as usize + 1;

/// The statistics made from these sums.
pub(super) fn message_stats(sums: &[u64; COUNTS], server_threads: usize) -> MessageStats {
    let count = |count: Count| sums[count as usize];
    MessageStats {
        operations: count(Count::Operations),
        lines_sent: count(Count::LinesSent),
        messages_sent: count(Count::MessagesSent),
        lines_received: count(Count::LinesReceived),
        answers_received: count(Count::AnswersReceived),
        messages_served: count(Count::Served),
        self_served: count(Count::SelfServed),
        busy_nanos: count(Count::BusyNanos),
        polling_nanos: count(Count::PollingNanos),
        sleeping_nanos: count(Count::SleepingNanos),
        hand_overs: count(Count::HandOvers),
        server_threads: server_threads as u64,
    }
}
