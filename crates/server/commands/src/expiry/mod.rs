//! An item's expiry, as clients write it and as answers show it.

pub(crate) mod memcached;
pub mod resp;
