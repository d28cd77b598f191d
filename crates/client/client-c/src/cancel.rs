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

    // SAFETY: it is so declared, but for the reference, which is a pointer that may be NULL. It writes the number, if there is a
    // place for it, and acts on nothing else.
    unsafe extern "C" {
        pub safe fn pthread_setcancelstate(state: c_int, before: Option<&mut c_int>) -> c_int;
    }
}

#[cfg(target_os = "linux")]
impl Uncancelled {
    pub fn begin() -> Self {
        let mut before = 0;
        system::pthread_setcancelstate(system::DISABLE, Some(&mut before));
        Self { before }
    }
}

#[cfg(target_os = "linux")]
impl Drop for Uncancelled {
    fn drop(&mut self) {
        // This is no point of cancellation, unless the thread may be cancelled at any instruction: then it may call nearly no
        // library, and not this one.
        system::pthread_setcancelstate(self.before, None);
    }
}

#[cfg(not(target_os = "linux"))]
impl Uncancelled {
    pub fn begin() -> Self {
        Self {}
    }
}
