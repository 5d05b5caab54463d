//! The body of an answer, counted in the budget until the client has taken its last byte.

use bytes::{Buf, Bytes};
use http_body_util::Full;

use crate::budget::Held;

/// What hyper sends. It drops the data, and with them what they hold of the budget, once the socket has taken them.
pub(super) type Body = Full<Data>;

/// The bytes of an answer.
pub(super) struct Data {
    bytes: Bytes,
    /// Nothing for what is too small to count.
    _held: Option<Held>,
}

impl Data {
    pub(super) fn new(bytes: Bytes, held: Option<Held>) -> Self {
        Data { bytes, _held: held }
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
