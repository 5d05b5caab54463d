//! What moves cost, before any is made: numbers for people.

use heatsink_layout::Layout;

use crate::key::wanted::by;

/// The size of an item as writes count it.
pub(crate) fn kilobytes(bytes: u64) -> u64 {
    bytes.div_ceil(1024).max(1)
}

/// Write units that moving so many items takes which have so many bytes: a put and a check, a check
/// and a delete, each counted twice, and twice the check of a permit, all by the item's size but the
/// last.
pub(crate) fn write_units(items: u64, of_item: u64) -> u64 {
    items * (8 * kilobytes(of_item) + 4)
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number for people")]
pub(crate) fn as_count(number: f64) -> u64 {
    number.ceil() as u64
}

/// On-demand prices of us-east-1: $0.625 a million write units, $0.125 a million read units (AWS,
/// "Pricing for On-Demand Capacity").
#[allow(clippy::cast_precision_loss, reason = "a price for people")]
pub(crate) fn dollars(write_units: u64, read_units: u64) -> f64 {
    (write_units as f64 * 0.625 + read_units as f64 * 0.125) / 1e6
}

/// About how many of so many items move, as far as the hash tells before they are read: of those in
/// slots that items may leave.
#[allow(clippy::cast_precision_loss, reason = "a number for people")]
pub(crate) fn moving_of(items: u64, from: &Layout, to: &Layout) -> u64 {
    let (fewer, more) = (from.shards.min(to.shards), from.shards.max(to.shards));
    if from.spreads_as(to) {
        return items;
    }
    let kept = (0..fewer).filter(|shard| from.slot_number(*shard) == to.slot_number(*shard)).count();
    let stays = if fewer == 1 || by(from) == by(to) { kept } else { 1 };
    as_count((items as f64 * (1.0 - stays as f64 / f64::from(more))).round())
}
