//! What is wanted of a key: the layout that it becomes, and whether its table and the layout that
//! it has allow that. Plain functions.
//!
//! Not here: what is on record (`table`).

use heatsink_control::reshard_intent::{WantedLayout, key_text};
use heatsink_control::rules::{MAX_COUNTER_SHARDS, can_count};
use heatsink_dynamo::{KeyType, KeyValue, TableSchema};
use heatsink_layout::{By, Hash, Layout, MOST_RANGES, Moving, Strategy, check_slots, in_slots, shards};

use crate::error::{WorkerError, usage};

/// The most shards of a key.
const MOST_SHARDS: u16 = 1_000;

/// The layout that is wanted of a key that is laid out as `from`. From which bucket on a number of
/// shards holds is not wanted, but chosen (`steps`).
pub(crate) fn target(from: &Layout, wanted: &WantedLayout) -> Layout {
    if let Some(attributes) = wanted.counter.clone() {
        let strategy = Strategy::Counter { attributes };
        return Layout { strategy, shards: wanted.shards, hash: Hash::JumpXxh3, version: from.version + 1 };
    }
    if from.time().is_some() && wanted.by.is_none() {
        return Layout { shards: wanted.shards, ..from.clone() };
    }
    let by = wanted.by.clone().or_else(|| by(from).cloned()).unwrap_or(By::SortKey);
    // What decides a shard stays where nothing else is said.
    let points = match (&wanted.split_at, from.split_points()) {
        (None, Some(own)) if wanted.by.is_none() && own.ranges() == wanted.shards => Some(own),
        (points, _) => points.as_ref(),
    };
    let strategy = match points {
        _ if wanted.shards == 1 => Strategy::None,
        Some(points) => Strategy::range(points.clone()),
        None => Strategy::calculated(by),
    };
    let to = Layout { strategy, shards: wanted.shards, hash: Hash::JumpXxh3, version: from.version + 1 };
    let slots = match &wanted.slots {
        Some(slots) => slots.clone(),
        // A whole key lies under its own name unless another one is asked for.
        None if wanted.shards == 1 => vec![0],
        None => points.map_or_else(|| from.slots_for(wanted.shards), |points| from.slots_for_ranges(points)),
    };
    // Whoever asks has checked them (`can_have_slots`).
    to.clone().with_slots(&slots).unwrap_or(to)
}

/// What decides the shard of an item, where its sort key does.
pub(crate) fn by(layout: &Layout) -> Option<&By> {
    match &layout.strategy {
        Strategy::Calculated { by, .. } => Some(by),
        _ => None,
    }
}

/// Whether two layouts put every item in the same place.
pub(crate) fn same(one: &Layout, other: &Layout) -> bool {
    let whole = |layout: &Layout| layout.shards == 1 && layout.time().is_none();
    one.shards == other.shards
        && (whole(one) && whole(other) && one.slots() == other.slots()
            || one.strategy == other.strategy && one.hash == other.hash)
}

/// Whether a layout is what is wanted.
pub fn is_wanted(layout: &Layout, wanted: &WantedLayout) -> bool {
    let by_wanted = wanted.shards == 1
        || match &wanted.split_at {
            Some(points) => layout.split_points() == Some(points),
            None => wanted.by.is_none() || wanted.by.as_ref() == by(layout),
        };
    let in_slots = match &wanted.slots {
        Some(slots) => layout.slot_numbers().eq(slots.iter().copied()),
        None => wanted.shards > 1 || layout.slots().is_empty(),
    };
    layout.shards == wanted.shards
        && by_wanted
        && in_slots
        && wanted.counter.as_deref() == layout.counter_attributes()
}

/// Whether a key that is laid out as `from` can have the slots that are asked for by name.
pub(crate) fn can_have_slots(from: &Layout, wanted: &WantedLayout) -> Result<(), WorkerError> {
    let Some(slots) = &wanted.slots else { return Ok(()) };
    if wanted.counter.is_some() || from.counter_attributes().is_some() || from.time().is_some() {
        return usage(format!(
            "Slots by name are asked for, and {}",
            if from.time().is_some() { "the key has buckets, which have none" } else { "a counter has none" }
        ));
    }
    check_slots(slots, wanted.shards).or_else(|why| usage(format!("Slots by name are asked for: {why}")))
}

/// The argument that asks for these slots, for a command that is run next; none for no slots.
pub fn slots_flag(slots: &[u16]) -> String {
    let named: Vec<String> = slots.iter().map(u16::to_string).collect();
    if named.is_empty() { String::new() } else { format!(" --slots {}", named.join(",")) }
}

/// The arguments that ask for so many shards by what decides them, or for these ranges.
pub(crate) fn count_flag(layout: &Layout) -> String {
    match layout.split_points() {
        None => match by(layout) {
            Some(By::SortKey) if layout.shards > 1 => {
                format!("--shards {} --strategy calculated", layout.shards)
            }
            _ => format!("--shards {}", layout.shards),
        },
        Some(points) => {
            let text = |point: &KeyValue<'_>| key_text(&point.canonical_bytes(), point.key_type());
            points.iter().map(|point| format!("--split-at {:?}", text(point))).collect::<Vec<_>>().join(" ")
        }
    }
}

/// Whether two lists name the same.
pub(crate) fn alike(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|name| other.contains(name))
}

/// Whether a key can have so many shards.
pub(crate) fn number_of_shards(shards: u16) -> Result<(), WorkerError> {
    match (1..=MOST_SHARDS).contains(&shards) {
        true => Ok(()),
        false => usage(format!("A key has 1 to {MOST_SHARDS} shards, and {shards} were asked for")),
    }
}

/// Whether one layout of a key can follow another.
pub(crate) fn can_change(
    schema: &TableSchema,
    key: &[u8],
    from: &Layout,
    to: &Layout,
) -> Result<(), WorkerError> {
    let (key, table) = (key_text(key, schema.key.partition.key_type), &schema.name);
    if from.time().is_some() && to.time().is_none() {
        return usage(format!(
            "The key {key:?} of table {table} is laid out by its rule ({from}). It can get another number of shards for the buckets to come, and nothing \
             else: leave the strategy out"
        ));
    }
    let is_counter = |layout: &Layout| layout.counter_attributes().is_some();
    if to.shards == 1 && schema.key.sort.is_none() && !is_counter(from) && !is_counter(to) {
        return usage(format!("Table {table} has no sort key: keys of such tables get no other slot"));
    }
    if to.counter_attributes().is_none() && schema.key.sort.is_none() && !Moving::narrows(from, to) {
        return usage(format!(
            "Table {table} has no sort key: each of its keys is one item, which cannot lie in several shards. A number in it that is only added to \
             can: say --strategy counter --attribute NAME"
        ));
    }
    if Moving::is_possible(from, to) || from.strategy == to.strategy && from.shards == to.shards {
        return Ok(());
    }
    let sharded = format!("The key {key:?} of table {table} has {}", shards(from.shards));
    match (from.counter_attributes(), to.counter_attributes()) {
        (Some(own), _) => usage(format!(
            "The key {key:?} of table {table} is a counter of {}, and becomes nothing else while clients use it but one with more or fewer shards, or a \
             whole key: --shards 1",
            own.join(", ")
        )),
        (None, Some(_)) if from.shards > 1 => usage(format!(
            "{sharded}, and a counter grows out of a whole key: bring its items back with --shards 1 first"
        )),
        (None, Some(_)) if !from.slots().is_empty() => usage(format!(
            "{sharded}{}, and a counter grows out of a whole key under its own name: bring its items back with --shards 1 first",
            in_slots(from.slots())
        )),
        (None, Some(_)) => usage("A counter has 2 shards or more: with one it would be the key as it is"),
        (None, None) => {
            usage(format!("The key is laid out as {from}, which cannot be changed while clients write"))
        }
    }
}

/// Whether numbers are named that can be added to.
pub(crate) fn is_countable(
    schema: &TableSchema,
    expires: bool,
    wanted: &WantedLayout,
) -> Result<(), WorkerError> {
    let Some(attributes) = &wanted.counter else { return Ok(()) };
    if wanted.by.is_some() {
        return usage(
            "A counter's fragments are no items that a sort key could spread: leave the separator out",
        );
    }
    if attributes.is_empty() || attributes.iter().any(String::is_empty) {
        return usage("A counter needs the names of the numbers that are added to: --attribute likes");
    }
    if let Some(twice) = attributes.iter().enumerate().find(|(at, name)| attributes[..*at].contains(name)) {
        return usage(format!("--attribute {} is given twice", twice.1));
    }
    if wanted.shards > MAX_COUNTER_SHARDS {
        return usage(format!(
            "A counter has at most {MAX_COUNTER_SHARDS} shards: setting or deleting it is one transaction over its fragments, and a transaction has at \
             most {MAX_COUNTER_SHARDS} actions"
        ));
    }
    if expires {
        return usage(expiring_counters(&schema.name));
    }
    can_count(attributes, schema).or_else(|why| {
        usage(format!("No key of table {} can be a counter of {}: {why}", schema.name, attributes.join(", ")))
    })
}

/// Whether ranges are wanted that a key can have. Ranges that it has stay, or others are named: by
/// their number alone nobody knows where they end.
pub(crate) fn can_have_ranges(
    schema: &TableSchema,
    from: &Layout,
    wanted: &WantedLayout,
) -> Result<(), WorkerError> {
    let Some(points) = &wanted.split_at else {
        let stay =
            wanted.by.is_some() || wanted.counter.is_some() || [1, from.shards].contains(&wanted.shards);
        return match from.split_points() {
            Some(own) if !stay => usage(format!(
                "The key lies in {} ranges of its sort key, split at {own}: say --strategy range for {} ranges at the quantiles of its items, --split-at \
                 for ranges of your own, or --strategy calculated",
                own.ranges(),
                wanted.shards
            )),
            _ => Ok(()),
        };
    };
    if wanted.counter.is_some() || wanted.by.is_some() {
        return usage("Ranges of the sort key are asked for, and another strategy: leave one of them out");
    }
    if points.ranges() != wanted.shards {
        return usage(format!(
            "{} split points make {} ranges, and {} shards were asked for: a key has one for each range, at most {MOST_RANGES}",
            points.iter().count(),
            points.ranges(),
            wanted.shards
        ));
    }
    match &schema.key.sort {
        Some(sort) if sort.key_type != points.key_type() => usage(format!(
            "The split points are of type {}, and the sort key {} of table {} is of type {}",
            points.key_type().name(),
            sort.name,
            schema.name,
            sort.key_type.name()
        )),
        _ => Ok(()),
    }
}

/// Whether a part of the sort key is wanted that it can have.
pub(crate) fn part_of_text(schema: &TableSchema, wanted: &WantedLayout) -> Result<(), WorkerError> {
    let sort = schema.key.sort.as_ref();
    match &wanted.by {
        Some(By::Part { separator, .. }) if separator.is_empty() => usage("A separator is never empty"),
        Some(By::Part { .. }) if sort.is_some_and(|sort| sort.key_type != KeyType::S) => usage(format!(
            "The sort key of table {} is no string, so it has no parts: leave the separator out",
            schema.name
        )),
        Some(By::PrimaryKey) => usage("A key's items are spread by their sort key, or by a part of it"),
        _ => Ok(()),
    }
}
/// Why a table has counters or time to live, and not both.
pub(crate) fn expiring_counters(table: &str) -> String {
    format!(
        "Table {table} has time to live, which would delete counters in parts: turn it off before a key is a counter"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_the_shard_stays_unless_another_thing_is_wanted() {
        let part = By::Part { separator: "#".to_owned(), part: 1 };
        let wanted = |shards: u16, by: Option<&By>| WantedLayout { by: by.cloned(), ..shards.into() };
        let whole = Layout::none();
        let by_part = target(&whole, &wanted(4, Some(&part)));
        assert_eq!(by(&target(&whole, &wanted(4, None))), Some(&By::SortKey));
        assert_eq!(by(&target(&by_part, &wanted(8, None))), Some(&part));
        assert!(!same(&by_part, &target(&by_part, &wanted(4, Some(&By::SortKey)))));
        assert!(same(&whole, &target(&by_part, &wanted(1, Some(&part)))));
        assert!(
            is_wanted(&by_part, &wanted(4, None)) && !is_wanted(&by_part, &wanted(4, Some(&By::SortKey)))
        );
    }

    #[test]
    fn shards_keep_their_slots_unless_others_are_wanted() {
        let wanted = |slots: &[u16]| WantedLayout {
            slots: Some(slots.to_vec()),
            ..u16::try_from(slots.len()).unwrap().into()
        };
        let whole = Layout::none();
        let named = target(&whole, &wanted(&[0, 1, 9, 3]));
        assert_eq!(named.slots(), [0, 1, 9, 3]);
        assert_eq!(target(&named, &6.into()).slots(), [0, 1, 9, 3, 2, 4]);
        assert_eq!(target(&named, &3.into()).slots(), [0, 1, 9]);
        assert_eq!(
            target(&named, &2.into()).slots(),
            [] as [u16; 0],
            "shards 0 and 1 are where they are without"
        );
        assert_eq!(target(&named, &1.into()), Layout { version: named.version + 1, ..Layout::none() });
        assert!(same(&named, &target(&named, &4.into())) && is_wanted(&named, &4.into()));
        let usual = target(&named, &wanted(&[0, 1, 2, 3]));
        assert!(
            !same(&named, &usual) && usual.slots().is_empty() && is_wanted(&usual, &wanted(&[0, 1, 2, 3]))
        );
        assert!(!is_wanted(&named, &wanted(&[0, 1, 2, 3])) && is_wanted(&named, &wanted(&[0, 1, 9, 3])));
        let elsewhere = target(&whole, &wanted(&[5]));
        assert!(!same(&whole, &elsewhere) && !is_wanted(&elsewhere, &1.into()));
        assert_eq!(target(&elsewhere, &3.into()).slots(), [5, 0, 1]);
    }

    #[test]
    fn slots_that_cannot_be_are_refused_by_name() {
        let refused =
            |from: &Layout, wanted: &WantedLayout| can_have_slots(from, wanted).unwrap_err().to_string();
        let wanted =
            |slots: &[u16], shards: u16| WantedLayout { slots: Some(slots.to_vec()), ..shards.into() };
        let whole = Layout::none();
        assert!(refused(&whole, &wanted(&[0, 4, 4], 3)).contains("slot 4 is named twice"));
        assert!(refused(&whole, &wanted(&[0, 4], 3)).contains("2 slots are named for 3 shards"));
        assert!(refused(&whole, &wanted(&[0, 10_000], 2)).contains("no slot 10000"));
        let counter = WantedLayout { counter: Some(vec!["n".to_owned()]), ..wanted(&[1, 0], 2) };
        assert!(refused(&whole, &counter).contains("counter"));
    }
}
