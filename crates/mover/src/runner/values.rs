//! Values of indexes: what carries out an intent for one. This crate knows keys; the items of a value are rewritten by a crate beside it, which whoever
//! starts a runner passes in.

use std::sync::Arc;

use futures::future::BoxFuture;
use heatsink_control::Control;
use heatsink_control::reshard_intent::{ProgressSink, ReshardIntent, Steering};
use heatsink_store::Store;

use crate::error::ReshardError;
use crate::progress::Report;

/// What is to be done.
pub struct ValueJob<'a> {
    /// What the operator asked for. It names an index.
    pub intent: &'a ReshardIntent,
    /// The store, as this run may use it: it lets no call through once the gateway stops.
    pub store: Arc<dyn Store>,
    /// The gateway within which it is carried out.
    pub control: &'a Control,
    /// What the operator wants meanwhile.
    pub steering: &'a Steering,
    /// Is told how far it is.
    pub progress: &'a dyn ProgressSink,
}

/// Carries out reshards of values of indexes.
pub trait ValueCarrier: Send + Sync {
    /// Gives the value its shards, or goes on with that; `None` if it is paused and has not begun. May be dropped between two calls to the store, and begun
    /// again elsewhere.
    fn carry_out<'a>(&'a self, job: ValueJob<'a>) -> BoxFuture<'a, Result<Option<Report>, ReshardError>>;
}
