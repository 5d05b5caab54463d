//! An intent that this process carries out: claimed, and changed every second to say how far it is.
//! That it changes shows others that somebody carries it out.
//!
//! Not here: what is done for it (`work`), what becomes of it in the end (`carry`, `here`).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{Either, select};
use heatsink_control::reshard_intent::{Ended, ReshardIntent};
use heatsink_dynamo::Error;

use super::Runner;
use super::came::Came;
use super::shown::{Shown, report};
use super::tap::Tap;
use crate::error::WorkerError;
use crate::key::report::ReshardReport;

/// How often a run looks whether its gateway stops.
const GLANCE: Duration = Duration::from_millis(100);

/// So many intents at once are many.
const MANY: usize = 25;

/// Counts an intent for as long as it is carried out.
struct Carried<'a>(&'a AtomicUsize);

impl<'a> Carried<'a> {
    fn count(carried: &'a AtomicUsize) -> Self {
        carried.fetch_add(1, Ordering::Relaxed);
        Carried(carried)
    }
}

impl Drop for Carried<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// An intent that this process carries out, as it was last written.
pub(super) struct Held {
    pub intent: ReshardIntent,
    run: u64,
    /// How many items earlier carriers have moved.
    before: u64,
}

/// How the work for an intent came to its end in this process.
pub(super) enum Until {
    /// By itself. `None`: it may not begin now.
    Worked(Result<Option<ReshardReport>, WorkerError>),
    /// This gateway stops.
    Stopped,
    /// Another process has taken the intent over, or it is gone.
    Lost,
}

impl Held {
    fn is_in(&self, found: &ReshardIntent) -> bool {
        found.carrier.as_ref().is_some_and(|carrier| carrier.run == self.run)
    }
}

impl Runner {
    /// Whether this gateway carries nothing out any more, or for now.
    pub(super) fn stops(&self) -> bool {
        self.stopping.load(Ordering::Relaxed) || !self.host.may_send()
    }

    /// Writes an intent as this process's own after `from`, as which it is on record (`None`: not
    /// at all). `None` if another process is first.
    pub(super) async fn claim(
        &self,
        from: Option<&ReshardIntent>,
        mut next: ReshardIntent,
    ) -> Result<Option<Held>, Error> {
        let run = self.registry.env().random();
        next.carrier = Some(self.host.carrier(run));
        next.begun = true;
        next.progress.hindered = None;
        let claimed = self.registry.write_intent(from, &next).await?;
        Ok(claimed.then_some(Held { before: next.progress.moved, intent: next, run }))
    }

    /// Has the work of an intent done, and says meanwhile on record how far it is.
    pub(super) async fn work_on(&self, held: &mut Held, shown: &Arc<Shown>) -> Until {
        shown.steer(&held.intent);
        let _carried = Carried::count(&self.carried);
        let tap = Tap::new(Arc::clone(&self.store), self.host.clone());
        let asked = held.intent.clone();
        let mut work = pin!(self.work(&asked, &tap, shown));
        let beats = pin!(self.beats(held, shown));
        match select(&mut work, beats).await {
            Either::Left((worked, _)) => Until::Worked(worked),
            Either::Right((lost, _)) => {
                // Between two calls: none is begun any more, and those under way end.
                tap.shut();
                let _ = select(work, pin!(tap.idle())).await;
                if lost { Until::Lost } else { Until::Stopped }
            }
        }
    }

    /// Writes how far it is, and takes what the operator wants. Returns whether the intent is
    /// another's now, or when this gateway stops.
    async fn beats(&self, held: &mut Held, shown: &Shown) -> bool {
        let mut moved = 0;
        loop {
            let env = self.registry.env();
            let begun = env.now();
            // Many intents say less often how far they are: all lie in one partition.
            let beats = if self.carried.load(Ordering::Relaxed) > MANY { 2 } else { 1 };
            while env.now().since(begun) < self.pace.beat * beats {
                env.sleep(self.pace.beat.min(GLANCE)).await;
                if self.stops() {
                    return false;
                }
            }
            let mut next = held.intent.next();
            let all = shown.moved();
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

    /// Writes what this process says of an intent, beside what the operator may have said
    /// meanwhile. `false` if it is not this process's any more.
    async fn write(&self, held: &mut Held, mut next: ReshardIntent) -> Result<bool, Error> {
        loop {
            if self.registry.write_intent(Some(&held.intent), &next).await? {
                held.intent = next;
                return Ok(true);
            }
            let intent = &held.intent;
            let found = self.registry.intent_for(&intent.table_id, intent.subject()).await?;
            let Some(found) = found.filter(|found| held.is_in(found)) else { return Ok(false) };
            // Only the operator writes beside a carrier, and only these.
            let (paused, cancelled) = (found.paused, found.cancelled && next.cancelled == intent.cancelled);
            next = ReshardIntent { paused, cancelled, version: found.version + 1, ..next };
            held.intent = found;
        }
    }

    /// Writes what came of an intent, and leaves it to others.
    pub(super) async fn give_back(&self, mut held: Held, shown: &Shown, came: Came) -> Result<(), Error> {
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

    /// Takes an intent off the record: nobody has to do anything for it any more.
    pub(super) async fn take_off(&self, mut held: Held) -> Result<(), Error> {
        while !self.registry.remove_intent(&held.intent).await? {
            let intent = &held.intent;
            let found = self.registry.intent_for(&intent.table_id, intent.subject()).await?;
            match found.filter(|found| held.is_in(found)) {
                Some(found) => held.intent = found,
                None => return Ok(()),
            }
        }
        Ok(())
    }
}
