//! Taking the projected part out of an item.

use std::collections::BTreeMap;

use super::ast::{Path, Projection, Step};
use crate::{Item, Value};

/// The paths of a projection as a tree: what is wanted below one place.
#[derive(Default)]
struct Wanted<'a> {
    whole: bool,
    below: BTreeMap<&'a Step, Wanted<'a>>,
}

impl Projection {
    /// What the projection gives back of an item. Elements taken out of a list close up, in the
    /// list's order.
    pub fn apply(&self, item: &Item) -> Item {
        let mut roots: BTreeMap<&str, Wanted<'_>> = BTreeMap::new();
        for Path { root, rest } in &self.paths {
            let place = rest
                .iter()
                .fold(roots.entry(root).or_default(), |place, step| place.below.entry(step).or_default());
            place.whole = true;
        }
        let picked = roots.iter().filter_map(|(name, wanted)| {
            let value = item.get(*name)?;
            Some(((*name).to_owned(), wanted.pick(value)?))
        });
        picked.collect()
    }
}

impl Wanted<'_> {
    fn pick(&self, value: &Value) -> Option<Value> {
        if self.whole {
            return Some(value.clone());
        }
        match value {
            Value::M(map) => {
                let picked: Item = self
                    .below
                    .iter()
                    .filter_map(|(step, wanted)| match step {
                        Step::Name(name) => Some((name.clone(), wanted.pick(map.get(name)?)?)),
                        Step::Index(_) => None,
                    })
                    .collect();
                (!picked.is_empty()).then_some(Value::M(picked))
            }
            Value::L(list) => {
                let picked: Vec<Value> = self
                    .below
                    .iter()
                    .filter_map(|(step, wanted)| match step {
                        Step::Index(index) => wanted.pick(list.get(*index)?),
                        Step::Name(_) => None,
                    })
                    .collect();
                (!picked.is_empty()).then_some(Value::L(picked))
            }
            _ => None,
        }
    }
}
