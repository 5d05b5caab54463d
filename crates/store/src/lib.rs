//! Where physical requests go: an upstream endpoint, or the embedded engine behind its partitions.
//!
//! A [`Store`] takes a request as DynamoDB would and answers as DynamoDB would. It knows nothing of shards: by the
//! time a request gets here its keys are physical.

pub mod embedded;
pub mod partitioned;
#[cfg(feature = "upstream")]
pub mod upstream;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};

/// One shape for every store: upstream, embedded, and the doubles that tests use (faults, counting, recording).
pub trait Store: Send + Sync + 'static {
    /// Carries out one request. The body is the request's JSON; so is the answer's.
    ///
    /// # Errors
    /// The store's own error, unchanged; [`heatsink_dynamo::Code::ServiceUnavailable`] with the outcome stated when
    /// it could not be reached or its answer was lost.
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>>;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        (**self).call(operation, body)
    }
}
