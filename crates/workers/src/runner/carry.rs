//! Carries intents out: claims each, has its work done, and writes meanwhile how far it is and reads
//! what the operator wants now.
//!
//! Not here: the work itself (`work`), which intent is taken (`choice`).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::{Either, join, join_all, select};
use heatsink_control::reshard_intent::{Carrier, Ended, EndedAs, ReshardIntent, key_brief};
use heatsink_dynamo::Error;
use metrics::{counter, gauge};

use super::Runner;
use super::shown::{Shown, report};
use super::tap::Tap;
use super::work::Came;

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
        self.0.ends();
    }
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
    /// Carries intents of one table out beside each other, unless another gateway is first with the
    /// first of them: it takes the others, too.
    pub(super) async fn carry_all(&self, intents: Vec<(ReshardIntent, Arc<Shown>)>) {
        let begin = |(intent, shown)| (intent, Over::begin(shown));
        let mut others = intents.into_iter().map(begin).collect::<Vec<_>>().into_iter();
        let Some((intent, over)) = others.next() else { return };
        let Some(first) = self.take(&intent).await else { return };
        let others = others.map(|(intent, over)| async move {
            if let Some(held) = self.take(&intent).await {
                self.carry(intent, held, over).await;
            }
        });
        join(self.carry(intent, first, over), join_all(others)).await;
    }

    /// Claims an intent; `None` if another gateway is first.
    async fn take(&self, intent: &ReshardIntent) -> Option<Held> {
        match self.claim(intent).await {
            Ok(held) => held,
            Err(error) => {
                let (table, index) = (&intent.table, intent.index.as_deref());
                let key = key_brief(&intent.key_text());
                tracing::debug!(table, index, key, "a reshard could not be taken: {error}");
                None
            }
        }
    }

    /// Carries an intent out.
    async fn carry(&self, intent: ReshardIntent, mut held: Held, over: Over) {
        let shown = &over.0;
        let (table, key) = (intent.table.clone(), key_brief(&intent.key_text()));
        let index = intent.index.as_deref();
        tracing::info!(table, index, key, shards = intent.request.layout.shards, "takes a reshard");
        shown.steer(&held.intent);
        shown.set_moving(intent.begun);
        let tap = Tap::new(Arc::clone(&self.store), self.control.clone());
        let came = {
            let asked = held.intent.clone();
            let mut work = pin!(self.work(&asked, intent.progress.hindered.as_ref(), &tap, shown));
            let beats = pin!(self.beats(&mut held, shown));
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
                index,
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
            Came::Ended(EndedAs::Stopped, text) => {
                tracing::warn!(table, index, key, "a reshard stopped: {text}")
            }
            Came::Ended(_, text) => tracing::info!(table, index, key, "a reshard ended: {text}"),
            Came::Later(Some(text)) => {
                tracing::warn!(table, index, key, "a reshard is tried again later: {text}")
            }
            Came::Later(None) => tracing::info!(table, index, key, "gives a reshard back"),
        }
        if let Err(error) = self.give_back(held, shown, came).await {
            // Others notice that it does not change any more.
            tracing::warn!(table, index, key, "what came of a reshard could not be written: {error}");
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

    /// Writes how far it is, and takes what the operator wants. Returns whether the intent is
    /// another's now, or when this gateway stops.
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

    /// Writes what this gateway says of an intent, beside what the operator may have said
    /// meanwhile. `false` if it is not this gateway's any more.
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
}
