//! Redis' protocol, RESP2 and RESP3: the commands that programs use for a cache. This crate turns a client's bytes into
//! requests in a batch, with what all protocols share (`nuthatch-commands`, where the answers from the batch are, too).
//! There are no sockets in it. Its parsers are those of `nuthatch-resp`.
//!
//! * `step`: a step of a connection, and requests that are executed apart from the batch.
//! * `request`: the request at the front of the input, and commands that join the batch.
//! * `many`: MGET, MSET, DEL and the like, whose keys come one by one; `progress`: how far they are.
//! * `phase`: the state of a connection; `session`: the part of it that most do not need; `reader`: its input.
//! * `upload`: values that arrive piece by piece; `receive`: their bytes. `set`: SET.
//! * `values`: commands that read, decide and write, and retry if another client was faster; `edit`: those that copy a
//!   long value, piece by piece; `several`: those that store several keys or none.
//! * `keyed`: the commands of these three, and of `several`; `answered`: their answers.
//! * `compare`: conditions on values, and digests; `transfer`: RENAME, COPY, MOVE; `dump`: DUMP, RESTORE.
//! * `multi`: MULTI, EXEC, WATCH; `collect`: the requests of a transaction; `transaction`: what is kept of them.
//! * `queue`: its requests until they are executed.
//! * `walk`: KEYS, SCAN, RANDOMKEY, DBSIZE, CLIENT LIST.
//! * `scripts`: EVAL and SCRIPT; `slot`: the item of one key while a script works on it. `lua`: scripts of Lua;
//!   `lua_call`: one that is to run; `reply`: answers as their values.
//! * `login`: how clients log in; `auth`: AUTH.
//! * `databases`: SELECT, SWAPDB, MOVE, FLUSHDB.
//! * `manage`, `info`, `insight`, `config`: CLIENT, COMMAND, INFO, ROLE, CONFIG...; `kill`: CLIENT KILL;
//!   `clients`: a line of CLIENT LIST; `pause`: CLIENT PAUSE.
//! * `channels`: PUBLISH, SUBSCRIBE...; `tracking`: CLIENT TRACKING; `mail`: what a connection
//!   is sent unasked; `delivery`: how.
//! * `spot`: requests to the engine outside of the batch.
//! * `muted`: CLIENT REPLY.
//! * `refusal`: requests that are refused.
//! * [`log`]: its lines in the log of commands.
//!
//! The items that these commands store have flags of 0. A store that fails leaves the old value, as in Redis.

mod acl;
mod answered;
mod auth;
mod busy;
mod channel_names;
mod channels;
mod clients;
mod collect;
mod compare;
mod config;
mod databases;
mod delivery;
mod dump;
mod edit;
mod info;
mod insight;
mod keyed;
mod kill;
pub mod log;
mod login;
mod lua;
mod lua_call;
mod mail;
mod manage;
mod many;
mod multi;
mod muted;
mod named;
mod pause;
mod phase;
mod progress;
mod queue;
mod reader;
mod receive;
mod refusal;
mod reply;
mod request;
mod scripts;
mod session;
mod set;
mod several;
mod slot;
mod spot;
mod step;
mod tracking;
mod transaction;
mod transfer;
mod upload;
mod values;
mod walk;

pub use phase::Phase;
pub use step::{MARK, step};
