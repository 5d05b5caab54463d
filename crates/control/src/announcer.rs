//! How a change of a record becomes known to every gateway: from beside them, or from within one of
//! them. For workers.

use std::time::Duration;

use heatsink_dynamo::Error;

use crate::fence::Frozen;
use crate::{Awaits, Bounds, Changer, Control};

/// Publishes what a worker has written, and waits for the gateways.
#[derive(Clone)]
pub enum Announcer {
    /// This process is no gateway.
    Beside(Box<Changer>),
    /// It is one: it applies a change itself as soon as it is published, and does not wait for its
    /// own next look.
    Gateway(Control),
}

impl Announcer {
    fn changer(&self) -> &Changer {
        match self {
            Announcer::Beside(changer) => changer,
            Announcer::Gateway(control) => control.changer(),
        }
    }

    /// The same, where the caller knows whether other processes use the store. A gateway knows
    /// better.
    #[must_use]
    pub fn exclusively(self, exclusive: bool) -> Self {
        match self {
            Announcer::Beside(changer) => Announcer::Beside(Box::new(changer.exclusively(exclusive))),
            within => within,
        }
    }

    /// How late a request may take effect that was sent and never answered.
    pub fn straggler(&self) -> Duration {
        self.changer().straggler()
    }

    /// The time bounds of the fence, as this process has them.
    pub fn bounds(&self) -> Bounds {
        self.changer().bounds()
    }

    /// Waits until layouts may change.
    ///
    /// # Errors
    /// The store's; frozen layouts.
    pub async fn begin(&self) -> Result<(), Error> {
        self.changer().begin_patiently().await
    }

    /// Since when layout changes are frozen, if they are. Asked before the record of a step is
    /// written.
    ///
    /// # Errors
    /// The store's.
    pub async fn frozen(&self) -> Result<Option<Frozen>, Error> {
        self.changer().frozen().await
    }

    /// Publishes the version of a table's record, and waits for what `awaits` says of every
    /// gateway. Returns whether all calls that were planned before were answered.
    ///
    /// # Errors
    /// The store's.
    pub async fn announce(&self, awaits: Awaits, table: &str, version: u64) -> Result<bool, Error> {
        match self {
            Announcer::Beside(changer) => {
                Ok(changer.announce_awaiting(awaits, table, version).await?.is_clean())
            }
            Announcer::Gateway(control) => control.announce(awaits, table, version).await,
        }
    }

    /// Publishes the version of a table's record, and waits until nothing that was planned before
    /// can take effect any more.
    ///
    /// # Errors
    /// The store's.
    pub async fn settle(&self, table: &str, version: u64) -> Result<(), Error> {
        match self {
            Announcer::Beside(changer) => changer.announce(table, version).await.map(drop),
            Announcer::Gateway(control) => control.settle(table, version).await,
        }
    }

    /// Publishes the version of a table's record, and waits for nobody but for the gateway that
    /// this process is.
    ///
    /// # Errors
    /// The store's.
    pub async fn make_known(&self, table: &str, version: u64) -> Result<(), Error> {
        match self {
            Announcer::Beside(changer) => changer.make_known(table, version).await,
            Announcer::Gateway(control) => control.make_known(table, version).await,
        }
    }
}
