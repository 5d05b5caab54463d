//! Runs a case, and cuts a failing one down.

use crate::compare;
use crate::generate::Step;
use crate::schema::Table;
use crate::world;

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
        let plain = world::unsharded(&self.tables);
        let sharded = world::sharded(&self.tables, self.rules);
        self.steps.iter().enumerate().find_map(|(at, step)| {
            let (left, right) = (compare::run(&*plain, step), compare::run(&*sharded, step));
            compare::difference(&self.tables, step, &left, &right).map(|what| Mismatch { step: at, what })
        })
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
