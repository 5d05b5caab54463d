//! Who took write units of the partition that the key leaves, while its items moved. The
//! partition's own count is divided up.
//!
//! Not here: throttles and latencies (`report`).

use heatsink_layout::{By, Hash, Layout, SortKey, Strategy, codec};
use heatsink_physics::{PartitionSnapshot, position};
use serde::Serialize;

use super::ledger::Ledger;
use super::options::KEY;
use super::reached::{Moved, Reached};

/// Write units of the old shard's partition that an item's move takes.
const UNITS: u32 = 4;

/// Write units of the partition that the key leaves, from the cutover until the move ended.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Drained {
    /// Seconds from the cutover until the move ended.
    pub seconds: f64,
    /// All that it took.
    pub write_units: f64,
    /// What the mover took.
    pub by_mover: f64,
    /// Accepted puts whose shard is in that partition after the move, too: of 1 unit each.
    pub by_puts_that_stay: f64,
    /// The rest. Puts without condition take nothing of it: then it is no more than the puts that
    /// were under way at the cutover and at the end.
    pub by_others: f64,
    /// What the mover took ÷ what others left of the units that it may take.
    pub mover_share: f64,
}

impl Drained {
    /// `reached` has the cutover and the end; `partitions` are those of the table.
    pub fn new(
        ledger: &Ledger,
        reached: &[Reached],
        moved: &Moved,
        partitions: &[PartitionSnapshot],
    ) -> Option<Drained> {
        let when = |what: &str| reached.iter().find(|one| one.what == what);
        let (cutover, end) = (when("MOVE")?, when("STABLE")?);
        let seconds = f64::from(end.millis.saturating_sub(cutover.millis).max(1)) / 1_000.0;
        let write_units = end.write_units - cutover.write_units;
        #[allow(clippy::cast_precision_loss, reason = "items of a demo")]
        let by_mover = (moved.items * u64::from(UNITS)) as f64;
        let stays = stays(moved.shards, partitions);
        let accepted = ledger.accepted(cutover.millis, end.millis);
        let by_puts_that_stay = accepted.filter(|sort| stays(sort)).map(|_| 1.0).sum::<f64>();
        let left = f64::from(moved.rate) * seconds - (write_units - by_mover);
        Some(Drained {
            seconds,
            write_units,
            by_mover,
            by_puts_that_stay,
            by_others: write_units - by_mover - by_puts_that_stay,
            mover_share: by_mover / left.max(1.0),
        })
    }
}

/// Write units that the key's partition has taken since the start.
pub fn write_units(partitions: &[PartitionSnapshot]) -> f64 {
    partitions.iter().filter(|one| holds(one, position(KEY.as_bytes()))).map(|one| one.writes).sum()
}

fn holds(partition: &PartitionSnapshot, position: u64) -> bool {
    (partition.first..=partition.last).contains(&position)
}

/// Whether an item with that sort key lies in the key's partition, when the key has so many shards.
fn stays(shards: u16, partitions: &[PartitionSnapshot]) -> impl Fn(&str) -> bool {
    let strategy = Strategy::calculated(By::SortKey);
    let layout = Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 };
    let own: Vec<&PartitionSnapshot> =
        partitions.iter().filter(|one| holds(one, position(KEY.as_bytes()))).collect();
    let in_own = |shard| {
        let physical = codec::encode(KEY.as_bytes(), shard);
        physical.is_ok_and(|key| own.iter().any(|one| holds(one, position(&key))))
    };
    let own: Vec<bool> = (0..shards).map(in_own).collect();
    move |sort| own.get(usize::from(layout.shard_of(Some(SortKey::S(sort))))).copied().unwrap_or(false)
}
