//! Letters: what waits in mailboxes. The form of a letter depends on what its client speaks when it is sent, not when it
//! was put in: a HELLO or an UNSUBSCRIBE may be in between.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use nuthatch_resp::{Version, Writer};

use crate::bounds::Bounds;
use crate::mailbox::Mailbox;

/// The channel of clients of RESP2 that are told what others have read.
const INVALIDATE: &[u8] = b"__redis__:invalidate";

/// Bytes of memory that a text takes beside its own.
const TEXT_OVERHEAD: usize = size_of::<Shared>() + 2 * size_of::<usize>();

/// A text that letters of several connections share. It counts in the bounds as long as one of them waits.
#[derive(Clone)]
pub struct Text(Arc<Shared>);

struct Shared {
    bytes: Box<[u8]>,
    bounds: Arc<Bounds>,
}

impl Text {
    /// A text that waits in mailboxes with these bounds.
    pub fn new(bytes: Vec<u8>, bounds: &Arc<Bounds>) -> Self {
        bounds.add(bytes.len() + TEXT_OVERHEAD);
        Self(Arc::new(Shared {
            bytes: bytes.into(),
            bounds: Arc::clone(bounds),
        }))
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0.bytes
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.bounds.give_back(self.bytes.len() + TEXT_OVERHEAD);
    }
}

/// That a connection has subscribed to something.
pub struct Subscription {
    /// Where its messages wait.
    pub(crate) mailbox: Arc<Mailbox>,
    /// Relaxed: its connection's worker sets it, and looks at it when it sends.
    is_over: AtomicBool,
    /// Its place among the subscribers of its name. Relaxed: the lock of the name's table guards it.
    place: AtomicUsize,
}

impl Subscription {
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Arc<Self> {
        Arc::new(Self {
            mailbox,
            is_over: AtomicBool::new(false),
            place: AtomicUsize::new(usize::MAX),
        })
    }

    pub(crate) fn place(&self) -> usize {
        self.place.load(Ordering::Relaxed)
    }

    pub(crate) fn set_place(&self, place: usize) {
        self.place.store(place, Ordering::Relaxed);
    }

    /// It ends: what waits of it is not sent, and what publishers may yet put in is not either.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// What waits for a connection.
pub(crate) enum Letter {
    /// A message of a channel, made by [`message`].
    Message(Text, Arc<Subscription>),
    /// A key has changed that the client keeps, or another that has redirected to it. The text is made by [`key`].
    Changed { key: Text, redirected: bool },
    /// All keys may have changed, those of another that has redirected to it among them.
    AllChanged { redirected: bool },
    /// The connection with this number, to which its own client has redirected, is closed.
    Broken(u64),
}

impl Letter {
    /// Bytes of its text.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Message(text, _) | Self::Changed { key: text, .. } => text.len(),
            Self::AllChanged { .. } | Self::Broken(_) => 0,
        }
    }

    /// Writes it for a client that speaks this version, and has subscribed to something or not. Nothing if the client would
    /// not know what it is.
    pub(crate) fn write(&self, out: &mut Vec<u8>, version: Version, is_subscribed: bool) {
        match self {
            Self::Message(_, subscription) if subscription.is_over.load(Ordering::Relaxed) => {}
            Self::Message(text, _) => {
                // In this byte alone the versions differ.
                out.push(if version == Version::Resp3 {
                    b'>'
                } else {
                    b'*'
                });
                out.extend_from_slice(&text[1..]);
            }
            Self::Changed { redirected, .. } | Self::AllChanged { redirected } => {
                let mut writer = Writer::new(out, version);
                match version {
                    Version::Resp3 => {
                        writer.push(2);
                        writer.bulk(b"invalidate");
                    }
                    Version::Resp2 if *redirected && is_subscribed => {
                        writer.push(3);
                        writer.bulk(b"message");
                        writer.bulk(INVALIDATE);
                    }
                    // It could not tell it from an answer.
                    Version::Resp2 => return,
                }
                match self {
                    Self::Changed { key, .. } => out.extend_from_slice(key),
                    // As in Redis: the null of a text, though a list is in its place.
                    _ => writer.null(),
                }
            }
            Self::Broken(serial) if version == Version::Resp3 => {
                let mut writer = Writer::new(out, version);
                writer.push(2);
                writer.bulk(b"tracking-redir-broken");
                writer.integer(*serial as i64);
            }
            Self::Broken(_) => {}
        }
    }
}

/// The text of a message of these parts.
pub(crate) fn message(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, Version::Resp2);
    writer.push(parts.len());
    parts.iter().for_each(|part| writer.bulk(part));
    out
}

/// The list of this key alone, which has one form.
pub(crate) fn key(key: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out, Version::Resp2);
    writer.array(1);
    writer.bulk(key);
    out
}
