//! Runs a case, and cuts a failing one down.

use std::collections::BTreeMap;

use crate::{compare, physical};
use crate::generate::Step;
use crate::schema::Table;
use crate::world::{self, World};

/// How often which refusal by design was met.
pub type Skipped = BTreeMap<&'static str, usize>;

/// Tables, rules and the requests to send.
#[derive(Clone)]
pub struct Case {
    pub rules: &'static str,
    pub tables: Vec<Table>,
    pub steps: Vec<Step>,
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
        self.run_counting(&mut Skipped::new())
    }

    /// [`run`](Self::run) that counts the steps that sharded tables refuse by design: the unsharded store is spared them.
    pub fn run_counting(&self, skipped: &mut Skipped) -> Option<Mismatch> {
        let plain = world::unsharded(&self.tables);
        let sharded = World::new(&self.tables, self.rules);
        for (at, step) in self.steps.iter().enumerate() {
            let right = compare::run(&sharded.service, step);
            if let Some(refusal) = compare::refused_by_design(&right) {
                *skipped.entry(refusal).or_default() += 1;
                continue;
            }
            let left = compare::run(&*plain, step);
            if let Some(what) = compare::difference(&self.tables, step, &left, &right) {
                return Some(Mismatch { step: at, what });
            }
        }
        physical::misplaced(&self.tables, &*plain, &sharded)
            .map(|what| Mismatch { step: self.steps.len().saturating_sub(1), what })
    }

    /// The same failure with as few steps as removing them one chunk at a time gets to.
    pub fn shrink(&self, mut mismatch: Mismatch) -> (Case, Mismatch) {
        let mut small = Case { steps: self.steps[..=mismatch.step].to_vec(), ..self.clone() };
        let mut chunk = small.steps.len() / 2;
        while chunk > 0 {
            let mut at = 0;
            while at < small.steps.len() {
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
