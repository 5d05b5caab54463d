//! The effect of ranges: which of a key's ranges of the sort key a request reads or writes.

use std::sync::Arc;

use heatsink_physics::Demand;

use crate::key_sampler::KeySet;
use crate::sampled_requests::Fill;
use crate::scenario::{Loaded, Operation, Page, Sort, Workload};
use crate::sizes::item_bytes;

use super::shards::{narrow, shard_of_part};

/// The physical keys of a workload's keys, one for each range.
pub(super) struct Ranges<'a> {
    pub workload: &'a Workload,
    pub keys: &'a KeySet,
    pub parts: Option<&'a KeySet>,
    /// By key and range.
    pub positions: &'a Arc<[u64]>,
    /// How many each key has.
    pub count: u64,
}

impl Ranges<'_> {
    /// The physical requests of a query, which are sent by itself each. `of` is one that reads so
    /// many bytes.
    pub(super) fn page(&self, loaded: &Loaded, of: impl Fn(u64) -> Demand) -> Vec<(Demand, Fill)> {
        let Workload { sort, page, .. } = self.workload;
        let opened = self.opened(loaded);
        let last = narrow(self.count) - 1;
        let each = opened.into_iter().enumerate().map(|(nth, items)| {
            let fill = match (page, sort) {
                (Some(Page::Any), _) => self.drawn(),
                (Some(Page::First), _) | (None, Sort::One) => self.range(nth),
                (Some(Page::Last), _) | (None, _) => self.range(last - nth),
            };
            (of(items * item_bytes(self.workload)), fill)
        });
        each.collect()
    }

    /// Where an item is written, or read by its key.
    pub(super) fn item(&self, operation: Operation) -> Fill {
        match (self.workload.sort, self.parts) {
            (Sort::Ascending, _) => self.range(narrow(self.count) - 1),
            (Sort::One, None) => self.range(0),
            // A part's item stays where it is: as good as anywhere.
            (_, Some(parts)) if operation != Operation::Put => Fill::Sharded {
                positions: Arc::clone(self.positions),
                shard: parts.names.iter().map(|part| shard_of_part(part, self.count)).collect(),
                shards: narrow(self.count),
            },
            _ => self.drawn(),
        }
    }

    /// The items that each of the ranges that a page opens is asked for: one range, then two, four,
    /// until the page is full.
    fn opened(&self, loaded: &Loaded) -> Vec<u64> {
        let limit = self.workload.limit.map_or(1, |limit| limit.0);
        let table = loaded.scenario.table.iter().find(|table| table.name == self.workload.table);
        let items = table.and_then(|table| table.items).map_or(u64::MAX, |items| items.0);
        let held = (items / self.keys.names.len() as u64 / self.count).max(1);
        let (mut left, mut opened, mut at_once) = (limit, Vec::new(), 1);
        while left > 0 && opened.len() < narrow(self.count) {
            let here = at_once.min(narrow(self.count) - opened.len());
            opened.extend(std::iter::repeat_n(left.min(held), here));
            left = left.saturating_sub(held.saturating_mul(here as u64));
            at_once *= 2;
        }
        opened
    }

    fn range(&self, number: usize) -> Fill {
        let of_key = self.positions.chunks(narrow(self.count));
        Fill::Key(of_key.filter_map(|ranges| ranges.get(number).copied()).collect())
    }

    fn drawn(&self) -> Fill {
        Fill::Drawn { positions: Arc::clone(self.positions), shards: narrow(self.count) }
    }
}
