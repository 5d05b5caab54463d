//! What an operation costs in capacity units.
//!
//! Rules: AWS ("Read and write operations", "Transactions"). Sizes are in bytes, as [`crate::size`]
//! counts them. Eventually consistent reads cost halves, so reads are counted in half units and
//! given as units.

const READ_UNIT: usize = 4 * 1024;
const WRITE_UNIT: usize = 1024;

/// How a read is done; decides its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consistency {
    /// Half a unit for 4 KB.
    Eventual,
    /// One unit for 4 KB.
    Strong,
    /// Two units for 4 KB.
    Transactional,
}

impl Consistency {
    /// What a request's `ConsistentRead` asks for.
    pub const fn of(consistent_read: bool) -> Self {
        if consistent_read { Consistency::Strong } else { Consistency::Eventual }
    }

    const fn units_per_block(self) -> f64 {
        match self {
            Consistency::Eventual => 0.5,
            Consistency::Strong => 1.0,
            Consistency::Transactional => 2.0,
        }
    }
}

/// Units for one item read by its key, or for one page of a Query or Scan: pass the sum of the
/// sizes of all evaluated items, since a page is rounded up once. An absent item, or an empty page,
/// costs the minimum.
pub fn read_units(bytes: usize, consistency: Consistency) -> f64 {
    blocks(bytes, READ_UNIT) * consistency.units_per_block()
}

/// Units for a `BatchGetItem` or `TransactGetItems`: every item is rounded up by itself.
pub fn batch_read_units(sizes: impl IntoIterator<Item = usize>, consistency: Consistency) -> f64 {
    sizes.into_iter().map(|bytes| read_units(bytes, consistency)).sum()
}

/// Units for writing one item: the larger of the sizes before and after. Absent is 0. A delete
/// counts what it deletes, a failed condition what would have been written or what was there.
pub fn write_units(before: usize, after: usize) -> f64 {
    blocks(before.max(after), WRITE_UNIT)
}

/// Units for one item of `TransactWriteItems`: twice as many; consumed even when the transaction is
/// cancelled.
pub fn transact_write_units(before: usize, after: usize) -> f64 {
    2.0 * write_units(before, after)
}

/// Rounded up, at least one block.
fn blocks(bytes: usize, block: usize) -> f64 {
    // Far below 2^53.
    bytes.div_ceil(block).max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: usize = 1024;

    /// The examples that AWS's documentation gives (AWS, "Read and write operations").
    #[test]
    fn units_are_those_that_aws_documents() {
        use Consistency::{Eventual, Strong, Transactional};
        assert_eq!(read_units(4 * KB, Strong), 1.0);
        assert_eq!(read_units(4 * KB + 1, Strong), 2.0);
        assert_eq!(read_units(0, Eventual), 0.5);
        assert_eq!(read_units(8 * KB, Transactional), 4.0);
        // BatchGetItem: 1.5 KB and 6.5 KB count as 12 KB.
        assert_eq!(batch_read_units([3 * KB / 2, 13 * KB / 2], Strong), 3.0);
        // Query: 40.8 KB count as 44 KB; 1,500 items of 64 B as 96 KB.
        assert_eq!(read_units(408 * KB / 10, Strong), 11.0);
        assert_eq!(read_units(1500 * 64, Strong), 24.0);
        // BatchWriteItem: 500 B and 3.5 KB take 5 units.
        assert_eq!(write_units(0, 500) + write_units(0, 7 * KB / 2), 5.0);
        // A failed condition from 300 to 310 KB takes 310.
        assert_eq!(write_units(300 * KB, 310 * KB), 310.0);
        assert_eq!(write_units(0, 0), 1.0);
        assert_eq!(transact_write_units(3 * KB / 2, 0), 4.0);
        // 20 KB strongly consistent: 5 units; 600 a second are one partition's 3,000.
        assert_eq!(600.0 * read_units(20 * KB, Strong), 3000.0);
    }
}
