//! An operation of the engine without its types: how its request is read, executed, and its answer
//! written.
//!
//! Only what stands here is compiled once for each operation; what surrounds it, once.

use bytes::Bytes;
use dynoxide::Result;
use heatsink_dynamo::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::answer;
use super::engine::Engine;

/// Reads a request of one operation.
pub(super) type Act = fn(&[u8]) -> serde_json::Result<Asked>;

/// A request that was read: executes it on the engine.
pub(super) type Asked = Box<dyn FnOnce(&Engine) -> Result<Box<dyn Answer>> + Send>;

/// An answer of the engine.
pub(super) trait Answer: Send {
    /// The answer as JSON.
    ///
    /// # Errors
    /// `InternalServerError` when it cannot be written.
    fn json(&self) -> std::result::Result<Bytes, Error>;
}

impl<A: Serialize + Send> Answer for A {
    fn json(&self) -> std::result::Result<Bytes, Error> {
        answer::write(self)
    }
}

/// Reads a request that `act` executes.
///
/// # Errors
/// When the body is no such request.
pub(super) fn read<Q, A>(body: &[u8], act: fn(&Engine, Q) -> Result<A>) -> serde_json::Result<Asked>
where
    Q: DeserializeOwned + Send + 'static,
    A: Serialize + Send + 'static,
{
    let request = serde_json::from_slice(body)?;
    Ok(Box::new(move |engine| Ok(Box::new(act(engine, request)?))))
}
