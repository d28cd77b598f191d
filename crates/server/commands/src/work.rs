//! The work of a turn, in one unit: a command about one key. Everything that a command costs beyond that counts too,
//! whether or not the client gets an answer: bytes that are read, copied or written, and places that a walk visits. So
//! no command costs other connections more than the commands of a turn do, and what takes longer goes on in the next
//! turn.

/// The work of a command about one key moves up to this many bytes: as long as they are copied, so long the command
/// takes.
const BYTES_OF_COMMAND: usize = 1 << 10;

/// A walk visits this many places while a command about one key is executed. A place may be anywhere in memory.
const PLACES_OF_COMMAND: usize = 4;

/// To make room for so many bytes is as much work as to copy one.
const ROOM_OF_BYTES: usize = 16;

/// An amount of work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work(u32);

impl Work {
    /// That of a command about one key.
    pub const COMMAND: Self = Self(1);

    /// That of this many commands.
    #[inline(always)]
    pub fn of_commands(count: usize) -> Self {
        Self(u32::try_from(count).unwrap_or(u32::MAX))
    }

    /// That of moving this many bytes, beyond the command that does it.
    #[inline(always)]
    pub fn of_bytes(count: usize) -> Self {
        Self::of_commands(count / BYTES_OF_COMMAND)
    }

    /// That of making room for a value of this many bytes: the engine evicts, and moves some of what stays.
    pub fn of_room(len: usize) -> Self {
        Self::of_bytes(len / ROOM_OF_BYTES)
    }

    /// That of visiting this many places in a walk.
    pub fn of_places(count: usize) -> Self {
        Self::of_commands(count.div_ceil(PLACES_OF_COMMAND))
    }

    /// The same, `times` times.
    pub fn times(self, times: usize) -> Self {
        let times = u32::try_from(times).unwrap_or(u32::MAX);
        Self(self.0.saturating_mul(times))
    }

    /// Adds to it.
    pub fn add(&mut self, more: Self) {
        self.0 = self.0.saturating_add(more.0);
    }

    /// It in commands.
    #[inline(always)]
    pub fn commands(self) -> u32 {
        self.0
    }
}
