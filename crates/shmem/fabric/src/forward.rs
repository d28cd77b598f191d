//! A macro for fabrics that lie over another one and change some operations.

/// Defines the named methods of [`Fabric`](crate::Fabric) as those of the fabric that `self.below()` returns.
#[macro_export]
macro_rules! forward_fabric {
    ($($method:ident)*) => { $( $crate::forward_fabric!(@ $method); )* };
    (@ pe) => { fn pe(&self) -> usize { self.below().pe() } };
    (@ pes) => { fn pes(&self) -> usize { self.below().pes() } };
    (@ verified) => { fn verified(&self) -> $crate::Verified { self.below().verified() } };
    (@ allocate) => {
        fn allocate(&self, words: usize) -> Result<$crate::Address, $crate::NoMemory> {
            self.below().allocate(words)
        }
    };
    (@ local) => {
        fn local(&self, at: $crate::Address, words: usize) -> &[$crate::Word] {
            self.below().local(at, words)
        }
    };
    (@ direct) => {
        fn direct(
            &self,
            pe: usize,
            at: $crate::Address,
            words: usize,
        ) -> Option<&[$crate::Word]> {
            self.below().direct(pe, at, words)
        }
    };
    (@ put) => {
        fn put(&self, pe: usize, to: $crate::Address, words: &[u64]) -> Result<(), $crate::Gone> {
            self.below().put(pe, to, words)
        }
    };
    (@ get) => {
        fn get(
            &self,
            pe: usize,
            from: $crate::Address,
            into: &mut [u64],
        ) -> Result<(), $crate::Gone> {
            self.below().get(pe, from, into)
        }
    };
    (@ put_nbi) => {
        fn put_nbi(
            &self,
            pe: usize,
            to: $crate::Address,
            from: $crate::Address,
            words: usize,
        ) -> Result<(), $crate::Gone> {
            self.below().put_nbi(pe, to, from, words)
        }
    };
    (@ get_nbi) => {
        fn get_nbi(
            &self,
            pe: usize,
            from: $crate::Address,
            into: $crate::Address,
            words: usize,
        ) -> Result<(), $crate::Gone> {
            self.below().get_nbi(pe, from, into, words)
        }
    };
    (@ compare_swap) => {
        fn compare_swap(
            &self,
            pe: usize,
            at: $crate::Address,
            expected: u64,
            new: u64,
        ) -> Result<u64, $crate::Gone> {
            self.below().compare_swap(pe, at, expected, new)
        }
    };
    (@ fetch_add) => {
        fn fetch_add(&self, pe: usize, at: $crate::Address, by: u64) -> Result<u64, $crate::Gone> {
            self.below().fetch_add(pe, at, by)
        }
    };
    (@ swap) => {
        fn swap(&self, pe: usize, at: $crate::Address, new: u64) -> Result<u64, $crate::Gone> {
            self.below().swap(pe, at, new)
        }
    };
    (@ fetch) => {
        fn fetch(&self, pe: usize, at: $crate::Address) -> Result<u64, $crate::Gone> {
            self.below().fetch(pe, at)
        }
    };
    (@ set) => {
        fn set(&self, pe: usize, at: $crate::Address, word: u64) -> Result<(), $crate::Gone> {
            self.below().set(pe, at, word)
        }
    };
    (@ signal) => {
        fn signal(
            &self,
            pe: usize,
            to: $crate::Address,
            from: $crate::Address,
        ) -> Result<(), $crate::Gone> {
            self.below().signal(pe, to, from)
        }
    };
    (@ is_gone) => { fn is_gone(&self, pe: usize) -> bool { self.below().is_gone(pe) } };
    (@ fence) => { fn fence(&self) { self.below().fence(); } };
    (@ quiet) => { fn quiet(&self) -> Result<(), $crate::Gone> { self.below().quiet() } };
    (@ barrier) => { fn barrier(&self) { self.below().barrier(); } };
    (@ broadcast) => {
        fn broadcast(&self, root: usize, words: &mut [u64]) {
            self.below().broadcast(root, words);
        }
    };
    (@ pause) => { fn pause(&self, attempt: u32) { self.below().pause(attempt); } };
    (@ doze) => {
        fn doze(&self, longest: ::std::time::Duration) {
            self.below().doze(longest);
        }
    };
    (@ nanos) => { fn nanos(&self) -> u64 { self.below().nanos() } };
}
