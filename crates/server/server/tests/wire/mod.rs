//! The server over real sockets, by feature. A test that includes this brings the engine: a module
//! `engine` with `TestEngine` and `engine(Wants)`.
//!
//! * [`text`]: the text commands, their replies byte by byte
//! * [`meta`]: the meta commands
//! * [`admin`]: stats, flush_all, dumps, switches
//! * [`administration`]: who may change the server
//! * [`bad_input`]: what clients should not send
//! * [`hash`]: the index of the running server
//! * [`large`]: values that arrive and leave in pieces
//! * [`long_keys`]: keys of Redis' clients that are longer than memcached's
//! * [`lua`]: scripts in Lua
//! * [`metrics`]: the endpoint of metrics
//! * [`odd`]: clients within the protocol and beyond what is usual
//! * [`pause`]: clients that wait by CLIENT PAUSE
//! * [`pressure`]: clients that do not read, fairness, bytes that trickle in
//! * [`connections`]: listeners, limits, idle and many connections
//! * [`cpserver`]: the CPHash paper's protocol on a port of its own
//! * [`databases`]: databases of Redis' clients, one beside the other
//! * [`redis`]: Redis' protocol on a port of its own
//! * [`redis_beside`]: Redis' commands that look before they change, beside other clients
//! * [`refresh`]: certificates that are read again
//! * [`stop`]: graceful stops
//! * [`unasked`]: what clients are sent unasked
//! * [`uploads`]: values that clients announce and do not send

mod admin;
mod administration;
mod bad_input;
mod client;
mod connections;
mod cpserver;
mod databases;
pub mod fixture;
mod hash;
mod large;
mod long_keys;
mod lua;
mod meta;
mod metrics;
mod odd;
mod pause;
mod pressure;
mod redis;
mod redis_beside;
mod refresh;
mod stop;
mod text;
mod unasked;
mod uploads;
