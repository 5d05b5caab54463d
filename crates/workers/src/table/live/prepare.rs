//! Whether all keys of a table can get other layouts while clients use it. Changes nothing.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{
    Changer, DesiredLayout, Fencing, Record, Rules, State, TableChange, TableLayouts, agree, claim,
    lost_registry,
};
use heatsink_env::Env;
use heatsink_layout::{Layout, Strategy};
use heatsink_reshard::{Rules as ProtocolRules, TableCoordinator, TablePhase};
use heatsink_store::Store;

use super::LiveAdoption;
use super::layouts::wanted;
use crate::direction::Direction;
use crate::eligible;
use crate::error::{WorkerError, usage};
use crate::key::wanted::{can_change, same, target};

/// Why this is not done while clients use the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotLive {
    /// The reason.
    pub why: String,
    /// Whether something else was begun, which goes on first.
    pub goes_on: bool,
}

impl NotLive {
    fn ever(why: impl Into<String>) -> Self {
        NotLive { why: why.into(), goes_on: false }
    }

    fn yet(why: impl Into<String>) -> Self {
        NotLive { why: why.into(), goes_on: true }
    }
}

/// What was found.
pub enum PreparedLive {
    /// Its keys get other layouts while clients use it.
    Live(Box<LiveAdoption>),
    /// Its own keys lie as they should. Keys of indexes may not.
    Done,
    /// Only while nobody uses it.
    Offline(NotLive),
}

impl LiveAdoption {
    /// Checks whether the keys of `table` can be brought under `rules`, or back. `up_to`: only keys
    /// in the first so many hundredths of all hashes. `alone`: no other process uses the store.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] with the reason why not, and what to do.
    pub fn prepare<'a>(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &'a Rules,
        (table, direction): (&'a str, Direction),
        up_to: u8,
        alone: bool,
    ) -> BoxFuture<'a, Result<PreparedLive, WorkerError>> {
        async move {
            let registry = rules.fence().registry_in(store, env);
            let described = eligible::usable(&registry, table).await?;
            let record = registry.read(&described.schema.id).await?;
            if let Some(why) = unfit(&described, record.as_ref()) {
                return Ok(PreparedLive::Offline(why));
            }
            let to = match direction {
                Direction::Adopt => match desired(&registry, rules, &described, record.as_ref()).await? {
                    Some(to) => to,
                    None => return Ok(PreparedLive::Done),
                },
                Direction::Back if record.is_none() => {
                    return usage(format!(
                        "Table {table} is not on record as sharded: there is nothing to bring back"
                    ));
                }
                Direction::Back => TableLayouts::default(),
                Direction::Release => return Ok(PreparedLive::Done),
            };
            let from = record.as_ref().map(|record| record.layouts.own()).unwrap_or_default();
            let change = match record.as_ref().map(|record| &record.state) {
                Some(State::ChangingKeys(change)) => Some(change),
                _ => None,
            };
            // One that came back, and was killed before it took the record off, has that left to do.
            let is_left = |record: &Record| direction == Direction::Back && record.is_empty();
            if change.is_none() && agree(&from, &to) && !record.as_ref().is_some_and(is_left) {
                return Ok(PreparedLive::Done);
            }
            if !claim::is_possible(&registry).await? {
                return usage(format!(
                    "The store of table {table} has no TransactWriteItems, by which items are moved"
                ));
            }
            let leads_to = change.map(|change| if change.phase.has_turned() { &from } else { &change.other });
            let goes_on = leads_to == Some(&to);
            let phase = change.filter(|_| goes_on).map(|change| change.phase);
            if let (Some(change), false) = (change, goes_on) {
                can_turn_round(table, change, &from, &to)?;
            }
            let before = match change {
                Some(change) if goes_on && change.phase.has_turned() => &change.other,
                _ => &from,
            };
            if let Some(why) = impossible(&described, before, &to) {
                return Ok(PreparedLive::Offline(why));
            }
            let changer = Changer::new(registry.clone(), Fencing::shared(rules.fence(), "adopt"));
            let changer = changer.exclusively(alone);
            if direction == Direction::Back && !alone {
                not_ruled(&changer, table).await?;
            }
            let older = match alone {
                true => Vec::new(),
                false => {
                    let ranges = to.iter().any(|one| one.layout().split_points().is_some());
                    changer.gateways_without(|one| one.knows_table_changes && (one.knows_ranges || !ranges)).await?
                }
            };
            if !older.is_empty() {
                return usage(format!(
                    "Gateways of an older build do not know that all keys of a table get other shards while clients use it, and would refuse every request on \
                     the table: {}. Start newer ones in their place first. Nothing was changed",
                    older.join(", ")
                ));
            }
            let coordinator = match change {
                Some(change) if !goes_on => TableCoordinator::turning_round(change.phase, ProtocolRules::ALL),
                _ => TableCoordinator::new(phase, ProtocolRules::ALL),
            };
            let live = LiveAdoption {
                registry,
                changer,
                described,
                record,
                to,
                up_to,
                coordinator,
                listed: Vec::new(),
                kept: 0,
            };
            Ok(PreparedLive::Live(Box::new(live)))
        }
        .boxed()
    }
}

/// What the keys of the table are to get, by the rules; `None` where rules name none of them.
async fn desired(
    registry: &Registry,
    rules: &Rules,
    described: &Described,
    record: Option<&Record>,
) -> Result<Option<TableLayouts>, WorkerError> {
    let table = &described.schema.name;
    if record.is_none() {
        if let Some(problem) = eligible::named_before(registry, table, &described.schema.id).await? {
            return usage(problem);
        }
        if let Some(problem) = lost_registry::refusal_if_written(registry, described).await? {
            return usage(problem);
        }
    }
    let desired = match record {
        Some(record) => rules.desired_layout_recorded(&described.schema, &record.layouts).0,
        None => rules.desired_layout(&described.schema),
    };
    match desired {
        DesiredLayout::Sharded(layouts) if !layouts.own().is_empty() => Ok(Some(layouts.own())),
        // Keys of indexes alone, or nothing: that is said where they are adopted.
        DesiredLayout::Sharded(_) | DesiredLayout::Unmentioned { .. } | DesiredLayout::Unsharded => Ok(None),
        DesiredLayout::Impossible(reason) => usage(reason),
    }
}

/// # Errors
/// [`WorkerError::Usage`] where rules of a gateway name the table: once nothing of it is on record,
/// that gateway would refuse it.
async fn not_ruled(changer: &Changer, table: &str) -> Result<(), WorkerError> {
    let listed = changer.gateways().await?.map(|(_, listed)| listed).unwrap_or_default();
    let ruled = listed.iter().filter_map(|one| {
        let naming = one.ruled.as_ref()?.naming(table)?;
        Some(format!("{} has {naming}", one.name))
    });
    let ruled: Vec<String> = ruled.collect();
    match ruled.is_empty() {
        true => Ok(()),
        false => usage(format!(
            "Rules of gateways are for table {table}, and these would refuse it once it is back: {}. Take them out and reload the gateways first. Nothing was changed",
            ruled.join("; ")
        )),
    }
}

/// Why a table, as it is, cannot be adopted while clients use it.
fn unfit(described: &Described, record: Option<&Record>) -> Option<NotLive> {
    let table = &described.schema.name;
    match record.map(|record| &record.state) {
        Some(State::Adopting(_) | State::Returning(_)) => {
            return Some(NotLive::yet(format!(
                "an offline adoption of table {table} was begun, and goes on"
            )));
        }
        Some(State::MigratingIndexKeys(_)) => {
            return Some(NotLive::yet("keys of its indexes are being rewritten, and that goes on first"));
        }
        Some(State::Pending | State::Deleting { .. } | State::Gone) => {
            return Some(NotLive::yet("it is being recorded, or deleted"));
        }
        Some(State::Active | State::ChangingKeys(_)) | None => {}
    }
    let by_hand = |record: &Record| {
        record.layouts.iter().any(|one| {
            one.index().is_none()
                && (one.layout().template().is_some() || one.layout().is_externally_assigned())
        })
    };
    record.is_some_and(by_hand).then(|| NotLive::ever("its own code shards it beside Heatsink"))
}

/// Whether a change can be left for one that leads elsewhere: back to where it came from.
///
/// # Errors
/// [`WorkerError::Usage`] with what to do.
fn can_turn_round(
    table: &str,
    change: &TableChange,
    recorded: &TableLayouts,
    to: &TableLayouts,
) -> Result<(), WorkerError> {
    let (from, leads_to) = change.from_and_to(recorded);
    if from.own() == *to && change.phase != TablePhase::Turn {
        return Ok(());
    }
    let by = |layouts: &TableLayouts| match layouts.own().is_empty() {
        true => format!("`heatsink adopt {table} --back`"),
        false => format!("`heatsink adopt {table}` with the rules that say so"),
    };
    let again = by(leads_to);
    usage(format!(
        "All keys of table {table} are being given other layouts ({}). End that first: {again} goes on with it{}",
        if leads_to.is_empty() { "every key under its own name".to_owned() } else { leads_to.to_string() },
        if change.phase == TablePhase::Turn {
            ". Then this is possible".to_owned()
        } else {
            format!("; or take it back, to where the keys came from: {}", by(from))
        },
    ))
}

/// Why keys of these layouts cannot get those while clients use them.
fn impossible(described: &Described, from: &TableLayouts, to: &TableLayouts) -> Option<NotLive> {
    let none = Layout::none();
    let all = |layouts: &TableLayouts| -> Vec<Layout> {
        layouts.iter().map(|one| Layout::clone(one.layout())).chain([none.clone()]).collect()
    };
    for after in all(to) {
        if matches!(after.strategy, Strategy::Bucket { .. } | Strategy::Template { .. }) {
            return Some(NotLive::ever(format!("keys cannot become {after} one by one")));
        }
        for before in all(from).into_iter().filter(|before| !same(before, &after)) {
            if !same(&target(&before, &wanted(&after)), &after) {
                return Some(NotLive::ever(format!("keys cannot become {after} one by one")));
            }
            if can_change(&described.schema, b"", &before, &after).is_err() {
                return Some(NotLive::ever(match described.schema.key.sort {
                    None => "it has no sort key: each of its keys is one item".to_owned(),
                    Some(_) => format!("keys that are {before} cannot become {after} while clients write"),
                }));
            }
        }
    }
    None
}
