//! How much work an expression is for an evaluator that copies what it reads and joins sets member
//! by member.
//!
//! The unit is a byte copied or compared once. Up to 16 million it is an upper bound, for whoever
//! has to know beforehand that an evaluation will be short. The evaluators here
//! ([`Condition::holds`], [`Update::resolved`]) do better than that.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::ast::{Assigned, Condition, Operand, Path, Update};
use super::path;
use crate::size::value_size;
use crate::{Item, Value};

/// What is known of the item.
#[derive(Clone, Copy, Debug)]
pub enum Extent<'a> {
    /// That it has at most so many bytes.
    AtMost(usize),
    /// All.
    Of(&'a Measured<'a>),
}

/// An item, and the sizes that were asked of it: an expression can name the same large attribute
/// hundreds of times.
#[derive(Debug)]
pub struct Measured<'a> {
    item: &'a Item,
    sizes: RefCell<BTreeMap<Path, usize>>,
}

impl<'a> Measured<'a> {
    /// An item of which nothing was asked yet.
    pub fn new(item: &'a Item) -> Self {
        Measured { item, sizes: RefCell::default() }
    }

    fn size(&self, path: &Path) -> usize {
        if let Some(size) = self.sizes.borrow().get(path) {
            return *size;
        }
        let size = path::get(self.item, path).map_or(0, value_size);
        self.sizes.borrow_mut().insert(path.clone(), size);
        size
    }
}

/// Members of lists and sets are compared one by one, and numbers are parsed for it.
const ELEMENTS: usize = 16;
/// Costs are not added up beyond this: it would be work itself.
const PLENTY: usize = 1 << 24;
/// So many bytes are compared in the time in which one is copied as a part of a small element.
const COMPARED_AT_ONCE: usize = 128;

impl Condition {
    /// The work of one evaluation that stops nowhere.
    pub fn cost(&self, extent: Extent<'_>) -> usize {
        match self {
            Condition::And(all) | Condition::Or(all) => sum(all.iter().map(|one| one.cost(extent))),
            Condition::Not(inner) => inner.cost(extent),
            Condition::Exists(path) | Condition::NotExists(path) | Condition::Type(path, _) => {
                extent.size(path)
            }
            Condition::Compare(left, _, right) => compared(left, right, extent),
            Condition::Between(value, low, high) => {
                sum([value, low, high].map(|operand| operand.cost(extent)))
            }
            Condition::In(value, list) => sum(list.iter().map(|one| compared(value, one, extent))),
            Condition::BeginsWith(text, prefix) => sum([text.cost(extent), prefix.cost(extent)]),
            Condition::Contains(whole, part) => {
                let (whole, length) = (whole.cost(extent), part.cost(extent));
                let searched = whole.saturating_mul(length) / COMPARED_AT_ONCE;
                sum([whole.saturating_mul(ELEMENTS), length, searched])
            }
        }
    }
}

impl Update {
    /// The work of applying it once.
    pub fn cost(&self, extent: Extent<'_>) -> usize {
        let set = sum(self.set.iter().map(|(_, value)| value.weigh(extent).cost));
        let removed = sum(self.remove.iter().map(|path| extent.size(path)));
        let joined = self.add.iter().chain(&self.delete).map(|(path, value)| {
            let there = extent.size(path);
            sum([there, value_size(value), there.saturating_mul(members(value))])
        });
        sum([set, removed, sum(joined)])
    }
}

/// What one value costs to work out, and its size; both at most.
#[derive(Clone, Copy)]
pub(super) struct Weight {
    cost: usize,
    pub(super) size: usize,
}

impl Assigned {
    pub(super) fn weigh(&self, extent: Extent<'_>) -> Weight {
        let copied = |size| Weight { cost: size, size };
        match self {
            Assigned::Path(path) => copied(extent.size(path)),
            Assigned::Value(value) => copied(value_size(value)),
            Assigned::IfNotExists(path, default) => {
                let (there, default) = (extent.size(path), default.weigh(extent));
                let size = if extent.has(path) { there } else { there.max(default.size) };
                Weight { cost: sum([there, default.cost]), size }
            }
            Assigned::ListAppend(a, b) => {
                let (a, b) = (a.weigh(extent), b.weigh(extent));
                let size = sum([a.size, b.size]);
                Weight { cost: sum([a.cost, b.cost, size]), size }
            }
            Assigned::Plus(a, b) | Assigned::Minus(a, b) => {
                Weight { cost: sum([a.weigh(extent).cost, b.weigh(extent).cost]), size: 0 }
            }
        }
    }
}

impl Operand {
    fn cost(&self, extent: Extent<'_>) -> usize {
        match self {
            Operand::Path(path) => extent.size(path),
            Operand::Value(value) => value_size(value),
            Operand::Size(inner) => inner.cost(extent),
        }
    }
}

impl Extent<'_> {
    fn size(self, path: &Path) -> usize {
        match self {
            Extent::AtMost(bytes) => bytes,
            Extent::Of(measured) => measured.size(path),
        }
    }

    /// Whether the item is known to have what the path names.
    fn has(self, path: &Path) -> bool {
        matches!(self, Extent::Of(measured) if path::get(measured.item, path).is_some())
    }

    /// The most members that a set at the operand can have.
    fn members(self, operand: &Operand) -> usize {
        match (operand, self) {
            (Operand::Value(value), _) => members(value),
            (Operand::Path(path), Extent::Of(measured)) => path::get(measured.item, path).map_or(0, members),
            (Operand::Path(_), Extent::AtMost(bytes)) => bytes,
            (Operand::Size(_), _) => 0,
        }
    }
}

fn compared(left: &Operand, right: &Operand, extent: Extent<'_>) -> usize {
    let (a, b) = (left.cost(extent), right.cost(extent));
    let sets = extent.members(left) > 0 && extent.members(right) > 0;
    sum([a, b]).saturating_mul(if sets { ELEMENTS } else { 1 })
}

/// The members of the largest set in a value.
fn members(value: &Value) -> usize {
    match value {
        Value::Ss(set) => set.len(),
        Value::Ns(set) => set.len(),
        Value::Bs(set) => set.len(),
        Value::L(list) => list.iter().map(members).max().unwrap_or(0),
        Value::M(map) => map.values().map(members).max().unwrap_or(0),
        Value::S(_) | Value::N(_) | Value::B(_) | Value::Bool(_) | Value::Null => 0,
    }
}

/// The sum; what is beyond [`PLENTY`] is not worked out.
fn sum(all: impl IntoIterator<Item = usize>) -> usize {
    let mut sum = 0_usize;
    for one in all {
        sum = sum.saturating_add(one);
        if sum > PLENTY {
            break;
        }
    }
    sum
}
