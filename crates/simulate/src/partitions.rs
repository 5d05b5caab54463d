//! How many partitions a table or index begins with, as far as its capacity says.

use heatsink_physics::{Mode, PARTITION_READS, PARTITION_WRITES};

use crate::scenario::{Index, ModeName, Table};

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

/// The partitions of an index, where its capacity or its table's says how many. On demand it begins
/// as a new one, however warm its table is.
pub(crate) fn of_an_index(table: &Table, index: &Index) -> Option<u32> {
    let mode = match table.mode {
        ModeName::Provisioned => {
            Mode::Provisioned { read: index.read.or(table.read)?.0, write: index.write.or(table.write)?.0 }
        }
        ModeName::OnDemand => Mode::ON_DEMAND,
    };
    u32::try_from(mode.partitions()).ok()
}
