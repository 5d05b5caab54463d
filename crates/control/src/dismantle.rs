//! Removes the registry of a store in which nothing is sharded any more, with what else Heatsink
//! has put there: the tags of tables, and the directory of buckets. The registry goes last, so that
//! a run that was killed is run again.
//!
//! Not here: bringing items back (`heatsink_workers::leave`).

use std::time::Duration;

use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::DIRECTORY;
use serde_json::json;

use crate::describe::Described;
use crate::fence::{Changer, Gateway};
use crate::lost_registry;
use crate::missed_record;
use crate::registry::Registry;
use crate::tags::{self, Tagged};

/// How long a table may take to be deleted, in steps of [`POLL`].
const PATIENCE: u32 = 600;
const POLL: Duration = Duration::from_millis(200);

/// What became of a registry that was to be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dismantled {
    /// It is gone, and so are these.
    Done {
        /// Tables whose tag was taken off.
        untagged: Vec<String>,
        /// Whether there was a directory of buckets.
        directory: bool,
    },
    /// These tables are on record: nothing was removed.
    OnRecord(Vec<String>),
    /// These gateways are registered, and would refuse every request without the registry: nothing
    /// was removed.
    Gateways(Vec<Gateway>),
    /// A table was on record, and its record is lost: why it is taken for that, and the way back.
    /// Nothing was removed.
    Lost(String),
}

impl Registry {
    /// Removes the registry. No layout may change meanwhile: they are frozen first, and stay so
    /// where it is removed.
    ///
    /// # Errors
    /// The store's.
    pub async fn dismantle(&self, changer: &Changer) -> Result<Dismantled, Error> {
        if !self.exists().await? {
            // Tags are signs of a registry that is lost.
            return Ok(Dismantled::Done { untagged: Vec::new(), directory: false });
        }
        if let Some(refused) = self.in_use(changer).await? {
            return Ok(refused);
        }
        let was_frozen = changer.frozen().await?.is_some();
        if self.describe(self.name()).await?.is_some_and(|described| described.status != "DELETING") {
            changer.freeze(true).await?;
        }
        // Whoever was about to record a table has done so, or does not any more
        // (`create_unless_frozen`); gateways that were are registered.
        if let Some(refused) = self.in_use(changer).await? {
            if !was_frozen {
                changer.freeze(false).await?;
            }
            return Ok(refused);
        }
        let untagged = match self.tagged().await? {
            Ok(tagged) => tagged,
            Err(lost) => {
                if !was_frozen {
                    changer.freeze(false).await?;
                }
                return Ok(Dismantled::Lost(lost));
            }
        };
        for described in &untagged {
            tags::release(self, described.arn.as_deref()).await?;
        }
        let untagged = untagged.into_iter().map(|described| described.schema.name).collect();
        let directory = !self.shares_directory().await? && self.unmake(DIRECTORY).await?;
        self.unmake(self.name()).await?;
        if let Some(memory) = &self.expectation().memory {
            let of_it = memory.tables().into_iter().filter(|one| *one.registry == *self.name());
            of_it.for_each(|one| memory.forget(&one.id));
        }
        Ok(Dismantled::Done { untagged, directory })
    }

    /// What needs the registry.
    async fn in_use(&self, changer: &Changer) -> Result<Option<Dismantled>, Error> {
        let names: Vec<String> = self.all().await?.into_iter().map(|record| record.name).collect();
        if !names.is_empty() {
            return Ok(Some(Dismantled::OnRecord(names)));
        }
        let mut listed = changer.gateways().await?.map(|(_, listed)| listed).unwrap_or_default();
        let now = self.env().unix_millis();
        listed.retain(|gateway| !gateway.is_dead(now));
        Ok((!listed.is_empty()).then_some(Dismantled::Gateways(listed)))
    }

    /// The tables that have the tag of this registry though none has a record: their way out could
    /// not take it off. The inner error is why a record is lost.
    async fn tagged(&self) -> Result<Result<Vec<Described>, String>, Error> {
        let mut tagged = Vec::new();
        for described in missed_record::without_record(self).await? {
            let is_tagged = tags::check(self, described.arn.as_deref(), self.name()).await? == Tagged::Ours;
            match missed_record::sign_of(self, &described).await? {
                None => {}
                Some(sign) if sign.is_of_another(self.name()) => {}
                Some(sign) => return Ok(Err(sign.refusal(&described.schema.name, self.name()))),
            }
            if is_tagged {
                tagged.push(described);
            }
        }
        Ok(Ok(tagged))
    }

    /// Whether another registry of the store has tables on record, whose buckets may be in the same
    /// directory.
    async fn shares_directory(&self) -> Result<bool, Error> {
        for name in self.tables().await? {
            if name != self.name()
                && lost_registry::is_like_one(&name)
                && self.another(&name).all().await.is_ok_and(|records| !records.is_empty())
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes one of Heatsink's own tables, and waits until it is gone. `false` where there is
    /// none.
    async fn unmake(&self, table: &str) -> Result<bool, Error> {
        let Some(described) = self.describe(table).await? else { return Ok(false) };
        if described.status != "DELETING" {
            let unprotected = json!({ "TableName": table, "DeletionProtectionEnabled": false });
            match self.call(Operation::UpdateTable, unprotected).await {
                Ok(_) => {}
                // The store does not know of that protection; or it was off.
                Err(error)
                    if [
                        Code::ValidationException,
                        Code::SerializationException,
                        Code::UnknownOperationException,
                    ]
                    .contains(&error.code) => {}
                Err(error) => return Err(error),
            }
            self.delete(table).await?;
        }
        for _ in 0..PATIENCE {
            if self.describe(table).await?.is_none() {
                return Ok(true);
            }
            self.env().sleep(POLL).await;
        }
        Err(Error::unavailable(
            format!("The table {table} was not deleted within {} s", PATIENCE / 5),
            Outcome::NotDone,
        ))
    }

    /// Sends the deletion until the store takes it: of a table that is being changed it does not
    /// yet.
    async fn delete(&self, table: &str) -> Result<(), Error> {
        let mut tries = 0;
        loop {
            match self.call(Operation::DeleteTable, json!({ "TableName": table })).await {
                Ok(_) => return Ok(()),
                Err(error) if error.code == Code::ResourceNotFoundException => return Ok(()),
                Err(error) if error.code == Code::ResourceInUseException && tries < PATIENCE => {
                    tries += 1;
                    self.env().sleep(POLL).await;
                }
                Err(error) => return Err(error),
            }
        }
    }
}
