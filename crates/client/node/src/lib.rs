//! The file that Node.js loads: the client for tasks, in a thread of its own, and reads of a server's memory in the caller's.
//!
//! `package/index.js` checks what programs pass, gives each call a number, and makes promises of the numbers.
//!
//! ```text
//!   index.js          numbers, promises, codecs, errors
//!      |        \
//!   Native       \    `client.rs`: a method for each call. `read` answers at once
//!      |          \
//!   one thread  memory, near cache
//!      |
//!   Outbox            `outbox.rs`: what came of calls, all of which one wake-up of the loop takes
//! ```

mod client;
mod convert;
mod outbox;
