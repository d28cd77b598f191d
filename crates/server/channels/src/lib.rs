//! What a server sends to Redis' clients unasked: messages of channels (PUBLISH), and that keys have changed (CLIENT
//! TRACKING).
//!
//! * [`mailbox`]: what waits for one connection; [`letter`]: each part of it, and its form; [`bounds`]: the limits on it.
//! * [`bell`]: how the connection's worker learns that something waits.
//! * [`channels`]: who has subscribed to what, and who gets a message; [`subscriptions`]: those of one connection.
//! * [`tracking`]: which keys clients have read, and who is told when they change.
//!
//! Any thread puts letters into a connection's mailbox, and never waits: a mailbox is bounded. The connection's worker is
//! called, and moves them into the output between two requests.

#![forbid(unsafe_code)]

pub mod bell;
pub mod bounds;
pub mod channels;
pub mod letter;
pub mod mailbox;
pub mod subscriptions;
pub mod tracking;

/// The worker to call when its connection has something to send.
pub trait Call: Send + Sync {
    /// Makes the worker give a connection a turn. The connection may be closed by then, and another may have its id:
    /// that one has nothing to send.
    fn call(&self, connection: usize);

    /// Makes the worker close a connection, if the one with this id still has this number.
    fn end(&self, connection: usize, serial: u64);
}
