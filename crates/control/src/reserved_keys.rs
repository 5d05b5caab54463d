//! Counts client keys that look like physical keys, and logs one warning a minute. They show that
//! code which shards by hand uses the gateway, and readers of the logical key do not find its
//! items.

use std::sync::Mutex;
use std::time::Duration;

use heatsink_env::MonotonicInstant;
use heatsink_layout::{PhysicalKeys, Table};
use metrics::{Counter, counter};

/// The shortest time between two warnings in the log.
const QUIET: Duration = Duration::from_secs(60);

/// Counts such keys.
pub(crate) struct ReservedKeyMonitor {
    accepted: Counter,
    refused: Counter,
    as_shard: Counter,
    warned: Mutex<Option<MonotonicInstant>>,
}

impl ReservedKeyMonitor {
    pub fn new() -> Self {
        let of = |taken: &'static str| counter!("heatsink_physical_keys_total", "taken" => taken);
        ReservedKeyMonitor {
            accepted: of("accept"),
            refused: of("refuse"),
            as_shard: of("as_shard"),
            warned: Mutex::default(),
        }
    }

    /// Counts a client's key if it looks like a physical key, and returns what becomes of it.
    pub fn see(&self, table: &Table, key: &[u8], now: MonotonicInstant) -> Option<PhysicalKeys> {
        let taken = table.written_as_physical(key)?;
        let (counter, what) = match taken {
            PhysicalKeys::Accept => (&self.accepted, "it is taken as a logical key of its own"),
            PhysicalKeys::Refuse => (&self.refused, "it is refused"),
            PhysicalKeys::AsShard => (&self.as_shard, "it is taken as that shard"),
        };
        counter.increment(1);
        if self.is_due(now) {
            tracing::warn!(
                table = table.name,
                "a client sends the key {:?}, which is written like a shard of {:?}: {what}. Code that still shards by hand should send \
                 logical keys; `physical_keys` in the rule says what becomes of the others",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(table.logical(key)),
            );
        }
        Some(taken)
    }

    fn is_due(&self, now: MonotonicInstant) -> bool {
        let Ok(mut last) = self.warned.lock() else { return false };
        let due = last.is_none_or(|last| now.since(last) >= QUIET);
        if due {
            *last = Some(now);
        }
        due
    }
}
