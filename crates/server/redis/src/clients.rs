//! A connection's line in CLIENT LIST and CLIENT INFO.

use nuthatch_engine::Time;
use nuthatch_resp::command_at;
use nuthatch_state::telemetry::connections::{Info, Peer};

use crate::session::DEFAULT_USER;

/// The line, without its end. Of a client of another protocol no command is known.
pub fn line(info: &Info, now: Time) -> String {
    let address = match info.peer() {
        Peer::Tcp(address) | Peer::Udp(address) => address.to_string(),
        Peer::Unix => String::from("unix"),
        Peer::Ring => String::from("shared"),
    };
    let local = info.local().map(|local| local.to_string());
    let told = info.told();
    let [channels, patterns, shards] = info.subscriptions();
    let text = String::from_utf8_lossy;
    format!(
        "id={} addr={address} laddr={} name={} age={} idle={} flags={} db={} sub={channels} psub={patterns} \
         ssub={shards} cmd={} user={} resp={} lib-name={} lib-ver={}",
        info.serial(),
        local.unwrap_or_else(|| address.clone()),
        text(&told.name),
        info.age(now),
        info.idle(now),
        if info.is_subscriber() { 'P' } else { 'N' },
        info.database(),
        command_at(&info.request().read()).unwrap_or_else(|| String::from("NULL")),
        text(user(&told.user)),
        info.version(),
        text(&told.library),
        text(&told.library_version),
    )
}

/// The user whom a connection names, or the default one.
pub fn user(named: &[u8]) -> &[u8] {
    match named {
        [] => DEFAULT_USER,
        named => named,
    }
}
