//! What a live adoption takes off the record at its end.

use heatsink_control::{Awaits, KeyRecord, Record, State};

use super::LiveAdoption;
use crate::error::WorkerError;
use crate::key::wanted::same;
use crate::on_record::{taken_over, untag};

impl LiveAdoption {
    /// Takes the change off the record, what was entered for it, and the records of keys that lie as
    /// they would without one. A table that has nothing else on record leaves it.
    pub(super) async fn end(&mut self) -> Result<(), WorkerError> {
        self.refresh().await?;
        let layouts = self.all_layouts()?;
        let (record, change) = self.change()?;
        let (before, run) = (record.clone(), change.run);
        self.registry.forget_entered(&before, run).await?;
        let key_type = self.described.schema.key.partition.key_type;
        let needless = |one: &KeyRecord| {
            one.moves.is_none() && one.settled && same(&one.layout, &layouts.after(&one.key, key_type))
        };
        loop {
            let known = self.on_record()?.clone();
            let mut keys = self.registry.all_key_records(&known).await?;
            let all = keys.len();
            keys.retain(&needless);
            self.kept = all - keys.len();
            // Gateways read all of them once more only when all is taken off.
            match self.registry.forget_keys(&known, &keys).await? {
                Some(forgotten) => {
                    self.record = Some(forgotten);
                    break;
                }
                // Another key moves, which has a layout of its own.
                None => self.refresh().await?,
            }
        }
        let next = Record { state: State::Active, ..self.on_record()?.clone() };
        self.replace(next).await?;
        let record = self.on_record()?;
        self.changer.announce_awaiting(Awaits::Results, &record.name, record.version).await?;
        if record.is_empty() {
            // The tag first: nobody would take it off after a run that was killed in between.
            untag(&self.registry, &self.described).await;
            if !self.registry.remove(record).await? {
                return Err(taken_over(&record.name));
            }
            self.changer.announce(&record.name, record.version + 1).await?;
        }
        Ok(())
    }
}
