//! Carries intents out in a gateway: claims each, has its work done, and writes what came of it.
//!
//! Not here: the work itself (`work`), which intent is taken (`choice`).

use std::sync::Arc;

use futures::future::{join, join_all};
use heatsink_control::reshard_intent::{EndedAs, ReshardIntent, key_brief};
use metrics::{counter, gauge};
use serde_json::{Value as Json, json};

use super::Runner;
use super::came::Came;
use super::held::{Held, Until};
use super::shown::Shown;

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
        match self.claim(Some(intent), intent.next()).await {
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
        shown.set_moving(intent.begun);
        let came = match self.work_on(&mut held, shown).await {
            Until::Worked(worked) => {
                let hindered = intent.progress.hindered.as_ref();
                match Came::of(&intent, &worked, hindered, shown.is_moving()) {
                    Came::Later(_) if self.stops() => Some(Came::Later(None)),
                    came => Some(came),
                }
            }
            Until::Stopped => Some(Came::Later(None)),
            Until::Lost => None,
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
        let ended = match &came {
            Came::Ended(_, text) => Some(end(&intent, outcome, text)),
            Came::Later(_) => None,
        };
        match (self.give_back(held, shown, came).await, ended) {
            (Ok(()), Some(ended)) => self.events.tell("ended", ended),
            (Ok(()), None) => {}
            // Others notice that it does not change any more, and end it again.
            (Err(error), _) => {
                tracing::warn!(table, index, key, "what came of a reshard could not be written: {error}");
            }
        }
    }
}

/// What is told of a reshard that has ended.
fn end(intent: &ReshardIntent, outcome: &str, text: &str) -> Json {
    let mut end = json!({
        "table": intent.table,
        "key": intent.key_text(),
        "shards": intent.request.layout.shards,
        "outcome": outcome,
        "sentence": text,
        "asked_by": intent.request.by,
    });
    if let Some(index) = &intent.index {
        end["index"] = json!(index);
    }
    end
}
