//! One value of an index's key by itself: gives it another number of shards while clients use the table, without a rule, and without reading the table.
//!
//! **Steps**, each of which every gateway has acknowledged before the next one begins:
//! - the stored forms that the value will have are reserved: gateways refuse them to clients. Then the index is asked whether a client's own value has
//!   such a form;
//! - gateways read the old forms and the new ones, and write the old ones;
//! - they write the new ones, and items are found by Queries of the index under the old forms, and rewritten;
//! - the value has its new shards. One that is back at a single shard leaves the record, where the index holds all of its items.
//!
//! **An index lags behind its table.** Whether something is left in an old form is looked up again after an allowance for that, until nothing is found.
//!
//! A run that was killed is taken over by the next one, whatever number of shards that asks for. Not here: what gateways read and write meanwhile
//! (`heatsink_layout::IndexKey`); whether a value can be resharded ([`prepare`](ValueReshard::prepare)).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::claim::Claim;
use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Record, State};
use heatsink_layout::{OfIndex, Table, ValueLayout, ValueMigration, codec};
use serde::Serialize;
use serde_json::json;

use crate::index_rewrite::{Brought, bring};
use crate::index_value::IndexValue;
use crate::item::{TableContext, value};
use crate::on_record::{self, tag, taken_over, untag};
use crate::types::{AdoptError, Options, Phase, Progress};
use crate::walk::Walk;

mod prepare;

pub use prepare::ValueAsked;

/// How long an index may lag behind its table, as is assumed where nothing else is said.
pub const INDEX_DELAY: Duration = Duration::from_secs(10);

/// How often the index is walked for what is left before the run gives up: some writer bypasses the gateways.
const WALKS: usize = 60;

/// A reshard of a value that is possible.
pub struct ValueReshard {
    pub(crate) registry: Registry,
    pub(crate) changer: Changer,
    pub(crate) described: Described,
    pub(crate) record: Option<Record>,
    pub(crate) index: OfIndex,
    pub(crate) value: Vec<u8>,
    pub(crate) shards: u16,
    /// The index in which its items are found.
    pub(crate) walked: String,
    /// Whether that index has a sort key, so that items without it are not found.
    pub(crate) may_miss: bool,
}

/// What would be rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValuePlan {
    /// Over how many shards it is spread now.
    pub from: u16,
    /// And will be.
    pub to: u16,
    /// Its items in the index.
    pub items: u64,
    /// How many of them change their shard.
    pub to_rewrite: u64,
    /// Items that have the attribute and not the index's sort key keep their form, and requests look for several forms for good.
    pub keeps_former_forms: bool,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ValueReport {
    /// The table.
    pub table: String,
    /// The index.
    pub index: String,
    /// Over how many shards the value was spread.
    pub from: u16,
    /// And is now.
    pub to: u16,
    /// Items that this run rewrote.
    pub rewritten: u64,
}

impl ValueReshard {
    fn table(&self) -> &str {
        &self.described.schema.name
    }

    /// What is on record of the value; one shard, if nothing is.
    fn on_record(&self, record: Option<&Record>) -> ValueLayout {
        let known = record.and_then(|record| record.values.iter().find(|one| self.is_of(one)));
        // The index that is named now: another one may have come in the place of the first.
        let known = known.cloned().map(|one| ValueLayout { index: self.index.clone(), ..one });
        known.unwrap_or_else(|| ValueLayout {
            index: self.index.clone(),
            value: self.value.clone(),
            shards: 1,
            migration: None,
            former: Vec::new(),
            reserved: 1,
        })
    }

    fn is_of(&self, layout: &ValueLayout) -> bool {
        layout.index.attribute == self.index.attribute && layout.value == self.value
    }

    /// Whether nothing is to be done.
    pub fn is_done(&self) -> bool {
        self.is_at_rest(self.record.as_ref())
    }

    fn is_at_rest(&self, record: Option<&Record>) -> bool {
        let layout = self.on_record(record);
        let is_listed = record.is_some_and(|record| record.values.iter().any(|one| self.is_of(one)));
        layout.migration.is_none() && layout.shards == self.shards && (!is_listed || !is_trivial(&layout))
    }

    /// Whether an earlier run was interrupted.
    pub fn is_resumed(&self) -> bool {
        self.on_record(self.record.as_ref()).migration.is_some()
    }

    /// Reads the value's items in the index, and says what would be rewritten. Changes nothing.
    ///
    /// # Errors
    /// [`AdoptError::Failed`] if a client's own value is in the way.
    pub fn plan<'p>(&'p self, progress: &'p dyn Progress) -> BoxFuture<'p, Result<ValuePlan, AdoptError>> {
        async move {
            let layout = self.on_record(self.record.as_ref());
            self.free(&layout).await?;
            progress.phase(Phase::Looking, None);
            let migration = ValueMigration { to: self.shards, writes_new: true, run: 0 };
            let after = ValueLayout {
                migration: Some(migration),
                reserved: layout.reserved.max(self.shards),
                ..layout.clone()
            };
            let context = self.context(self.record.as_ref(), &after).await?;
            let (mut items, mut to_rewrite) = (0, 0);
            for shard in 0..layout.extent() {
                let mut walk = self.items(shard, None);
                while let Some(page) = walk.page().await? {
                    for item in &page {
                        let found = context.index_values(item)?;
                        let moves = |found: &IndexValue<'_>| found.new.as_ref() != Ok(&found.stored);
                        to_rewrite +=
                            u64::from(found.iter().any(|found| self.is_value(found) && moves(found)));
                        items += 1;
                        progress.passed(1);
                    }
                }
            }
            Ok(ValuePlan {
                from: layout.shards,
                to: self.shards,
                items,
                to_rewrite,
                keeps_former_forms: self.may_miss,
            })
        }
        .boxed()
    }

    fn is_value(&self, found: &IndexValue<'_>) -> bool {
        found.key.attribute() == &self.index.attribute && found.key.logical(&found.stored) == self.value
    }

    /// Carries it out. `delay`: how long an index may lag behind its table. Can be interrupted anywhere and run again.
    ///
    /// # Errors
    /// [`AdoptError::Failed`] if a client's own value has a form that the value would get, or items cannot be rewritten; the message says how to go on.
    pub fn run<'p>(
        self,
        options: Options,
        delay: Duration,
        progress: &'p dyn Progress,
    ) -> BoxFuture<'p, Result<ValueReport, AdoptError>> {
        async move {
            let this = ValueReshard { changer: self.changer.exclusively(options.exclusive), ..self };
            let from = this.on_record(this.record.as_ref()).shards;
            let mut rewritten = 0;
            if !this.is_done() {
                if this.changer.begin().await.is_err() {
                    progress.phase(Phase::Settling, None);
                    this.changer.begin_patiently().await?;
                }
                let run = Run { this: &this, options, delay, progress };
                let mut record = this.record.clone();
                while !this.is_at_rest(record.as_ref()) {
                    record = run.step(record, &mut rewritten).await?;
                }
            }
            Ok(ValueReport {
                table: this.table().to_owned(),
                index: this.index.name.clone(),
                from,
                to: this.shards,
                rewritten,
            })
        }
        .boxed()
    }

    /// Whether no client's own value has a form that the value would get.
    async fn free(&self, layout: &ValueLayout) -> Result<(), AdoptError> {
        for shard in layout.extent()..self.shards {
            let own = plain(&self.value, shard);
            let found = self.items(shard, Some(1)).page().await?;
            let is_own = |one: &ValueLayout| one.value == own && one.index.attribute == self.index.attribute;
            let listed = |record: &Record| record.values.iter().any(is_own);
            if found.is_some_and(|page| !page.is_empty()) || self.record.as_ref().is_some_and(listed) {
                let own = String::from_utf8_lossy(&own).into_owned();
                return Err(AdoptError::Failed(format!(
                    "Clients use the value {own:?} of {}, which is what {:?} would be stored as in shard {shard}. Change it in these items, or ask for at most \
                     {shard} shards. Nothing was rewritten",
                    self.index.attribute.name,
                    String::from_utf8_lossy(&self.value),
                )));
            }
        }
        Ok(())
    }

    /// The items that the index shows in a shard, so many at once.
    fn items(&self, shard: u16, limit: Option<u64>) -> Walk<'_> {
        let (attribute, key) = (&self.index.attribute, &self.described.schema.key);
        let mut request = json!({
            "TableName": self.table(), "IndexName": self.walked, "KeyConditionExpression": "#a = :v",
            "ExpressionAttributeNames": { "#a": attribute.name, "#p": key.partition.name },
            "ExpressionAttributeValues": { ":v": value(&plain(&self.value, shard), attribute.key_type) },
            "ProjectionExpression": "#a, #p",
        });
        if let Some(sort) = &key.sort {
            request["ExpressionAttributeNames"]["#s"] = json!(sort.name);
            request["ProjectionExpression"] = json!("#a, #p, #s");
        }
        if let Some(limit) = limit {
            request["Limit"] = json!(limit);
        }
        Walk::of_query(&self.registry, self.table(), request)
    }

    /// The table as it is laid out with that layout of the value.
    async fn context(
        &self,
        record: Option<&Record>,
        layout: &ValueLayout,
    ) -> Result<TableContext, AdoptError> {
        let schema = self.described.schema.clone();
        let Some(record) = record else {
            let table = Table::new(schema, Arc::default()).with_value_layouts(std::slice::from_ref(layout));
            return Ok(TableContext { table: Arc::new(table) });
        };
        let mut values = record.values.clone();
        values.retain(|one| !self.is_of(one));
        values.push(layout.clone());
        let keys = self.registry.key_layouts(record, None).await?;
        let table = Table::new(schema, Arc::new(record.layouts.clone()));
        Ok(TableContext { table: Arc::new(table.with_value_layouts(&values).with_key_layouts(keys)) })
    }
}

/// Whether a layout says no more than none would.
fn is_trivial(layout: &ValueLayout) -> bool {
    layout.migration.is_none() && layout.extent() == 1
}

/// A value as it is stored in a shard, where nothing is escaped.
fn plain(value: &[u8], shard: u16) -> Vec<u8> {
    [value, codec::plain_suffix(shard).as_bytes()].concat()
}

/// A run under way.
struct Run<'a> {
    this: &'a ValueReshard,
    options: Options,
    delay: Duration,
    progress: &'a dyn Progress,
}

impl Run<'_> {
    /// Takes the value one step further: the record after it, if one is left.
    async fn step(&self, record: Option<Record>, rewritten: &mut u64) -> Result<Option<Record>, AdoptError> {
        let this = self.this;
        let layout = this.on_record(record.as_ref());
        let run = this.registry.env().random();
        let Some(migration) = layout.migration else {
            if layout.shards == this.shards {
                // Clients are refused its former forms for as long as a gateway reads them: until all know that it has one shard.
                let Some(record) = record else { return Ok(None) };
                self.settle(&record).await?;
                return self.write(Some(&record), None).await;
            }
            let record = self.reserve(record, layout).await?;
            let layout = this.on_record(Some(&record));
            let migration = ValueMigration { to: this.shards, writes_new: false, run };
            return self
                .write(Some(&record), Some(ValueLayout { migration: Some(migration), ..layout }))
                .await;
        };
        let Some(record) = record else { return Ok(None) };
        if !migration.writes_new {
            if migration.to != this.shards {
                // Nothing has the new form yet.
                let layout = ValueLayout { migration: None, ..layout };
                return self.write(Some(&record), Some(layout)).await;
            }
            self.settle(&record).await?;
            let migration = ValueMigration { writes_new: true, run, ..migration };
            return self
                .write(Some(&record), Some(ValueLayout { migration: Some(migration), ..layout }))
                .await;
        }
        // Its own number, so that a run that was taken over stops.
        let layout = ValueLayout { migration: Some(ValueMigration { run, ..migration }), ..layout };
        let Some(record) = self.write(Some(&record), Some(layout.clone())).await? else { return Ok(None) };
        let claim = Claim::take(&this.registry, &record, self.options.concurrency).await?;
        self.settle(&record).await?;
        *rewritten += self.rewrite(&claim, &record, &layout).await?;
        claim.end().await?;
        let mut former = layout.former.clone();
        if this.may_miss {
            former.push(layout.shards);
            former.retain(|count| *count != migration.to);
            former.sort_unstable();
            former.dedup();
        } else {
            former.clear();
        }
        let layout = ValueLayout { shards: migration.to, migration: None, former, ..layout };
        let record = self.write(Some(&record), Some(layout)).await?;
        if let Some(record) = &record {
            this.changer.make_known(&record.name, record.version).await?;
        }
        Ok(record)
    }

    /// Reserves the forms that the value will have, and looks whether clients use them.
    async fn reserve(&self, record: Option<Record>, layout: ValueLayout) -> Result<Record, AdoptError> {
        let this = self.this;
        // Before anything is written.
        this.free(&layout).await?;
        let reserved = layout.reserved.max(this.shards);
        let wanted = ValueLayout { reserved, ..layout.clone() };
        let written = match &record {
            Some(record) if record.values.contains(&wanted) => Some(record.clone()),
            record => self.write(record.as_ref(), Some(wanted)).await?,
        };
        let Some(record) = written else { return Err(taken_over(this.table())) };
        self.settle(&record).await?;
        this.registry.env().sleep(self.delay).await;
        if let Err(used) = this.free(&layout).await {
            let layout = ValueLayout { reserved: layout.extent(), ..layout };
            let kept = Some(layout).filter(|layout| !is_trivial(layout));
            let record = self.write(Some(&record), kept).await?;
            if let Some(record) = record {
                this.changer.make_known(&record.name, record.version).await?;
            }
            return Err(used);
        }
        Ok(record)
    }

    /// Waits until every gateway follows the record, and no request planned before is in flight.
    async fn settle(&self, record: &Record) -> Result<(), AdoptError> {
        self.progress.phase(Phase::Settling, None);
        self.this.changer.announce(&record.name, record.version).await?;
        Ok(())
    }

    /// Writes the layout of the value to the record, or takes it off. Returns the record, if anything is left on it.
    async fn write(
        &self,
        record: Option<&Record>,
        layout: Option<ValueLayout>,
    ) -> Result<Option<Record>, AdoptError> {
        let this = self.this;
        let Some(before) = record else {
            let Some(layout) = layout else { return Ok(None) };
            let first = this.registry.first_record(&this.described, Default::default(), true);
            let first = Record { values: vec![layout], ..first };
            on_record::begin(&this.registry, &first).await?;
            tag(&this.registry, &this.described).await;
            return Ok(Some(first));
        };
        let mut values = before.values.clone();
        values.retain(|one| !this.is_of(one));
        values.extend(layout);
        let after = Record { values, adopted: true, ..before.clone() };
        if !after.is_empty() {
            return on_record::write(&this.registry, &after, State::Active).await.map(Some);
        }
        if !this.registry.remove(before).await? {
            return Err(taken_over(this.table()));
        }
        untag(&this.registry, &this.described).await;
        this.changer.make_known(&before.name, before.version + 1).await?;
        Ok(None)
    }

    /// Rewrites all items that the index shows in an old form, until it shows none for so long as it may lag. Returns their number.
    async fn rewrite(&self, claim: &Claim, record: &Record, layout: &ValueLayout) -> Result<u64, AdoptError> {
        let this = self.this;
        let context = this.context(Some(record), layout).await?;
        let old = layout.former.iter().copied().fold(layout.shards, u16::max);
        let mut all = 0;
        for walks in 0..WALKS {
            self.progress.phase(if walks == 0 { Phase::Moving } else { Phase::Verifying }, None);
            let (mut rewritten, stale) = (0, AtomicBool::new(false));
            for shard in 0..old {
                let walk = this.items(shard, None);
                rewritten += walk
                    .change_each(record, self.options.concurrency, self.progress, |item| {
                        let (context, stale) = (&context, &stale);
                        async move {
                            let mut brought = Brought::InForm;
                            for found in
                                context.index_values(&item)?.iter().filter(|found| this.is_value(found))
                            {
                                brought = bring(claim, context, &item, found).await?;
                            }
                            stale.fetch_or(brought == Brought::Changed, Ordering::Relaxed);
                            Ok(brought == Brought::Done)
                        }
                    })
                    .await?;
            }
            all += rewritten;
            // Rows that were not as the index showed them any more count too.
            if walks > 0 && rewritten == 0 && !stale.into_inner() {
                return Ok(all);
            }
            this.registry.env().sleep(self.delay).await;
        }
        Err(AdoptError::Failed(format!(
            "Items with an old form of {:?} keep appearing in the index {} of table {}: another writer bypasses the gateways, or the index lags by more than \
             {} s. Stop that and run this again",
            String::from_utf8_lossy(&this.value),
            this.walked,
            this.table(),
            self.delay.as_secs(),
        )))
    }
}
