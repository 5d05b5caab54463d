//! Why a key that burns is left alone.

use serde::{Deserialize, Serialize};

/// Why nothing is done for a key that burns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// No section is for it.
    NoSection,
    /// Its section observes.
    ObservedOnly,
    /// The change was proposed in the log.
    Proposed,
    /// The key is a number without room for a shard, or a gateway of an older build refuses numbers
    /// that have some.
    NumericKey,
    /// The key was too long to be kept.
    CutKey,
    /// The table has a stream.
    Stream,
    /// The table has no sort key.
    NoSortKey,
    /// The key is a counter already.
    Counter,
    /// The table's items expire, which the change does not allow.
    TimeToLive,
    /// A rule lays the key out by a template.
    Template,
    /// A rule lays the key out in buckets.
    Bucket,
    /// A local index of the table is in the way.
    LocalIndex,
    /// The table cannot be read or described.
    Unreadable,
    /// The registry cannot be made.
    NoRegistry,
    /// Too little was seen.
    NotYetCertain,
    /// DynamoDB may split the partition.
    Patience,
    /// A change of it failed a while ago.
    Rests,
    /// What the table's changes may take within an hour is used up.
    BudgetUsedUp,
    /// Its move takes more than all that the table's changes may take within an hour.
    BudgetTooSmall,
    /// The move costs more than it gains within an hour.
    DoesNotPay,
    /// It is changing.
    Moving,
    /// What refuses is the table's or the account's limit.
    Limit,
    /// The load is one item's.
    OneItem,
    /// One page is read again and again.
    RepeatedPage,
    /// Too few of the sort keys are known that are written to.
    UnknownSortKeys,
    /// Its sort keys only grow.
    GrowingSortKeys,
    /// No number of shards carries it.
    SeveralKeys,
    /// It has the most shards that its section allows, and needs more.
    MostShards,
    /// Values of indexes may not be spread.
    IndexValuesOff,
    /// Items may not become counters.
    CountersOff,
    /// A value of an index refuses its writes.
    IndexValue,
    /// Another key of its partition burns, and is changed.
    AnotherKey,
    /// As many keys as one change takes are decided.
    NextChange,
}

impl Reason {
    /// All of them.
    pub const ALL: [Reason; 33] = [
        Reason::NoSection,
        Reason::ObservedOnly,
        Reason::Proposed,
        Reason::NumericKey,
        Reason::CutKey,
        Reason::Stream,
        Reason::NoSortKey,
        Reason::Counter,
        Reason::TimeToLive,
        Reason::Template,
        Reason::Bucket,
        Reason::LocalIndex,
        Reason::Unreadable,
        Reason::NoRegistry,
        Reason::NotYetCertain,
        Reason::Patience,
        Reason::Rests,
        Reason::BudgetUsedUp,
        Reason::BudgetTooSmall,
        Reason::DoesNotPay,
        Reason::Moving,
        Reason::Limit,
        Reason::OneItem,
        Reason::RepeatedPage,
        Reason::UnknownSortKeys,
        Reason::GrowingSortKeys,
        Reason::SeveralKeys,
        Reason::MostShards,
        Reason::IndexValuesOff,
        Reason::CountersOff,
        Reason::IndexValue,
        Reason::AnotherKey,
        Reason::NextChange,
    ];

    /// Its name in JSON and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::NoSection => "no-section",
            Reason::ObservedOnly => "observed-only",
            Reason::Proposed => "proposed",
            Reason::NumericKey => "numeric-key",
            Reason::CutKey => "cut-key",
            Reason::Stream => "stream",
            Reason::NoSortKey => "no-sort-key",
            Reason::Counter => "counter",
            Reason::TimeToLive => "time-to-live",
            Reason::Template => "template",
            Reason::Bucket => "bucket",
            Reason::LocalIndex => "local-index",
            Reason::Unreadable => "unreadable",
            Reason::NoRegistry => "no-registry",
            Reason::NotYetCertain => "not-yet-certain",
            Reason::Patience => "patience",
            Reason::Rests => "rests",
            Reason::BudgetUsedUp => "budget-used-up",
            Reason::BudgetTooSmall => "budget-too-small",
            Reason::DoesNotPay => "does-not-pay",
            Reason::Moving => "moving",
            Reason::Limit => "limit",
            Reason::OneItem => "one-item",
            Reason::RepeatedPage => "repeated-page",
            Reason::UnknownSortKeys => "unknown-sort-keys",
            Reason::GrowingSortKeys => "growing-sort-keys",
            Reason::SeveralKeys => "several-keys",
            Reason::MostShards => "most-shards",
            Reason::IndexValuesOff => "index-values-off",
            Reason::CountersOff => "counters-off",
            Reason::IndexValue => "index-value",
            Reason::AnotherKey => "another-key",
            Reason::NextChange => "next-change",
        }
    }

    /// Why, in words that end a sentence: nothing is done, "because" this.
    pub const fn words(self) -> &'static str {
        match self {
            Reason::NoSection => "no [[automatic]] section is for it",
            Reason::ObservedOnly => "its [[automatic]] section only observes",
            Reason::Proposed => "its [[automatic]] section only proposes, and the change is in the log",
            Reason::NumericKey => "the number has no room for a shard",
            Reason::CutKey => "the key was too long to be kept whole",
            Reason::Stream => "the table has a stream, whose readers would see its items move",
            Reason::NoSortKey => "without a sort key it is one item",
            Reason::Counter => "it is a counter already",
            Reason::TimeToLive => "the table's items expire",
            Reason::Template => "a rule lays it out by a template",
            Reason::Bucket => "a rule lays it out in buckets",
            Reason::LocalIndex => "a local index of the table is in the way",
            Reason::Unreadable => "the table cannot be described",
            Reason::NoRegistry => "the registry table cannot be made",
            Reason::NotYetCertain => "too little has been seen of it yet",
            Reason::Patience => "DynamoDB can split its partition, and has been given time for that",
            Reason::Rests => "a change of it failed a while ago",
            Reason::BudgetUsedUp => {
                "the units that changes of this table may take within an hour are used up"
            }
            Reason::BudgetTooSmall => {
                "its move takes more units than all changes of this table may take within an hour"
            }
            Reason::DoesNotPay => "its move takes more units than are refused within an hour",
            Reason::Moving => "it is changing already",
            Reason::Limit => "no partition refuses it, but the table's or the account's limit",
            Reason::OneItem => "its load is one item's, which shards do not spread",
            Reason::RepeatedPage => {
                "one page is read again and again, which `cache_max_age_ms` in its rule answers and shards do not"
            }
            Reason::UnknownSortKeys => {
                "too few of the sort keys are known that it writes to, so nobody knows where to split a range of it"
            }
            Reason::GrowingSortKeys => {
                "its sort keys only grow, so all new items would lie in the last of its ranges"
            }
            Reason::SeveralKeys => "no number of shards carries it",
            Reason::MostShards => "it has the most shards that its [[automatic]] section allows",
            Reason::IndexValuesOff => "its [[automatic]] section does not spread values of indexes",
            Reason::CountersOff => "its [[automatic]] section makes no counters",
            Reason::IndexValue => "what refuses its writes is a value of an index",
            Reason::AnotherKey => "what fills its partition is another key",
            Reason::NextChange => "other keys of the table are changed first",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_reason_has_a_name_and_words_of_its_own() {
        let names: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
        let words: BTreeSet<&str> = Reason::ALL.iter().map(|reason| reason.words()).collect();
        assert_eq!((names.len(), words.len()), (Reason::ALL.len(), Reason::ALL.len()));
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.name());
        }
    }
}
