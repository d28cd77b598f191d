//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH. Requests are queued as they arrive. EXEC executes them one after
//! the other, like a pipeline, and their answers are one array. Other clients' requests may come in between, unless
//! keys are watched: then the worker has the engine to itself from the check of these keys on (see
//! `exec` in [`super`]). There is no rollback.

use nuthatch_commands::context::Context;
use nuthatch_commands::turn::Turn;
use nuthatch_commands::work::Work;
use nuthatch_resp::{Error, TransactionCommand, Values};

use crate::phase::{Phase, State};
use crate::transaction::{Exec, Transaction, Watched};

/// Keys that a connection may watch.
const WATCHED_MAX: usize = 1024;

/// Executes `command`.
pub fn command(
    cx: &mut Context<'_, '_>,
    turn: &mut Turn,
    phase: &mut Phase,
    command: TransactionCommand<'_>,
) {
    let outcome = match command {
        TransactionCommand::Multi if phase.has_transaction() => Err(Error::NESTED),
        TransactionCommand::Multi => {
            phase.session().transaction = Some(Transaction::default());
            Ok(())
        }
        TransactionCommand::Discard if phase.has_transaction() => {
            phase.forget_transaction();
            Ok(())
        }
        TransactionCommand::Discard => Err(Error::DISCARD_WITHOUT_MULTI),
        TransactionCommand::Watch(_) if phase.has_transaction() => Err(Error::WATCH_INSIDE),
        TransactionCommand::Watch(keys) => watch(cx, phase, keys),
        TransactionCommand::Unwatch => {
            if let Some(session) = &mut phase.session {
                session.watched.clear();
            }
            Ok(())
        }
        TransactionCommand::Exec => {
            return exec(turn, phase);
        }
    };
    let mut writer = phase.writer(turn);
    match outcome {
        Ok(()) => writer.ok(),
        Err(error) => writer.error(&error),
    }
}

fn watch(
    cx: &mut Context<'_, '_>,
    phase: &mut Phase,
    keys: Values<'_>,
) -> Result<(), Error<'static>> {
    if phase.session().watched.len() + keys.len() > WATCHED_MAX {
        return Err(Error::WATCHES_TOO_MANY);
    }
    cx.work.add(Work::of_commands(keys.len()));
    for key in keys {
        cx.check_key(key)?;
        let database = phase.database;
        let new = Watched::new(cx, database, key);
        let watched = &mut phase.session().watched;
        // The first state seen of a key counts.
        if watched
            .iter()
            .all(|watched| (watched.database, &*watched.key) != (database, key))
        {
            watched.push(new);
        }
    }
    Ok(())
}

fn exec(turn: &mut Turn, phase: &mut Phase) {
    let Some(transaction) = phase.session().transaction.take() else {
        return phase.writer(turn).error(&Error::EXEC_WITHOUT_MULTI);
    };
    let watched = std::mem::take(&mut phase.session().watched);
    if transaction.refused {
        return phase.writer(turn).error(&Error::ABORTED);
    }
    let requests = transaction.requests;
    if !watched.is_empty() {
        phase.state = State::Exec(Box::new(Exec { requests, watched }));
        return;
    }
    phase.writer(turn).array(requests.len());
    // No other request is queued: one that was typed by hand is taken out of the queue while it is executed.
    debug_assert!(!phase.session().has_replay());
    phase.session().replay = requests;
}
