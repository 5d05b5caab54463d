//! Advice in words.

use super::finding::Finding;
use super::limits::THROTTLED;
use super::observed::Observed;
use crate::{PARTITION_READS, PARTITION_WRITES};

/// The line of a rule by which a gateway answers a read again for a tenth of a second.
pub(super) const CACHE: &str = "cache_max_age_ms = 100";
/// The line of a rule by which writes of an item that come while one is under way go as one.
pub(super) const COMBINE: &str = "combine = true";

/// What the key takes of a partition.
pub(crate) fn load(subject: &str, seen: &Observed) -> String {
    let over = match seen.shards {
        0 | 1 => "one partition".to_owned(),
        shards => format!("{shards} shards"),
    };
    let (writes, reads) = seen.filled();
    let (units, kind, ceiling) = if writes >= reads {
        (seen.asked_writes(), "write", PARTITION_WRITES)
    } else {
        (seen.asked_reads(), "read", PARTITION_READS)
    };
    let throttled = if seen.throttled >= THROTTLED {
        format!(", {} throttled", percent(seen.throttled))
    } else {
        String::new()
    };
    format!("{subject} takes {units:.0} {kind} units a second on {over} of {ceiling:.0} each{throttled}")
}

/// What burns, after the load.
pub(crate) fn of(finding: Finding, seen: &Observed) -> String {
    let shards = seen.shards.max(1);
    match finding {
        Finding::Cool => {
            ": no partition is near its ceiling. Shards would make reads dearer and nothing faster".to_owned()
        }
        Finding::Key if shards > 1 => format!(", more than {shards} shards carry"),
        Finding::Key => ", more than one partition carries".to_owned(),
        Finding::IndexValue if seen.of_index => ", as one value of the index".to_owned(),
        Finding::IndexValue => format!(
            ", and {} of its writes are refused because of the value that they have in an index. Shards of \
             this key do not help: the index has to be spread",
            percent(seen.by_index)
        ),
        Finding::Item => ", on one item".to_owned(),
        Finding::RepeatedPage => {
            let share = percent(seen.same_page);
            format!(", and {share} of the reads ask for what the read before asked for")
        }
        Finding::SharedPartition => {
            format!(", and other keys take {:.0} of the same partition", seen.beside)
        }
        Finding::CrowdedShard => format!(
            ", and {} of its {shards} shards burn while the others are cool: they lie beside each other or beside another hot key",
            seen.crowded
        ),
        Finding::Neighbour => {
            format!(", on a partition of which other keys take {:.0}: it burns by them", seen.beside)
        }
        Finding::Limit => format!(
            ", which its {shards} shards carry. What is throttled is another limit: the table's or the account's"
        ),
    }
}

/// What a cache at each gateway makes of a read that costs so many units.
pub(super) fn cached(units: f64) -> String {
    format!(
        "With `{CACHE}` in its rule a gateway answers them from memory, and asks for each of them at most ten times a second, for {:.0} \
         units, and again after each write of the key",
        units * 10.0
    )
}

pub(super) fn one_item(seen: &Observed) -> String {
    let (writes, reads) = seen.filled();
    if writes < reads {
        return format!(
            "Shards spread items, not one item. With `{CACHE}` in its rule a gateway answers its reads from memory"
        );
    }
    format!(
        "With `{COMBINE}` in its rule those of its writes that have no condition, and come while one is under way at a gateway, go as one. A \
         number that is only added to can be spread, too: `heatsink reshard start TABLE KEY --strategy counter --attribute NAME --shards N`"
    )
}

/// A share from 0 to 1 in percent, never rounded to all or nothing.
pub(crate) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        ..=0.0 => "0 %".to_owned(),
        ..1.0 => "less than 1 %".to_owned(),
        99.0..100.0 => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
        _ => format!("{percent:.0} %"),
    }
}
