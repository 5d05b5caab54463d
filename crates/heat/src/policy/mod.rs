//! When advice is acted on: for which keys together, patience, hysteresis, and how much at most.
//! Sans-IO: what was seen and when goes in, decisions come out, and for each key that burns and is
//! left alone the reason.
//!
//! The same observations give the same decisions, so that a log of them can be replayed.
//!
//! Not here: what would help ([`advice`](crate::advice)), carrying a decision out
//! (`heatsink-workers`).

mod budget;
mod crowds;
mod decision;
mod facts;
mod hot;
mod judged;
mod looking;
mod placing;
mod plan;
mod planned;
mod ranges;
mod reason;
mod settings;
mod share;
mod state;

use std::collections::HashMap;
use std::time::Duration;

use heatsink_env::MonotonicInstant;

use crate::KeyLoad;
use crate::advice::fewest_shards;
use budget::Budgets;
use state::{FORGOTTEN, State};

pub use decision::{Change, Decision, KeyName, LeftAlone, Looked};
pub use facts::{Facts, KeyFacts, Partitions, Units};
pub use planned::units_of_move;
pub use reason::Reason;
pub use settings::Settings;

/// Keys of which the policy keeps something. Beyond it a key is acted on once there is room.
const KEYS: usize = 10_000;
/// A key whose change was refused, or only proposed, is not decided for again for so long.
const REFUSED: Duration = Duration::from_secs(600);

/// Decides for all keys of all tables, one look after the other.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    keys: HashMap<KeyName, State>,
    budgets: Budgets,
}

impl Policy {
    /// Looks at the loads of one window. Called about once a second, with every key that is hot or
    /// has shards.
    ///
    /// Each decision is taken to be carried out, unless [`Policy::refused`] or [`Policy::proposed`]
    /// says otherwise.
    pub fn look(&mut self, now: MonotonicInstant, loads: &[KeyLoad], facts: &dyn Facts) -> Looked {
        let mut of_keys = Vec::with_capacity(loads.len());
        for load in loads {
            let known = facts.key(load);
            let is_known = self.see(now, load, &known);
            of_keys.push((load, known, is_known));
        }
        self.decide(now, loads, of_keys, facts)
    }

    /// A decision was not carried out: `why`, without a full stop. What it was to take is given
    /// back, and the key is left alone for ten minutes.
    pub fn refused(&mut self, now: MonotonicInstant, decision: &Decision, why: &str) {
        self.rests(now, decision, Reason::Rests, why);
    }

    /// A decision was only proposed. It is not proposed again for ten minutes.
    pub fn proposed(&mut self, now: MonotonicInstant, decision: &Decision) {
        self.rests(now, decision, Reason::Proposed, "");
    }

    fn rests(&mut self, now: MonotonicInstant, decision: &Decision, reason: Reason, why: &str) {
        self.budgets.give(&decision.name.table, decision.units);
        if let Some(state) = self.keys.get_mut(&decision.name) {
            state.did_not_change(now + REFUSED, reason, why.to_owned());
        }
    }

    /// Takes in what was seen of a key; whether there is room for that.
    fn see(&mut self, now: MonotonicInstant, load: &KeyLoad, facts: &KeyFacts) -> bool {
        let name = KeyName::of(load);
        if !self.keys.contains_key(&name) && self.keys.len() >= KEYS {
            self.keys.retain(|_, state| now.since(state.seen) <= FORGOTTEN || state.slots.len() > 1);
            if self.keys.len() >= KEYS {
                return false;
            }
        }
        let shards = u16::try_from(facts.slots.len()).unwrap_or(u16::MAX);
        let needs =
            fewest_shards(&load.observed(shards, facts.local_index), planned::FILLED).unwrap_or(shards);
        let state = self.keys.entry(name).or_insert_with(|| State::new(now, &facts.slots));
        state.see(now, load, &facts.slots, needs);
        true
    }
}

#[cfg(test)]
mod tests;
