//! Statistics as C reads them.

/// What a table counted since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Stats {
    /// Flows looked up.
    pub lookups: u64,
    /// Flows that were found; never more than `lookups`.
    pub hits: u64,
    /// Inserts that took an empty slot.
    pub filled: u64,
    /// Inserts that replaced the value of a flow that was in the table.
    pub updated: u64,
    /// Inserts that evicted another flow.
    pub evicted: u64,
    /// Flows that were removed one by one.
    pub removed: u64,
    /// Flows that were removed by nuthatch_flow_forget_value() and nuthatch_flow_clear().
    pub forgotten: u64,
    /// Flows that are in the table now.
    pub occupied: u64,
    /// Slots: the configured entries, rounded up. The few spare slots at the end do not count.
    pub entries: u64,
    /// Bytes of all slots.
    pub bytes: u64,
}

impl Stats {
    pub(crate) fn new(counted: nuthatch_flow::Stats, config: &nuthatch_flow::Config) -> Self {
        Self {
            lookups: counted.lookups,
            hits: counted.hits,
            filled: counted.filled,
            updated: counted.updated,
            evicted: counted.evicted,
            removed: counted.removed,
            forgotten: counted.forgotten,
            occupied: counted.occupied(),
            entries: config.rounded_entries(),
            bytes: config.bytes(),
        }
    }
}
