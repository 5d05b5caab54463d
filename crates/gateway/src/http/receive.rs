//! Receives a request: reads its body, and finds out who has signed it.
//!
//! Not here: what is judged by its head alone (`front`), what it asks for.

use bytes::Bytes;
use heatsink_access::{BodyHasher, Caller, Claim, Clients};
use heatsink_dynamo::{Code, Error};
use http::request::Parts;
use hyper::body::Incoming;

use super::body::{self, Unread};
use super::door::Shared;
use super::gzip;
use crate::budget::Held;

/// Why a request was not received.
pub(super) enum Unreceived {
    Body(Unread),
    Signature(Error),
}

/// The body, decompressed, and who has signed it. It is hashed as it comes, and inflated only
/// if it is signed.
pub(super) async fn receive(
    shared: &Shared,
    head: &Parts,
    body: Incoming,
    held: &mut Held,
    clients: &Clients,
    claim: Option<Claim<'_>>,
) -> Result<(Bytes, Option<Caller>), Unreceived> {
    let Shared { limits, env, .. } = shared;
    let mut hasher = claim.is_some().then(BodyHasher::default);
    let mut see = |piece: &[u8]| {
        if let Some(hasher) = &mut hasher {
            hasher.add(piece);
        }
    };
    // Who is not known has to send all of it, to be told so when another client would be, but
    // holds no room.
    let body = match &claim {
        Some(claim) if !clients.knows(claim) => {
            body::hear(body, limits.body, limits.body_read, &mut see).await.map(|()| Bytes::new())
        }
        _ => body::read(body, limits.body, limits.body_read, held, &mut see).await,
    };
    let body = body.map_err(Unreceived::Body)?;
    let caller = match claim.zip(hasher) {
        Some((claim, hasher)) => {
            let caller = clients.authenticate(claim, &hasher.finish(), env.unix_millis());
            caller.map_err(Unreceived::Signature)?
        }
        None => None,
    };
    let body = gzip::read(&head.headers, body, limits.body, held).await.map_err(Unreceived::Body)?;
    Ok((body, caller))
}

/// The error for a body that could not be read.
pub(super) fn unread(shared: &Shared, why: Unread) -> Error {
    let Shared { limits, counts, budget, .. } = shared;
    match why {
        Unread::TooLarge => Error::new(
            Code::RequestEntityTooLarge,
            format!("The request body is larger than {} bytes", limits.body),
        ),
        Unread::NoRoom => {
            counts.over_bodies.increment(1);
            budget.no_room("this body")
        }
        Unread::Late => {
            counts.late_bodies.increment(1);
            let seconds = limits.body_read.as_secs_f32();
            Error::new(
                Code::RequestTimeoutException,
                format!("The request body did not arrive within {seconds} s"),
            )
        }
        Unread::Broken | Unread::Malformed => Error::bare(Code::SerializationException),
    }
}
