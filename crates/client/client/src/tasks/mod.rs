//! The same client for tasks in tokio: the same queue, requests and replies, with two tasks for each connection.

mod client;
mod connection;
mod link;
mod task_ring;

pub use client::Client;
pub(crate) use task_ring::TaskRing;
