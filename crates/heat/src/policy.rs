//! When advice is acted on: patience, hysteresis, and how often at most. Sans-IO: what was seen and
//! when goes in, decisions come out.
//!
//! The same observations give the same decisions, so that a log of them can be replayed.
//!
//! Not here: what would help ([`advice`](crate::advice)), carrying a decision out
//! (`heatsink-workers`).

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use heatsink_env::MonotonicInstant;
use serde::Serialize;

use crate::advice::{Action, Diagnosis, Observed, diagnose};

/// Keys of which the policy keeps something. Beyond it a key is acted on once there is room.
const KEYS: usize = 10_000;
/// Capacity units of a partition that the move of one item takes.
const UNITS_PER_ITEM: f64 = 10.0;
/// For so long a change has to pay for what it moves.
const PAYS_WITHIN: Duration = Duration::from_secs(3_600);
/// A key that is not seen for so long is no longer hot.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// A key whose change was refused, or only proposed, is not decided for again for so long: other
/// keys have their turn.
const REFUSED: Duration = Duration::from_secs(600);
/// Windows over which the load of a hot key is averaged.
const MEAN_OF: f64 = 10.0;

/// What a rule allows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Settings {
    /// The fewest shards of a key.
    pub fewest: u16,
    /// The most.
    pub most: u16,
    /// For how long a key has to be hot before it gets shards.
    pub hot_for: Duration,
    /// For how long more, where DynamoDB splits the partition by itself.
    pub patience: Duration,
    /// For how long a key has to need half of its shards or fewer before it loses any.
    pub cold_for: Duration,
    /// The least time between two changes of one table.
    pub apart: Duration,
    /// The least time between two decisions for one key.
    pub key_apart: Duration,
}

impl Settings {
    /// The default: as many shards as needed, at once where nothing else helps, fewer after three
    /// cold days.
    pub const DEFAULT: Settings = Settings {
        fewest: 1,
        most: 1_000,
        hot_for: Duration::from_secs(2),
        patience: Duration::from_secs(15 * 60),
        cold_for: Duration::from_secs(3 * 86_400),
        apart: Duration::from_secs(60),
        key_apart: Duration::ZERO,
    };

    /// Where decisions are only proposed: each key that is hot is, however many there are of a
    /// table.
    #[must_use]
    pub fn proposing(self) -> Settings {
        Settings { apart: Duration::ZERO, key_apart: REFUSED, ..self }
    }
}

/// A change that the policy decides for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Decision<K> {
    /// The table.
    pub table: String,
    /// The key.
    pub key: K,
    /// How many shards it gets.
    pub shards: u16,
    /// What was seen.
    pub seen: Observed,
    /// What follows from it.
    pub diagnosis: Diagnosis,
}

/// What is kept of a key.
#[derive(Clone, Copy, Debug)]
struct State {
    hot: Option<Hot>,
    /// No decision is made for it before.
    rests_until: MonotonicInstant,
    seen: MonotonicInstant,
    /// When it last needed more than half of its shards, and the most that it has needed since.
    needed: MonotonicInstant,
    most_needed: u16,
}

/// A key that is hot: since when, and its mean load since. The window in which it became hot is not
/// in the mean: the load may have begun within it.
#[derive(Clone, Copy, Debug)]
struct Hot {
    since: MonotonicInstant,
    windows: f64,
    mean: Observed,
}

impl Hot {
    fn begins(now: MonotonicInstant, seen: &Observed) -> Self {
        Hot { since: now, windows: 0.0, mean: *seen }
    }

    fn goes_on(self, seen: &Observed) -> Self {
        let windows = (self.windows + 1.0).min(MEAN_OF);
        let mean = |before: f64, now: f64| before + (now - before) / windows;
        let before = self.mean;
        let mean = Observed {
            writes: mean(before.writes, seen.writes),
            peak_writes: mean(before.peak_writes, seen.peak_writes),
            reads: mean(before.reads, seen.reads),
            queries: mean(before.queries, seen.queries),
            throttled: mean(before.throttled, seen.throttled),
            write_error: mean(before.write_error, seen.write_error),
            read_error: mean(before.read_error, seen.read_error),
            ..*seen
        };
        Hot { windows, mean, ..self }
    }
}

/// Decides for all keys of all tables, one observation after the other.
#[derive(Clone, Debug)]
pub struct Policy<K> {
    keys: HashMap<(String, K), State>,
    changed: HashMap<String, MonotonicInstant>,
}

impl<K> Default for Policy<K> {
    fn default() -> Self {
        Policy { keys: HashMap::new(), changed: HashMap::new() }
    }
}

impl<K: Clone + Eq + Hash> Policy<K> {
    /// A key was seen so. Called about once a second for each key that is hot or has shards.
    /// `None`: nothing changes.
    pub fn see(
        &mut self,
        now: MonotonicInstant,
        table: &str,
        key: &K,
        seen: &Observed,
        settings: &Settings,
    ) -> Option<Decision<K>> {
        let diagnosis = diagnose(seen);
        let shards = seen.shards.max(1);
        let state = self.state(now, table, key)?;
        let gap = now.since(state.seen) > FORGOTTEN;
        state.seen = now;
        let needs = diagnosis.shards().unwrap_or_else(|| needed(seen));
        let hot = matches!(diagnosis.action, Action::Shard { .. } | Action::Wait { .. });
        state.hot = hot.then(|| match state.hot.filter(|_| !gap) {
            Some(before) => before.goes_on(seen),
            None => Hot::begins(now, seen),
        });
        if u32::from(needs) * 2 > u32::from(shards) || hot {
            (state.needed, state.most_needed) = (now, 1);
        } else {
            state.most_needed = state.most_needed.max(needs);
        }
        let state = *state;
        let (wanted, seen, diagnosis) = match state.hot {
            // To diagnose is work, and nothing is decided before.
            Some(hot) if now.since(hot.since) < settings.hot_for => return None,
            Some(hot) => {
                let diagnosis = diagnose(&hot.mean);
                let waits = match diagnosis.action {
                    Action::Wait { .. } => settings.hot_for + settings.patience,
                    _ => settings.hot_for,
                };
                let wanted = diagnosis.shards().filter(|_| now.since(hot.since) >= waits && pays(&hot.mean));
                (wanted, hot.mean, diagnosis)
            }
            None => {
                let is_cold = now.since(state.needed) >= settings.cold_for && shards > 1;
                (is_cold.then_some(state.most_needed), *seen, diagnosis)
            }
        };
        let wanted = wanted?.clamp(settings.fewest.max(1), settings.most.max(1));
        // Between the fewest and the most a key is left with more shards than it has if it is hot,
        // and with fewer if it is cold.
        let changes = if hot { wanted > shards } else { wanted < shards };
        if !changes || now < state.rests_until || !self.may_change(now, table, settings) {
            return None;
        }
        if let Some(state) = self.keys.get_mut(&(table.to_owned(), key.clone())) {
            (state.hot, state.needed, state.most_needed) = (None, now, 1);
            state.rests_until = now + settings.key_apart;
        }
        Some(Decision { table: table.to_owned(), key: key.clone(), shards: wanted, seen, diagnosis })
    }

    /// A decision was not carried out: another key of the table has its turn at once, and this one
    /// later.
    pub fn refused(&mut self, now: MonotonicInstant, decision: &Decision<K>) {
        self.changed.remove(&decision.table);
        if let Some(state) = self.keys.get_mut(&(decision.table.clone(), decision.key.clone())) {
            state.rests_until = now + REFUSED;
        }
    }

    fn state(&mut self, now: MonotonicInstant, table: &str, key: &K) -> Option<&mut State> {
        let name = (table.to_owned(), key.clone());
        if !self.keys.contains_key(&name) && self.keys.len() >= KEYS {
            self.keys.retain(|_, state| now.since(state.seen) <= FORGOTTEN);
            if self.keys.len() >= KEYS {
                return None;
            }
        }
        Some(self.keys.entry(name).or_insert(State {
            hot: None,
            rests_until: now,
            seen: now,
            needed: now,
            most_needed: 1,
        }))
    }

    /// Whether the table has not changed for a while. If so, it changes now.
    fn may_change(&mut self, now: MonotonicInstant, table: &str, settings: &Settings) -> bool {
        if settings.apart.is_zero() {
            return true;
        }
        self.changed.retain(|_, changed| now.since(*changed) < settings.apart);
        if self.changed.contains_key(table) {
            return false;
        }
        self.changed.insert(table.to_owned(), now);
        true
    }
}

/// How many shards the key would get if it had one.
fn needed(seen: &Observed) -> u16 {
    diagnose(&Observed { shards: 1, ..*seen }).shards().unwrap_or(1)
}

/// Whether what is throttled within an hour is more than what the move takes. The load itself is
/// charged where nothing is throttled yet.
fn pays(seen: &Observed) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
    let moved = seen.items.unwrap_or(0) as f64 * UNITS_PER_ITEM;
    let gained = (seen.writes + seen.reads) * seen.throttled.max(0.1) * PAYS_WITHIN.as_secs_f64();
    gained >= moved
}

#[cfg(test)]
mod tests;
