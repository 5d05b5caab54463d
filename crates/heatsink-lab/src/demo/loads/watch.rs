//! What the gateways decide and do while a load runs, as the registry tells it, and what they say of
//! keys that they leave alone.
//!
//! Not here: the decision (`heatsink_heat::policy`), what follows for the clients (`measure`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use heatsink::Rules;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use heatsink_env::Env;
use heatsink_layout::Phase;
use serde::Serialize;
use serde_json::Value as Json;

use super::traffic::Offer;
use crate::demo::fleet::Fleet;
use crate::demo::server::failed;
use crate::demo::workload::TABLE;
use crate::exit::Exit;

/// How often it looks at the registry.
const LOOK: Duration = Duration::from_millis(200);
/// Every so many looks it asks the gateways what they say of hot keys.
const ASK_EVERY: u32 = 5;

/// One change that the gateways decided for. Moments are in milliseconds since the load began.
#[derive(Clone, Debug, Serialize)]
pub struct Change {
    /// The index, if it is a value of one.
    pub index: Option<String>,
    /// The key, or the value.
    pub key: String,
    /// Its shards afterwards.
    pub shards: u16,
    /// The slots of these, where they are named.
    pub slots: Option<Vec<u16>>,
    /// When the decision was on record.
    pub decided_ms: u32,
    /// When new writes went to the new places.
    pub in_force_ms: Option<u32>,
    /// When its items were moved.
    pub ended_ms: Option<u32>,
    /// How it ended, in words.
    pub ended: Option<String>,
    /// Items that were moved.
    pub moved: u64,
    /// Who decided, and why.
    pub by: String,
}

/// A key, by the index that it is a value of, and its name.
pub type Subject = (Option<String>, String);

/// What was seen.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The changes, in the order in which they were decided. A key that is changed twice has two.
    pub changes: Vec<Change>,
    /// What the gateways last said of a key: why it is left alone, else what would help.
    pub said: BTreeMap<Subject, String>,
    /// The intents that the changes are of: key, version of the request, and place in `changes`.
    intents: BTreeMap<(Subject, u64), usize>,
}

impl Seen {
    fn intent(&mut self, now: u32, intent: &ReshardIntent) {
        let subject = (intent.index.clone(), intent.key_text());
        let next = self.changes.len();
        let place = *self.intents.entry((subject.clone(), intent.request.asked)).or_insert(next);
        if place == next {
            let (index, key) = subject;
            self.changes.push(Change {
                index,
                key,
                shards: intent.request.layout.shards,
                slots: intent.request.layout.slots.clone(),
                decided_ms: now,
                in_force_ms: None,
                ended_ms: None,
                ended: None,
                moved: 0,
                by: intent.request.by.clone(),
            });
        }
        let Some(change) = self.changes.get_mut(place) else { return };
        change.moved = intent.progress.moved;
        let moved = intent.ended.as_ref().is_some_and(|ended| ended.how == EndedAs::Moved);
        if intent.progress.phase >= Some(Phase::Move) || moved {
            change.in_force_ms.get_or_insert(now);
        }
        if let Some(ended) = &intent.ended {
            change.ended_ms.get_or_insert(now);
            change.ended = Some(ended.text.clone());
        }
    }

    /// A key's record says that its writes go to the new places.
    fn in_force(&mut self, now: u32, key: &str) {
        let of_key = |change: &&mut Change| change.index.is_none() && change.key == key;
        if let Some(change) = self.changes.iter_mut().rev().find(of_key) {
            change.in_force_ms.get_or_insert(now);
        }
    }

    /// What a gateway's heat says of keys: `/_heatsink/heat`.
    fn heat(&mut self, heat: &Json) {
        let lists = [&heat["advice"], &heat["automatic"]["left_alone"]];
        for one in lists.into_iter().filter_map(Json::as_array).flatten() {
            let (Some(key), Some(sentence)) = (one["key"].as_str(), one["sentence"].as_str()) else {
                continue;
            };
            if one["table"] == TABLE {
                let index = one["index"].as_str().map(str::to_owned);
                self.said.insert((index, key.to_owned()), sentence.to_owned());
            }
        }
    }
}

/// Watches until dropped.
pub async fn watch(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    offer: &Offer,
    seen: &Mutex<Seen>,
) -> Result<std::convert::Infallible, Exit> {
    let registry = Registry::new(fleet.store.clone(), Arc::clone(env), &Rules::default().fence().registry);
    let described = registry.describe(TABLE).await.map_err(|error| failed(&error))?;
    let id = described.ok_or_else(|| Exit::software("the demo's table is gone".to_owned()))?.schema.id;
    for look in 0_u32.. {
        env.sleep(LOOK).await;
        // A registry that is not there yet, or is busy, says nothing this time.
        let intents = registry.intents(false).await.unwrap_or_default();
        let records = if intents.known.is_empty() {
            Vec::new()
        } else {
            registry.key_records(&id).await.unwrap_or_default()
        };
        let heats = if look % ASK_EVERY == 0 { fleet.heats().await } else { Vec::new() };
        let now = offer.account().millis();
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        intents.known.iter().filter(|one| one.table == TABLE).for_each(|one| seen.intent(now, one));
        for record in records {
            if record.moves.as_ref().is_some_and(|moves| moves.phase >= Phase::Move) {
                seen.in_force(now, &String::from_utf8_lossy(&record.key));
            }
        }
        heats.iter().for_each(|heat| seen.heat(heat));
    }
    Err(Exit::software("the watch ended early".to_owned()))
}
