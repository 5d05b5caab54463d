//! The life of a request, from its operation and body to its answer.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;

/// Takes requests as clients send them and answers as one logical DynamoDB.
pub struct Service {
    store: Arc<dyn Store>,
    region: String,
}

impl Service {
    /// A service in front of `store`, which is in `region`.
    pub fn new(store: Arc<dyn Store>, region: &str) -> Self {
        Service { store, region: region.to_owned() }
    }

    /// The AWS region that the service stands for.
    pub fn region(&self) -> &str {
        &self.region
    }

    /// Answers one request. Both bodies are JSON.
    ///
    /// # Errors
    /// DynamoDB's own error for the request, or the store's, unchanged.
    pub async fn call(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        self.store.call(operation, body).await
    }
}
