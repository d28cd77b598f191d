//! The near cache: values that were read stay in this process for a while (feature `near`).

#[cfg(feature = "near")]
mod cache {
    use nuthatch::Cache;

    use crate::Error;
    use crate::address::invalid;
    use crate::options::Options;

    /// Values that were read lately.
    #[derive(Debug)]
    pub(crate) struct Near(Option<Cache>);

    impl Near {
        /// Errors: [`Error::Address`], if it cannot have so much memory.
        pub fn new(options: &Options) -> Result<Self, Error> {
            let Some(lifetime) = options.near else {
                return Ok(Self(None));
            };
            let builder = Cache::builder()
                .memory_limit(options.near_bytes)
                .time_to_live(lifetime);
            let cache = builder
                .build()
                .map_err(|error| invalid(format!("near cache: {error}")))?;
            Ok(Self(Some(cache)))
        }

        pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
            self.0.as_ref()?.get(key)
        }

        /// Keeps what was found.
        pub fn keep(&self, key: &[u8], value: Option<&Vec<u8>>) {
            if let (Some(cache), Some(value)) = (&self.0, value) {
                // What does not fit is read from the server again.
                let _ = cache.insert(key, value);
            }
        }

        /// This client has changed the item.
        pub fn forget(&self, key: &[u8]) {
            if let Some(cache) = &self.0 {
                cache.invalidate(key);
            }
        }

        pub fn forget_all(&self) {
            if let Some(cache) = &self.0 {
                cache.invalidate_all();
            }
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
