//! Which calls for the keys of a rule become one: its fields, and what has no meaning.
//!
//! Not here: how calls become one (`heatsink_gateway`).

use toml::Spanned;

use super::RulesError;
use super::fault::Fault;
use super::file::{self, ConsistencyName, HashName, StrategyName};
use super::numbers::max_age;
use super::rule::SharedCalls;

/// Those of a rule.
pub(super) fn of(raw: &file::Rule, fault: Fault<'_>) -> Result<SharedCalls, RulesError> {
    let says = |flag: &Option<Spanned<bool>>| flag.as_ref().is_some_and(|flag| *flag.get_ref());
    if let Some(combine) = raw.combine.as_ref().filter(|combine| *combine.get_ref()) {
        let random = raw.hash.as_ref().is_some_and(|hash| *hash.get_ref() == HashName::Random);
        let why = if raw.index.is_some() {
            Some("with `index`: writes are of items, which the rule for the table's own key names")
        } else if raw.strategy == StrategyName::Counter {
            Some("with strategy = \"counter\", whose writes go to many items")
        } else if random {
            Some("with hash = \"random\": an item is looked for before it is written")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(fault(combine.span(), format!("has no meaning {why}; remove it")));
        }
    }
    if let Some(streams) = &raw.combine_streams
        && !says(&raw.combine)
    {
        let problem = "has no meaning without combine = true; remove it";
        return Err(fault(streams.span(), problem.to_owned()));
    }
    let reads = [
        raw.coalesce.as_ref().filter(|flag| *flag.get_ref()).map(Spanned::span),
        raw.cache_max_age_ms.as_ref().map(Spanned::span),
    ];
    let strong = raw.consistency.as_ref().is_some_and(|one| *one.get_ref() == ConsistencyName::Strong);
    if let Some(span) = reads.into_iter().flatten().next() {
        let why = if raw.index.is_some() {
            Some("with `index`: only reads of the table itself become one")
        } else if strong {
            Some("with consistency = \"strong\": an answer from before is not of that moment")
        } else {
            None
        };
        if let Some(why) = why {
            return Err(fault(span, format!("has no meaning {why}; remove one of them")));
        }
    }
    let cache_max_age_ms = raw.cache_max_age_ms.as_ref().map(|age| max_age(age, fault)).transpose()?;
    Ok(SharedCalls {
        combine: says(&raw.combine),
        combine_streams: says(&raw.combine_streams),
        // Without it all who come once an answer is too old would send.
        coalesce: says(&raw.coalesce) || cache_max_age_ms.is_some(),
        cache_max_age_ms,
    })
}
