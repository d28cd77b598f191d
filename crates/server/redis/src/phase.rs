//! The state of a connection that speaks Redis' protocol.

use std::sync::Arc;

use nuthatch_commands::partial::PartialValue;
use nuthatch_commands::turn::Turn;
use nuthatch_resp::{Rest, Version, Writer};
use nuthatch_security::login::Login;
use nuthatch_state::server_state::ServerState;
use nuthatch_state::telemetry::connections::Info;
use nuthatch_state::worker::SharedWorker;

use crate::edit::Edit;
use crate::lua_call::LuaCall;
use crate::mail::Mail;
use crate::progress::Progress;
use crate::session::{DEFAULT_USER, Session};
use crate::transaction::{Collected, Exec};
use crate::transfer::Transfer;
use crate::upload::Upload;
use crate::walk::Walk;

/// The state of a connection.
#[derive(Default)]
pub struct Phase {
    pub(crate) version: Version,
    pub(crate) state: State,
    /// The database that its client has selected.
    pub(crate) database: u8,
    /// The client has to log in first.
    pub(crate) login: bool,
    /// The client's errors at the login, counted also after it is admitted.
    pub(crate) errors: Login,
    /// The state that most connections do not need.
    pub(crate) session: Option<Box<Session>>,
}

/// What the next byte of input means.
#[derive(Default)]
pub enum State {
    /// It begins a request.
    #[default]
    Requests,
    /// It belongs to a request that was refused.
    Drop(Rest),
    /// It begins an argument of a command of many keys.
    Many(Progress),
    /// It belongs to a large value, or to what comes behind it.
    Upload(Box<Upload>),
    /// It belongs to a request of a transaction.
    Collect(Box<Collected>),
    /// It has to wait: a walk is in progress.
    Walk(Box<Walk>),
    /// It has to wait: a long value is being copied.
    Edit(Box<Edit>),
    /// It has to wait: an item is on its way to another key.
    Transfer(Box<Transfer>),
    /// It has to wait: a transaction whose client watches keys is to be executed.
    Exec(Box<Exec>),
    /// It has to wait: a script in Lua is to run.
    Lua(Box<LuaCall>),
}

impl Phase {
    /// The first phase. `login` is true if the client has to log in first.
    pub fn new(login: bool) -> Self {
        Self {
            login,
            ..Self::default()
        }
    }

    /// True if the next byte begins a request.
    pub fn is_at_request(&self) -> bool {
        matches!(self.state, State::Requests)
    }

    /// True if its client has logged in, or need not.
    pub fn is_admitted(&self) -> bool {
        !self.login
    }

    /// True if the request that is under way gets no answer.
    pub(crate) fn is_muted(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.unwanted.is_muted())
    }

    /// Bytes still to come of a value that goes straight to the engine.
    #[inline]
    pub fn missing(&self) -> usize {
        match &self.state {
            State::Upload(upload) => upload.missing(),
            _ => 0,
        }
    }

    /// The value under way that goes straight to the engine, if there is one.
    pub fn partial(&mut self) -> Option<&mut PartialValue> {
        match &mut self.state {
            State::Upload(upload) => upload.partial(),
            _ => None,
        }
    }

    /// Bytes of memory that it holds and that depend on a client's input.
    #[inline]
    pub fn memory(&self) -> usize {
        let state = match &self.state {
            State::Upload(upload) => upload.memory(),
            State::Collect(collected) => collected.memory(),
            State::Walk(walk) => walk.memory(),
            State::Edit(edit) => edit.memory(),
            State::Transfer(transfer) => transfer.memory(),
            State::Exec(exec) => exec.memory(),
            State::Lua(call) => call.memory(),
            State::Requests | State::Drop(_) | State::Many(_) => 0,
        };
        state + self.session.as_ref().map_or(0, |session| session.memory())
    }

    /// The state that most connections do not need.
    pub(crate) fn session(&mut self) -> &mut Session {
        self.session.get_or_insert_default()
    }

    /// The user who has logged in.
    pub(crate) fn user(&self) -> &[u8] {
        let user = self.session.as_ref().map(|session| &*session.user);
        user.filter(|user| !user.is_empty()).unwrap_or(DEFAULT_USER)
    }

    /// A user has logged in.
    pub(crate) fn set_user(&mut self, user: &[u8]) {
        if user != self.user() {
            self.session().user = user.into();
        }
    }

    /// What it is sent unasked, if anything.
    pub(crate) fn mail(&self) -> Option<&Mail> {
        self.session.as_ref()?.mail.as_deref()
    }

    /// True if it is sent something unasked: other threads call its worker when there is some.
    pub fn is_called(&self) -> bool {
        self.mail().is_some()
    }

    /// Opens its mailbox, if it has none.
    pub fn open_mail(
        &mut self,
        shared: &ServerState,
        worker: &Arc<SharedWorker>,
        id: usize,
        info: &Info,
    ) -> &mut Mail {
        let version = self.version;
        let mail = &mut self.session().mail;
        mail.get_or_insert_with(|| Box::new(Mail::new(shared, worker, id, info, version)))
    }

    /// RESET: all is as at first, but for the client's errors at the login, and the mailbox.
    pub(crate) fn reset(&mut self, login: bool) {
        let errors = self.errors;
        let mail = self.session.as_mut().and_then(|it| it.mail.take());
        *self = Self::new(login);
        self.errors = errors;
        if let Some(mut mail) = mail {
            mail.reset();
            self.session().mail = Some(mail);
        }
    }

    /// True if it has subscribed to channels.
    pub fn is_subscriber(&self) -> bool {
        self.mail()
            .is_some_and(|mail| !mail.subscriptions.is_empty())
    }

    /// True if its client has subscribed and could not tell other answers from messages.
    pub(crate) fn is_restricted(&self) -> bool {
        self.version == Version::Resp2 && self.is_subscriber()
    }

    /// The client changes the protocol's version.
    pub(crate) fn set_version(&mut self, version: Version) {
        self.version = version;
        if let Some(mail) = self.mail() {
            mail.mailbox.set_version(version);
        }
    }

    /// A writer to the output of the turn.
    #[inline]
    pub(crate) fn writer<'o>(&self, turn: &'o mut Turn) -> Writer<'o> {
        Writer::new(turn.output.text(), self.version)
    }

    /// True between MULTI and EXEC.
    #[inline]
    pub(crate) fn has_transaction(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| session.transaction.is_some())
    }

    /// Ends a transaction, and forgets its watched keys.
    pub(crate) fn forget_transaction(&mut self) {
        if let Some(session) = &mut self.session {
            session.transaction = None;
            session.watched = Vec::new();
        }
    }

    /// A request is refused during a transaction, and with it the transaction.
    pub(crate) fn refuse_transaction(&mut self) {
        if let Some(transaction) = &mut self.session().transaction {
            transaction.refused = true;
        }
    }

    /// The rest of a request that was refused is dropped.
    pub(crate) fn drop_rest(&mut self, rest: Rest) {
        if !rest.is_over() {
            self.state = State::Drop(rest);
        }
    }

    /// Begins to change a long value.
    pub(crate) fn begin_edit(&mut self, edit: Edit) {
        self.state = State::Edit(Box::new(edit));
    }

    /// The first phase of a script that a client in this phase runs.
    pub(crate) fn begin_script(&mut self, client: &Self) {
        self.database = client.database;
        if client.session.as_ref().is_some_and(|it| it.no_touch) {
            self.session().no_touch = true;
        }
    }

    /// Begins a walk.
    pub(crate) fn begin_walk(&mut self, walk: Walk) {
        self.state = State::Walk(Box::new(walk));
    }
}
