//! What identical reads have in common.

use bytes::Bytes;
use heatsink_dynamo::Operation;

/// The longest body of a read that is looked at.
const LONGEST: usize = 16 * 1024;

/// A request, whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ReadId {
    operation: Operation,
    body: Bytes,
}

impl ReadId {
    /// Of a request that is not too long.
    pub(crate) fn new(operation: Operation, body: &Bytes) -> Option<Self> {
        // A copy: the body may be a part of something large.
        (body.len() <= LONGEST).then(|| ReadId { operation, body: Bytes::copy_from_slice(body) })
    }

    pub(super) fn bytes(&self) -> usize {
        self.body.len()
    }
}
