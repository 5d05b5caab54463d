//! Receives a request: reads its body, and has it decided who has sent it.
//!
//! Not here: what is judged by its head alone (`front`), who that is (`sender`), what it asks for.

use bytes::Bytes;
use heatsink_access::{BodyHash, BodyHasher};
use heatsink_dynamo::{Code, Error};
use http::request::Parts;
use hyper::body::Incoming;

use super::body::{self, Unread};
use super::door::{Peer, Shared};
use super::gzip;
use super::sender::{Claims, Sender};
use crate::Service;
use crate::budget::Held;

/// Why a request was not received.
pub(super) enum Unreceived {
    Body(Unread),
    Sender(Error),
}

/// The body, decompressed, and who has sent it, of a head with these claims. It is hashed as it
/// comes, and inflated only once it is known whose it is.
pub(super) async fn receive(
    (service, shared): (&Service, &Shared),
    (head, body): (&Parts, Incoming),
    peer: &Peer,
    claims: Claims<'_>,
    held: &mut Held,
) -> Result<(Bytes, Sender), Unreceived> {
    let limits = &shared.limits;
    let mut hasher = claims.hashes().then(BodyHasher::default);
    let mut see = |piece: &[u8]| {
        if let Some(hasher) = &mut hasher {
            hasher.add(piece);
        }
    };
    // Who is not known has to send all of it, to be told so when another client would be, but
    // holds no room.
    let is_held = claims.hold(held);
    let body = match is_held {
        true => body::read(body, limits.body, limits.body_read, held, &mut see).await,
        false => body::hear(body, limits.body, limits.body_read, &mut see).await.map(|()| Bytes::new()),
    };
    let body = body.map_err(Unreceived::Body)?;
    let hash = || hasher.map_or_else(|| BodyHash::of(&body), BodyHasher::finish);
    let sender = claims.decide((service, shared), head, peer, is_held, hash);
    let sender = sender.map_err(Unreceived::Sender)?;
    held.prove();
    let body = gzip::read(&head.headers, body, limits.body, held).await.map_err(Unreceived::Body)?;
    Ok((body, sender))
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
