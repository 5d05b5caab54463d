//! The body of an answer, counted in the budget until the client has taken its last byte.

use bytes::{Buf, Bytes};
use http_body_util::Full;

use crate::budget::Held;

/// The body type for hyper. hyper drops the data, and with it the held budget, once the socket has
/// taken it.
pub(super) type Body = Full<Data>;

/// The bytes of an answer.
pub(super) struct Data {
    bytes: Bytes,
    /// `None` for answers that are too small to count.
    held: Option<Held>,
}

impl Data {
    pub(super) fn new(bytes: Bytes, held: Option<Held>) -> Self {
        Data { bytes, held }
    }

    /// The same bytes, counted until their last copy is dropped.
    pub(super) fn into_bytes(self) -> Bytes {
        match self.held {
            None => self.bytes,
            Some(held) => held.carried_by(self.bytes),
        }
    }
}

impl Buf for Data {
    fn remaining(&self) -> usize {
        self.bytes.remaining()
    }

    fn chunk(&self) -> &[u8] {
        self.bytes.chunk()
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
    }
}
