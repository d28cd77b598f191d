//! A thread that is cancelled (pthread_cancel) unwinds from where it waits, which Rust's frames do not bear: the process would end.
//! So it is cancelled at its next point of cancellation after the call.

/// While there is one, its thread is not cancelled.
pub(crate) struct Uncancelled {
    #[cfg(target_os = "linux")]
    before: std::ffi::c_int,
}

/// What the system has, and this library's header does not repeat.
///
/// cbindgen:ignore
#[cfg(target_os = "linux")]
mod system {
    use std::ffi::c_int;

    /// As glibc and musl have it.
    pub const DISABLE: c_int = 1;

    unsafe extern "C" {
        pub fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
}

#[cfg(target_os = "linux")]
impl Uncancelled {
    pub fn begin() -> Self {
        let mut before = 0;
        // SAFETY: it writes the number, and acts on nothing.
        unsafe { system::pthread_setcancelstate(system::DISABLE, &raw mut before) };
        Self { before }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Uncancelled {
    fn drop(&mut self) {
        // SAFETY: the state that was there. To allow it is no point of cancellation, unless the thread is cancelled anywhere, at
        // any instruction: then it may not call this library, nor nearly any other.
        unsafe { system::pthread_setcancelstate(self.before, std::ptr::null_mut()) };
    }
}

#[cfg(not(target_os = "linux"))]
impl Uncancelled {
    pub fn begin() -> Self {
        Self {}
    }
}
