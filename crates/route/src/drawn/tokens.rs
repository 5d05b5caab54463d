//! Where the items of transactions with a token lay: a transaction that is sent again must be to the store the request it was, though
//! it has moved what it names.
//!
//! What is not known here (another gateway took it first) is looked for, and the store refuses a request that became another one, as
//! it does for any other use of a token twice: loudly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use super::source::Places;

/// How long a token is remembered, in milliseconds: a little less than DynamoDB does, ten minutes (AWS API reference,
/// `TransactWriteItems`). Afterwards it would be a new request, for which places that were found long ago are wrong.
const REMEMBERED: u64 = 9 * 60 * 1000;

/// The most tokens that are remembered; beyond that all are forgotten.
const MOST: usize = 10_000;

/// What is remembered of one: the request, when it was first sent, and where its items lay.
type Sent = (Bytes, u64, Places);

/// The tokens of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(Arc<Mutex<HashMap<String, Sent>>>);

/// A transaction with a token.
#[derive(Clone, Debug)]
pub(super) struct Retry {
    token: String,
    body: Bytes,
    now: Option<u64>,
}

impl Retry {
    pub(super) fn new(token: &str, body: &Bytes, now: Option<u64>) -> Self {
        Retry { token: token.to_owned(), body: body.clone(), now }
    }
}

impl Tokens {
    /// Where the items lay when the same request was sent.
    pub(super) fn get(&self, retry: &Retry) -> Option<Places> {
        let sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (body, at, places) = sent.get(&retry.token)?;
        let fresh = retry.now?.saturating_sub(*at) < REMEMBERED;
        (fresh && *body == retry.body).then(|| places.clone())
    }

    /// Takes note of where the items lie as the request is sent.
    pub(super) fn put(&self, retry: &Retry, places: &Places) {
        let Some(now) = retry.now else { return };
        let mut sent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if sent.len() >= MOST {
            sent.clear();
        }
        let first = sent
            .get(&retry.token)
            .filter(|(body, at, _)| *body == retry.body && now.saturating_sub(*at) < REMEMBERED);
        let at = first.map_or(now, |(_, at, _)| *at);
        sent.insert(retry.token.clone(), (retry.body.clone(), at, places.clone()));
    }

    /// Forgets a request that was not carried out: it is as good as new.
    pub(super) fn forget(&self, retry: &Retry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&retry.token);
    }
}
