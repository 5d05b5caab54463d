//! Warns of items whose size makes a key hot early: large items (a write costs a unit for each KB,
//! and DynamoDB refuses more than 400 KB), and items a few bytes beyond a KB, of which every write
//! costs one unit too many.
//!
//! Only PutItem is examined. Small requests cost one comparison. The KB boundary matters where a
//! key is hot, so it is examined on sharded tables, in one of [`SAMPLED`] requests.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use heatsink_dynamo::size::{MAX_ITEM, scan_item};
use heatsink_dynamo::{Operation, json};
use heatsink_env::MonotonicInstant;
use metrics::{Counter, counter};

use crate::blocking;

/// The smallest size, in bytes, of a large item: one write of it uses a tenth of a partition's
/// second.
const LARGE: usize = 100 * 1024;
/// The smallest size of an item that will probably be refused soon.
const NEARLY_REFUSED: usize = MAX_ITEM / 10 * 9;
/// The bytes of one write unit.
const UNIT: usize = 1024;
/// The most bytes beyond a unit that count as few: a shorter attribute name would save them.
const FEW: usize = 32;
/// The longest shard suffix: `#~999`.
const SUFFIX: usize = 5;
/// One in this many requests that could be at a unit boundary is measured.
const SAMPLED: u32 = 16;
/// The shortest time between two warnings in the log.
const QUIET: Duration = Duration::from_secs(60);

/// Counts such items, and warns of one of each kind a minute.
pub(crate) struct ItemSizeMonitor {
    large: Counter,
    nearly_refused: Counter,
    just_over: Counter,
    seen: AtomicU32,
    warned_large: Warned,
    warned_edge: Warned,
}

/// The time of the last warning.
#[derive(Default)]
struct Warned(Mutex<Option<MonotonicInstant>>);

impl Warned {
    /// Whether another warning is due. If so, it counts as given.
    fn again(&self, now: MonotonicInstant) -> bool {
        let Ok(mut last) = self.0.lock() else { return false };
        let due = last.is_none_or(|last| now.since(last) >= QUIET);
        if due {
            *last = Some(now);
        }
        due
    }
}

impl ItemSizeMonitor {
    pub(crate) fn new() -> Self {
        let of = |size: &'static str| counter!("heatsink_large_items_total", "size" => size);
        ItemSizeMonitor {
            large: of("over_100_kb"),
            nearly_refused: of("near_400_kb"),
            just_over: counter!("heatsink_items_just_over_a_kb_total"),
            seen: AtomicU32::new(0),
            warned_large: Warned::default(),
            warned_edge: Warned::default(),
        }
    }

    /// Examines a request. `sharded`: whether its table is sharded.
    pub(crate) fn see(&self, operation: Operation, body: &Bytes, sharded: bool, now: MonotonicInstant) {
        if operation != Operation::PutItem || body.len() < UNIT {
            return;
        }
        let sampled = || sharded && self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(SAMPLED);
        if body.len() < LARGE && !sampled() {
            return;
        }
        let size = blocking::run(body.len(), || {
            let item = json::member(body, "Item").ok().flatten()?;
            scan_item(item, []).ok().map(|item| item.bytes)
        });
        let size = size.unwrap_or_default();
        let units = size.div_ceil(UNIT);
        let table = || {
            let name = json::member(body, "TableName").ok().flatten();
            name.and_then(|name| json::string(name).ok()).unwrap_or_default().into_owned()
        };
        if size >= LARGE {
            if size < NEARLY_REFUSED { &self.large } else { &self.nearly_refused }.increment(1);
            if self.warned_large.again(now) {
                tracing::warn!(
                    table = table(),
                    "an item of {size} bytes costs {units} write units a write, of the 1,000 a second that its key has; beyond {MAX_ITEM} bytes \
                     it is refused"
                );
            }
        } else if sharded && size >= UNIT - SUFFIX && (size + SUFFIX - 1) % UNIT < FEW + SUFFIX {
            self.just_over.increment(u64::from(SAMPLED));
            if self.warned_edge.again(now) {
                let edge = (size + SUFFIX - 1) / UNIT;
                tracing::warn!(
                    table = table(),
                    "an item of {size} bytes, to which a shard suffix of up to {SUFFIX} is added, is just over {edge} KB and costs {} write units a \
                     write instead of {edge}: a few bytes fewer, in attribute names for example, make every write of it cheaper",
                    edge + 1
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(bytes: usize) -> Bytes {
        Bytes::from(format!(r#"{{"TableName":"T","Item":{{"pk":{{"S":"{}"}}}}}}"#, "x".repeat(bytes - 2)))
    }

    #[test]
    fn one_warning_a_minute() {
        let monitor = ItemSizeMonitor::new();
        let warned = || *monitor.warned_large.0.lock().unwrap();
        monitor.see(Operation::PutItem, &put(1000), false, MonotonicInstant(0));
        monitor.see(Operation::GetItem, &put(LARGE), false, MonotonicInstant(0));
        assert_eq!(warned(), None);
        monitor.see(Operation::PutItem, &put(LARGE), false, MonotonicInstant(0));
        monitor.see(Operation::PutItem, &put(LARGE), false, MonotonicInstant(0) + QUIET / 2);
        assert_eq!(warned(), Some(MonotonicInstant(0)));
        monitor.see(Operation::PutItem, &put(LARGE), false, MonotonicInstant(0) + QUIET);
        assert_eq!(warned(), Some(MonotonicInstant(0) + QUIET));
    }

    #[test]
    fn just_over_a_kb_is_noticed_on_sharded_tables() {
        let noticed = |bytes: usize, sharded: bool| {
            let monitor = ItemSizeMonitor::new();
            monitor.see(Operation::PutItem, &put(bytes), sharded, MonotonicInstant(0));
            monitor.warned_edge.0.lock().unwrap().is_some()
        };
        // With a suffix of 5 bytes 1,020 bytes are 1,025: one more than a unit pays for.
        for (bytes, expected) in [
            (1_019, false),
            (1_020, true),
            (1_025, true),
            (1_056, true),
            (1_057, false),
            (2_043, false),
            (2_044, true),
        ] {
            assert_eq!(noticed(bytes, true), expected, "{bytes}");
            assert!(!noticed(bytes, false));
        }
        let monitor = ItemSizeMonitor::new();
        for at in 0..SAMPLED {
            monitor.see(Operation::PutItem, &put(3_000), true, MonotonicInstant(0));
            monitor.see(Operation::PutItem, &put(1_030), at == 0, MonotonicInstant(0));
        }
        assert!(monitor.warned_edge.0.lock().unwrap().is_none(), "one in {SAMPLED} is weighed");
    }
}
