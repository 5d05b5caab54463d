//! When advice is acted on: patience, hysteresis, and how often at most. Sans-IO: what was seen and when goes in, decisions come out.
//!
//! The same observations give the same decisions, so that a log of them can be replayed.
//!
//! Not here: what would help ([`advice`](crate::advice)), carrying a decision out (`heatsink-mover`).

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

/// A key whose change was refused, or only proposed, is not decided for again for so long: other keys have their turn.
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
    /// The default: as many shards as needed, at once where nothing else helps, fewer after three cold days.
    pub const DEFAULT: Settings = Settings {
        fewest: 1,
        most: 1_000,
        hot_for: Duration::from_secs(2),
        patience: Duration::from_secs(15 * 60),
        cold_for: Duration::from_secs(3 * 86_400),
        apart: Duration::from_secs(60),
        key_apart: Duration::ZERO,
    };

    /// Where decisions are only proposed: each key that is hot is, however many there are of a table.
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

/// A key that is hot: since when, and its mean load since. The window in which it became hot is not in the mean: the load may have begun within it.
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
    /// A key was seen so. Called about once a second for each key that is hot or has shards. `None`: nothing changes.
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
        // Between the fewest and the most a key is left with more shards than it has if it is hot, and with fewer if it is cold.
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

    /// A decision was not carried out: another key of the table has its turn at once, and this one later.
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

/// Whether what is throttled within an hour is more than what the move takes. The load itself is charged where nothing is throttled yet.
fn pays(seen: &Observed) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
    let moved = seen.items.unwrap_or(0) as f64 * UNITS_PER_ITEM;
    let gained = (seen.writes + seen.reads) * seen.throttled.max(0.1) * PAYS_WITHIN.as_secs_f64();
    gained >= moved
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SETTINGS: Settings = Settings { patience: Duration::ZERO, ..Settings::DEFAULT };

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant(0) + Duration::from_secs(seconds)
    }

    fn load(writes: f64, shards: u16) -> Observed {
        Observed {
            writes,
            peak_writes: writes,
            throttled: (1.0 - 1_000.0 * f64::from(shards) / writes.max(1.0)).clamp(0.0, 1.0),
            growing: 1.0,
            sort_key: true,
            item_bytes: 300,
            page: 100,
            shards,
            partitions: Some(60),
            ..Observed::default()
        }
    }

    /// The changes that a load second by second leads to, each carried out at once.
    fn run(settings: &Settings, seconds: u64, writes: impl Fn(u64) -> f64) -> Vec<(u64, u16)> {
        let (mut policy, mut shards, mut changes) = (Policy::default(), 1, Vec::new());
        for second in 0..seconds {
            if let Some(decision) =
                policy.see(at(second), "Scores", &"game_x", &load(writes(second), shards), settings)
            {
                shards = decision.shards;
                changes.push((second, shards));
            }
        }
        changes
    }

    #[test]
    fn a_hot_key_gets_shards_once() {
        let changes = run(&SETTINGS, 600, |_| 5_000.0);
        assert!(matches!(changes[..], [(2, 6..)]), "{changes:?}");
    }

    #[test]
    fn a_load_that_flaps_causes_one_change_until_it_stays_away() {
        let day = 86_400;
        let flapping = |second: u64| if (second / 30).is_multiple_of(2) { 5_000.0 } else { 10.0 };
        assert_eq!(run(&SETTINGS, 7_200, flapping).len(), 1);
        let changes = run(&SETTINGS, 5 * day, |second| if second < day { flapping(second) } else { 10.0 });
        assert_eq!(changes.len(), 2);
        assert_eq!(changes[1].1, 1);
        assert!((3 * day..=4 * day).contains(&changes[1].0), "{changes:?}");
    }

    #[test]
    fn what_dynamodb_heals_is_waited_for() {
        let seen = Observed { growing: 0.0, ..load(5_000.0, 1) };
        let mut policy = Policy::default();
        let changes: Vec<u64> = (0..1_000)
            .filter(|second| policy.see(at(*second), "Scores", &0, &seen, &Settings::DEFAULT).is_some())
            .collect();
        assert_eq!(changes.first(), Some(&902));
    }

    #[test]
    fn a_table_changes_once_a_minute() {
        let mut policy = Policy::default();
        let mut changes = Vec::new();
        for second in 0..100 {
            for key in 0..5 {
                changes.extend(
                    policy.see(at(second), "Scores", &key, &load(5_000.0, 1), &SETTINGS).map(|_| second),
                );
            }
        }
        assert_eq!(changes, [2, 62]);
    }

    #[test]
    fn each_key_that_is_hot_is_proposed() {
        let mut policy = Policy::default();
        let (settings, mut proposed) = (SETTINGS.proposing(), Vec::new());
        for second in 0..1_300 {
            for key in 0..5 {
                let decision = policy.see(at(second), "Scores", &key, &load(5_000.0, 1), &settings);
                proposed.extend(decision.map(|_| (second, key)));
            }
        }
        let times = |key: i32| -> Vec<u64> {
            proposed.iter().filter(|(_, other)| *other == key).map(|(second, _)| *second).collect()
        };
        for key in 0..5 {
            assert_eq!(times(key), [2, 602, 1_202], "{key}");
        }
        // What is proposed changes nothing, and holds up no change.
        let changes = policy.see(at(1_300), "Scores", &7, &load(5_000.0, 1), &SETTINGS);
        assert!(changes.is_none());
        assert!(
            (1_301..1_304)
                .any(|second| policy.see(at(second), "Scores", &7, &load(5_000.0, 1), &SETTINGS).is_some())
        );
    }

    #[test]
    fn a_key_that_cannot_be_changed_keeps_no_other_from_it() {
        let mut policy = Policy::default();
        let mut decided = Vec::new();
        for second in 0..200 {
            for key in 0..3 {
                let Some(decision) = policy.see(at(second), "Scores", &key, &load(5_000.0, 1), &SETTINGS)
                else {
                    continue;
                };
                if key == 0 {
                    policy.refused(at(second), &decision);
                }
                decided.push((second, key));
            }
        }
        assert_eq!(decided, [(2, 0), (2, 1), (62, 1), (122, 1), (182, 1)]);
    }

    #[test]
    fn shards_are_for_the_mean_of_the_hot_windows() {
        // What is drawn comes out as 3,000 and 7,000 by turns, and the load begins within a window.
        let drawn = |second: u64| match second {
            0 => 900.0,
            second if second.is_multiple_of(2) => 3_000.0,
            _ => 7_000.0,
        };
        let changes = run(&SETTINGS, 30, drawn);
        let even = run(&SETTINGS, 30, |_| 5_000.0);
        assert_eq!((changes.len(), changes[0].1), (1, even[0].1), "{changes:?}");
    }

    #[test]
    fn what_drawing_may_have_added_is_not_acted_on() {
        let chance = Observed { write_error: 4_500.0, throttled: 0.0, ..load(5_000.0, 1) };
        let mut policy = Policy::default();
        assert!((0..100).all(|second| policy.see(at(second), "Scores", &0, &chance, &SETTINGS).is_none()));
    }

    #[test]
    fn a_move_that_costs_more_than_it_gains_is_left() {
        let seen = Observed { items: Some(10_000_000_000), ..load(5_000.0, 1) };
        let mut policy = Policy::default();
        assert!((0..100).all(|second| policy.see(at(second), "Scores", &0, &seen, &SETTINGS).is_none()));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Whatever the load does: shards stay within the rule's bounds, a table changes at most once a minute, and a change is followed by no change
        /// back before the key has been cold for the whole time.
        #[test]
        fn changes_are_bounded(
            loads in proptest::collection::vec(0.0..9_000.0f64, 1..40), fewest in 1..5u16, more in 0..40u16,
        ) {
            let settings = Settings { fewest, most: fewest + more, cold_for: Duration::from_secs(300), ..SETTINGS };
            let at = |second: u64| loads.get(usize::try_from(second / 37).unwrap_or(0) % loads.len()).copied().unwrap_or(0.0);
            let changes = run(&settings, 3_000, at);
            prop_assert!(changes.iter().all(|(_, shards)| (fewest..=fewest + more).contains(shards)));
            prop_assert!(changes.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 60));
            for pair in changes.windows(2).filter(|pair| pair[1].1 < pair[0].1) {
                prop_assert!(pair[1].0 - pair[0].0 >= 300, "{:?}", changes);
            }
        }
    }
}
