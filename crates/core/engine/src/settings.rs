//! The settings that every engine has, as a user makes them.

/// The settings that every engine has. Settings that only some engines have stand beside these, where those engines are
/// listed.
#[derive(Clone, Debug, PartialEq)]
pub struct CommonSettings {
    /// Bytes for items and index.
    pub memory_limit: usize,
    /// Bytes to which that may be raised while the engine runs, if not [`CommonSettings::limit_max`]'s default.
    pub memory_limit_max: Option<usize>,
    /// Bytes of the largest item, if not [`CommonSettings::item_size_max`]'s default.
    pub item_size_max: Option<usize>,
    /// False: a full engine refuses stores instead of evicting.
    pub evicts: bool,
    /// Bytes of the smallest chunk, if not the engine's default.
    pub chunk_min: Option<usize>,
    /// Ratio of neighbouring chunk sizes.
    pub growth_factor: f64,
    /// Items the index has room for at the start, if not the engine's default.
    pub initial_items: Option<usize>,
    /// Other processes are to read the memory ([`Engine::sharing`](crate::Engine::sharing)): an engine that cannot have that
    /// is made without.
    pub shared: bool,
}

impl Default for CommonSettings {
    /// memcached's.
    fn default() -> Self {
        Self {
            memory_limit: 64 << 20,
            memory_limit_max: None,
            item_size_max: None,
            evicts: true,
            chunk_min: None,
            growth_factor: 1.25,
            initial_items: None,
            shared: false,
        }
    }
}

/// memcached's largest item, in bytes.
pub const ITEM_SIZE_MAX: usize = 1 << 20;

/// Up to how many times the memory limit it may be raised, if no maximum is set: a memcached raises its limit as far as
/// a client asks, and unused memory costs address space only.
const LIMIT_RAISED: usize = 4;

/// Bytes of the smallest chunk of size classes, if none is set: memcached's.
pub const CLASS_MIN: usize = 48;

/// Bytes of the smallest of the sizes by which a log counts its items, if none is set.
pub const LOG_MIN: usize = 32;

impl CommonSettings {
    /// Bytes to which the limit may be raised, in an engine that can use `most` of them.
    pub fn limit_max(&self, most: usize) -> usize {
        if self.shared {
            return self.memory_limit;
        }
        let raised = || self.memory_limit.saturating_mul(LIMIT_RAISED).min(most);
        self.memory_limit_max.unwrap_or_else(raised)
    }

    /// Bytes of the largest item, in an engine that divides its memory into `parts` at least: by default memcached's, or
    /// what a small limit allows.
    pub fn item_size_max(&self, parts: usize) -> usize {
        let default = || ITEM_SIZE_MAX.min(self.memory_limit / parts / 2);
        self.item_size_max.unwrap_or_else(default)
    }

    /// The lines that `stats settings` shows for every engine, with [`CLASS_MIN`] or [`LOG_MIN`], and `most` as for
    /// [`CommonSettings::limit_max`]. Engines without size classes show them too: monitoring looks for the names.
    pub fn lines(&self, most: usize, chunk_min: usize) -> Vec<(&'static str, String)> {
        let chunk_min = self.chunk_min.unwrap_or(chunk_min);
        vec![
            ("maxbytes_max", self.limit_max(most).to_string()),
            ("growth_factor", format!("{:.2}", self.growth_factor)),
            ("chunk_size", chunk_min.to_string()),
        ]
    }
}
