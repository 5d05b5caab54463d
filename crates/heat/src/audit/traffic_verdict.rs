//! What to do about a pattern of keys by recorded requests: what a gateway that sees them advises
//! ([`advice`](crate::advice)).
//!
//! Not here: verdicts by items and stream records ([`verdict`](super::verdict)).

use heatsink_dynamo::display::excerpt;

use super::action::{Action, Verdict};
use super::load::Load;
use super::recorded::Recorded;
use super::rule::rule;
use super::seen::{SHOWN, Seen};
use crate::advice::{self, Diagnosis, Observed};
use crate::{PARTITION_READS, PARTITION_WRITES};

/// The verdict; `None` where none of the keys has requests.
pub(super) fn of(seen: &Seen<'_>, recorded: Recorded<'_>) -> Option<Verdict> {
    let (key, collected) = seen.busiest?;
    let load = collected.load.as_deref()?;
    let (writes, reads) = (load.peak_writes(recorded.seconds), load.peak_reads(recorded.seconds));
    let is_written = writes.units / PARTITION_WRITES >= reads.units / PARTITION_READS;
    let peak = if is_written { writes } else { reads };
    let window = match peak.window {
        60 => "minute",
        3_600 => "hour",
        _ => "second",
    };
    let subject = match seen.keys {
        1 => format!("in its busiest {window} its one key"),
        keys => format!("in its busiest {window} {}, of {keys} keys,", excerpt(&key.key, SHOWN)),
    };
    let observed = observed(load, recorded, collected.is_one_item() && is_written);
    let diagnosis = advice::diagnose_of(
        &subject,
        &Observed { writes: writes.units, peak_writes: writes.units, write_error: writes.error, ..observed },
    );
    let mut reason = diagnosis.sentence.clone();
    if peak.error > 0.0 {
        reason += &format!(". The rate is that of a sample, right within ± {:.0}", peak.error);
    }
    let shards = diagnosis.shards().filter(|_| !recorded.hashed);
    if recorded.hashed && diagnosis.shards().is_some() {
        reason += ". The recording has a hash for the key's name, so there is no rule to propose";
    }
    Some(Verdict {
        action: action(&diagnosis),
        reason,
        rule: shards.map(|shards| rule(seen, None, Some(shards))),
    })
}

fn observed(load: &Load, recorded: Recorded<'_>, one_item: bool) -> Observed {
    let reads = load.peak_reads(recorded.seconds);
    Observed {
        reads: reads.units,
        read_error: reads.error,
        queries: reads.queries,
        page: load.page(),
        throttled: load.throttled_share(),
        item_bytes: load.item_bytes(),
        growing: load.growing(),
        one_item: if one_item { 1.0 } else { 0.0 },
        same_page: load.same_page(),
        shards: 1,
        // Items of an index are not told apart by its keys alone.
        sort_key: recorded.sort_key || recorded.index.is_some(),
        local_index: recorded.local_index && recorded.index.is_none(),
        ..Observed::default()
    }
}

fn action(diagnosis: &Diagnosis) -> Action {
    match diagnosis.action {
        advice::Action::Leave => Action::Leave,
        advice::Action::Wait { .. } => Action::Wait,
        advice::Action::Shard { .. } => Action::Shard,
        advice::Action::Cache => Action::Cache,
        advice::Action::ChangeItem => Action::ChangeItem,
        advice::Action::SeveralKeys => Action::SeveralKeys,
    }
}
