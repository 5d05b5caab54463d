//! Who has sent a request: what its head claims, by which its body is kept or not, and who it is
//! once that is whole. Clients and their CA may change in between; what holds at the end counts, so
//! that who was taken away does nothing more by a body that takes its time.
//!
//! Not here: how a body is read (`receive`), what the sender may do (`crate::rights`).

use std::sync::Arc;

use heatsink_access::{BodyHash, Caller, Claimed, Clients};
use heatsink_dynamo::Error;
use http::HeaderMap;
use http::request::Parts;

use super::authorization;
use super::door::{Peer, Shared};
use crate::Service;
use crate::budget::{Claimant, Held};

/// What the head of a request claims, by the clients and the CA that held when it came.
pub(super) struct Claims<'a> {
    clients: Arc<Clients>,
    claimed: Claimed<'a>,
    /// The name of the certificate.
    shown: Option<&'a str>,
}

/// Who has sent a request.
pub(super) struct Sender {
    /// `None` where no clients are known.
    pub(super) caller: Option<Caller>,
    clients: Arc<Clients>,
    is_signed: bool,
}

impl<'a> Claims<'a> {
    /// Those of a head on a connection.
    ///
    /// # Errors
    /// The refusal of what can be told by the head alone: of its signature's form, of its certificate,
    /// and of a certificate and an access key of two clients.
    pub(super) fn of(
        (service, shared): (&Service, &Shared),
        head: &'a Parts,
        peer: &'a Peer,
    ) -> Result<Self, Error> {
        let clients = service.clients().load_full();
        let now = shared.env.unix_millis();
        let shown = shown(shared, peer, now)?;
        let claimed = clients.claim(head, shown, now)?;
        if let Claimed::Certified(caller) = &claimed
            && let Ok(access_key) = authorization::check(&head.headers, service.region())
        {
            clients.check_named(caller, access_key)?;
        }
        Ok(Claims { clients, claimed, shown })
    }

    /// Whether the body has to be hashed as it comes.
    pub(super) fn hashes(&self) -> bool {
        matches!(self.claimed, Claimed::Signed(_))
    }

    /// In whose name the body is held; `false` where nothing of it will be used.
    pub(super) fn hold(&self, held: &mut Held) -> bool {
        let (id, is_shown) = match &self.claimed {
            Claimed::Nothing => return true,
            Claimed::Certified(caller) => (Arc::clone(caller.shared_id()), true),
            Claimed::Signed(claim) if self.clients.may_hold(claim, self.shown) => {
                (claim.access_key().into(), self.clients.know_certificate(self.shown))
            }
            Claimed::Signed(_) => return false,
        };
        held.claim(Claimant { id, is_shown, clients: self.clients.count() });
        true
    }

    /// Who has sent it, now that its body is whole. `is_held`: whether it was kept.
    ///
    /// # Errors
    /// The refusal, in DynamoDB's words, of what does not hold, or does not hold any more.
    pub(super) fn decide(
        self,
        (service, shared): (&Service, &Shared),
        head: &Parts,
        peer: &Peer,
        is_held: bool,
        hash: impl FnOnce() -> BodyHash,
    ) -> Result<Sender, Error> {
        let Claims { mut clients, claimed, .. } = self;
        let now = shared.env.unix_millis();
        let shown = shown(shared, peer, now)?;
        let in_force = service.clients().load();
        let holds = match &claimed {
            Claimed::Nothing | Claimed::Signed(_) => Arc::ptr_eq(&in_force, &clients),
            // Its time may be over.
            Claimed::Certified(_) => false,
        };
        // What was not kept is refused by those by whom it was not.
        let claimed = if holds || !is_held {
            claimed
        } else {
            clients = Arc::clone(&in_force);
            clients.claim(head, shown, now)?
        };
        let is_signed = matches!(claimed, Claimed::Signed(_));
        let caller = match claimed {
            Claimed::Nothing => None,
            Claimed::Certified(caller) => Some(caller),
            Claimed::Signed(claim) => clients.authenticate(claim, &hash(), shown, now)?,
        };
        Ok(Sender { caller, clients, is_signed })
    }
}

impl Sender {
    /// Whether a request that is not signed by its sender carries what looks like a signature, and
    /// names nobody else.
    ///
    /// # Errors
    /// The refusal, in DynamoDB's words.
    pub(super) fn check_named(&self, headers: &HeaderMap, region: &str) -> Result<(), Error> {
        if self.is_signed {
            return Ok(());
        }
        let access_key = authorization::check(headers, region)?;
        self.caller.as_ref().map_or(Ok(()), |caller| self.clients.check_named(caller, access_key))
    }
}

/// The name of the certificate that a connection has shown, if it holds under the TLS in force.
fn shown<'a>(shared: &Shared, peer: &'a Peer, now: u64) -> Result<Option<&'a str>, Error> {
    peer.shown.as_ref().map(|shown| shown.name(shared.live.get().tls.as_ref(), now)).transpose()
}
