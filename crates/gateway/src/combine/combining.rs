//! A request that is one write of one item, on its way to the store: it leads, or waits.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_control::{Pass, SharedKey};
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_route::combine::ItemWrite;
use heatsink_store::Store;
use tokio::sync::oneshot;

use super::lead::Lead;
use super::queues::{Combiner, Entered, Told};
use crate::send_once::send;
use crate::sent::Sent;

/// What sends the one call of such a request.
pub(crate) struct Combining<'a> {
    pub(crate) combiner: &'a Combiner,
    pub(crate) store: &'a dyn Store,
    pub(crate) pass: &'a Pass,
    pub(crate) sent: &'a Sent,
    pub(crate) key: SharedKey,
}

impl Combining<'_> {
    /// Sends the call, alone or with those of others.
    pub(crate) async fn send(&self, operation: Operation, body: Bytes) -> Result<Bytes, Error> {
        let SharedKey { schema, spreads_values, .. } = &self.key;
        let Some(write) = ItemWrite::read(operation, &body, schema, *spreads_values) else {
            self.begin()?;
            return send(self.store, self.pass, operation, body).await;
        };
        let item: Arc<[u8]> = write.item().into();
        let turn = self.sent.turn();
        let write = match self.combiner.enter(write, &turn)? {
            Entered::Leads(write) => write,
            Entered::Waits(told) => {
                let mut wait = Wait { combiner: self.combiner, item: &item, told };
                match (&mut wait.told).await {
                    Ok(Told::Lead(write)) => write,
                    Ok(Told::Answer(answer)) => return answer,
                    // Nobody drops it but who finds that it was given up.
                    Err(_) => return Err(given_up()),
                }
            }
        };
        let lead = Lead::new(self.combiner, &item);
        self.begin()?;
        lead.carry_out(write, &|operation, body| Box::pin(send(self.store, self.pass, operation, body))).await
    }

    fn begin(&self) -> Result<(), Error> {
        if self.sent.begin() { Ok(()) } else { Err(given_up()) }
    }
}

/// A write that waits. Dropped after it was told to lead, the next one leads.
struct Wait<'a> {
    combiner: &'a Combiner,
    item: &'a [u8],
    told: oneshot::Receiver<Told>,
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.told.close();
        if let Ok(Told::Lead(_)) = self.told.try_recv() {
            self.combiner.pass_on(self.item);
        }
    }
}

/// For a request whose client was told so already.
pub(crate) fn given_up() -> Error {
    Error::unavailable("The request was given up before anything of it was sent", Outcome::NotDone)
}
