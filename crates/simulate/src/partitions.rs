//! How many partitions a table begins with, as far as its capacity says.

use heatsink_physics::{Mode, PARTITION_READS, PARTITION_WRITES};

use crate::scenario::{ModeName, Table};

/// The partitions of a table, where its capacity says how many.
pub(crate) fn partitions(table: &Table) -> Option<u32> {
    let partitions = match table.mode {
        ModeName::Provisioned => {
            Mode::Provisioned { read: table.read?.0, write: table.write?.0 }.partitions()
        }
        ModeName::OnDemand => {
            let (read, write) = (table.warm_read?.0, table.warm_write?.0);
            let warm = read.div_ceil(PARTITION_READS).max(write.div_ceil(PARTITION_WRITES));
            warm.max(Mode::ON_DEMAND.partitions())
        }
    };
    u32::try_from(partitions).ok()
}
