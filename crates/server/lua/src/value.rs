//! What a script answers.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing.
    Nil,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction: `{double = ...}`.
    Double(f64),
    /// Bytes.
    Text(Vec<u8>),
    /// A status: `{ok = ...}`.
    Status(Vec<u8>),
    /// An error: `{err = ...}`.
    Error(Vec<u8>),
    /// An integer of any size, in its digits: `{big_number = ...}`.
    BigNumber(Vec<u8>),
    /// Bytes with the name of their format: `{verbatim_string = {format = ..., string = ...}}`.
    Verbatim {
        /// Three letters.
        format: [u8; 3],
        /// The bytes.
        text: Vec<u8>,
    },
    /// Several values.
    List(Vec<Value>),
    /// Pairs of values: `{map = ...}`.
    Map(Vec<(Value, Value)>),
    /// Values without an order: `{set = ...}`.
    Set(Vec<Value>),
}
