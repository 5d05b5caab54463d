//! Executes physical requests: at an upstream endpoint, or in the embedded engine behind its
//! partitions.
//!
//! A [`Store`] takes a request as DynamoDB would and answers as DynamoDB would. It knows nothing of
//! shards: when a request gets here its keys are physical.

#[cfg(feature = "embedded")]
pub mod embedded;
#[cfg(feature = "embedded")]
pub mod partitioned;
#[cfg(feature = "embedded")]
mod replace_file;
#[cfg(feature = "upstream")]
pub mod upstream;

#[cfg(feature = "embedded")]
pub use replace_file::replace_file;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};

/// The path under which a Heatsink server shows the store behind it, with physical keys and the
/// registry, on the socket of the operator's commands: the same protocol. For stores that nobody
/// else can reach.
pub const PHYSICAL_PATH: &str = "/_heatsink/physical";

/// The interface of every store: upstream, embedded, and test doubles (faults, counting,
/// recording).
pub trait Store: Send + Sync + 'static {
    /// Executes one request. The bodies of request and answer are JSON.
    ///
    /// # Errors
    /// The store's own error, unchanged; [`heatsink_dynamo::Code::ServiceUnavailable`] with the
    /// outcome stated when it could not be reached or its answer was lost.
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>>;

    /// Executes one request if `permit` still allows it when the request is ready to be sent:
    /// signed, and with a connection. It is asked before each write to that: a request that it
    /// stops allowing half-way is cut off.
    ///
    /// # Errors
    /// The permit's own; those of [`call`](Self::call).
    fn call_if<'a>(
        &'a self,
        operation: Operation,
        body: Bytes,
        permit: &'a dyn Permit,
    ) -> BoxFuture<'a, Result<Bytes, Error>> {
        Box::pin(async move {
            permit.check()?;
            self.call(operation, body).await
        })
    }
}

/// Decides whether a request may be sent now.
pub trait Permit: Send + Sync {
    /// Asked right before each write of the request to its connection.
    ///
    /// # Errors
    /// Why it must not be sent. Nothing was done, if nothing was written before.
    fn check(&self) -> Result<(), Error>;
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        (**self).call(operation, body)
    }

    fn call_if<'a>(
        &'a self,
        operation: Operation,
        body: Bytes,
        permit: &'a dyn Permit,
    ) -> BoxFuture<'a, Result<Bytes, Error>> {
        (**self).call_if(operation, body, permit)
    }
}
