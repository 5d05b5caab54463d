//! What would help one key that was seen hot, what it costs, and why nothing should be done where
//! nothing should.
//!
//! Not here: how heat is measured, shard counts by given rates ([`shards`](crate::advise)), when
//! advice is acted on ([`policy`](crate::policy)).

mod observed;
mod split;

use serde::Serialize;

use crate::shards::assumed_partitions;
use crate::{Asked, Costs, DEFAULT_RISK, PARTITION_READS, PARTITION_WRITES, advise, assess, units_per_write};

pub use observed::Observed;
pub use split::Split;

/// A key is near a ceiling from this share of it on.
pub const NEAR: f64 = 0.7;
/// A key whose requests are throttled more often than this is over a ceiling, whatever was counted.
pub const THROTTLED: f64 = 0.01;
/// From this share on the load is one item's, or one page's.
const MOST: f64 = 0.5;
/// Read units on demand in us-east-1: $0.125 a million (AWS, "Pricing for On-Demand Capacity").
const DOLLARS_PER_READ_UNIT: f64 = 0.125e-6;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "do")]
pub enum Action {
    /// Nothing.
    Leave,
    /// Nothing yet: DynamoDB splits the partition.
    Wait {
        /// What to do if it does not.
        shards: u16,
    },
    /// Give the key so many shards.
    Shard {
        /// How many.
        shards: u16,
    },
    /// Keep what is read again and again in a cache.
    Cache,
    /// The load is one item's: no layout of keys spreads it.
    ChangeItem,
    /// No shard count carries it.
    SeveralKeys,
}

/// Advice on one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What to do.
    #[serde(flatten)]
    pub action: Action,
    /// Why, in one or two sentences.
    pub sentence: String,
    /// Whether DynamoDB's own split can help.
    pub split: Split,
    /// What reads cost as it is.
    pub now: Costs,
    /// What they cost with the recommended shards.
    pub then: Option<Costs>,
    /// What all reads in order cost more each day with them, in US dollars on demand in us-east-1.
    pub dollars_more_a_day: Option<f64>,
    /// How likely some partition is overloaded at the peak with them, over all key names.
    pub risk: Option<f64>,
}

impl Diagnosis {
    /// How many shards are recommended, now or if DynamoDB does not split the partition.
    pub const fn shards(&self) -> Option<u16> {
        match self.action {
            Action::Shard { shards } | Action::Wait { shards } => Some(shards),
            _ => None,
        }
    }
}

impl Observed {
    /// Which share of a partition's write units and read units the key's busiest partition takes,
    /// if no two of its shards share one.
    fn filled(&self) -> (f64, f64) {
        let shards = f64::from(self.shards.max(1));
        (self.peak_writes.max(self.writes) / shards / PARTITION_WRITES, self.reads / shards / PARTITION_READS)
    }

    /// The same load, at least.
    fn least(&self) -> Observed {
        let less = |rate: f64, error: f64| (rate - error).max(0.0);
        Observed {
            writes: less(self.writes, self.write_error),
            peak_writes: less(self.peak_writes, self.write_error),
            reads: less(self.reads, self.read_error),
            ..*self
        }
    }

    /// Whether it is certainly near a ceiling, or over one.
    pub fn is_hot(&self) -> bool {
        let least = self.least();
        let (writes, reads) = least.filled();
        writes.max(reads) >= NEAR || (self.throttled >= THROTTLED && least.writes + least.reads >= 1.0)
    }

    fn asked(&self) -> Asked {
        let item_bytes = self.item_bytes.clamp(1, 409_600);
        let unit = units_per_write(item_bytes);
        let asked = Asked {
            writes: self.writes / unit,
            peak: self.peak_writes.max(self.writes) / unit,
            reads: self.queries,
            item_bytes,
            page: self.page.max(1),
            partitions: None,
            risk: DEFAULT_RISK,
        };
        // A table with too few splits them once the load is spread over them.
        let partitions = self.partitions.map(|known| known.max(assumed_partitions(&asked)));
        Asked { partitions, ..asked }
    }
}

/// Advises on a key.
pub fn diagnose(seen: &Observed) -> Diagnosis {
    diagnose_of("It", seen)
}

/// Advises on a key. The sentence begins with `subject`: who or what takes the load.
pub fn diagnose_of(subject: &str, seen: &Observed) -> Diagnosis {
    let asked = seen.asked();
    let now = assess(&asked, seen.shards.max(1));
    let split = Split::of(seen);
    let (writes, reads) = seen.filled();
    let plain = |action, sentence| Diagnosis {
        action,
        sentence,
        split,
        now: now.costs,
        then: None,
        dollars_more_a_day: None,
        risk: None,
    };
    let load = load(subject, seen);
    if !seen.is_hot() {
        let sentence = if writes.max(reads) >= NEAR {
            format!("{load}, by so few requests that were counted that it may be much less")
        } else {
            format!(
                "{load}: no partition is near its ceiling. Shards would make reads dearer and nothing faster"
            )
        };
        return plain(Action::Leave, sentence);
    }
    if writes < NEAR && seen.same_page >= MOST && reads >= NEAR {
        let share = percent(seen.same_page);
        let sentence = format!(
            "{load}, and {share} of the reads ask for what the read before asked for. A cache of a second answers them"
        );
        return plain(Action::Cache, sentence);
    }
    if matches!(split, Split::OneItem | Split::NoSortKey) {
        let sentence = format!("{load}, {}. {}", split.words(), one_item(seen));
        return plain(Action::ChangeItem, sentence);
    }
    let advice = advise(asked);
    let wanted = advice.recommended.filter(|row| row.shards > seen.shards.max(1));
    let Some(row) = wanted else {
        // Its shards are enough, and it is throttled: by two shards on one partition, or by the
        // table's own limit.
        if assess(&asked, seen.shards.max(1)).risk <= asked.risk {
            let sentence = format!(
                "{load}, which its {} shards carry. What is throttled is another limit: the table's or the account's",
                seen.shards.max(1)
            );
            return plain(Action::Leave, sentence);
        }
        let sentence = format!(
            "{load}. No shard count carries it with {} partitions: spread it over several keys",
            advice.partitions
        );
        return plain(Action::SeveralKeys, sentence);
    };
    let dollars = (row.costs.page - now.costs.page) * seen.queries * 86_400.0 * DOLLARS_PER_READ_UNIT;
    let shards = row.shards;
    let sentence = format!(
        "{load}, {}. {shards} shards keep every partition under its ceiling with a probability of {}; a page of {} items then costs {:.1} read \
         units instead of {:.1}",
        split.words(),
        percent(1.0 - row.risk),
        asked.page,
        row.costs.page,
        now.costs.page,
    );
    let action = if split == Split::InMinutes { Action::Wait { shards } } else { Action::Shard { shards } };
    Diagnosis {
        action,
        sentence,
        split,
        now: now.costs,
        then: Some(row.costs),
        dollars_more_a_day: Some(dollars),
        risk: Some(row.risk),
    }
}

/// What the key takes of a partition, in words.
fn load(subject: &str, seen: &Observed) -> String {
    let over = match seen.shards {
        0 | 1 => "one partition".to_owned(),
        shards => format!("{shards} shards"),
    };
    let (writes, reads) = seen.filled();
    let (units, kind, ceiling) = if writes >= reads {
        (seen.peak_writes.max(seen.writes), "write", PARTITION_WRITES)
    } else {
        (seen.reads, "read", PARTITION_READS)
    };
    let throttled = if seen.throttled >= THROTTLED {
        format!(", {} throttled", percent(seen.throttled))
    } else {
        String::new()
    };
    format!("{subject} takes {units:.0} {kind} units a second on {over} of {ceiling:.0} each{throttled}")
}

fn one_item(seen: &Observed) -> &'static str {
    if seen.writes > 0.0 && !seen.sort_key {
        "If it is a number that is only added to, `heatsink reshard start TABLE KEY --strategy counter --attribute NAME --shards N` spreads it; if not, write \
         it less often"
    } else {
        "Shards spread items, not one item: write it less often, or cache its reads"
    }
}

/// A share from 0 to 1 in percent, never rounded to all or nothing.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent {
        ..=0.0 => "0 %".to_owned(),
        ..1.0 => "less than 1 %".to_owned(),
        99.0..100.0 => format!("{:.1} %", (percent * 10.0).floor() / 10.0),
        _ => format!("{percent:.0} %"),
    }
}

#[cfg(test)]
mod tests;
