//! Live adoption: all keys of a table get other layouts while clients use it. Its keys are put on
//! record as they lie; then the layouts of the table change for all keys that have no record; then
//! those on record are moved one by one, by whoever carries reshards out.
//!
//! What comes next says a [`TableCoordinator`]. A run can be killed anywhere: the next one goes on
//! with the phase on record.
//!
//! - `prepare`: whether a table can be adopted so. `listing`: which keys it has, and which of them
//!   have to move. `former`: what a run before it asked for. `write`: what is put on record. `end`:
//!   what is taken off it.
//!
//! Not here: moving a key (`key`), adopting a table while nobody uses it (`adoption`), keys of
//! indexes (`index_migration`), the command line.

mod end;
mod former;
mod here;
mod layouts;
mod listing;
mod prepare;
mod survey;
mod write;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{Awaits, Changer, Record, State, TableChange, TableLayouts};
use heatsink_reshard::{TableCoordinator, TableDo, TablePhase, TableSeen};

pub use self::layouts::KeyWish;
use self::layouts::{Layouts, percent};
pub use self::prepare::{NotLive, PreparedLive};
pub use self::survey::LiveSurvey;
use crate::error::WorkerError;
use crate::progress::{Phase, Progress};

/// A prepared live adoption.
pub struct LiveAdoption {
    registry: Registry,
    changer: Changer,
    described: Described,
    record: Option<Record>,
    /// The layouts that the table's own keys get.
    to: TableLayouts,
    /// Keys whose hash is above this share of all hashes stay for a later run: 1 to 100 percent.
    up_to: u8,
    coordinator: TableCoordinator,
    listed: Vec<KeyWish>,
    kept: usize,
}

/// What came of a run.
#[derive(Debug)]
pub enum LiveNext {
    /// These keys have to be moved. Once that is done, [`LiveAdoption::next`] goes on.
    Move(Vec<KeyWish>),
    /// The keys up to the share that was asked for have moved. The table goes on as it is, and a
    /// later run takes the rest.
    UpTo,
    /// All is done.
    Done,
}

impl LiveAdoption {
    /// Does all that comes before keys have to be moved, or the end.
    ///
    /// # Errors
    /// [`WorkerError`] that says what to do. Run again, it goes on.
    pub fn next<'a>(
        &'a mut self,
        progress: &'a dyn Progress,
    ) -> BoxFuture<'a, Result<LiveNext, WorkerError>> {
        async move {
            match self.coordinator.next() {
                TableDo::Move => self.coordinator.seen(TableSeen::Done),
                TableDo::Write(TablePhase::Enter) => self.changer.begin_patiently().await?,
                _ => {}
            }
            loop {
                let seen = match self.coordinator.next() {
                    TableDo::Write(phase) => {
                        progress.phase(Phase::Settling, None);
                        self.write_phase(phase).await?;
                        progress.table(phase);
                        TableSeen::Done
                    }
                    TableDo::Acknowledge(phase) => {
                        self.acknowledge(phase).await?;
                        TableSeen::Done
                    }
                    TableDo::RecordAll => {
                        self.record_all(progress).await?;
                        TableSeen::Done
                    }
                    TableDo::RecordEntered => {
                        self.record_entered().await?;
                        TableSeen::Done
                    }
                    TableDo::List => {
                        self.listed = self.list().await?;
                        let all = self.listed.len();
                        self.listed.retain(|one| percent(&one.key) < self.up_to);
                        if self.listed.is_empty() && all > 0 {
                            return Ok(LiveNext::UpTo);
                        }
                        TableSeen::Listed(self.listed.len())
                    }
                    TableDo::Move => return Ok(LiveNext::Move(std::mem::take(&mut self.listed))),
                    TableDo::End => {
                        self.end().await?;
                        return Ok(LiveNext::Done);
                    }
                };
                self.coordinator.seen(seen);
            }
        }
        .boxed()
    }

    /// The table's name.
    pub fn table(&self) -> &str {
        &self.described.schema.name
    }

    /// The layouts that its keys get, as text.
    pub fn layouts(&self) -> String {
        match self.to.is_empty() {
            true => "every key under its own name".to_owned(),
            false => self.to.to_string(),
        }
    }

    /// How many keys have layouts of their own, which they keep, once all is done.
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// Whether its own keys are whole, and keys of its indexes are spread by rules.
    pub fn is_back_but_for_indexes(&self) -> bool {
        let spread = |record: &Record| !record.layouts.attributes().is_empty();
        self.to.is_empty() && self.record.as_ref().is_some_and(spread)
    }

    /// How far an earlier run has come; `None` for one that begins, also where it turns another one
    /// round.
    pub fn phase(&self) -> Option<TablePhase> {
        self.coordinator.phase()
    }

    /// Every step lets no client wait but HOLD and TURN, in which first writes of keys do. Requests
    /// of those are planned under short leases, from PREPARE on.
    async fn acknowledge(&self, phase: TablePhase) -> Result<(), WorkerError> {
        let record = self.on_record()?;
        let awaits = match phase {
            TablePhase::Hold | TablePhase::Turn => Awaits::ResultsUnderShortLease,
            TablePhase::Enter | TablePhase::Prepare | TablePhase::Rest => Awaits::Effects,
        };
        self.changer.announce_awaiting(awaits, &record.name, record.version).await?;
        Ok(())
    }

    fn on_record(&self) -> Result<&Record, WorkerError> {
        self.record.as_ref().ok_or_else(|| WorkerError::Stopped("The table is not on record".to_owned()))
    }

    fn change(&self) -> Result<(&Record, &TableChange), WorkerError> {
        let record = self.on_record()?;
        match &record.state {
            State::ChangingKeys(change) => Ok((record, change)),
            _ => Err(crate::on_record::taken_over(&record.name)),
        }
    }

    /// The layouts of before and after.
    fn all_layouts(&self) -> Result<Layouts, WorkerError> {
        let (record, change) = self.change()?;
        let (from, to) = change.from_and_to(&record.layouts);
        Ok(Layouts { from: from.own(), to: to.own() })
    }
}
