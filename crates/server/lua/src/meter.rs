//! How much a script may still do.
//!
//! Lua calls a hook every [`STRIDE`] instructions, which takes them off. What is not made of instructions (patterns, long
//! texts, commands) takes its share off by itself. A script whose steps are used up, or that is stopped, ends by an error.
//! `pcall` catches errors, so the hook then comes at each instruction, and each time is an error: the script gets no
//! further.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mlua::{Error, HookTriggers, Lua, VmState};

/// Instructions between two calls of the hook. Few: an instruction may join two long texts.
const STRIDE: u32 = 1000;

/// Bytes that are copied or looked at in the time of a step.
const BYTES_OF_STEP: usize = 64;

/// Why a script was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Its steps are used up.
    TooLong,
    /// Somebody stopped it.
    Stopped,
}

/// The steps of the script that runs.
#[derive(Debug, Default)]
pub struct Meter {
    left: Cell<u64>,
    end: Cell<Option<End>>,
    stop: Arc<AtomicBool>,
}

impl Meter {
    /// A meter of a state. `stop` ends the script that runs.
    pub fn new(stop: Arc<AtomicBool>) -> Rc<Self> {
        Rc::new(Self {
            stop,
            ..Self::default()
        })
    }

    /// A script begins, which may take so many steps.
    pub fn begin(self: &Rc<Self>, lua: &Lua, steps: u64) -> mlua::Result<()> {
        self.left.set(steps);
        self.end.set(None);
        self.hook(lua, STRIDE)
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
        // Relaxed: nothing else is read behind it.
        let end = if self.stop.load(Ordering::Relaxed) {
            End::Stopped
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

    /// Takes off what work with so many bytes costs.
    pub fn take_bytes(self: &Rc<Self>, lua: &Lua, bytes: usize) -> bool {
        self.take(lua, (bytes / BYTES_OF_STEP) as u64)
    }

    /// The error by which the script ends. Nobody reads its words: [`Meter::end`] tells.
    pub fn error() -> Error {
        Error::runtime("the script has been ended")
    }

    fn hook(self: &Rc<Self>, lua: &Lua, stride: u32) -> mlua::Result<()> {
        let meter = Rc::clone(self);
        let triggers = HookTriggers::new().every_nth_instruction(stride);
        lua.set_hook(triggers, move |lua, _| {
            match meter.take(lua, stride.into()) {
                true => Ok(VmState::Continue),
                false => Err(Self::error()),
            }
        })
    }
}
