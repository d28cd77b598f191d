//! The near cache: values that were read stay in this process for a while (feature `near`).

#[cfg(feature = "near")]
mod cache {
    use std::sync::OnceLock;
    use std::time::Duration;

    use nuthatch::Cache;

    use crate::Error;
    use crate::address::invalid;
    use crate::options::Options;
    use crate::process::PerProcess;

    /// Values that were read lately.
    #[derive(Debug)]
    pub(crate) struct Near(Option<Kept>);

    #[derive(Debug)]
    struct Kept {
        bytes: usize,
        lifetime: Duration,
        /// A child has its own: a thread that it has not may have been changing its parent's.
        cache: PerProcess<OnceLock<Option<Cache>>>,
    }

    impl Near {
        /// Errors: [`Error::Address`], if it cannot have so much memory.
        pub fn new(options: &Options) -> Result<Self, Error> {
            let Some(lifetime) = options.near else {
                return Ok(Self(None));
            };
            let kept = Kept {
                bytes: options.near_bytes,
                lifetime,
                cache: PerProcess::default(),
            };
            let cache = kept
                .build()
                .map_err(|error| invalid(format!("near cache: {error}")))?;
            kept.cache.get().get_or_init(|| Some(cache));
            Ok(Self(Some(kept)))
        }

        /// This process' cache.
        fn cache(&self) -> Option<&Cache> {
            let kept = self.0.as_ref()?;
            let build = || kept.build().ok();
            kept.cache.get().get_or_init(build).as_ref()
        }

        pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
            self.cache()?.get(key)
        }

        /// Keeps what was found.
        pub fn keep(&self, key: &[u8], value: Option<&Vec<u8>>) {
            if let (Some(cache), Some(value)) = (self.cache(), value) {
                // What does not fit is read from the server again.
                let _ = cache.insert(key, value);
            }
        }

        /// This client has changed the item.
        pub fn forget(&self, key: &[u8]) {
            if let Some(cache) = self.cache() {
                cache.invalidate(key);
            }
        }

        pub fn forget_all(&self) {
            if let Some(cache) = self.cache() {
                cache.invalidate_all();
            }
        }
    }

    impl Kept {
        fn build(&self) -> Result<Cache, nuthatch::BuildError> {
            let builder = Cache::builder().memory_limit(self.bytes);
            builder.time_to_live(self.lifetime).build()
        }
    }
}

#[cfg(not(feature = "near"))]
mod cache {
    use crate::Error;
    use crate::options::Options;

    /// Without the feature there is none.
    #[derive(Debug)]
    pub(crate) struct Near;

    impl Near {
        pub fn new(_: &Options) -> Result<Self, Error> {
            Ok(Self)
        }

        pub fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
            None
        }

        pub fn keep(&self, _: &[u8], _: Option<&Vec<u8>>) {}

        pub fn forget(&self, _: &[u8]) {}

        pub fn forget_all(&self) {}
    }
}

pub(crate) use cache::Near;
