//! How an adoption begins: what is put on record, when the items are counted, and how the table is
//! given back if they cannot be moved.
//!
//! Clients go on while the table is surveyed first, so that one that cannot be adopted is never
//! refused to them. What the run must find at its end is counted later, once every gateway has
//! acknowledged that the table is being adopted.
//!
//! Not here: the passes, and the end (`adoption`).

use heatsink_control::claim::Claim;
use heatsink_control::{AdoptionCheckpoint, Record, State};

use crate::direction::Direction;
use crate::error::WorkerError;
use crate::on_record::{self, tag, untag, write};
use crate::progress::Progress;
use crate::table::adoption::Adoption;
use crate::table::report::AdoptionReport;
use crate::table::survey::{Survey, SurveySummary};

impl Adoption {
    /// Records that this run moves the table: from the start, or from where a run in either
    /// direction was interrupted. Also returns what the survey found, if there was one. Unless
    /// nobody else uses the store, gateways go on until they have acknowledged the record, and the
    /// count comes after that.
    pub(crate) async fn begin(
        &self,
        exclusive: bool,
        progress: &dyn Progress,
    ) -> Result<(Record, AdoptionCheckpoint, SurveySummary), WorkerError> {
        let run = self.registry.env().random();
        if let Some(record) = &self.record
            && let State::Adopting(checkpoint) | State::Returning(checkpoint) = &record.state
        {
            let checkpoint = AdoptionCheckpoint { run, ..checkpoint.clone() };
            return Ok((
                write(&self.registry, record, self.under_way(checkpoint.clone())).await?,
                checkpoint,
                SurveySummary::default(),
            ));
        }
        let survey = self.survey(progress).await?;
        if let Some(why) = self.refusal(&survey) {
            return Err(why);
        }
        let checkpoint = self.checkpoint(&survey, run, exclusive);
        let said = SurveySummary::of(&survey);
        let state = self.under_way(checkpoint.clone());
        if let Some(record) = &self.record {
            return Ok((write(&self.registry, record, state).await?, checkpoint, said));
        }
        let layouts = &**self.context.table.layouts();
        self.registry.make_directory(layouts).await?;
        let record = Record { state, ..self.registry.first_record(&self.described, layouts.clone(), true) };
        on_record::begin(&self.registry, &record).await?;
        tag(&self.registry, &self.described).await;
        Ok((record, checkpoint, said))
    }

    /// Why what a survey found cannot be moved.
    pub(crate) fn refusal(&self, survey: &Survey) -> Option<WorkerError> {
        match &survey.sharded_already {
            Some(why) => Some(WorkerError::Usage(why.clone())),
            None if survey.refused > 0 => {
                Some(WorkerError::Stopped(survey.refusal(&self.context.table.name)))
            }
            None => None,
        }
    }

    pub(crate) fn checkpoint(&self, survey: &Survey, run: u64, counted: bool) -> AdoptionCheckpoint {
        AdoptionCheckpoint {
            depth: if self.direction == Direction::Adopt { survey.deepest } else { 0 },
            deepest: survey.deepest,
            items: survey.items,
            checksum: if counted { survey.checksum.clone() } else { String::new() },
            run,
        }
    }

    /// Ends a run of the other direction that was interrupted before it counted, and so before it
    /// moved anything. `None` if there is none.
    pub(crate) async fn turn_back(&self) -> Result<Option<AdoptionReport>, WorkerError> {
        let Some(record) = &self.record else { return Ok(None) };
        let checkpoint = match &record.state {
            State::Adopting(checkpoint) if self.direction != Direction::Adopt => checkpoint,
            State::Returning(checkpoint) if self.direction == Direction::Adopt => checkpoint,
            _ => return Ok(None),
        };
        if checkpoint.is_counted() {
            return Ok(None);
        }
        Claim::take(&self.registry, record, 1).await?.end().await?;
        self.take_back(record).await?;
        Ok(Some(AdoptionReport {
            table: record.name.clone(),
            direction: self.direction,
            indexes: Vec::new(),
            already: false,
            items: checkpoint.items,
            moved: 0,
            tied: 0,
            recipe: None,
            checksum: String::new(),
        }))
    }

    /// Gives the table back to its clients as it was before a run that has moved nothing. A run
    /// that still goes on finds its record changed, and stops.
    pub(crate) async fn take_back(&self, record: &Record) -> Result<(), WorkerError> {
        match record.state {
            State::Adopting(_) => {
                if !self.registry.remove(record).await? {
                    return Err(self.taken_over());
                }
                untag(&self.registry, &self.described).await;
            }
            _ => drop(write(&self.registry, record, State::Active).await?),
        }
        Ok(self.changer.make_known(&record.name, record.version + 1).await?)
    }
}
