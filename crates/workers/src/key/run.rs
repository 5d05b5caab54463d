//! Does what a coordinator says, until it rests.

use std::pin::pin;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use heatsink_control::claim::{self, Claim};
use heatsink_control::reshard_intent::Steering;
use heatsink_control::{Awaits, KeyRecord, Record, tags};
use heatsink_layout::{Layout, Moving, Phase};
use heatsink_reshard::{Coordinator, Do, Outcome, Rules, Seen, State};

use crate::error::WorkerError;
use crate::key::mover::{PARALLEL, Work};
use crate::key::prepare::ReshardOptions;
use crate::key::protocol;
use crate::key::report::ReshardReport;
use crate::key::reshard::Reshard;
use crate::key::steps::{NewestStep, is_due};
use crate::key::survey::{self, Found, clear};
use crate::key::wanted::same;
use crate::on_record;
use crate::progress::Progress;

/// How often a record is written again that met another transaction, and the first pause before
/// that.
const ATTEMPTS: u32 = 20;
const AGAIN: Duration = Duration::from_millis(20);

/// How often a run that waits looks whether layouts are still frozen.
const FROZEN_LOOK: Duration = Duration::from_millis(500);

/// One run.
struct Run<'a> {
    reshard: &'a Reshard,
    /// The layout that the key gets. Of a key with buckets the first one with another number of
    /// shards is chosen when the change begins.
    to: Layout,
    options: ReshardOptions,
    steering: &'a Steering,
    progress: &'a dyn Progress,
    /// The records as they were last read or written.
    table: Record,
    record: Option<KeyRecord>,
    found: Found,
    moved: u64,
    claim: Option<Claim>,
    cancelling: bool,
    named: Vec<String>,
}

impl Reshard {
    /// Carries the reshard out, or goes on with it. Can be killed anywhere and run again.
    ///
    /// # Errors
    /// [`WorkerError::Stopped`] with what to do next; the store's.
    pub async fn run(
        self,
        options: ReshardOptions,
        progress: &dyn Progress,
    ) -> Result<ReshardReport, WorkerError> {
        self.run_steered(options, &Steering::default(), progress).await
    }

    /// [`run`](Self::run) that can be paused and cancelled.
    ///
    /// # Errors
    /// As [`run`](Self::run); [`WorkerError::Cancelled`] where the key is as it was.
    pub fn run_steered<'a>(
        mut self,
        options: ReshardOptions,
        steering: &'a Steering,
        progress: &'a dyn Progress,
    ) -> BoxFuture<'a, Result<ReshardReport, WorkerError>> {
        async move {
            self.announcer = self.announcer.exclusively(options.exclusive);
            if !self.is_under_way() {
                if steering.is_cancelled() && !same(&self.from, &self.to) {
                    return Err(self.cancelled());
                }
                self.not_frozen().await?;
                self.announcer.begin().await?;
            }
            let table = self.on_record().await?;
            let run = Run {
                reshard: &self,
                to: self.to.clone(),
                options,
                steering,
                progress,
                table,
                record: self.record.clone(),
                found: Found::default(),
                moved: 0,
                claim: None,
                cancelling: false,
                named: Vec::new(),
            };
            run.go().await
        }
        .boxed()
    }

    /// Whether an earlier run has begun, and something of it is left to do: also while layouts are
    /// frozen.
    fn is_under_way(&self) -> bool {
        self.record.as_ref().is_some_and(|record| record.moves.is_some() || !record.settled)
    }

    async fn not_frozen(&self) -> Result<(), WorkerError> {
        match self.announcer.frozen().await? {
            Some(frozen) => Err(WorkerError::Busy(frozen.to_string())),
            None => Ok(()),
        }
    }

    fn cancelled(&self) -> WorkerError {
        WorkerError::Cancelled(format!(
            "The key {:?} of table {} was not moved: the reshard was cancelled. Everything is as it was",
            self.key.text(),
            self.key.table.name
        ))
    }

    /// The record of the table; written, and known to every gateway, if there was none.
    async fn on_record(&self) -> Result<Record, WorkerError> {
        if let Some(record) = &self.table {
            return Ok(record.clone());
        }
        let first = self.first_record();
        let record = on_record::begin_beside(&self.registry, &first).await?;
        let Some(record) = record else {
            return Err(WorkerError::Busy(format!(
                "Table {} was put on record by another process. Run this again",
                first.name
            )));
        };
        self.announcer.announce(Awaits::Effects, &record.name, record.version).await?;
        // The record holds without the tag too.
        if let Err(error) = tags::claim_now(&self.registry, self.described.arn.as_deref()).await {
            tracing::warn!(table = record.name, "the table could not be tagged with its registry: {error}");
        }
        Ok(record)
    }
}

impl Run<'_> {
    async fn go(mut self) -> Result<ReshardReport, WorkerError> {
        let env = self.reshard.registry.env().clone();
        let straggler = self.reshard.announcer.straggler();
        let record = protocol::read(self.record.as_ref());
        // A coordinator that takes over cannot go back before its own version is on record, and
        // acknowledged.
        let mut may_cancel = false;
        let mut coordinator =
            match Coordinator::take_over(record, self.reshard.change(), straggler, Rules::ALL) {
                Some(coordinator) => coordinator,
                None => match self.begin(straggler).await? {
                    Some(coordinator) => coordinator,
                    None => return Ok(self.report()),
                },
            };
        loop {
            if may_cancel && !self.cancelling && self.is_late() {
                // Writers would soon wait. Back at rest, a later bucket is chosen; from PREPARE on
                // the end is nearer.
                self.cancelling = coordinator.cancel();
            }
            if may_cancel && self.steering.is_cancelled() && !self.cancelling {
                self.cancelling = coordinator.cancel();
                if !self.cancelling {
                    self.steering.comes_too_late();
                }
            }
            if coordinator.goes_on_while_frozen() {
                self.progress.hindered(None);
            } else if self.is_frozen().await? {
                continue;
            }
            let next = coordinator.next();
            let seen = match next {
                Do::Write { record, .. } => self.write(record).await?,
                Do::Acknowledge { .. } => {
                    let (name, version) = (&self.table.name, self.table.version);
                    let awaits = protocol::awaits(coordinator.record().state, self.reshard.change());
                    let clean = self.reshard.announcer.announce(awaits, name, version).await?;
                    Seen::Acknowledged { clean }
                }
                Do::Wait { until } => {
                    let left = until.since(env.now());
                    env.sleep(left).await;
                    Seen::Waited
                }
                Do::Survey => self.survey().await?,
                Do::Clear => {
                    let claim = self.claim(1).await?;
                    clear(&claim, &self.reshard.key, &self.found.orphans).await?;
                    self.claim = Some(claim);
                    Seen::Cleared
                }
                Do::MarkHighWater => self.mark_high_water().await,
                Do::Move => self.move_items().await?,
                Do::EndClaims => {
                    // Where it is another run's, that run loses it.
                    match self.claim.take() {
                        Some(claim) => claim.end().await?,
                        None => self.end_claims().await?,
                    }
                    Seen::ClaimsEnded
                }
                // An earlier move was over but for its last wait: now this one begins.
                Do::Rest(Outcome::Back) if self.found.foreign == 0 => match self.begin(straggler).await? {
                    Some(next) => {
                        coordinator = next;
                        (may_cancel, self.cancelling) = (false, false);
                        continue;
                    }
                    None => return Ok(self.report()),
                },
                Do::Rest(outcome) => return self.rest(outcome),
            };
            coordinator.seen(env.now(), seen);
            // Not between a write of the record and its acknowledgements.
            may_cancel = match next {
                Do::Write { publish, .. } => may_cancel && !publish,
                Do::Acknowledge { .. } => matches!(coordinator.record().state, State::Moving { .. }),
                _ => may_cancel,
            };
        }
    }

    /// A new move, unless the key is where it should be.
    ///
    /// # Errors
    /// [`WorkerError::Cancelled`], if it is to stay where it is.
    async fn begin(&mut self, straggler: Duration) -> Result<Option<Coordinator>, WorkerError> {
        let wanted = !same(self.from(), self.to());
        if wanted && self.steering.is_cancelled() {
            return Err(self.reshard.cancelled());
        }
        if wanted {
            self.reshard.not_frozen().await?;
            self.to = self.reshard.chosen_anew().await?;
        }
        let (record, change) = (protocol::read(self.record.as_ref()), self.reshard.change());
        let begun = Coordinator::begin(record, change, straggler, Rules::ALL);
        Ok(begun.filter(|_| wanted))
    }

    fn from(&self) -> &Layout {
        &self.reshard.from
    }

    fn to(&self) -> &Layout {
        &self.to
    }

    /// Whether a fast clock may soon reach the first bucket that gets another number of shards, and
    /// the change is not yet made.
    fn is_late(&self) -> bool {
        let first = Moving::steps(self.from(), self.to());
        let begun = self.record.as_ref().is_some_and(|record| record.moves.is_some());
        begun && first.is_some_and(|first| is_due(first, self.reshard.registry.env().unix_millis()))
    }

    /// Whether layouts are frozen: asked before a step's record is written, so that nothing is on
    /// record that gateways may not learn of. Then it waits a little.
    async fn is_frozen(&self) -> Result<bool, WorkerError> {
        let frozen = self.reshard.announcer.frozen().await?;
        self.progress.hindered(frozen.map(|frozen| frozen.to_string()));
        if frozen.is_some() {
            self.reshard.registry.env().sleep(FROZEN_LOOK).await;
        }
        Ok(frozen.is_some())
    }

    /// Writes the record of the key, and with it that of the table.
    async fn write(&mut self, next: heatsink_reshard::Record) -> Result<Seen, WorkerError> {
        let registry = &self.reshard.registry;
        let key = &self.reshard.key;
        let whole = || KeyRecord {
            key: key.bytes.clone(),
            key_type: key.key_type(),
            layout: self.reshard.from.clone(),
            moves: None,
            settled: true,
            reserved: self.reshard.from.slot_bound(),
            version: 0,
            changed: 0,
            since: 0,
        };
        let before = self.record.clone().unwrap_or_else(whole);
        // Whoever rewrites a value of an index, and claimed the table before this key began, knows no
        // places to which it moves.
        let goes_on = matches!(next.state, State::Moving { phase, .. } if phase > Phase::Reserve);
        if goes_on && self.table.values.iter().any(|one| one.migration.is_some()) {
            claim::end_of_table(registry, &self.table.id).await?;
        }
        let to = protocol::write(&before, &self.to, &self.found, next, registry.env().unix_millis());
        let mut attempts = 0;
        loop {
            if let Some((table, record)) =
                self.reshard.writes.replace(registry, &self.table, self.record.as_ref(), &to).await?
            {
                self.table = table;
                self.record = Some(record);
                self.progress.state(next.state);
                return Ok(Seen::Written);
            }
            let found = registry.key_record(&self.table.id, &key.bytes, key.key_type()).await?;
            let table = registry.read(&self.table.id).await?;
            match table {
                // Only another key's record was written, or a value of an index, or nothing: the
                // transaction met another one.
                Some(table)
                    if found == self.record
                        && table.state == self.table.state
                        && table.layouts == self.table.layouts
                        && attempts < ATTEMPTS =>
                {
                    self.table = table;
                    attempts += 1;
                    registry.env().sleep(AGAIN * attempts).await;
                }
                _ => return Ok(Seen::Superseded),
            }
        }
    }

    async fn survey(&mut self) -> Result<Seen, WorkerError> {
        let (Reshard { registry, key, from, .. }, to) = (self.reshard, &self.to);
        let moves = self.record.as_ref().and_then(|record| record.moves.as_ref());
        self.found = match Moving::steps(from, to) {
            Some(first) => {
                // A worker of before the change may bring an item into these buckets, by the number
                // that it knows. From here on it writes nothing.
                self.claim = Some(self.claim(1).await?);
                let most = self.record.as_ref().map_or(to.most_shards(), |record| record.reserved);
                survey::buckets(registry, key, from, first, most).await?
            }
            None => {
                let reserved = moves.map_or(from.slot_bound(), |moves| moves.reserved_before);
                survey::survey(registry, key, from, to, reserved).await?
            }
        };
        let facts = self.reshard.writes.facts(registry, &self.table).await?;
        survey::names(&facts, key, to, &mut self.found);
        let orphans = u64::try_from(self.found.orphans.len()).unwrap_or(u64::MAX);
        Ok(Seen::Surveyed { foreign: self.found.foreign, orphans })
    }

    /// Writers wait meanwhile: where it takes long, or fails, readers and writers go on without it.
    async fn mark_high_water(&mut self) -> Seen {
        let Reshard { registry, key, from, .. } = self.reshard;
        let reading = pin!(survey::high_water(registry, key, from, &self.to));
        let within = registry.env().sleep(survey::HIGH_WATER_WITHIN);
        self.found.high_water = match select(reading, within).await {
            Either::Left((found, _)) => found.ok().flatten(),
            Either::Right(_) => None,
        };
        Seen::Marked
    }

    /// A claim on the key, for so many writes at once.
    async fn claim(&self, writes: usize) -> Result<Claim, WorkerError> {
        match &self.record {
            Some(record) => Ok(Claim::take_key(&self.reshard.registry, &self.table, record, writes).await?),
            None => Err(WorkerError::Stopped("The key is not on record, and nothing is moved".to_owned())),
        }
    }

    async fn end_claims(&self) -> Result<(), WorkerError> {
        let Some(record) = &self.record else { return Ok(()) };
        Ok(claim::end_of_key(&self.reshard.registry, &self.table.id, record).await?)
    }

    async fn move_items(&mut self) -> Result<Seen, WorkerError> {
        let share = self.reshard.shares.join(self.options.rate);
        let claim = self.claim(share.parallel(PARALLEL)).await?;
        let Reshard { registry, key, from, to, .. } = self.reshard;
        let (rate, steering, progress) = (self.options.rate, self.steering, self.progress);
        let (claimed, share) = (&claim, &share);
        let change = self.reshard.change();
        let marks =
            self.record.as_ref().and_then(|record| record.moves.as_ref()).is_some_and(|moves| moves.marks);
        let work =
            Work { registry, key, from, to, change, marks, claim: claimed, rate, share, steering, progress };
        let moved = work.run().await?;
        self.moved += moved.items;
        self.named = moved.named.iter().map(ToString::to_string).collect();
        self.claim = Some(claim);
        Ok(Seen::Moved { left: moved.left })
    }

    fn report(&self) -> ReshardReport {
        ReshardReport {
            table: self.table.name.clone(),
            key: self.reshard.key.text(),
            from: self.from().shards,
            to: self.record.as_ref().map_or(self.to(), |record| &record.layout).shards,
            slots: self.record.as_ref().map_or(self.to(), |record| &record.layout).slots().to_vec(),
            split_at: self.record.as_ref().map_or(self.to(), |record| &record.layout).split_points().cloned(),
            moved: self.moved,
            step: self.record.as_ref().and_then(|record| NewestStep::of(&record.layout)),
        }
    }

    /// What the coordinator came to.
    fn rest(self, outcome: Outcome) -> Result<ReshardReport, WorkerError> {
        let (table, key) = (&self.table.name, self.reshard.key.text());
        match outcome {
            Outcome::Moved => Ok(self.report()),
            Outcome::Back => {
                let why = self.found.named.as_deref().unwrap_or_default();
                let text =
                    format!("The key {key:?} of table {table} was not moved: {why}. Everything is as it was");
                Err(if self.found.passing { WorkerError::Busy(text) } else { WorkerError::Stopped(text) })
            }
            Outcome::NotFinished(left) if self.reshard.narrows() => {
                let sort_keys = match self.reshard.key.table.key.sort {
                    Some(_) => format!(", of items with these sort keys: {}", self.named.join(", ")),
                    None => String::new(),
                };
                Err(WorkerError::Stopped(format!(
                    "{left} rows of the counter {key:?} of table {table} stay in the shards that it loses{sort_keys}. Either the sum is no number that one item can \
                     hold: SET it to one. Or another writer has put them there: `heatsink verify {table}` names such rows. The counter works, but reads ask twice. \
                     Then run this again"
                )))
            }
            Outcome::NotFinished(left) => Err(WorkerError::Stopped(format!(
                "{left} items of the key {key:?} of table {table} are too large for a longer key and stay where they are, with these sort keys: {}. The key works, but \
                 reads look in two places. Make them smaller, and run this again",
                self.named.join(", ")
            ))),
            Outcome::Superseded => Err(WorkerError::Busy(format!(
                "Another run of `heatsink reshard` works on the key {key:?} of table {table}"
            ))),
        }
    }
}
