//! What is searched: scripts of clients, the changes, and the layouts that follow from them.

use std::sync::{Arc, OnceLock};

use heatsink_layout::{
    Bucket, By, Epoch, Granularity, Hash, InForce, Layout, Moving, Placement, SortKey, Strategy, Time,
};
use heatsink_reshard::{Change, Outcome, Rule, Rules, Side, State};

use crate::config::Script;
use crate::monitor::CALLS;
use crate::world::View;

/// The bucket of the item, where it lies in one.
pub const DAY: u8 = 20;

#[derive(Clone, Debug)]
pub struct Config {
    pub scripts: Vec<Script>,
    pub stored: Vec<Option<u16>>,
    /// What lies under the name of the first new fragment.
    pub orphan: Option<u16>,
    /// How many fragments there are, change by change; or how many shards a bucket has.
    pub shards: &'static [u16],
    /// What each fragment but the base fragment holds, where a counter is stored.
    pub part: Option<u16>,
    /// Whether a read reads the base fragment before the others. Beside puts and deletes that is no
    /// snapshot, whatever narrows.
    pub apart: bool,
    /// From which bucket on each change holds; `None` for a counter.
    pub steps: Option<&'static [u8]>,
    /// Whether writes wait that put an item into such a bucket: a rule of `heatsink_layout` that
    /// can be left out.
    pub holds: bool,
    pub late: usize,
    pub deaths: u8,
    pub undead: bool,
    pub cancels: u8,
    pub acknowledges_early: bool,
    pub rules: Rules,
    pub left_out: Vec<Rule>,
    pub ends: Outcome,
    /// The sort key of the item of a bucket.
    pub sort: OnceLock<String>,
}

impl Config {
    pub fn new(scripts: Vec<Script>) -> Self {
        assert!(scripts.iter().all(|script| script.iter().map(Vec::len).sum::<usize>() <= CALLS));
        Config {
            scripts,
            stored: vec![None, Some(7)],
            orphan: None,
            shards: &[1, 2],
            part: None,
            apart: false,
            steps: None,
            holds: true,
            late: 1,
            deaths: 0,
            undead: false,
            cancels: 0,
            acknowledges_early: false,
            rules: Rules::ALL,
            left_out: Vec::new(),
            ends: Outcome::Moved,
            sort: OnceLock::new(),
        }
    }

    pub fn without(mut self, rule: Rule) -> Self {
        self.rules = self.rules.without(rule);
        self.left_out.push(rule);
        self
    }

    /// The layout after so many changes; before the first one the key is whole, or has one number
    /// of shards in every bucket.
    pub(super) fn layout(&self, leg: u8) -> Arc<Layout> {
        if let Some(steps) = self.steps {
            let time = Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds };
            let strategy = Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() };
            let first = Layout { strategy, shards: self.shards[0], hash: Hash::JumpXxh3, version: 1 };
            let changes = steps.iter().zip(&self.shards[1..]).take(leg.into());
            return Arc::new(
                changes.fold(first, |layout, (day, shards)| layout.stepped(bucket(*day), *shards).unwrap()),
            );
        }
        let shards = self.shards[usize::from(leg)];
        if shards == 1 {
            return Arc::new(Layout::none());
        }
        let strategy = Strategy::Counter { attributes: vec!["n".to_owned()] };
        Arc::new(Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 })
    }

    pub(super) fn change(&self, leg: u8) -> Change {
        let leg = usize::from(leg);
        match self.steps {
            Some(_) => Change::Step,
            None if self.shards[leg] > self.shards[leg + 1] => Change::Narrow,
            None => Change::Widen,
        }
    }

    fn in_force(&self, view: View) -> InForce {
        match view.state {
            State::Stable { in_force: Side::Old, .. } => InForce::Stable(self.layout(view.leg)),
            State::Stable { in_force: Side::New, .. } => InForce::Stable(self.layout(view.leg + 1)),
            State::Moving { phase, .. } => Moving {
                from: self.layout(view.leg),
                to: self.layout(view.leg + 1),
                phase,
                expires: None,
                marks: false,
                high_water: None,
            }
            .in_force(),
        }
    }

    /// How many fragments a gateway with that view sees and clears, and to how many of them it
    /// adds.
    pub fn fragments(&self, view: View) -> (usize, usize) {
        match self.in_force(view).placement(None).unwrap() {
            Some(Placement::SumOf { others, adds, .. }) => (others.len() + 1, adds.into()),
            _ => (1, 1),
        }
    }

    /// The fragments that a worker folds, for a gateway with that view; from the first of these on.
    pub fn folds_from(&self, view: View) -> Option<usize> {
        match self.in_force(view) {
            InForce::Narrowing(narrowing) if narrowing.folds => Some(narrowing.adds.into()),
            _ => None,
        }
    }

    /// The cell in which a gateway with that view looks for the item of a bucket, and whether
    /// writes that may make it wait.
    pub fn slot(&self, view: View) -> (usize, bool) {
        let in_force = self.in_force(view);
        let sort = self.sort.get_or_init(|| self.sort());
        let slot = in_force.placement(Some(SortKey::N(sort))).unwrap().unwrap().first();
        (slot.shard.into(), in_force.holds(bucket(DAY)))
    }

    /// A sort key whose item lies in the last shard, however many there are.
    fn sort(&self) -> String {
        let is_last = |sort: &String| {
            let last = |leg: u8| {
                let (layout, day) = (self.layout(leg), bucket(DAY));
                layout.shard_of(Some(SortKey::N(sort))) + 1 == layout.shards_in(day)
            };
            (0..self.shards.len()).all(|leg| last(u8::try_from(leg).unwrap()))
        };
        let begins = bucket(DAY).start();
        (begins..begins + 86_400).map(|second| second.to_string()).find(is_last).unwrap()
    }
}

pub(super) fn bucket(day: u8) -> Bucket {
    Bucket::at(i64::from(day) * 86_400, Granularity::Day).unwrap()
}
