//! How much a script may still do.
//!
//! Lua calls a hook every so many instructions, which takes them off. What is not made of instructions (patterns, long
//! texts, commands) takes its share off by itself. An instruction that joins or compares long texts, and a function of
//! Lua's own, take off nothing: so the hook looks at the clock, too, and takes off what others would have done in that time.
//! A script whose steps are used up, or that is stopped, ends by an error. `pcall` catches errors, so the hook then comes at
//! each instruction, and each time is an error: the script gets no further.
//!
//! The hook also collects garbage. Lua does so by what it has allocated, piece by piece, and would not be in time where a few
//! long texts fill the memory.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use mlua::{Error, HookTriggers, Lua, VmState};

use crate::course::Course;

/// Instructions between two calls of the hook. Few: an instruction may join two long texts.
const STRIDE: u32 = 1000;

/// The fewest of them.
const STRIDE_MIN: u32 = 16;

/// With more memory than this texts may be so long that the hook comes more often.
const SHORT: usize = 1 << 20;

/// Steps that a script has to pay for a microsecond. A quarter of what it can do in it: a thread may have to wait for a
/// processor.
const STEPS_OF_MICROSECOND: u64 = 50;

/// Bytes that are copied or looked at in the time of a step.
const BYTES_OF_STEP: usize = 64;

/// Why a script was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its steps are used up.
    TooLong,
    /// Somebody stopped it.
    Stopped,
    /// The server stops.
    Closed,
}

/// The steps of the script that runs.
#[derive(Debug, Default)]
pub struct Meter {
    left: Cell<u64>,
    end: Cell<Option<End>>,
    course: Arc<Course>,
    /// Bytes of memory of the state.
    memory: usize,
    /// Bytes that were used after garbage was collected.
    live: Cell<usize>,
    /// Instructions between two calls of the hook.
    stride: Cell<u32>,
    /// When the hook came last, and the steps that were left then.
    last: Cell<Option<(Instant, u64)>>,
}

impl Meter {
    /// A meter of a state. `course` is that of the script that runs.
    pub fn new(course: Arc<Course>, memory: usize) -> Rc<Self> {
        Rc::new(Self {
            course,
            memory,
            ..Self::default()
        })
    }

    /// A script begins, which may take so many steps.
    pub fn begin(self: &Rc<Self>, lua: &Lua, steps: u64) -> mlua::Result<()> {
        self.left.set(steps);
        self.end.set(None);
        self.last.set(Some((Instant::now(), steps)));
        self.hook(lua, stride(lua.used_memory()))
    }

    /// Why the script was ended, if it was.
    pub fn end(&self) -> Option<End> {
        self.end.get()
    }

    /// The steps that are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes steps off. False if the script has to end, which the caller tells by [`Meter::error`].
    pub fn take(self: &Rc<Self>, lua: &Lua, steps: u64) -> bool {
        if self.end.get().is_some() {
            return false;
        }
        let left = self.left.get();
        self.left.set(left.saturating_sub(steps));
        let end = if self.course.is_stopped() {
            End::Stopped
        } else if self.course.is_closed() {
            End::Closed
        } else if left <= steps {
            End::TooLong
        } else {
            return true;
        };
        self.end.set(Some(end));
        // Without the hook the script would end at its next call of this.
        let _ = self.hook(lua, 1);
        false
    }

    /// Takes off what work with so many bytes costs, which may be made.
    pub fn take_bytes(self: &Rc<Self>, lua: &Lua, bytes: usize) -> bool {
        if bytes > SHORT / 16 {
            self.collect(lua, bytes);
        }
        self.take(lua, (bytes / BYTES_OF_STEP) as u64)
    }

    /// Collects garbage if more than half of the memory is used, and much of it since the last time.
    pub fn collect(&self, lua: &Lua, more: usize) {
        let used = lua.used_memory().saturating_add(more);
        let live = self.live.get();
        if used > self.memory / 2 && used > live + self.memory.saturating_sub(live) / 4 {
            let _ = lua.gc_collect();
            self.live.set(lua.used_memory());
        }
    }

    /// The error by which the script ends. Nobody reads its words: [`Meter::end`] tells.
    pub fn error() -> Error {
        Error::runtime("the script has been ended")
    }

    fn hook(self: &Rc<Self>, lua: &Lua, stride: u32) -> mlua::Result<()> {
        let meter = Rc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(stride);
        lua.set_hook(triggers, move |lua, _| match meter.tick(lua) {
            true => Ok(VmState::Continue),
            false => Err(Self::error()),
        })?;
        self.stride.set(stride);
        Ok(())
    }

    /// The hook has come.
    fn tick(self: &Rc<Self>, lua: &Lua) -> bool {
        let stride_now = self.stride.get();
        if self.end.get().is_some() {
            // Where calls are nested as deep as Lua allows there was no room for the new hook.
            if stride_now > 1 {
                let _ = self.hook(lua, 1);
            }
            return false;
        }
        let goes_on = self.take(lua, u64::from(stride_now).max(self.unpaid()));
        if goes_on {
            self.last.set(Some((Instant::now(), self.left.get())));
            self.collect(lua, 0);
            let wanted = stride(lua.used_memory());
            if wanted <= stride_now / 2 || wanted / 2 >= stride_now {
                // Without memory for the hook the present one stays.
                let _ = self.hook(lua, wanted);
            }
        }
        goes_on
    }

    /// The steps for the time since the hook came last that were not taken off meanwhile.
    fn unpaid(&self) -> u64 {
        let Some((then, left)) = self.last.get() else {
            return 0;
        };
        let due = then.elapsed().as_micros() as u64 * STEPS_OF_MICROSECOND;
        due.saturating_sub(left - self.left.get())
    }
}

/// Instructions between two calls of the hook with so much memory in use.
fn stride(used: usize) -> u32 {
    let stride = STRIDE as usize * SHORT / used.max(SHORT);
    (stride as u32).max(STRIDE_MIN)
}
