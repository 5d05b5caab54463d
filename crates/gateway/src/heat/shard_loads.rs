//! What the physical calls of a request ask of single shards, for the hottest keys with shards.
//!
//! A request is drawn before it is planned out, and then each of its calls is read as a client's
//! request is: what it costs, and of which physical key. The key says which shard of which logical
//! key that is, whatever the strategy, and also while the key moves.
//!
//! Not here: counting itself (`heatsink_heat::detect`), the calls of the movers, which are no
//! client's.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heatsink_dynamo::{Error, KeyType, Operation};
use heatsink_env::Env;
use heatsink_heat::detect::{Access, Key, PartHeat, PartName, ShownKey};
use heatsink_layout::LayoutSource;

use super::accesses::{Answered, Found};
use super::asked_capacity::AskedRequest;
use super::counted::{DrawnRequest, Figures};
use super::counting::{Heat, millis};
use super::layouts::{self, Layouts, key_bytes};

/// A request whose physical calls are counted.
#[derive(Clone, Copy)]
pub(crate) struct CountedCalls<'a> {
    pub(crate) heat: &'a Heat,
    /// How it is counted.
    pub(crate) drawn: DrawnRequest,
    /// What the request was planned by.
    pub(crate) layouts: &'a dyn LayoutSource,
    pub(crate) env: &'a dyn Env,
    /// What its calls cost.
    pub(crate) figures: &'a Figures,
}

impl CountedCalls<'_> {
    /// A call on its way to the store.
    pub(crate) fn asking(&self, operation: Operation, body: Bytes) -> AskedRequest {
        self.drawn.asking(operation, body)
    }

    /// Counts a physical call that was answered so, and cost that.
    #[inline(never)]
    #[cold]
    pub(crate) fn count(
        &self,
        operation: Operation,
        body: &[u8],
        answer: Result<&[u8], &Error>,
        figures: Option<Bytes>,
    ) {
        if self.heat.lock().detector.measures_shards() {
            let (asked, figures) = (self.drawn.asks, figures.as_slice());
            self.count_shards(Answered { operation, body, answer, asked, figures });
        }
        self.figures.add(figures);
    }

    fn count_shards(&self, call: Answered<'_>) {
        let now = self.env.now();
        let draw = self.drawn.draw;
        let found = self.heat.find(call, self.heat.choose(draw, call.operation), now, false);
        let detector = &mut self.heat.lock().detector;
        for one in &found {
            let Some((kind, physical)) = &one.key else { continue };
            // Keys of indexes have shards of their own, which no row shows.
            let Some(PartName { table: Some(name), index: None, .. }) = detector.name(one.part) else {
                continue;
            };
            let Some(table) = self.layouts.table(name) else { continue };
            let Some(physical) = key_bytes(*kind, physical) else { continue };
            let (logical, Some(slot)) = table.decode(&physical) else { continue };
            let logical = match kind {
                KeyType::B => Cow::Owned(STANDARD.encode(logical).into_bytes()),
                KeyType::S | KeyType::N => Cow::Borrowed(logical),
            };
            let key = Some(Key { kind: *kind, text: &logical });
            let Found { part, cost, outcome, .. } = *one;
            let (units, weight) = (cost.units, draw.weight());
            let access = Access { key, units, outcome, weight, ..Access::default() };
            detector.count_shard(millis(now), part, slot.shard, &access);
        }
    }
}

impl Heat {
    /// The shards of the hottest keys are measured from the next window on, those of the last
    /// window being these.
    pub(super) fn measure_shards(&self, parts: &[PartHeat], layouts: &Layouts) {
        let mut sharded: Vec<(f64, &PartName, &ShownKey, Vec<u16>)> = Vec::new();
        for part in parts {
            for heat in &part.keys {
                let slots = layouts::slots(&heat.key, &part.name, layouts);
                if let Some(slots) = slots.filter(|slots| slots.len() > 1) {
                    sharded.push((heat.units_per_s, &part.name, &heat.key, slots));
                }
            }
        }
        sharded.sort_by(|a, b| b.0.total_cmp(&a.0));
        let keys = sharded.into_iter().map(|(_, name, key, slots)| (name, key, slots));
        self.lock().detector.measure_shards(keys);
    }
}
