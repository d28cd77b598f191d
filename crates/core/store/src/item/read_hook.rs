//! A hook for tests: a function that runs in the middle of each read of a value, on the reader's thread, to change the
//! item at that moment. It exists only in builds with debug assertions.

use std::cell::RefCell;

type ReadHook = Box<dyn FnMut()>;

thread_local! {
    static READ_HOOK: RefCell<Option<ReadHook>> = const { RefCell::new(None) };
}

/// Calls `hook` whenever this thread begins to read a value, but not for the hook's own reads, until the guard is
/// dropped.
pub fn on_read(hook: impl FnMut() + 'static) -> ReadHookGuard {
    READ_HOOK.set(Some(Box::new(hook)));
    ReadHookGuard
}

/// Removes the hook when it is dropped.
pub struct ReadHookGuard;

impl Drop for ReadHookGuard {
    fn drop(&mut self) {
        READ_HOOK.take();
    }
}

/// A value is about to be read.
pub fn reading() {
    // The hook no longer exists in a thread that is ending.
    let hook = READ_HOOK.try_with(RefCell::take).ok().flatten();
    if let Some(mut hook) = hook {
        hook();
        READ_HOOK.set(Some(hook));
    }
}
