//! Partition key values, as requests give them and as counters keep them.

use std::borrow::Cow;

use heatsink_dynamo::KeyType;
use serde::{Deserialize, Serialize};

/// The longest key that is kept, in bytes: 2,048 bytes of a binary value take this many in base64.
/// Longer ones are refused by DynamoDB.
pub(super) const LONGEST: usize = 2_732;
/// Keys up to this length need no allocation.
const INLINE: usize = 40;

/// A partition key value of a request. Equal values of one type have equal texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// Its type.
    pub kind: KeyType,
    /// The text of a string, a number in canonical form, the base64 of a binary.
    pub text: &'a [u8],
}

/// A copy of a key.
#[derive(Clone, Debug)]
pub(super) struct StoredKey {
    kind: KeyType,
    length: u8,
    cut: bool,
    short: [u8; INLINE],
    long: Option<Box<[u8]>>,
}

impl StoredKey {
    /// A copy, cut to [`LONGEST`] bytes, and to 40 where `room` does not grant more.
    pub(super) fn new(key: Key<'_>, room: &mut Room) -> Self {
        let text = key.text.get(..LONGEST).unwrap_or(key.text);
        let long = (text.len() > INLINE && room.take(text.len())).then(|| Box::from(text));
        let mut short = [0; INLINE];
        let length = text.len().min(INLINE);
        short[..length].copy_from_slice(&text[..length]);
        let cut = text.len() < key.text.len() || text.len() > INLINE && long.is_none();
        StoredKey { kind: key.kind, length: u8::try_from(length).unwrap_or_default(), cut, short, long }
    }

    /// Gives back what the copy took.
    pub(super) fn release(&mut self, room: &mut Room) {
        if let Some(long) = self.long.take() {
            room.give(long.len());
        }
    }

    /// Whether all of the key is kept.
    pub(super) fn is_whole(&self) -> bool {
        !self.cut
    }

    pub(super) fn shown(&self) -> ShownKey {
        let short = self.short.get(..usize::from(self.length)).unwrap_or_default();
        let text = String::from_utf8_lossy(self.long.as_deref().unwrap_or(short));
        ShownKey { kind: self.kind, text: Cow::into_owned(text) }
    }
}

/// A key in a report. Its text may hold anything that a client can send: markup, line ends, control
/// sequences. Whoever shows it escapes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ShownKey {
    /// Its type.
    pub kind: KeyType,
    /// The text of a string, a number in canonical form, the base64 of a binary.
    pub text: String,
}

/// The bytes that counters, keys and clients may still take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room(pub(super) usize);

impl Room {
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }

    pub(super) fn give(&mut self, bytes: usize) {
        self.0 += bytes;
    }
}
