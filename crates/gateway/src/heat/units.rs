//! What a request costs, by the sizes of bodies: in thousandths of capacity units.
//!
//! An item's JSON is never shorter than its size, so up to one block the cost is exact. Beyond it
//! the size is the length times a ratio that is measured for each table. What a filter or a
//! projection leaves out is not in the answer: see docs/explain/heat.md.

use std::sync::atomic::{AtomicU32, Ordering};

use heatsink_dynamo::capacity::{Consistency, read_units, write_units};
use heatsink_dynamo::json;
use heatsink_dynamo::size::scan_item;

/// Of the long items one in so many is measured.
const MEASURED: u32 = 64;
const READ_BLOCK: usize = 4 * 1024;
const WRITE_BLOCK: usize = 1024;

/// What share of the JSON of a table's items is theirs, in thousandths.
#[derive(Debug)]
pub(super) struct Ratio {
    thousandths: AtomicU32,
    seen: AtomicU32,
}

impl Default for Ratio {
    fn default() -> Self {
        Ratio { thousandths: AtomicU32::new(850), seen: AtomicU32::new(0) }
    }
}

impl Ratio {
    /// The size of items whose JSON is so long.
    pub(super) fn of(&self, length: usize) -> usize {
        length.saturating_mul(self.thousandths.load(Ordering::Relaxed) as usize) / 1_000
    }

    /// The size of an item by its JSON; measured now and then, and where escapes make the JSON much
    /// longer than the item.
    fn item(&self, raw: &[u8]) -> usize {
        let escaped = memchr::memchr(b'\\', raw).is_some();
        if (self.seen.fetch_add(1, Ordering::Relaxed).is_multiple_of(MEASURED) || escaped)
            && let Ok(item) = scan_item(raw, [])
        {
            let size = item.bytes;
            if escaped {
                return size;
            }
            let now = u32::try_from(size.saturating_mul(1_000) / raw.len().max(1)).unwrap_or(1_000);
            let before = self.thousandths.load(Ordering::Relaxed);
            self.thousandths.store((before * 3 + now.min(1_000)) / 4, Ordering::Relaxed);
            return size;
        }
        self.of(raw.len())
    }

    /// A write of that item: its size and its cost.
    pub(super) fn write(&self, item: &[u8]) -> (usize, u64) {
        let size = if item.len() <= WRITE_BLOCK { self.of(item.len()) } else { self.item(item) };
        (size, thousandths(write_units(0, size)))
    }

    /// The cost of a write of that item, measured.
    pub(super) fn write_exact(&self, item: &[u8]) -> u64 {
        let size = scan_item(item, []).map_or_else(|_| self.of(item.len()), |item| item.bytes);
        thousandths(write_units(0, size))
    }

    /// A read that is answered with items of that length.
    pub(super) fn read(&self, length: usize, consistency: Consistency) -> (usize, u64) {
        let size = if length <= READ_BLOCK { length } else { self.of(length) };
        (self.of(length), thousandths(read_units(size, consistency)))
    }

    /// The same for one item, of which the answer holds the JSON.
    pub(super) fn read_item(&self, answer: &[u8], consistency: Consistency) -> (usize, u64) {
        let item = (answer.len() > READ_BLOCK).then(|| json::member(answer, "Item").ok().flatten()).flatten();
        match item {
            Some(item) => {
                let size = self.item(item);
                (size, thousandths(read_units(size, consistency)))
            }
            None => self.read(answer.len(), consistency),
        }
    }
}

/// Units in thousandths.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` cuts to the range")]
pub(super) fn thousandths(units: f64) -> u64 {
    (units * 1_000.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_exact_up_to_a_block_and_near_beyond() {
        let ratio = Ratio::default();
        let item = |length: usize| format!(r#"{{"pk":{{"S":"a"}},"note":{{"S":"{}"}}}}"#, "x".repeat(length));
        assert_eq!(ratio.write(item(900).as_bytes()).1, 1_000);
        assert_eq!(ratio.read(4_096, Consistency::Eventual).1, 500);
        assert_eq!(ratio.write(item(2_500).as_bytes()).1, 3_000);
        for _ in 0..2_000 {
            ratio.write(item(2_500).as_bytes());
        }
        assert_eq!(ratio.write(item(5_500).as_bytes()).1, 6_000);
        let answer = format!(r#"{{"Item":{}}}"#, item(9_000));
        assert_eq!(ratio.read_item(answer.as_bytes(), Consistency::Strong).1, 3_000);
        // A number has fewer bytes than its JSON, so the ratio is not that of the other items.
        let numbers =
            format!(r#"{{"pk":{{"S":"a"}},"n":{{"NS":["{}"]}}}}"#, vec!["12345"; 1_000].join("\",\""));
        assert_eq!(ratio.write_exact(numbers.as_bytes()), 4_000);
    }
}
