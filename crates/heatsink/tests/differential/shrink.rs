//! Runs a case, and cuts a failing one down.

use std::collections::BTreeMap;

use crate::generate::Step;
use crate::judge::Judge;
use crate::schema::Table;
use crate::together::{self, Moved};
use crate::world::{self, World};
use crate::{compare, lacking, moving, outside, physical, recorded, valued};

/// What a run met.
#[derive(Debug, Default)]
pub struct Tally {
    /// How often which refusal by design was met.
    pub skipped: BTreeMap<&'static str, usize>,
    /// Steps of each operation, and how many of them both stores accepted.
    pub steps: BTreeMap<String, (usize, usize)>,
}

impl Tally {
    /// Adds another's counts.
    pub fn add(&mut self, other: Tally) {
        other
            .skipped
            .into_iter()
            .for_each(|(refusal, times)| *self.skipped.entry(refusal).or_default() += times);
        for (operation, (steps, accepted)) in other.steps {
            let sum = self.steps.entry(operation).or_default();
            *sum = (sum.0 + steps, sum.1 + accepted);
        }
    }
}

/// Tables, rules and the requests to send.
#[derive(Clone)]
pub struct Case {
    pub rules: String,
    pub tables: Vec<Table>,
    pub steps: Vec<Step>,
    /// Collections are larger than a page: where pages end is not compared.
    pub large: bool,
    /// The kind of both stores.
    pub judge: Judge,
}

/// Where two answers differ.
pub struct Mismatch {
    /// The step that showed it.
    pub step: usize,
    pub what: String,
}

impl Case {
    /// The first difference, on fresh stores.
    pub fn run(&self) -> Option<Mismatch> {
        self.run_counting(&mut Tally::default())
    }

    /// [`run`](Self::run) that counts. Steps that sharded tables refuse by design are spared the
    /// unsharded store.
    pub fn run_counting(&self, tally: &mut Tally) -> Option<Mismatch> {
        let plain = world::unsharded(self.judge, &self.tables);
        let sharded = World::new(self.judge, &self.tables, &self.rules);
        for (at, step) in self.steps.iter().enumerate() {
            if outside::has(&self.rules) {
                outside::stir(&self.tables, &sharded, step);
            }
            if recorded::moves(&self.rules) {
                moving::stir(&self.tables, &sharded, step);
            }
            if valued::beside(&self.rules) {
                valued::stir(&self.tables, &sharded, step);
            }
            let known = sharded.service.moved.as_ref().map(Moved::newest);
            let mut right = compare::run(&sharded.service, step);
            if known != sharded.service.moved.as_ref().map(Moved::newest)
                && together::is_to_begin_again(&right)
            {
                *tally.skipped.entry("begun again").or_default() += 1;
                continue;
            }
            if let Some(refusal) = compare::refused_by_design(step, &right) {
                *tally.skipped.entry(refusal).or_default() += 1;
                continue;
            }
            let mut left = compare::run(&*plain, step);
            if self.judge == Judge::DynamoDbLocal {
                [&mut left, &mut right]
                    .into_iter()
                    .for_each(|answer| lacking::canonical_sums(&self.rules, answer));
            }
            let counts = tally.steps.entry(step.operation.clone()).or_default();
            *counts = (counts.0 + 1, counts.1 + usize::from(left.error.is_none()));
            if let Some(what) = compare::difference(self, step, &left, &right) {
                return Some(Mismatch { step: at, what });
            }
        }
        sharded.service.moved.iter().for_each(Moved::end_all);
        physical::misplaced(self, &*plain, &sharded)
            .map(|what| Mismatch { step: self.steps.len().saturating_sub(1), what })
    }

    /// The same failure with as few steps as removing them one chunk at a time gets to, within so
    /// many tries as the judge bears.
    pub fn shrink(&self, mut mismatch: Mismatch) -> (Case, Mismatch) {
        let mut small = Case { steps: self.steps[..=mismatch.step].to_vec(), ..self.clone() };
        let mut chunk = small.steps.len() / 2;
        let mut tries = self.judge.most_tries();
        while chunk > 0 && tries > 0 {
            let mut at = 0;
            while at < small.steps.len() && tries > 0 {
                tries -= 1;
                let mut fewer = small.clone();
                fewer.steps.drain(at..(at + chunk).min(fewer.steps.len()));
                match fewer.run() {
                    Some(found) => {
                        fewer.steps.truncate(found.step + 1);
                        (small, mismatch) = (fewer, found);
                    }
                    None => at += chunk,
                }
            }
            chunk /= 2;
        }
        (small, mismatch)
    }
}
