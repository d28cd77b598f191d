//! Errors of the text protocol, with memcached's texts.

/// Errors of the protocol. [`encode::error`](crate::encode::error) writes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// `ERROR`: no such command.
    Unknown,
    /// `CLIENT_ERROR` and this text.
    Client(&'static str),
    /// `SERVER_ERROR` and this text.
    Server(&'static str),
}

impl Error {
    /// A line that does not have its command's form.
    pub const BAD_FORMAT: Error = Error::Client("bad command line format");
    /// A data block that does not end where its length says.
    pub const BAD_DATA_CHUNK: Error = Error::Client("bad data chunk");
    /// A line without an end.
    pub const LINE_TOO_LONG: Error = Error::Client("line too long");
    /// A number to add that is not a number.
    pub const BAD_DELTA: Error = Error::Client("invalid numeric delta argument");
    /// An expiry that is no number.
    pub const BAD_EXPTIME: Error = Error::Client("invalid exptime argument");
    /// incr or decr of a value that is not a number.
    pub const NON_NUMERIC: Error = Error::Client("cannot increment or decrement non-numeric value");
    /// A meta flag given twice.
    pub const DUPLICATE_FLAG: Error = Error::Client("duplicate flag");
    /// A meta flag that does not exist.
    pub const INVALID_FLAG: Error = Error::Client("invalid flag");
    /// Any bad flag of `ma`, which does not say which.
    pub const BAD_FLAG: Error = Error::Client("invalid or duplicate flag");
    /// A meta flag whose number is invalid or out of range.
    pub const BAD_TOKEN: Error = Error::Client("bad token in command line format");
    /// A `J` whose number is invalid.
    pub const BAD_INITIAL: Error = Error::Client("invalid numeric initial value");
    /// A `D` whose number is invalid.
    pub const BAD_META_DELTA: Error = Error::Client("invalid numeric delta value");
    /// More meta flags than there are.
    pub const TOO_MANY_FLAGS: Error = Error::Client("options flags are too long");
    /// An opaque over its limit.
    pub const OPAQUE_TOO_LONG: Error = Error::Client("opaque token too long");
    /// A key that is not base64 though `b` says so.
    pub const BAD_BASE64: Error = Error::Client("error decoding key");
    /// An `M` that `ms` does not have.
    pub const BAD_STORE_MODE: Error = Error::Client("invalid mode for ms M token");
    /// An `M` that `ma` does not have.
    pub const BAD_DELTA_MODE: Error = Error::Client("invalid mode for ma M token");
    /// A value that can never be stored.
    pub const TOO_LARGE: Error = Error::Server("object too large for cache");
    /// A value that finds no memory now.
    pub const OUT_OF_MEMORY: Error = Error::Server("out of memory storing object");
    /// A change of an item whose server does not answer.
    pub const UNAVAILABLE: Error =
        Error::Server("the server behind this cache that has the key does not answer");
}
