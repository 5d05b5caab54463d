//! The clients that are known, and whether one of them has sent a request.

use std::collections::HashMap;

use heatsink_dynamo::Error;
use http::HeaderValue;
use http::request::Parts;

use crate::body::BodyHash;
use crate::canonical;
use crate::client::{Client, Principal, UnfitClient};
use crate::head::{self, Claim};
use crate::refusal;
use crate::secret::string_to_sign;

/// Verifies the signatures of clients for one region.
#[derive(Debug)]
pub struct Verifier {
    region: Box<str>,
    clients: HashMap<Box<str>, Client>,
    /// Is asked in place of an unknown client, so that its answer takes as long.
    nobody: Client,
}

impl Verifier {
    /// A verifier of these clients, at a server that stands for `region`.
    ///
    /// # Errors
    /// [`UnfitClient::Twice`].
    pub fn new(region: &str, clients: impl IntoIterator<Item = Client>) -> Result<Self, UnfitClient> {
        let mut known: HashMap<Box<str>, Client> = HashMap::new();
        for client in clients {
            let id = client.principal().id().to_owned();
            if known.insert(id.as_str().into(), client).is_some() {
                return Err(UnfitClient::Twice(id));
            }
        }
        Ok(Verifier { region: region.into(), clients: known, nobody: Client::nobody() })
    }

    /// What a head claims that arrives at `unix_millis`. It reads no more than the head, and asks
    /// nothing about the client, so that it can stand before the body is read.
    ///
    /// # Errors
    /// The refusal, in DynamoDB's words, of a head that breaks a rule: its scope, its date, what it
    /// leaves unsigned.
    pub fn claim<'a>(&self, head: &'a Parts, unix_millis: u64) -> Result<Claim<'a>, Error> {
        head::read(head, &self.region, unix_millis / 1000)
    }

    /// Whether there is a client with the access key of a claim. If there is none, nothing of the body
    /// that comes will be used.
    pub fn knows(&self, claim: &Claim<'_>) -> bool {
        self.clients.contains_key(claim.authorization.scope.access_key)
    }

    /// Who has signed the head that made the claim, with the body that came with it.
    ///
    /// # Errors
    /// `UnrecognizedClientException` for an unknown access key, `InvalidSignatureException` for a
    /// signature that is not of this client and this request: both take the same time.
    /// `UnrecognizedClientException` for another session token, `ExpiredTokenException` for
    /// credentials that are over: only who has the secret learns that.
    pub fn authenticate(
        &self,
        claim: Claim<'_>,
        body: &BodyHash,
        unix_millis: u64,
    ) -> Result<Principal, Error> {
        let Claim { authorization, timestamp, token, canonical } = claim;
        let scope = authorization.scope;
        let known = self.clients.get(scope.access_key);
        let client = known.unwrap_or(&self.nobody);
        let signs = |canonical: &str| {
            let text = string_to_sign(timestamp, scope.text, canonical::hash(canonical).as_ref());
            client.has_signed(&text, &authorization.signature, scope.date, &self.region)
        };
        let port = canonical.port();
        let mut canonical = canonical.with_body(body);
        // aiodynamo signs the host without the port that it sends. Who does so says that the
        // request may go to any port of that host, and no more.
        let has_signed = signs(&canonical)
            || port.is_some_and(|port| {
                canonical.replace_range(port, "");
                signs(&canonical)
            });
        match (known, has_signed) {
            (None, _) => Err(refusal::unknown_client()),
            (Some(_), false) => Err(refusal::mismatch()),
            (Some(client), true) if !client.has_token(token.map(HeaderValue::as_bytes)) => {
                Err(refusal::unknown_client())
            }
            (Some(client), true) if client.has_expired(unix_millis) => Err(refusal::expired()),
            (Some(client), true) => Ok(client.principal().clone()),
        }
    }
}
