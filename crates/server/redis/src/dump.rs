//! DUMP and RESTORE: a value in the form in which Redis dumps it.

use nuthatch_commands::answers::resp::{STORE, failure};
use nuthatch_commands::context::Context;
use nuthatch_commands::counting::Kind;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_engine::{Op, Removal, Reply, Store, StoreMode};
use nuthatch_rdb::{Error as DumpError, Footer, INTEGER_LEN_MAX, front, packed};
use nuthatch_resp::{Error, Lifetime, Moment, Restore};
use nuthatch_state::changes::Naming;
use nuthatch_state::key_events::Event;

use crate::phase::Phase;
use crate::spot::{Content, ask, count_get, look, read};

/// DUMP.
pub fn dump(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &Phase, key: &[u8]) {
    let found = read(cx, key);
    count_get(cx, key, found.as_ref());
    match found {
        Some(found) => write(cx, turn, phase, found.value),
        None => phase.writer(turn).null(),
    }
}

fn write(cx: &mut Context<'_, '_>, turn: &mut Turn, phase: &Phase, value: Content) {
    let len = value.len();
    let short = match len {
        ..=INTEGER_LEN_MAX => Some(value.chunk(0..len)).filter(|text| text.len() == len),
        _ => None,
    };
    let (front, follows) = front(len, short);
    let body = if follows { 0..len } else { 0..0 };
    let mut footer = Footer::default();
    footer.update(&front);
    value
        .pieces(body.clone())
        .for_each(|piece| footer.update(piece));
    cx.work.add(Work::of_bytes(len));
    let footer = footer.finish();
    if !turn.makes_room(front.len() + value.copied_of(&body) + footer.len()) {
        return phase.writer(turn).error(&Error::OUT_OF_MEMORY);
    }
    let mut writer = phase.writer(turn);
    writer.bulk_header(front.len() + body.len() + footer.len());
    turn.output.text().extend_from_slice(&front);
    value.put(turn, body);
    turn.output.text().extend_from_slice(&footer);
    turn.output.text().extend_from_slice(b"\r\n");
}

/// RESTORE.
pub fn restore(
    cx: &mut Context<'_, '_>,
    restore: &Restore<'_>,
    dump: &[u8],
) -> Result<(), Error<'static>> {
    if !restore.replace && look(cx, restore.key).is_some() {
        return Err(Error::BUSY_KEY);
    }
    cx.work.add(Work::of_bytes(dump.len()));
    let packed = packed(dump, cx.limits.value_max).map_err(|error| refused(cx, error))?;
    // A short dump may be one of a long value. What fails on the way costs as much.
    cx.work.add(Work::of_bytes(packed.unpacked_len()));
    let value = packed.unpack().map_err(|error| refused(cx, error))?;
    if is_over(cx, restore.lifetime) {
        // As if it had expired at once. Without REPLACE no key was there, so one that is there now is another client's.
        if restore.replace {
            let removal = Op::Remove(Removal::default());
            ask(cx, restore.key, removal, Kind::Nothing);
        }
        return Ok(());
    }
    let mut store = Store::set(&value);
    if let Lifetime::Until(moment) = restore.lifetime {
        store.expiry = cx.expiry_at(moment);
    }
    if !restore.replace {
        store.mode = StoreMode::Add;
    }
    let reply = cx.named(Naming::As(Event::Restore), |cx| {
        ask(cx, restore.key, Op::Store(store), STORE)
    });
    match reply {
        Reply::Stored(_) => Ok(()),
        Reply::NotStored => Err(Error::BUSY_KEY),
        reply => Err(failure(&reply)),
    }
}

fn refused(cx: &Context<'_, '_>, error: DumpError) -> Error<'static> {
    let error = match error {
        DumpError::Broken => Error::DUMP_BROKEN,
        DumpError::Format => Error::DUMP_FORMAT,
        DumpError::TooLarge => Error::TOO_LARGE,
        DumpError::OutOfMemory => Error::OUT_OF_MEMORY,
    };
    cx.count_refusal(&error);
    error
}

fn is_over(cx: &Context<'_, '_>, lifetime: Lifetime) -> bool {
    match lifetime {
        Lifetime::Until(moment @ Moment::At(_)) => cx.expiry_at(moment).is_past(cx.now),
        _ => false,
    }
}
