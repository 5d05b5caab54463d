//! Where the items of transactions with a token lay: a transaction that is sent again must be to
//! the store the request it was, though it has moved what it names.
//!
//! Of a request only its digest is kept, and of each item that of its key: so much memory holds
//! many. What is not known here (another gateway took it first, or it was forgotten for newer ones)
//! is looked for, and the store refuses a request that became another one, as it does for any other
//! use of a token twice: loudly.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use hashlink::LinkedHashMap;
use heatsink_layout::Slot;
use sha2::{Digest as _, Sha256};

use crate::context::{Named, Places};

/// How long a token is remembered, in milliseconds: a little less than DynamoDB does, ten minutes
/// (AWS API reference, `TransactWriteItems`). Afterwards it would be a new request, for which
/// places that were found long ago are wrong.
const REMEMBERED: u64 = 9 * 60 * 1000;

/// The most bytes that what is remembered takes, by [`Sent::bytes`]; beyond them the oldest is
/// forgotten. A transaction of 100 items takes 5 KB.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// What an entry costs beside its contents, roughly.
const OVERHEAD: usize = 160;

/// SHA-256: a client that finds two requests with one digest would have its own writes go astray.
type Digest = [u8; 32];

/// What is remembered of one transaction.
#[derive(Clone, Debug)]
struct Sent {
    request: Digest,
    /// When it was first sent.
    at: u64,
    /// Where each item lay, by the digest of its table and key.
    places: Vec<(Digest, Option<Slot>)>,
}

impl Sent {
    fn bytes(&self, token: &str) -> usize {
        OVERHEAD + token.len() + self.places.len() * size_of::<(Digest, Option<Slot>)>()
    }
}

#[derive(Debug, Default)]
struct Remembered {
    /// By token, the oldest first.
    sent: LinkedHashMap<String, Sent>,
    bytes: usize,
}

impl Remembered {
    fn insert(&mut self, token: &str, sent: Sent) {
        self.bytes += sent.bytes(token);
        let before = match self.sent.get_mut(token) {
            // The same request again is as old as it was.
            Some(before) if before.at == sent.at => Some(std::mem::replace(before, sent)),
            _ => self.sent.insert(token.to_owned(), sent),
        };
        self.bytes -= before.map_or(0, |before| before.bytes(token));
        while self.bytes > MOST_BYTES
            && let Some((oldest, sent)) = self.sent.pop_front()
        {
            self.bytes -= sent.bytes(&oldest);
        }
    }

    fn remove(&mut self, token: &str) {
        if let Some(sent) = self.sent.remove(token) {
            self.bytes -= sent.bytes(token);
        }
    }
}

/// The tokens of a process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tokens(Arc<Mutex<Remembered>>);

/// A transaction with a token.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    token: String,
    request: Digest,
    now: Option<u64>,
}

impl Retry {
    pub(crate) fn new(token: &str, body: &Bytes, now: Option<u64>) -> Self {
        Retry { token: token.to_owned(), request: Sha256::digest(body).into(), now }
    }
}

impl Tokens {
    /// Where the items lay when the same request was sent.
    pub(crate) fn get(&self, retry: &Retry, named: &[Named]) -> Option<Places> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = remembered.sent.get(&retry.token)?;
        let fresh = retry.now?.saturating_sub(sent.at) < REMEMBERED;
        if !fresh || sent.request != retry.request {
            return None;
        }
        let places: HashMap<&Digest, Option<Slot>> =
            sent.places.iter().map(|(item, place)| (item, *place)).collect();
        named
            .iter()
            .map(|one| Some((one.item(), *places.get(&digest(&one.item()))?)))
            .collect::<Option<Places>>()
    }

    /// Takes note of where the items lie as the request is sent.
    pub(crate) fn put(&self, retry: &Retry, places: &Places) {
        let Some(now) = retry.now else { return };
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let first = remembered
            .sent
            .get(&retry.token)
            .filter(|sent| sent.request == retry.request && now.saturating_sub(sent.at) < REMEMBERED);
        let at = first.map_or(now, |sent| sent.at);
        let places = places.iter().map(|(item, place)| (digest(item), *place)).collect();
        remembered.insert(&retry.token, Sent { request: retry.request, at, places });
    }

    /// Forgets a request that was not carried out: it is as good as new.
    pub(crate) fn forget(&self, retry: &Retry) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&retry.token);
    }
}

/// The digest of an item's table and key.
fn digest((table, identity): &crate::context::Item) -> Digest {
    let mut hash = Sha256::new();
    for part in [table.as_bytes(), identity.partition(), identity.sort()] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use heatsink_layout::{Layout, Placement, SortKey};

    use super::*;
    use crate::identity::Identity;

    fn named(key: &str) -> Named {
        named_at(key, "s")
    }

    fn named_at(key: &str, sort: &str) -> Named {
        let identity = Identity::of(key.as_bytes(), Some(SortKey::S(sort)));
        let placement = Placement::One(Slot::default());
        Named { table: "t".into(), layout: Arc::new(Layout::none()), placement, key: Vec::new(), identity }
    }

    fn places(keys: &[Named], shard: u16) -> Places {
        keys.iter().map(|one| (one.item(), Some(Slot::shard(shard)))).collect()
    }

    #[test]
    fn the_same_request_goes_where_it_went_and_no_other() {
        let tokens = Tokens::default();
        let keys = [named("a"), named("b")];
        let (body, other) = (Bytes::from_static(b"{1}"), Bytes::from_static(b"{2}"));
        let at = |body: &Bytes, now| Retry::new("token", body, Some(now));
        tokens.put(&at(&body, 0), &places(&keys, 3));
        assert_eq!(tokens.get(&at(&body, 1), &keys), Some(places(&keys, 3)));
        assert_eq!(tokens.get(&at(&other, 1), &keys), None);
        assert_eq!(tokens.get(&at(&body, 1), &[named("c")]), None);
        // The first time counts.
        tokens.put(&at(&body, REMEMBERED - 1), &places(&keys, 3));
        assert_eq!(tokens.get(&at(&body, REMEMBERED), &keys), None);
        tokens.put(&at(&body, REMEMBERED), &places(&keys, 4));
        assert_eq!(tokens.get(&at(&body, REMEMBERED), &keys), Some(places(&keys, 4)));
        tokens.forget(&at(&body, REMEMBERED));
        assert_eq!(tokens.get(&at(&body, REMEMBERED), &keys), None);
        assert_eq!(tokens.0.lock().unwrap().bytes, 0);
    }

    #[test]
    fn items_of_one_partition_key_have_places_of_their_own() {
        let (tokens, keys) = (Tokens::default(), [named_at("a", "s"), named_at("a", "t")]);
        let retry = Retry::new("token", &Bytes::new(), Some(0));
        let places: Places =
            keys.iter().zip(1..).map(|(one, shard)| (one.item(), Some(Slot::shard(shard)))).collect();
        tokens.put(&retry, &places);
        assert_eq!(tokens.get(&retry, &keys), Some(places));
    }

    #[test]
    fn a_request_that_is_sent_again_is_as_old_as_it_was() {
        let tokens = Tokens::default();
        let keys = [named("a")];
        let put = |token: &str, now| {
            tokens.put(&Retry::new(token, &Bytes::new(), Some(now)), &places(&keys, 1));
            tokens.0.lock().unwrap().sent.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(put("a", 0), ["a"]);
        assert_eq!(put("b", 1), ["a", "b"]);
        assert_eq!(put("a", 2), ["a", "b"]);
        // Now it is a new one.
        assert_eq!(put("a", REMEMBERED), ["b", "a"]);
    }

    #[test]
    fn so_many_bytes_are_remembered_and_the_oldest_are_forgotten_first() {
        let tokens = Tokens::default();
        let keys: Vec<Named> = (0..100).map(|at| named(&format!("key-{at}"))).collect();
        // 10 MB: what is kept of it does not depend on its size.
        let body = Bytes::from(vec![b' '; 10 * 1024 * 1024]);
        let retry = Retry::new("first", &body, Some(0));
        tokens.put(&retry, &places(&keys, 1));
        let each = tokens.0.lock().unwrap().bytes;
        assert!(each < 8 * 1024, "{each}");
        let fits = MOST_BYTES / each;
        let small = |at: usize| Retry::new(&format!("t{at:04}"), &Bytes::from(at.to_string()), Some(1));
        for at in 0..fits {
            tokens.put(&small(at), &places(&keys, 2));
        }
        let remembered = tokens.0.lock().unwrap();
        let bytes: usize = remembered.sent.iter().map(|(token, sent)| sent.bytes(token)).sum();
        assert!(remembered.bytes <= MOST_BYTES && remembered.bytes == bytes);
        assert!(remembered.sent.len() >= fits - 1);
        drop(remembered);
        assert_eq!(tokens.get(&retry, &keys), None);
        assert_eq!(tokens.get(&small(fits - 1), &keys), Some(places(&keys, 2)));
    }
}
