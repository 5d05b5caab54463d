//! What would help one key that was seen hot, what it costs, and why nothing should be done where
//! nothing should.
//!
//! Not here: how heat is measured, shard counts by given rates ([`shards`](crate::advise)), when
//! advice is acted on ([`policy`](crate::policy)).

mod count;
mod evidence;
mod finding;
mod limits;
mod observed;
mod split;
mod spread;
mod words;

use serde::Serialize;

use crate::shards::assumed_partitions;
use crate::{Asked, Costs, DEFAULT_RISK, PARTITION_READS, PARTITION_WRITES, advise, assess, units_per_write};

pub(crate) use count::{Each, fewest_shards};
pub(crate) use evidence::{asked_of, is_alone};
pub use finding::Finding;
pub use limits::{NEAR, THROTTLED};
pub use observed::Observed;
pub use split::Split;
pub use spread::Spread;
use words::{CACHE, COMBINE, percent};
pub(crate) use words::{load, of};

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
    /// Answer what is read again and again from the gateway's cache: `cache_max_age_ms` of its rule.
    Cache,
    /// The load is one item's: no layout of keys spreads it. Combine its writes (`combine` of its
    /// rule), or change it.
    ChangeItem,
    /// No shard count carries it.
    SeveralKeys,
}

/// Advice on one key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diagnosis {
    /// What it is that burns.
    pub finding: Finding,
    /// What to do.
    #[serde(flatten)]
    pub action: Action,
    /// Why, in one or two sentences.
    pub sentence: String,
    /// By which strategy shards are recommended; `None` where none are.
    pub strategy: Option<Spread>,
    /// The line of the key's rule that helps, where one does without another layout.
    pub setting: Option<&'static str>,
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
    /// The same for the risk by shard counts ([`advise`]).
    fn as_asked(&self) -> Asked {
        let item_bytes = self.item_bytes.clamp(1, 409_600);
        let unit = units_per_write(item_bytes);
        let asked = Asked {
            writes: self.writes / unit,
            // Requests for single items are spread as writes are.
            peak: self.asked_writes().max(self.asked_gets() * PARTITION_WRITES / PARTITION_READS) / unit,
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
    let asked = seen.as_asked();
    let now = assess(&asked, seen.shards.max(1));
    let split = Split::of(seen);
    let finding = Finding::of(seen);
    let load = load(subject, seen);
    let plain = |action, sentence| Diagnosis {
        finding,
        action,
        sentence,
        strategy: None,
        setting: None,
        split,
        now: now.costs,
        then: None,
        dollars_more_a_day: None,
        risk: None,
    };
    match finding {
        Finding::Cool if seen.filled().0.max(seen.filled().1) >= NEAR => {
            let sentence = format!("{load}, by so few requests that were counted that it may be much less");
            return plain(Action::Leave, sentence);
        }
        Finding::Cool | Finding::Neighbour | Finding::Limit => {
            return plain(Action::Leave, format!("{load}{}", of(finding, seen)));
        }
        Finding::RepeatedPage => {
            let setting = Some(CACHE);
            let sentence = format!("{load}{}. {}", of(finding, seen), words::cached(now.costs.page));
            return Diagnosis { setting, ..plain(Action::Cache, sentence) };
        }
        Finding::Item => {
            let sentence = format!("{load}, {}. {}", split.words(), words::one_item(seen));
            let (writes, reads) = seen.filled();
            let setting = Some(if writes >= reads { COMBINE } else { CACHE });
            return Diagnosis { setting, ..plain(Action::ChangeItem, sentence) };
        }
        Finding::IndexValue if !seen.of_index => {
            return plain(Action::Leave, format!("{load}{}", of(finding, seen)));
        }
        Finding::Key | Finding::IndexValue | Finding::SharedPartition | Finding::CrowdedShard => {}
    }
    let advice = advise(asked);
    let wanted = advice.recommended.filter(|row| row.shards > seen.shards.max(1));
    let Some(row) = wanted else {
        if assess(&asked, seen.shards.max(1)).risk <= asked.risk {
            // The shards are enough, but not where they lie.
            return plain(Action::Leave, format!("{load}{}", of(finding, seen)));
        }
        let sentence = format!(
            "{load}. No shard count carries it with {} partitions: spread it over several keys",
            advice.partitions
        );
        return plain(Action::SeveralKeys, sentence);
    };
    let shards = row.shards;
    let strategy = Spread::of(seen, shards);
    let (then, what) = match strategy {
        Spread::Calculated => {
            let (then, now) = (row.costs.page, now.costs.page);
            (row.costs, format!("then costs {then:.1} read units instead of {now:.1}"))
        }
        Spread::Range => {
            let whole = assess(&asked, 1).costs;
            (whole, format!("is of one of them, and costs {:.1} read units, as of a whole key", whole.page))
        }
    };
    let sentence = format!(
        "{load}, {}. {shards} {} keep every partition under its ceiling with a probability of {}; a page of {} items {what}",
        split.words(),
        if strategy == Spread::Range { "ranges of its sort key" } else { "shards" },
        percent(1.0 - row.risk),
        asked.page,
    );
    let action = if split == Split::InMinutes { Action::Wait { shards } } else { Action::Shard { shards } };
    Diagnosis {
        finding,
        action,
        sentence,
        strategy: Some(strategy),
        setting: None,
        split,
        now: now.costs,
        then: Some(then),
        dollars_more_a_day: Some(
            (then.page - now.costs.page) * seen.queries * 86_400.0 * DOLLARS_PER_READ_UNIT,
        ),
        risk: Some(row.risk),
    }
}

#[cfg(test)]
mod tests;
