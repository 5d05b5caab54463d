//! When items of a value may be rewritten: while no key of the table moves. A key that moves brings
//! items to places that are not known yet, in the form that they had.
//!
//! Not here: what is rewritten then (`rewrite`).

use std::time::Duration;

use heatsink_control::Record;
use heatsink_control::claim::{Claim, ClaimError};

use super::run::Run;
use crate::error::WorkerError;
use crate::on_record::newest;

/// How often a run looks whether keys have come to rest, and for how long it waits more for each of
/// them: it reads all of their records.
const LOOK: Duration = Duration::from_millis(500);
const LOOK_OF_KEY: Duration = Duration::from_millis(5);

impl Run<'_> {
    /// A claim on the table that was taken while no key of it moved, and the record under which it
    /// was. It ends before an item of a key comes to another place.
    pub(super) async fn claim_at_rest(&self, record: &Record) -> Result<(Claim, Record), WorkerError> {
        let this = self.this;
        let env = this.registry.env();
        let mut waits = false;
        loop {
            let record = newest(&this.registry, record).await?;
            let keys = this.registry.all_key_records(&record).await?;
            if keys.iter().all(|key| key.moves.is_none() && key.settled) {
                match Claim::take(&this.registry, &record, self.options.concurrency).await {
                    Ok(claim) => {
                        self.progress.hindered(None);
                        return Ok((claim, record));
                    }
                    // A key has begun to move.
                    Err(ClaimError::TakenOver(_)) => {}
                    Err(ClaimError::Store(error)) => return Err(error.into()),
                }
            }
            if !waits {
                waits = true;
                self.progress.hindered(Some(format!(
                    "Keys of table {} move: items of the value are rewritten once they have come to rest. What clients write has its new shards already",
                    this.table()
                )));
            }
            let keys = u32::try_from(keys.len()).unwrap_or(u32::MAX);
            env.sleep(LOOK + LOOK_OF_KEY.saturating_mul(keys)).await;
            self.same_table().await?;
        }
    }
}
