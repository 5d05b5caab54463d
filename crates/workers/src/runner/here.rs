//! Carries an intent out in a command. It is on record as one that a gateway carries out is: others
//! leave it alone while it changes, and a gateway goes on with it where the command was killed.
//!
//! It is on record for that alone. Where nothing is left to do for it, it is taken off: the command
//! itself says what came of it.

use std::sync::Arc;
use std::time::Duration;

use heatsink_control::reshard_intent::{Request, ReshardIntent, Subject};
use heatsink_control::{Changer, Fencing, Rules};
use heatsink_dynamo::{Error, Outcome};
use heatsink_env::Env;
use heatsink_store::Store;

use super::Runner;
use super::came::Came;
use super::choice::place;
use super::held::{Held, Until};
use super::host::Host;
use super::pace::Pace;
use super::shown::Shown;
use crate::error::WorkerError;
use crate::key::report::ReshardReport;
use crate::progress::Progress;

/// Carries intents out in this process, which is no gateway.
pub struct Here {
    runner: Runner,
    changer: Changer,
}

impl Here {
    /// A command of that name for people, over that store. `alone`: no other process uses it.
    pub fn new(store: Arc<dyn Store>, env: Arc<dyn Env>, rules: &Rules, name: &str, alone: bool) -> Self {
        let fencing = Fencing::shared(rules.fence(), "reshard");
        let changer = Changer::beside(Arc::clone(&store), Arc::clone(&env), fencing).exclusively(alone);
        let host = Host::command(rules, name, alone, changer.clone());
        let runner = Runner::of(store, env, host);
        // A file's index does not lag, and nobody else is there.
        let runner = if alone { runner.with_index_delay(Duration::ZERO) } else { runner };
        Here { runner, changer }
    }

    /// The same at another pace.
    #[must_use]
    pub fn at(self, pace: Pace) -> Self {
        Here { runner: self.runner.at(pace), ..self }
    }

    /// Whether nobody carries an open intent out. Where it has a carrier, it takes some seconds to
    /// tell whether that lives.
    ///
    /// # Errors
    /// The store's.
    pub async fn is_left(&self, intent: &ReshardIntent) -> Result<bool, Error> {
        let Runner { registry, host, pace, .. } = &self.runner;
        if host.is_alone() || intent.carrier.is_none() {
            return Ok(true);
        }
        let begun = registry.env().now();
        while registry.env().now().since(begun) < pace.taken_over {
            registry.env().sleep(pace.look).await;
            let found = registry.intent_for(&intent.table_id, intent.subject()).await?;
            if found.as_ref() != Some(intent) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Carries out what is asked for of a key, or of a value, unless another process does.
    ///
    /// # Errors
    /// As [`carry`](Self::carry).
    pub async fn take_up(
        &self,
        (table, subject): ((&str, &str), Subject<'_>),
        request: Request,
        progress: Arc<dyn Progress>,
    ) -> Result<ReshardReport, WorkerError> {
        let before = self.runner.registry.intent_for(table.0, subject).await?;
        if let Some(open) = before.as_ref().filter(|before| before.is_open())
            && !self.is_left(open).await?
        {
            return Err(WorkerError::Busy(format!(
                "Another process carries out the reshard of {} of table {}: run this again once it has ended",
                subject.in_words(),
                table.1
            )));
        }
        self.carry(before.as_ref(), (table, subject), request, progress).await
    }

    /// Carries out what is asked for of a key, or of a value. `before`: the intent on record, which
    /// [nobody carries out](Self::is_left); while it has not ended, that is carried out.
    ///
    /// # Errors
    /// As those of the reshard; [`WorkerError::Busy`] where another process has the intent. Where
    /// the key is on its way the intent stays, for others to go on with.
    pub async fn carry(
        &self,
        before: Option<&ReshardIntent>,
        (table, subject): ((&str, &str), Subject<'_>),
        request: Request,
        progress: Arc<dyn Progress>,
    ) -> Result<ReshardReport, WorkerError> {
        let runner = &self.runner;
        self.changer.make_registry().await?;
        let asked = before.filter(|before| before.is_open());
        let next = match (asked, before) {
            (Some(asked), _) => asked.next(),
            (None, Some(before)) => ReshardIntent {
                version: before.version + 1,
                ..runner.registry.new_intent(table, subject, request)
            },
            (None, None) => runner.registry.new_intent(table, subject, request),
        };
        let elsewhere = || {
            WorkerError::Busy(format!(
                "Another process carries out the reshard of {} of table {}: `heatsink reshard status` says how far it is",
                subject.in_words(),
                table.1
            ))
        };
        let Some(mut held) = runner.claim(before, next).await? else { return Err(elsewhere()) };
        let shown = Arc::new(Shown::new(place(&held.intent)).with(progress));
        shown.set_moving(asked.is_some_and(|asked| asked.begun));
        match runner.work_on(&mut held, &shown).await {
            Until::Worked(worked) => self.after(held, &shown, asked.is_some(), worked).await,
            Until::Stopped | Until::Lost => Err(elsewhere()),
        }
    }

    /// Says on record what came of it. `asked`: somebody had asked for it before this command.
    async fn after(
        &self,
        held: Held,
        shown: &Shown,
        asked: bool,
        worked: Result<Option<ReshardReport>, WorkerError>,
    ) -> Result<ReshardReport, WorkerError> {
        let intent = held.intent.clone();
        let stays = match &worked {
            Ok(None) => true,
            Ok(Some(_)) | Err(WorkerError::Cancelled(_)) => false,
            Err(error) => {
                shown.set_moving(self.is_under_way(&intent, error).await);
                asked || shown.is_moving()
            }
        };
        let told = if stays {
            let came = Came::of(&intent, &worked, None, shown.is_moving());
            self.runner.give_back(held, shown, came).await
        } else {
            self.runner.take_off(held).await
        };
        if let Err(error) = told {
            // Others notice that it does not change any more.
            tracing::warn!("what came of the reshard could not be written: {error}");
        }
        worked?.ok_or_else(|| {
            WorkerError::Stopped(format!(
                "The reshard of {} of table {} is paused: `heatsink reshard resume` lets it begin",
                intent.subject().in_words(),
                intent.table
            ))
        })
    }

    /// Whether a key or a value may be on its way, after a run that ended with that error.
    async fn is_under_way(&self, intent: &ReshardIntent, error: &WorkerError) -> bool {
        if matches!(error, WorkerError::Store(error) if error.outcome == Outcome::Unknown) {
            return true;
        }
        let registry = &self.runner.registry;
        let Some(index) = &intent.index else {
            let record = registry.key_record(&intent.table_id, &intent.key, intent.key_type).await;
            return record.map_or(true, |record| {
                record.is_some_and(|record| record.moves.is_some() || !record.settled)
            });
        };
        registry.read(&intent.table_id).await.map_or(true, |record| {
            let values = record.map(|record| record.values).unwrap_or_default();
            let mut of_index = values.iter().filter(|one| one.index.name == *index);
            of_index.any(|one| one.value == intent.key && one.migration.is_some())
        })
    }
}
