//! Writes of one item that go as one at the gateways.

use std::collections::HashMap;

use heatsink_physics::{Demand, KeyRange};

use crate::schedule::TICK;

/// How much longer a write takes than one that is sent at once: it waits for the one that is under
/// way, half of it on average.
pub(crate) const WAITS: f64 = 1.5;

/// The writes of a stream whose rule combines them.
#[derive(Clone, Debug)]
pub(crate) struct Combined {
    /// How long the store takes for one, in nanoseconds: a gateway has one of an item under way.
    latency: u64,
    gateways: u64,
    /// By the item's place.
    items: HashMap<KeyRange, Item>,
}

/// The writes of one item since the last begin of a tick or of a call.
#[derive(Clone, Copy, Debug, Default)]
struct Item {
    until: u64,
    /// How many gateways may still send a write.
    free: u64,
    sent: u64,
    accepted: u64,
}

impl Combined {
    pub(crate) fn new(latency: u64, gateways: u64) -> Combined {
        Combined { latency, gateways, items: HashMap::new() }
    }

    /// Offers `count` equal writes of the tick that begins `now`; how many are accepted. `send`
    /// offers so many to the partitions. The others have the outcome of those that were sent.
    pub(crate) fn offer(
        &mut self,
        now: u64,
        asks: &[Demand],
        count: u64,
        send: impl FnOnce(u64) -> u64,
    ) -> u64 {
        let Some(first) = asks.first() else { return send(count) };
        let item = self.items.entry(first.place).or_default();
        if item.until < now + TICK {
            let begun = item.until.max(now);
            let times = (now + TICK - begun).div_ceil(self.latency);
            *item = Item {
                until: begun + times * self.latency,
                free: times * self.gateways,
                sent: 0,
                accepted: 0,
            };
        }
        let sent = count.min(item.free);
        let accepted = if sent > 0 { send(sent) } else { 0 };
        item.free -= sent;
        item.sent += sent;
        item.accepted += accepted;
        accepted + (count - sent) * item.accepted / item.sent.max(1)
    }
}
