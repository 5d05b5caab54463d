//! Converts one rule of the file to a `Rule`: every required field is present, and no field without
//! a meaning.

use std::ops::Range;

use heatsink_layout::{
    By, Consistency, Epoch, Glob, Granularity, Hash, Layout, PhysicalKeys, Reads, Strategy, Template, Time,
};
use toml::Spanned;

use super::fault::Fault;
use super::file::{
    self, BucketName, ConsistencyName, EpochName, HashName, OnShardError, PhysicalKeysName, StrategyName,
};
use super::numbers::MAX_SHARDS;
use super::rule::{Rule, Spread};
use super::{RulesError, hash, shared_calls, split_at};

/// Checks rule `number` of a file.
pub(super) fn rule(number: usize, raw: Spanned<file::Rule>, fault: Fault<'_>) -> Result<Rule, RulesError> {
    let heading = raw.span().start..raw.span().start;
    let raw = raw.into_inner();
    if let Some(wrong) =
        raw.table.get_ref().chars().find(|c| !(c.is_ascii_alphanumeric() || "_.-*?".contains(*c)))
    {
        let problem =
            format!("table names hold a-z, A-Z, 0-9, _ . - only, and globs * and ? besides; found {wrong:?}");
        return Err(fault(raw.table.span(), problem));
    }
    if raw.table.get_ref().is_empty() {
        return Err(fault(
            raw.table.span(),
            "expected a table's name or a glob, found an empty text".to_owned(),
        ));
    }
    if raw.keys.as_ref().is_some_and(|keys| keys.get_ref().is_empty()) {
        let span = raw.keys.as_ref().map_or(heading.clone(), Spanned::span);
        return Err(fault(span, "expected a glob, found an empty text, which no key can be".to_owned()));
    }
    meaningless(&raw, fault)?;
    let shared_calls = shared_calls::of(&raw, fault)?;
    let index = raw.index.clone().map(Spanned::into_inner);
    let keys = Glob::new(raw.keys.as_ref().map_or("*", |keys| keys.get_ref()));
    let table = Glob::new(raw.table.get_ref());
    let partial = raw.on_shard_error.as_ref().is_some_and(|on| *on.get_ref() == OnShardError::Partial);
    let consistency = match raw.consistency.as_ref().map(Spanned::as_ref) {
        None | Some(ConsistencyName::Shard) => Consistency::Shard,
        Some(ConsistencyName::Strong) => Consistency::Strong,
    };
    let physical_keys = raw.physical_keys.as_ref().map(|said| match said.as_ref() {
        PhysicalKeysName::Accept => PhysicalKeys::Accept,
        PhysicalKeysName::Refuse => PhysicalKeys::Refuse,
        PhysicalKeysName::AsShard => PhysicalKeys::AsShard,
    });
    if let (Consistency::Strong, true, Some(on)) = (consistency, partial, &raw.on_shard_error) {
        let problem = "has no meaning with consistency = \"strong\": what is missing was not seen at any moment; remove one of them";
        return Err(fault(on.span(), problem.to_owned()));
    }
    let missing = |problem: String| RulesError {
        field: Some(format!("rule[{number}]")),
        ..fault(heading.clone(), problem)
    };
    let mut spread = spread(raw, fault, &missing)?;
    if let (Some(_), Spread::Sharded { layout, .. }) = (&index, &mut spread) {
        layout.strategy = Strategy::calculated(By::PrimaryKey);
    }
    Ok(Rule {
        number,
        line: 0,
        table,
        index,
        keys,
        spread,
        reads: Reads { consistency, partial },
        physical_keys,
        shared_calls,
    })
}

fn name(strategy: StrategyName) -> &'static str {
    match strategy {
        StrategyName::None => "none",
        StrategyName::Calculated => "calculated",
        StrategyName::Random => "random",
        StrategyName::Range => "range",
        StrategyName::Bucket => "bucket",
        StrategyName::Counter => "counter",
        StrategyName::Template => "template",
    }
}

/// Refuses layouts that the key of an index cannot have.
fn of_index(raw: &file::Rule, fault: Fault<'_>) -> Result<(), RulesError> {
    let Some(index) = &raw.index else { return Ok(()) };
    if index.get_ref().is_empty() {
        return Err(fault(index.span(), "expected an index's name, found an empty text".to_owned()));
    }
    if raw.strategy != StrategyName::Calculated {
        let problem = format!(
            "the key of an index is spread by a hash of the item's primary key only: strategy = \"calculated\", not \"{}\"",
            name(raw.strategy)
        );
        return Err(fault(index.span(), problem));
    }
    let fields = [
        (raw.by.as_ref().map(Spanned::span), "the whole primary key is hashed"),
        (raw.consistency.as_ref().map(Spanned::span), "a global index is behind its table anyway"),
    ];
    match fields.into_iter().find_map(|(span, why)| Some((span?, why))) {
        Some((span, why)) => Err(fault(span, format!("has no meaning with `index`: {why}; remove it"))),
        None => Ok(()),
    }
}

/// Refuses fields that the strategy does not use.
fn meaningless(raw: &file::Rule, fault: Fault<'_>) -> Result<(), RulesError> {
    of_index(raw, fault)?;
    use StrategyName::{Bucket, Calculated, Counter, None, Random, Range, Template};
    let fields = [
        (raw.by.as_ref().map(Spanned::span), &[Calculated, Bucket, Template][..]),
        (raw.shards.as_ref().map(Spanned::span), &[Calculated, Random, Bucket, Counter, Template]),
        (raw.split_at.as_ref().map(Spanned::span), &[Range]),
        (raw.attributes.as_ref().map(Spanned::span), &[Counter]),
        (raw.bucket.as_ref().map(Spanned::span), &[Bucket, Template]),
        (raw.time.as_ref().map(Spanned::span), &[Bucket, Template]),
        (raw.template.as_ref().map(Spanned::span), &[Template]),
        (raw.hash.as_ref().map(Spanned::span), &[Template]),
        (raw.hex_digits.as_ref().map(Spanned::span), &[Template]),
        (raw.physical_keys.as_ref().map(Spanned::span), &[Template]),
        (raw.consistency.as_ref().map(Spanned::span), &[Calculated, Random, Range, Bucket, Template]),
        (raw.on_shard_error.as_ref().map(Spanned::span), &[Calculated, Random, Range, Bucket, Template]),
    ];
    for (span, strategies) in fields {
        let (Some(span), false) = (span, strategies.contains(&raw.strategy)) else { continue };
        let why = match raw.strategy {
            None => ", which leaves keys whole",
            Random => ", which hashes the whole sort key",
            Counter => ", whose items lie in all shards",
            Range => ", which has a shard for each range of `split_at`",
            _ => "",
        };
        let strategy = name(raw.strategy);
        return Err(fault(span, format!("has no meaning with strategy = \"{strategy}\"{why}; remove it")));
    }
    Ok(())
}

fn spread(
    raw: file::Rule,
    fault: Fault<'_>,
    missing: &dyn Fn(String) -> RulesError,
) -> Result<Spread, RulesError> {
    let strategy = raw.strategy;
    if strategy == StrategyName::None {
        return Ok(Spread::Whole);
    }
    let needs = |what: &str| missing(format!("strategy = \"{}\" needs the field {what}", name(strategy)));
    if let (Some(by), Some(HashName::Random)) = (&raw.by, raw.hash.as_ref().map(|hash| *hash.get_ref())) {
        let problem = "has no meaning with hash = \"random\": an item can be in any shard; remove it";
        return Err(fault(by.span(), problem.to_owned()));
    }
    let (by, part_of) = by(raw.by.map(Spanned::into_inner), fault)?;
    let time_span = raw.time.as_ref().map_or(0..0, Spanned::span);
    let time = match raw.bucket {
        None if raw.time.is_some() => {
            return Err(fault(time_span, "has no meaning without `bucket`; remove it".to_owned()));
        }
        None => None,
        Some(bucket) => {
            Some(time(bucket.into_inner(), raw.time.map(Spanned::into_inner).unwrap_or_default()))
        }
    };
    let shards_span = raw.shards.as_ref().map(Spanned::span);
    let shards = raw.shards.map(|shards| shards.into_inner().0);
    let example = format!("`shards`: a whole number from 1 to {MAX_SHARDS}");
    let mut of_rule = Hash::JumpXxh3;
    let (strategy, shards) = match strategy {
        StrategyName::Calculated | StrategyName::Random => {
            (Strategy::calculated(by), shards.ok_or_else(|| needs(&example))?)
        }
        StrategyName::Range => {
            let points = raw.split_at.ok_or_else(|| {
                needs("`split_at`: the sort keys at which the next range begins, such as split_at = [\"g\", \"p\"]")
            })?;
            let split_points = split_at::of(points, fault)?;
            let shards = split_points.ranges();
            (Strategy::range(split_points), shards)
        }
        StrategyName::Bucket => {
            let time = time.ok_or_else(|| needs("`bucket`: \"hour\", \"day\", \"week\" or \"month\""))?;
            (Strategy::Bucket { time, by, earlier: Vec::new() }, shards.unwrap_or(1))
        }
        StrategyName::Counter => {
            let attributes = raw.attributes.ok_or_else(|| {
                needs("`attributes`: the numbers that are added to, such as attributes = [\"votes\"]")
            })?;
            let shards_span = shards_span
                .ok_or_else(|| needs(&format!("`shards`: a whole number from 1 to {MAX_COUNTER_SHARDS}")))?;
            counter(attributes, shards.unwrap_or(1), &shards_span, fault)?
        }
        StrategyName::Template | StrategyName::None => {
            let text = raw.template.ok_or_else(|| needs("`template`, such as \"{pk}#{shard}\""))?;
            let span = text.span();
            let template =
                Template::read(text.get_ref()).map_err(|error| fault(span.clone(), error.to_string()))?;
            if template.has_bucket() != time.is_some() {
                return Err(match time {
                    Some(_) => {
                        fault(span, "has no {bucket}, but the field `bucket` says how long one is".to_owned())
                    }
                    None => needs(
                        "`bucket`, since its template has {bucket}: \"hour\", \"day\", \"week\" or \"month\"",
                    ),
                });
            }
            if let Some(time) = time.as_ref().filter(|time| !template.fits(time.granularity)) {
                let problem = format!(
                    "expected a bucket with the fields of {}, since bucket = \"{}\"",
                    time.granularity.format(),
                    time.granularity.name()
                );
                return Err(fault(span, problem));
            }
            let shards = match (template.has_shard(), shards) {
                (true, shards) => shards.ok_or_else(|| needs(&example))?,
                (false, None | Some(1)) => 1,
                (false, Some(_)) => {
                    return Err(fault(span, "has no {shard}, but `shards` is more than 1".to_owned()));
                }
            };
            of_rule = match raw.hash {
                Some(hash) => hash::of(hash.into_inner(), raw.hex_digits, fault)?,
                None if raw.hex_digits.is_some() => return Err(needs("`hash`, since it has `hex_digits`")),
                None if template.has_shard() => {
                    return Err(needs(
                        "`hash`, as the code that sharded the table computes it: \"md5\", \"sha1\", \"sha256\", \"crc32\", \"fnv1a32\", \
                         \"fnv1a64\", \"java\", \"java_abs\", \"java_mask\", \"java_objects\", \"modulo\" or \"jump\"; or \"random\", if it draws it or takes it from an attribute",
                    ));
                }
                None => Hash::JumpXxh3,
            };
            (Strategy::Template { template, by, time }, shards)
        }
    };
    Ok(Spread::Sharded { layout: Layout { strategy, shards, hash: of_rule, version: 1 }, part_of })
}

/// A transaction over all fragments of a counter sets or deletes it, and DynamoDB's transactions
/// have at most this many actions (AWS Developer Guide, "Amazon DynamoDB Transactions").
pub const MAX_COUNTER_SHARDS: u16 = 100;

fn counter(
    attributes: Spanned<Vec<String>>,
    shards: u16,
    shards_span: &Range<usize>,
    fault: Fault<'_>,
) -> Result<(Strategy, u16), RulesError> {
    let span = attributes.span();
    let attributes = attributes.into_inner();
    if attributes.is_empty() || attributes.iter().any(String::is_empty) {
        let problem = "expected the names of the numbers that are added to, such as [\"votes\"]; found none, or an empty one";
        return Err(fault(span, problem.to_owned()));
    }
    if let Some(twice) =
        attributes.iter().enumerate().find(|(at, name)| attributes.iter().take(*at).any(|one| one == *name))
    {
        return Err(fault(span, format!("names {} twice", twice.1)));
    }
    if shards > MAX_COUNTER_SHARDS {
        let problem = format!(
            "expected a whole number from 1 to {MAX_COUNTER_SHARDS} for a counter, found {shards}: setting or deleting it is one \
             transaction over its fragments, and a transaction has at most {MAX_COUNTER_SHARDS} actions"
        );
        return Err(fault(shards_span.clone(), problem));
    }
    Ok((Strategy::Counter { attributes }, shards))
}

fn by(raw: Option<file::By>, fault: Fault<'_>) -> Result<(By, Option<String>), RulesError> {
    let filled = |text: &Spanned<String>| {
        if text.get_ref().is_empty() {
            return Err(fault(
                text.span(),
                "expected at least one character, found an empty text".to_owned(),
            ));
        }
        Ok(())
    };
    match raw {
        None | Some(file::By::SortKey(_)) => Ok((By::SortKey, None)),
        Some(file::By::Part(part)) => {
            filled(&part.attribute)?;
            filled(&part.separator)?;
            let by = By::Part { separator: part.separator.into_inner(), part: usize::from(part.part.0) };
            Ok((by, Some(part.attribute.into_inner())))
        }
    }
}

fn time(bucket: BucketName, place: file::TimePlace) -> Time {
    Time {
        granularity: match bucket {
            BucketName::Hour => Granularity::Hour,
            BucketName::Day => Granularity::Day,
            BucketName::Week => Granularity::Week,
            BucketName::Month => Granularity::Month,
        },
        prefix: place.prefix.unwrap_or_default(),
        epoch: match place.epoch {
            Some(EpochName::Milliseconds) => Epoch::Milliseconds,
            Some(EpochName::Seconds) | None => Epoch::Seconds,
        },
    }
}
