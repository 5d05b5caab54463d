//! Full reads of a table that change nothing: what an adoption would move, what it cannot move, and
//! whether every item is where it should be.

use std::collections::HashSet;

use heatsink_control::registry::Registry;
use heatsink_dynamo::Error;
use heatsink_dynamo::size::{MAX_ITEM, item_size};
use heatsink_dynamo::value::read_item;
use serde::Serialize;
use serde_json::Value as Json;

use crate::direction::Direction;
use crate::error::WorkerError;
use crate::items::item::{Attributes, Checksum, ItemContext, Scalar, depth, shown};
use crate::items::walk::Walk;
use crate::progress::Progress;
use crate::table::recipe::Trial;
use crate::table::sharded::Sharded;

/// The number of refused items that are listed by key.
const LISTED: usize = 20;

/// What an adoption would do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Survey {
    /// Items in the table.
    pub items: u64,
    /// Items that have to move.
    pub to_move: u64,
    /// The most reserved suffixes that a logical key ends in: 0 unless the table holds keys that
    /// have to be escaped.
    pub deepest: usize,
    /// Items whose logical key ends in the reserved form and is stored escaped.
    pub escaped: u64,
    /// Items that share their primary key with an item in another random shard: Queries return all
    /// of them, and requests that name one by its key are refused.
    pub tied: u64,
    /// Where shards are said to be random but follow from the sort key: the recipe, and the number
    /// of items that match it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recipe: Option<String>,
    /// The reason why the table seems to be sharded already; it is not adopted then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sharded_already: Option<String>,
    /// The checksum over all items under their logical keys.
    pub checksum: String,
    /// Items that cannot be moved, or are not where they should be.
    pub refused: u64,
    /// The first of them, with the reason.
    pub refusals: Vec<String>,
}

impl Survey {
    /// The error with the list of refused items.
    pub fn refusal(&self, table: &str) -> String {
        let more = self.refused.saturating_sub(u64::try_from(self.refusals.len()).unwrap_or(u64::MAX));
        let more = if more == 0 { String::new() } else { format!("\n  and {more} more") };
        format!(
            "{} items of table {table} cannot be moved; nothing was moved:\n  {}{more}",
            self.refused,
            self.refusals.join("\n  ")
        )
    }

    pub(crate) fn refuse(&mut self, context: &ItemContext, item: &Attributes, reason: &str) {
        self.refused += 1;
        if self.refusals.len() < LISTED {
            self.refusals.push(format!("{}: {reason}", shown(&context.primary_key(item))));
        }
    }
}

/// What a survey says in the report of the run.
#[derive(Default)]
pub(crate) struct SurveySummary {
    pub tied: u64,
    pub recipe: Option<String>,
}

impl SurveySummary {
    pub fn of(survey: &Survey) -> Self {
        SurveySummary { tied: survey.tied, recipe: survey.recipe.clone() }
    }
}

/// Reads a table before its adoption. `rules` has every layout of the rules, `context` those of
/// this adoption.
pub(crate) async fn survey(
    registry: &Registry,
    context: &ItemContext,
    rules: &ItemContext,
    direction: Direction,
    progress: &dyn Progress,
) -> Result<Survey, WorkerError> {
    let mut found = Survey::default();
    let mut sum = Checksum::default();
    // A hash of every key in a random shard: some twenty bytes each.
    let mut met = HashSet::new();
    // The target keys. Only in a table that was sharded by hand can two items have the same one.
    let mut places = HashSet::new();
    let mut trial = Trial::default();
    let mut sharded = Sharded::default();
    let mut walk = Walk::new(registry, &context.table.name);
    while let Some(page) = walk.page().await? {
        for item in &page {
            let key = context.key(item)?;
            let logical = context.logical(&key, direction);
            found.items += 1;
            if context.table.has_externally_assigned() {
                trial.see_stored(&context.table, &key, context.sort(item)?.as_ref().map(Scalar::key));
            }
            if context.table.assigned_slot(&key).is_some() && !met.insert(context.identity(item, logical)) {
                found.tied += 1;
            }
            if direction == Direction::Adopt {
                sharded.see(rules, &key, item)?;
            }
            found.deepest = found.deepest.max(depth(&context.table, logical));
            found.escaped += u64::from(context.table.is_reserved(logical));
            let assigned = context.assigned_key(&key, logical, item)?;
            if let (true, Ok(assigned)) = (context.by_hand(), &assigned) {
                let place = if direction == Direction::Back { logical } else { assigned };
                if !places.insert(context.identity(item, place)) {
                    let place = context.text(place);
                    found.refuse(
                        context,
                        item,
                        &format!("another item with its sort key goes to {place:?} too"),
                    );
                }
            }
            match assigned {
                Err(unplaced) => found.refuse(context, item, &unplaced.to_string()),
                Ok(assigned) if direction != Direction::Adopt => {
                    if context.table.is_part(&key) {
                        let logical = context.text(logical);
                        let reason = format!(
                            "it is a part of the counter {logical:?}: `heatsink reshard start {} {logical:?} --shards 1` sums its parts into one item \
                             while clients use it",
                            context.table.name
                        );
                        found.refuse(context, item, &reason);
                    } else if assigned != key {
                        found.refuse(context, item, "it is not at its place: a write bypassed the gateway");
                    }
                    if direction == Direction::Back {
                        found.to_move += u64::from(logical != key);
                        if !context.stands_alone(logical) {
                            let logical = context.text(logical);
                            let reason = format!(
                                "its logical key {logical:?} would be read as a shard of another key on the way"
                            );
                            found.refuse(context, item, &reason);
                        }
                    }
                    sum.add(&context.rekeyed(item, logical));
                }
                Ok(assigned) if assigned != key && logical != key => {
                    // Only tables sharded by hand hold physical keys before the adoption.
                    let reason = format!("by the rule it would be under {}", context.text(&assigned));
                    found.refuse(context, item, &reason);
                }
                Ok(assigned) => {
                    sum.add(&context.rekeyed(item, logical));
                    if assigned != key {
                        found.to_move += 1;
                        if let Some(reason) = no_room(context, item, key.len(), assigned.len())? {
                            found.refuse(context, item, &reason);
                        }
                    }
                }
            }
            progress.passed(1);
        }
    }
    found.checksum = sum.text();
    found.recipe = trial.advice();
    found.sharded_already = sharded.verdict(&context.table.name);
    Ok(found)
}

/// The reason why an item cannot be stored under a key of `longer` bytes.
fn no_room(
    context: &ItemContext,
    item: &Attributes,
    key: usize,
    longer: usize,
) -> Result<Option<String>, Error> {
    if longer > context.longest_key() {
        return Ok(Some(format!(
            "with its shard suffix the key has {longer} bytes, and as the sort key of an index it may have {}",
            context.longest_key()
        )));
    }
    let text = Json::Object(item.clone()).to_string();
    // An item's text is never shorter than its size, so most items need no exact count.
    if text.len() + (longer - key) <= MAX_ITEM {
        return Ok(None);
    }
    let size = item_size(&read_item(text.as_bytes())?) + (longer - key);
    let reason = format!("with its shard suffix the item has {size} bytes of at most {MAX_ITEM}");
    Ok((size > MAX_ITEM).then_some(reason))
}

/// The items of a table, and whether each is where it should be.
#[derive(Debug)]
pub(crate) struct Count {
    pub items: u64,
    pub checksum: String,
    pub misplaced: u64,
    pub misplaced_first: Option<String>,
}

/// Reads a table after its adoption. The key of an item follows from its logical key, and a store
/// holds one item per primary key. So when every item is at its key none can exist twice, and equal
/// counts and checksums prove that none is missing.
pub(crate) async fn count(
    registry: &Registry,
    context: &ItemContext,
    direction: Direction,
    progress: &dyn Progress,
) -> Result<Count, WorkerError> {
    let mut found = Count { items: 0, checksum: String::new(), misplaced: 0, misplaced_first: None };
    let mut sum = Checksum::default();
    let mut walk = Walk::new(registry, &context.table.name);
    while let Some(page) = walk.page().await? {
        for item in &page {
            found.items += 1;
            let key = context.key(item)?;
            let at_its_place = if direction == Direction::Back {
                sum.add(item);
                context.stands_alone(&key)
            } else {
                let logical = context.table.logical(&key);
                sum.add(&context.rekeyed(item, logical));
                context.assigned_key(&key, logical, item)?.ok().as_deref() == Some(&key[..])
            };
            if !at_its_place {
                found.misplaced += 1;
                found.misplaced_first.get_or_insert_with(|| shown(&context.primary_key(item)));
            }
            progress.passed(1);
        }
    }
    found.checksum = sum.text();
    Ok(found)
}
