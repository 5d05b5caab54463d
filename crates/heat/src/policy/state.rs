//! What the policy keeps of one key from look to look.

use std::collections::BTreeSet;
use std::time::Duration;

use heatsink_env::MonotonicInstant;

use super::facts::Units;
use super::hot::Hot;
use super::reason::Reason;
use crate::KeyLoad;

/// A key that is not seen for so long is no longer hot.
pub(super) const FORGOTTEN: Duration = Duration::from_secs(10);
/// For so long a change is new: what burns then burns by it.
const NEW: Duration = Duration::from_secs(60);
/// For so long after a change it may be what makes other keys burn: from when it is in force to when
/// it is mended.
const DISTURBS: std::ops::Range<Duration> = Duration::from_secs(2)..Duration::from_secs(15);
/// Changes of a key are counted for so long.
const COUNTED: Duration = Duration::from_secs(600);
/// After so many changes within that time a key rests: more of the same does not help it.
const MOST_CHANGES: usize = 8;
/// A change that was carried out shows in the layout within this time.
const PENDING: Duration = Duration::from_secs(30);
/// Slots that a key left are not taken again while this many are remembered.
const LEFT: usize = 64;

/// What is kept of a key.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) hot: Option<Hot>,
    pub(super) seen: MonotonicInstant,
    pub(super) slots: Vec<u16>,
    /// When it last needed more than half of its shards, and the most that it has needed since.
    pub(super) needed: MonotonicInstant,
    pub(super) most_needed: u16,
    /// No decision is made for it before, and why.
    pub(super) rests: Option<(MonotonicInstant, Reason, String)>,
    /// The last changes, the newest last.
    changes: Vec<MonotonicInstant>,
    /// The slots of the last change, and what each is asked for, until its layout shows them.
    pub(super) pending: Option<(Vec<u16>, Units)>,
    /// Slots that burned.
    pub(super) left: BTreeSet<u16>,
}

impl State {
    pub(super) fn new(now: MonotonicInstant, slots: &[u16]) -> Self {
        State {
            hot: None,
            seen: now,
            slots: slots.to_vec(),
            needed: now,
            most_needed: 1,
            rests: None,
            changes: Vec::new(),
            pending: None,
            left: BTreeSet::new(),
        }
    }

    /// Takes in a window. `needs`: how many shards its load needs.
    pub(super) fn see(&mut self, now: MonotonicInstant, load: &KeyLoad, slots: &[u16], needs: u16) {
        let is_other = self.slots != slots;
        if is_other || now.since(self.seen) > FORGOTTEN {
            self.hot = None;
        }
        if is_other {
            self.slots = slots.to_vec();
        }
        let is_there = self.pending.as_ref().is_some_and(|(pending, _)| pending == slots);
        if is_there || self.changes.last().is_none_or(|last| now.since(*last) > PENDING) {
            self.pending = None;
        }
        self.seen = now;
        self.hot = Hot::next(self.hot.take(), now, load, slots.len());
        self.changes.retain(|change| now.since(*change) < COUNTED);
        self.rests.take_if(|(until, ..)| now >= *until);
        if usize::from(needs) * 2 > slots.len() || self.hot.is_some() {
            (self.needed, self.most_needed) = (now, 1);
        } else {
            self.most_needed = self.most_needed.max(needs);
        }
    }

    /// A change is decided. `left`: slots that it gives up.
    pub(super) fn changes(&mut self, now: MonotonicInstant, slots: Vec<u16>, each: Units, left: &[u16]) {
        self.left.extend(left);
        while self.left.len() > LEFT {
            self.left.pop_first();
        }
        (self.hot, self.needed, self.most_needed) = (None, now, 1);
        self.pending = Some((slots, each));
        self.changes.push(now);
    }

    /// The last change was not carried out.
    pub(super) fn did_not_change(&mut self, until: MonotonicInstant, reason: Reason, why: String) {
        self.pending = None;
        self.changes.pop();
        self.rests = Some((until, reason, why));
    }

    /// Whether it changed a short while ago.
    pub(super) fn is_new(&self, now: MonotonicInstant) -> bool {
        self.changes.last().is_some_and(|change| now.since(*change) < NEW)
    }

    /// Whether a change of it may be what makes other keys burn.
    pub(super) fn disturbs(&self, now: MonotonicInstant) -> bool {
        self.changes.iter().any(|change| DISTURBS.contains(&now.since(*change)))
    }

    /// How often it changed of late.
    pub(super) fn rounds(&self) -> usize {
        self.changes.len()
    }

    /// Whether it changed so often that one more change is of no use.
    pub(super) fn is_restless(&self) -> bool {
        self.changes.len() >= MOST_CHANGES
    }
}
