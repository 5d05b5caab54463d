//! What a run asked for whose adoption was turned round: that its keys move to where they came from
//! no more. It is taken back before the keys are listed; else gateways would move keys there once
//! all is said to be done.
//!
//! Not here: what is asked for in its place (`listing`).

use std::time::Duration;

use heatsink_control::reshard_intent::ReshardIntent;

use super::LiveAdoption;
use super::layouts::{Layouts, wanted};
use crate::error::WorkerError;
use crate::key::wanted::same;

/// How often it looks whether they have ended.
const LOOK: Duration = Duration::from_millis(500);
/// If none of them has changed for so long, nobody carries them out.
const LEFT: Duration = Duration::from_secs(30);

impl LiveAdoption {
    /// Takes intents back that lead to the layouts which the table leaves: those that nobody has
    /// begun are removed, the others are cancelled, and end first, or are left by whoever had begun
    /// them: then those keys are listed.
    ///
    /// # Errors
    /// The store's.
    pub(super) async fn take_back_former(&self, layouts: &Layouts) -> Result<(), WorkerError> {
        let env = self.registry.env();
        let (mut seen, mut since) = (Vec::new(), env.now());
        loop {
            let former = self.former(layouts).await?;
            if former.is_empty() {
                return Ok(());
            }
            for one in &former {
                if !one.begun && one.carrier.is_none() {
                    self.registry.remove_intent(one).await?;
                } else if !one.cancelled {
                    let next = ReshardIntent { cancelled: true, ..one.next() };
                    self.registry.write_intent(Some(one), &next).await?;
                }
            }
            let now: Vec<_> = former.into_iter().map(|one| (one.key, one.version)).collect();
            if now != seen {
                (seen, since) = (now, env.now());
            }
            if env.now().since(since) >= LEFT {
                return Ok(());
            }
            env.sleep(LOOK).await;
        }
    }

    /// The open intents that lead there.
    async fn former(&self, layouts: &Layouts) -> Result<Vec<ReshardIntent>, WorkerError> {
        let schema = &self.described.schema;
        let key_type = schema.key.partition.key_type;
        let is_former = |one: &ReshardIntent| {
            let (before, after) = (layouts.before(&one.key, key_type), layouts.after(&one.key, key_type));
            one.is_open()
                && one.table_id == schema.id
                && one.index.is_none()
                && !same(&before, &after)
                && one.request.layout == wanted(&before)
        };
        let intents = self.registry.intents(false).await?;
        Ok(intents.known.into_iter().filter(is_former).collect())
    }
}
