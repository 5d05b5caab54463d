//! AWS Signature Version 4 for the one shape of request that DynamoDB has: `POST /` with a JSON
//! body. [`SigningKey`] signs what goes upstream; [`Verifier`] says which client has sent a request.
//!
//! A request is verified in two steps. [`Verifier::claim`] reads its head, before the body is read:
//! who the sender claims to be, for which scope, when. [`Verifier::authenticate`] compares the
//! signature with the [hash](BodyHash) of the body that came. Whatever a signature does not cover
//! and could change the meaning of a request is refused, so that one signature belongs to one
//! request.
//!
//! Not here: what a client may do, files and variables that hold secrets, sockets, presigned
//! requests, signatures of other versions (they are refused by name).

mod authorization;
mod body;
mod canonical;
mod client;
mod head;
mod refusal;
mod scope;
mod secret;
mod signer;
#[cfg(test)]
mod suite;
mod text;
mod time;
mod verifier;

pub use body::{BodyHash, BodyHasher};
pub use client::{Client, Principal, UnfitClient, check_access_key};
pub use head::Claim;
pub use scope::{SERVICE, Scope};
pub use signer::{CONTENT_TYPE, Signed, SigningKey};
pub use time::DAY_MILLIS;
pub use verifier::Verifier;
