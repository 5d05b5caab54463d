//! Verification: reads the items of a recorded table, or those of one key, and checks that each is
//! where the record puts it. Requests do not find a misplaced item. Repair moves it where that
//! loses nothing.
//!
//! Clients use the table meanwhile. Memory does not grow with the table: findings are counted, and
//! the first of each class are listed.
//!
//! Each page is classified ([`classify`]), and each misplaced item is compared with the item at its
//! expected key. A repair writes under a claim ([`Claim`]), page by page, and reads everything once
//! more at its end.
//!
//! Not here: tables without a record, and tables in the middle of an adoption (`adopt`); the
//! command line.

mod classify;
mod error;
mod findings;
mod moving;
pub(crate) mod pages;
mod repair;

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use heatsink_control::claim::{self, Claim};
use heatsink_control::registry::Registry;
use heatsink_control::{Record, State};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::Env;
use heatsink_layout::{DIRECTORY, InForce, RecordedKey, Table, number_codec};
use heatsink_store::Store;
use serde_json::json;

use crate::items::item::ItemContext;
use crate::progress::{Phase, Progress};
use classify::{AT_ONCE, Classifier, on_its_way};
pub use error::VerifyError;
pub use findings::{Class, Finding, Findings, Repaired};
use moving::KeyOnItsWay;
use pages::Pages;
use repair::Repair;

/// The most rounds of a repair: an item that was moved can turn out to hold an index key in another
/// form.
const ROUNDS: usize = 3;

/// A prepared verification: the table exists and is recorded.
pub struct Verification {
    registry: Registry,
    context: ItemContext,
    record: Record,
    /// The logical key to verify; `None` for the whole table.
    key: Option<Vec<u8>>,
    /// The number of items in the table, by the store's estimate.
    there: Option<u64>,
}

impl Verification {
    /// Checks whether `table` can be verified. `key` is a logical partition key, in base64 where
    /// the table's keys are binary.
    ///
    /// # Errors
    /// [`VerifyError::Usage`] with the reason why not.
    pub async fn prepare(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        table: &str,
        key: Option<&str>,
        registry: &str,
    ) -> Result<Self, VerifyError> {
        let registry = Registry::new(store, env, registry);
        let usage = |problem: String| Err(VerifyError::Usage(problem));
        if [registry.name(), DIRECTORY].contains(&table) {
            return usage(format!("{table} is Heatsink's own table"));
        }
        let Some(described) = registry.describe(table).await? else {
            return usage(format!("There is no table {table}"));
        };
        let Some(record) = registry.read(&described.schema.id).await? else {
            return Err(VerifyError::NotRecorded(format!("Table {table} is not on record as sharded")));
        };
        let keys = registry.key_layouts(&record, None).await?;
        let laid_out = Table::new(described.schema, Arc::new(record.layouts.clone()))
            .with_value_layouts(&record.values)
            .with_key_layouts(keys);
        let laid_out = match &record.state {
            State::Active => laid_out,
            State::ChangingKeys(change) => {
                let changing = change.changing(&laid_out, &record.layouts);
                laid_out.changing(changing)
            }
            State::MigratingIndexKeys(migration) => laid_out.migrating(&migration.phase(&record.layouts)),
            State::Adopting(_) | State::Returning(_) => {
                return usage(format!(
                    "Table {table} is in the middle of `heatsink adopt`, with both moved and unmoved items. Run `heatsink adopt {table}` \
                     again: it goes on where it stopped, and verifies every item at its end"
                ));
            }
            State::Pending | State::Deleting { .. } | State::Gone => {
                return usage(format!(
                    "Table {table} is being recorded, or deleted: there is nothing to verify yet"
                ));
            }
        };
        let key = match (key, laid_out.key.partition.key_type) {
            (None, _) => None,
            (Some(text), KeyType::B) => Some(BASE64.decode(text).map_err(|_| {
                VerifyError::Usage(format!(
                    "The partition keys of table {table} are binary: give the key in base64"
                ))
            })?),
            (Some(text), KeyType::N) => Some(
                number_codec::canonical(text).map(|number| number.into_owned().into_bytes()).ok_or_else(
                    || {
                        VerifyError::Usage(format!(
                            "The partition keys of table {table} are numbers, and {text:?} is none"
                        ))
                    },
                )?,
            ),
            (Some(text), KeyType::S) => Some(text.as_bytes().to_vec()),
        };
        let answer = registry.call(Operation::DescribeTable, json!({ "TableName": table })).await?;
        let there = if key.is_none() { answer["Table"]["ItemCount"].as_u64() } else { None };
        Ok(Verification { registry, context: ItemContext { table: Arc::new(laid_out) }, record, key, there })
    }

    /// The layouts on record, in words.
    pub fn layouts(&self) -> String {
        let single = match self.context.table.key_layouts().len() {
            0 => String::new(),
            1 => "1 single key".to_owned(),
            more => format!("{more} single keys"),
        };
        let values = match self.record.values.len() {
            0 => String::new(),
            1 => "1 single value of an index".to_owned(),
            more => format!("{more} single values of indexes"),
        };
        let known =
            [self.record.layouts.to_string(), single, values].into_iter().filter(|text| !text.is_empty());
        known.collect::<Vec<_>>().join("; ")
    }

    /// Reads every item and checks its location. Changes nothing. `rate`: the maximum number of
    /// items per second.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`] where the record changed meanwhile, so that the findings are void.
    pub async fn look(&self, rate: Option<u64>, progress: &dyn Progress) -> Result<Findings, VerifyError> {
        progress.phase(Phase::Verifying, self.there);
        let mut findings = self.nothing_yet();
        let mut classifier = Classifier::new(&self.registry, &self.context);
        let table = &self.context.table;
        let alone = self.key.as_deref().is_some_and(|key| on_its_way(table, key).is_some());
        if !alone {
            let mut pages = Pages::of(&self.registry, &self.context, self.key.as_deref(), rate).await?;
            while let Some(page) = pages.next().await? {
                let passed = u64::try_from(page.len()).unwrap_or(0);
                for found in classifier.page(&page, &mut findings).await? {
                    findings.list(found.finding);
                }
                progress.passed(passed);
            }
        }
        for (logical, _) in table.key_layouts().iter() {
            let Some(moving) = on_its_way(table, logical) else { continue };
            if self.key.as_deref().is_none_or(|key| key == logical) {
                let (context, classifier) = (&self.context, &classifier);
                let key = KeyOnItsWay { context, classifier, logical, moving: &moving, rate };
                key.look(&mut findings, progress).await?;
            }
        }
        self.unchanged().await?;
        findings.ended = self.registry.env().unix_millis();
        Ok(findings)
    }

    /// Repairs what can be repaired without a loss, and reads everything again. Returns the
    /// repairs, and the findings that are left.
    ///
    /// # Errors
    /// [`VerifyError::Stopped`] where the record changed, or another worker took over. Every item
    /// is whole, at its old key or at the new one.
    pub async fn repair(
        &self,
        rate: Option<u64>,
        progress: &dyn Progress,
    ) -> Result<(Repaired, Findings), VerifyError> {
        if !claim::is_possible(&self.registry).await? {
            return Err(VerifyError::Usage(
                "The store has no TransactWriteItems, without which a repair could lose what clients write meanwhile".to_owned(),
            ));
        }
        if self.record.state != State::Active {
            return Err(VerifyError::Usage(format!(
                "`heatsink adopt {0}` is under way and rewrites keys of indexes of table {0}; end that first",
                self.record.name
            )));
        }
        if self.context.table.is_migrating() {
            return Err(VerifyError::Usage(format!(
                "A value of an index of table {0} is being rewritten by `heatsink reshard`; let that end first, or run it again if it was interrupted",
                self.record.name
            )));
        }
        let keys = self.context.table.key_layouts();
        if keys.any_moves() || keys.any_narrows() {
            return Err(VerifyError::Usage(format!(
                "A key of table {} is being moved by `heatsink reshard`, which brings its items to their places. Let that end first",
                self.record.name
            )));
        }
        let steps = |of: &RecordedKey| matches!(of.in_force, InForce::Stepping(_));
        if keys.iter().any(|(_, of)| steps(of)) {
            return Err(VerifyError::Usage(format!(
                "Buckets to come of a key of table {} get another number of shards by `heatsink reshard`, and nothing is put there meanwhile. Let that end first",
                self.record.name
            )));
        }
        let mut done = Repaired::default();
        for _ in 0..ROUNDS {
            let round = self.mend_once(rate, progress).await?;
            done.add(round);
            let left = self.look(rate, progress).await?;
            if left.repairable() == 0 || round.wrote() == 0 {
                return Ok((done, left));
            }
        }
        Ok((done, self.look(rate, progress).await?))
    }

    async fn mend_once(&self, rate: Option<u64>, progress: &dyn Progress) -> Result<Repaired, VerifyError> {
        progress.phase(Phase::Moving, self.there);
        let claim = Claim::take(&self.registry, &self.record, AT_ONCE).await?;
        let mut counted = self.nothing_yet();
        let mut classifier = Classifier::new(&self.registry, &self.context);
        let mut repair = Repair::new(&self.registry, &self.context, &claim);
        let mut pages = Pages::of(&self.registry, &self.context, self.key.as_deref(), rate).await?;
        while let Some(page) = pages.next().await? {
            let passed = u64::try_from(page.len()).unwrap_or(0);
            repair.carry_out(classifier.page(&page, &mut counted).await?).await?;
            progress.passed(passed);
        }
        let done = repair.done();
        claim.end().await?;
        Ok(done)
    }

    fn nothing_yet(&self) -> Findings {
        Findings {
            table: self.record.name.clone(),
            key: self.key.as_ref().map(|key| self.context.text(key)),
            layouts: self.layouts(),
            began: self.registry.env().unix_millis(),
            ..Findings::default()
        }
    }

    async fn unchanged(&self) -> Result<(), VerifyError> {
        match self.registry.read(&self.record.id).await? {
            Some(record) if record == self.record => Ok(()),
            _ => Err(VerifyError::Stopped(format!(
                "The record of table {} changed while its items were read, so the findings are void. Run this again",
                self.record.name
            ))),
        }
    }
}
