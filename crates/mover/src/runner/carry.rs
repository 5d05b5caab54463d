//! Carries one intent out: claims it, runs the reshard, and writes meanwhile how far it is and reads what the operator wants now.

use std::pin::pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::{Either, select};
use heatsink_control::reshard_intent::{Carrier, Ended, EndedAs, ReshardIntent};
use heatsink_dynamo::{Code, Error};
use metrics::{counter, gauge};

use super::Runner;
use super::shown::Shown;
use super::tap::Tap;
use crate::error::ReshardError;
use crate::prepare::Options;
use crate::progress::Report;
use crate::reshard::Reshard;
use crate::steps::NewestStep;
use crate::table::TableContext;
use crate::wanted::never_narrower;

/// The pause between two pages of the count of a key's items, which is for people.
const COUNTING: Duration = Duration::from_millis(200);

/// How often a run looks whether its gateway stops.
const GLANCE: Duration = Duration::from_millis(100);

/// Marks a run as over, however it ends.
struct Over(Arc<Shown>);

impl Over {
    fn begin(shown: Arc<Shown>) -> Self {
        gauge!("heatsink_reshards_running").increment(1.0);
        Over(shown)
    }
}

impl Drop for Over {
    fn drop(&mut self) {
        gauge!("heatsink_reshards_running").decrement(1.0);
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// What came of a run.
enum Came {
    Ended(EndedAs, String),
    /// It goes on later, here or elsewhere.
    Later(Option<String>),
}

/// An intent that this gateway carries out, as it was last written.
struct Held {
    intent: ReshardIntent,
    run: u64,
    /// How many items earlier carriers have moved.
    before: u64,
}

impl Held {
    fn is_in(&self, found: &ReshardIntent) -> bool {
        found.carrier.as_ref().is_some_and(|carrier| carrier.run == self.run)
    }
}

impl Runner {
    /// Carries an intent out, unless another gateway is first.
    pub(super) async fn carry(&self, intent: ReshardIntent, shown: Arc<Shown>) {
        let _over = Over::begin(Arc::clone(&shown));
        let (table, key) = (intent.table.clone(), intent.key_text());
        let mut held = match self.claim(&intent).await {
            Ok(Some(held)) => held,
            Ok(None) => return,
            Err(error) => return tracing::debug!(table, key, "a reshard could not be taken: {error}"),
        };
        tracing::info!(table, key, shards = intent.request.layout.shards, "takes a reshard");
        shown.steer(&held.intent);
        shown.moving.store(intent.begun, Ordering::Relaxed);
        let tap = Tap::new(Arc::clone(&self.store), self.control.clone());
        let came = {
            let asked = held.intent.clone();
            let mut work = pin!(self.work(&asked, intent.progress.hindered.as_ref(), &tap, &shown));
            let beats = pin!(self.beats(&mut held, &shown));
            match select(&mut work, beats).await {
                Either::Left((Came::Later(_), _)) if self.stops() => Some(Came::Later(None)),
                Either::Left((came, _)) => Some(came),
                Either::Right((lost, _)) => {
                    // Between two calls: none is begun any more, and those under way end.
                    tap.shut();
                    let _ = select(work, pin!(tap.idle())).await;
                    (!lost).then_some(Came::Later(None))
                }
            }
        };
        let Some(came) = came else {
            return tracing::warn!(
                table,
                key,
                "another gateway has taken the reshard over, or its intent is gone"
            );
        };
        let outcome = match &came {
            Came::Ended(EndedAs::Moved, _) => "moved",
            Came::Ended(EndedAs::Cancelled, _) => "cancelled",
            Came::Ended(EndedAs::Stopped, _) => "stopped",
            Came::Later(_) => "given_back",
        };
        counter!("heatsink_reshards_total", "outcome" => outcome).increment(1);
        match &came {
            Came::Ended(EndedAs::Stopped, text) => tracing::warn!(table, key, "a reshard stopped: {text}"),
            Came::Ended(_, text) => tracing::info!(table, key, "a reshard ended: {text}"),
            Came::Later(Some(text)) => tracing::warn!(table, key, "a reshard is tried again later: {text}"),
            Came::Later(None) => tracing::info!(table, key, "gives a reshard back"),
        }
        if let Err(error) = self.give_back(held, &shown, came).await {
            // Others notice that it does not change any more.
            tracing::warn!(table, key, "what came of a reshard could not be written: {error}");
        }
    }

    /// Whether this gateway carries nothing out any more, or for now.
    fn stops(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) || !self.control.has_lease()
    }

    async fn claim(&self, intent: &ReshardIntent) -> Result<Option<Held>, Error> {
        let (gateway, name) = self.control.identity();
        let run = self.registry.env().random();
        let carrier = Carrier { run, gateway: gateway.to_owned(), name: name.to_owned() };
        let mut next = intent.next();
        next.carrier = Some(carrier);
        next.begun = true;
        next.progress.hindered = None;
        let claimed = self.registry.write_intent(Some(intent), &next).await?;
        Ok(claimed.then_some(Held { before: next.progress.moved, intent: next, run }))
    }

    /// Writes how far it is, and takes what the operator wants. Returns whether the intent is another's now, or when this gateway stops.
    async fn beats(&self, held: &mut Held, shown: &Shown) -> bool {
        let mut moved = 0;
        loop {
            let env = self.registry.env();
            let begun = env.now();
            while env.now().since(begun) < self.pace.beat {
                env.sleep(self.pace.beat.min(GLANCE)).await;
                if self.stops() {
                    return false;
                }
            }
            let mut next = held.intent.next();
            let all = shown.moved.load(Ordering::Relaxed);
            let millis = u64::try_from(env.now().since(begun).as_millis()).unwrap_or(u64::MAX);
            report(&mut next, shown, held.before);
            next.progress.per_second = all.saturating_sub(moved) * 1_000 / millis.max(1);
            moved = all;
            match self.write(held, next).await {
                Ok(true) => shown.steer(&held.intent),
                Ok(false) => return true,
                Err(error) => tracing::debug!("how far a reshard is could not be written: {error}"),
            }
        }
    }

    /// Writes what this gateway says of an intent, beside what the operator may have said meanwhile. `false` if it is not this gateway's any more.
    async fn write(&self, held: &mut Held, mut next: ReshardIntent) -> Result<bool, Error> {
        loop {
            if self.registry.write_intent(Some(&held.intent), &next).await? {
                held.intent = next;
                return Ok(true);
            }
            let intent = &held.intent;
            let found = self.registry.intent(&intent.table_id, &intent.key, intent.key_type).await?;
            let Some(found) = found.filter(|found| held.is_in(found)) else { return Ok(false) };
            // Only the operator writes beside a carrier, and only these.
            let (paused, cancelled) = (found.paused, found.cancelled && next.cancelled == intent.cancelled);
            next = ReshardIntent { paused, cancelled, version: found.version + 1, ..next };
            held.intent = found;
        }
    }

    async fn give_back(&self, mut held: Held, shown: &Shown, came: Came) -> Result<(), Error> {
        let mut next = held.intent.next();
        report(&mut next, shown, held.before);
        next.carrier = None;
        next.begun = shown.is_moving();
        next.progress.per_second = 0;
        match came {
            Came::Later(hindered) => next.progress.hindered = hindered,
            Came::Ended(how, text) => {
                let at = self.registry.env().unix_millis();
                next.ended = Some(Ended { how, text, at });
            }
        }
        self.write(&mut held, next).await.map(drop)
    }

    async fn work(
        &self,
        intent: &ReshardIntent,
        hindered: Option<&String>,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Came {
        let came = self.reshard(intent, tap, shown).await;
        let later = |text: &str| Came::Later(Some(text.to_owned()));
        match came {
            Ok(None) => Came::Later(None),
            Ok(Some(report)) => {
                // By gateways before this one, too.
                let moved = intent.progress.moved + report.moved;
                let text = match &report.step {
                    Some(step) => format!("the key has {} shards {step}", report.to),
                    None => format!("the key has {} shards, and {moved} items were moved", report.to),
                };
                Came::Ended(EndedAs::Moved, text)
            }
            Err(ReshardError::Cancelled(text)) => Came::Ended(EndedAs::Cancelled, text),
            Err(ReshardError::Stopped(text)) => Came::Ended(EndedAs::Stopped, text),
            Err(ReshardError::Busy(text)) => later(&text),
            // Nobody is left alone on the way: in some phases writes wait.
            Err(ReshardError::Store(error)) if shown.is_moving() => later(&again(&error)),
            Err(error) if shown.is_moving() => later(&error.to_string()),
            // The same again is no outage: items of the registry cannot be read.
            Err(ReshardError::Store(error))
                if error.retryable()
                    && (error.code != Code::InternalServerError || hindered != Some(&again(&error))) =>
            {
                later(&again(&error))
            }
            Err(error) => Came::Ended(EndedAs::Stopped, error.to_string()),
        }
    }

    /// Runs the reshard; `None` if it may not begin now.
    async fn reshard(
        &self,
        intent: &ReshardIntent,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Result<Option<Report>, ReshardError> {
        let store: Arc<Tap> = Arc::clone(tap);
        let env = Arc::clone(self.registry.env());
        let rules = self.control.rules();
        let gone = |what: &str| {
            shown.moving.store(false, Ordering::Relaxed);
            ReshardError::Stopped(format!(
                "Table {} {what}, so there is nothing to move. `heatsink reshard cancel` removes this intent",
                intent.table
            ))
        };
        match self.registry.describe(&intent.table).await? {
            None => return Err(gone("does not exist any more")),
            Some(described) if described.schema.id != intent.table_id => {
                return Err(gone("was deleted and created again"));
            }
            Some(_) => {}
        }
        let confirmed = intent.request.streams_confirmed;
        let context = TableContext::read(store, env, rules, &intent.table, confirmed).await?;
        let record = context.record(&intent.key);
        let moves = record.and_then(|record| record.moves.as_ref());
        let unsettled = moves.is_some() || record.is_some_and(|record| !record.settled);
        shown.moving.store(unsettled, Ordering::Relaxed);
        *shown.phase.lock().unwrap_or_else(PoisonError::into_inner) = moves.map(|moves| moves.phase);
        let reshard: Reshard = context.reshard(&intent.key, &intent.request.layout)?.within(&self.control);
        if reshard.is_done() {
            let shards = intent.request.layout.shards;
            let (table, key) = (intent.table.clone(), intent.key_text());
            let step = record.and_then(|record| NewestStep::of(&record.layout));
            return Ok(Some(Report { table, key, from: shards, to: shards, moved: 0, step }));
        }
        if moves.is_none() && intent.paused && !intent.cancelled {
            shown.moving.store(false, Ordering::Relaxed);
            return Ok(None);
        }
        context.alone(&intent.key)?;
        let counting = reshard.counting(COUNTING);
        let options = Options { exclusive: false, rate: intent.request.rate };
        let running = pin!(reshard.run_steered(options, &shown.steering, &**shown));
        match select(running, pin!(counting)).await {
            Either::Left((report, _)) => report.map(Some),
            Either::Right((counted, running)) => {
                *shown.to_move.lock().unwrap_or_else(PoisonError::into_inner) = counted.ok();
                running.await.map(Some)
            }
        }
    }
}

fn again(error: &Error) -> String {
    format!("The store failed: {error}")
}

/// What this gateway knows of how far it is.
fn report(next: &mut ReshardIntent, shown: &Shown, before: u64) {
    let progress = &mut next.progress;
    progress.phase = *shown.phase.lock().unwrap_or_else(PoisonError::into_inner);
    progress.moved = before + shown.moved.load(Ordering::Relaxed);
    let counted = *shown.to_move.lock().unwrap_or_else(PoisonError::into_inner);
    // Clients write new items meanwhile, which move too.
    let to_move = progress.to_move.or(counted.map(|counted| before + counted));
    progress.to_move = to_move.map(|all| all.max(progress.moved));
    if next.cancelled && shown.steering.is_too_late() {
        next.cancelled = false;
        let back = match &next.request.layout.counter {
            Some(attributes) => never_narrower(attributes),
            None => "The way back is a second reshard".to_owned(),
        };
        progress.hindered =
            Some(format!("It was cancelled after the point of no return, and goes on. {back}"));
    }
}
