//! What connections to one server have in common, whoever works on them.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use crate::address::{Address, Endpoint};
use crate::transport::{Socket, Transport};
use crate::wire::{Code, NO_META, Reply, Request};
use crate::{Error, Options};

/// A statistic that only a server with `--upstream` has.
const PASSES_ON: &str = "upstream_reads";
/// Why such a server is refused.
const NEAR_CACHE: &str = "it is itself a near cache of other servers (--upstream)";

/// A server.
#[derive(Debug)]
pub(crate) struct Site {
    pub endpoint: Endpoint,
    /// Where it is asked if it gives no ring.
    pub or: Option<Endpoint>,
    /// The endpoint in words.
    pub name: Arc<str>,
    pub options: Arc<Options>,
    #[cfg(feature = "tls")]
    tls: Option<crate::tls::Config>,
}

impl Site {
    /// All servers of an address.
    pub fn all(address: &Address) -> Result<Vec<Self>, Error> {
        let options = Arc::new(address.options.clone());
        #[cfg(not(feature = "tls"))]
        if address.has_tls {
            let reason = "tls:// needs the feature `tls` of this library";
            return Err(crate::address::invalid(reason.to_owned()));
        }
        #[cfg(feature = "tls")]
        let tls = address
            .has_tls
            .then(|| crate::tls::config(&options.tls))
            .transpose()?;
        let site = |server: &crate::address::Server| Self {
            endpoint: server.endpoint.clone(),
            or: server.or.clone(),
            name: server.endpoint.to_string().into(),
            options: options.clone(),
            #[cfg(feature = "tls")]
            tls: tls.clone(),
        };
        Ok(address.servers.iter().map(site).collect())
    }

    /// A transport over a connected socket.
    pub fn transport(&self, socket: Socket) -> Result<Transport, String> {
        let said = |error: io::Error| error.to_string();
        #[cfg(not(feature = "tls"))]
        return Transport::new(socket).map_err(said);
        #[cfg(feature = "tls")]
        {
            let session = match (&self.tls, &self.endpoint) {
                (Some(config), Endpoint::Tcp { host, .. }) => {
                    Some(crate::tls::Session::new(config, host)?)
                }
                _ => None,
            };
            Transport::new(socket, session).map_err(said)
        }
    }

    /// What a new connection asks first: the login, if there is one; and for a reply that only a server of the meta protocol
    /// gives; and whether it passes requests on, if that must not be.
    pub fn greetings(&self) -> impl Iterator<Item = Request<'_>> {
        let login = self.options.login.as_ref().map(|login| Request::Login {
            name: login.name.as_bytes(),
            password: login.password.as_bytes(),
        });
        let statistics = self
            .options
            .passes_on
            .then_some(Request::Stats { kind: "" });
        login
            .into_iter()
            .chain([Request::Nothing])
            .chain(statistics)
    }

    /// Whether the server took the greeting.
    pub fn welcome(
        greeting: &Request<'_>,
        replies: Result<Vec<Reply>, Error>,
    ) -> Result<(), String> {
        // Nobody asks whether a greeting was carried out.
        let replies = replies.map_err(|error| match error {
            Error::Lost { reason, .. } => reason.to_string(),
            Error::Timeout { .. } => "no reply to a greeting in time".to_owned(),
            other => other.to_string(),
        })?;
        match (greeting, replies.first().map(|reply| &reply.code)) {
            (Request::Login { .. }, Some(Code::Line(line))) if line == "STORED" => Ok(()),
            (Request::Login { .. }, Some(Code::Refused(words))) => {
                Err(format!("login refused: {words}"))
            }
            (Request::Nothing, Some(Code::Nothing)) => Ok(()),
            (Request::Stats { .. }, Some(Code::Stats(stats))) => {
                let passes_on = stats.iter().any(|(name, _)| name == PASSES_ON);
                match passes_on {
                    true => Err(NEAR_CACHE.to_owned()),
                    false => Ok(()),
                }
            }
            // One that tells no statistics may be any.
            (Request::Stats { .. }, Some(_)) => Ok(()),
            (Request::Nothing, Some(code)) if code.is_unknown() => Err(NO_META.to_owned()),
            (_, Some(Code::Refused(words))) => Err(words.clone()),
            (_, Some(code)) => Err(format!("{} to a greeting", code.in_words())),
            (_, None) => Err("no reply to a greeting".to_owned()),
        }
    }

    /// The error of a call that finds the server down.
    pub fn down(&self, reason: &Arc<str>, retry_in: std::time::Duration) -> Error {
        Error::Down {
            server: self.name.clone(),
            reason: reason.clone(),
            retry_in,
        }
    }

    /// When a connection that is begun now has to be there.
    pub fn connect_deadline(&self) -> Instant {
        crate::options::deadline(self.options.connect_timeout)
    }
}
