//! Moves the items of a key, as fast as it may: reads what a [`Mover`] asks for, and carries out
//! the pulls (`pull`).
//!
//! Each transaction has a permit of the claim: once another worker has taken over, nothing that this
//! one sent lands. Of a counter that narrows it reads the fragments that the counter loses, and has
//! each folded (`fold`).

use std::time::Duration;

use futures::StreamExt;
use futures::future::{Either, select};
use futures::stream::FuturesUnordered;
use heatsink_control::claim::Claim;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::Steering;
use heatsink_dynamo::Error;
use heatsink_layout::Layout;
use heatsink_reshard::{Change, Moved, Mover, MoverDo, Page, Pulled, Rules};
use serde_json::{Value as Json, json};

use crate::error::WorkerError;
use crate::key::batch::{Batch, MOST_ITEMS};
use crate::key::logical_key::Key;
use crate::key::place::{Old, Place, Within};
use crate::key::protocol;
use crate::key::shares::Share;
use crate::key::spare::Spare;
use crate::progress::Progress;

/// How many items are moved at once, each with a permit of its own; fewer where the store's
/// transactions have no room for so many. A pull is two transactions, one after the other: at 20 ms
/// each, that is 250 pulls a second, which take all 1,000 write units of a partition.
pub(crate) const PARALLEL: usize = 10;

/// How often one of a table's movers looks whether the table is still the one that they began with.
/// To delete a table and make it again takes DynamoDB about as long, and while there is none every
/// pull fails. More often costs others: the embedded store counts a table's items whenever it
/// describes it, 25 ms at 240,000 items, and serves nobody meanwhile.
const SAME_TABLE: Duration = Duration::from_secs(10);

/// How often a mover that is paused looks whether it may go on.
const PAUSED: Duration = Duration::from_millis(200);

/// One mover's work.
pub(crate) struct Work<'a> {
    pub registry: &'a Registry,
    pub key: &'a Key,
    pub from: &'a Layout,
    pub to: &'a Layout,
    /// Of a counter that narrows fragments are folded, and nothing moves.
    pub change: Change,
    /// Whether the old copy is marked before it is deleted.
    pub marks: bool,
    pub claim: &'a Claim,
    /// The most units of the old partition a second.
    pub rate: u32,
    /// What it takes beside other movers.
    pub share: &'a Share,
    pub steering: &'a Steering,
    pub progress: &'a dyn Progress,
}

impl Work<'_> {
    /// Moves what is to be moved, until a whole walk finds nothing.
    ///
    /// # Errors
    /// The store's; another worker that has taken over.
    pub(crate) async fn run(&self) -> Result<Moved<Place>, WorkerError> {
        let env = self.registry.env();
        let parallel = self.claim.writes() * MOST_ITEMS;
        let mut mover: Mover<Place, Old> = Mover::new(None, parallel, Rules::ALL);
        let mut pulls = FuturesUnordered::new();
        let mut spare = Spare::new(env.now(), self.rate, self.registry.throttles());
        let mut looked = Some(env.now());
        loop {
            let paused = self.steering.is_paused();
            // Items of a table that was made again under the name are nobody's to move.
            if paused {
                looked = None;
            } else if looked.is_none_or(|at| env.now().since(at) >= SAME_TABLE) {
                let now = env.now();
                let is_due = self.share.is_to_look(&self.key.table.id, now, SAME_TABLE);
                if is_due || looked.is_none() {
                    let same = self.same_table().await;
                    // Then each of the others looks for itself.
                    same.inspect_err(|_| self.share.looked_in_vain(&self.key.table.id))?;
                }
                looked = Some(now);
            }
            let throttles = self.registry.throttles();
            let spared = spare.rate(env.now(), throttles);
            let rate = self.share.rate(env.now(), if paused { 0 } else { spared }, throttles);
            match mover.next(env.now(), rate) {
                MoverDo::Read { after, .. } => {
                    let (page, units) = self.read(after).await?;
                    mover.spent_reading(env.now(), units, rate);
                    mover.page(page);
                }
                MoverDo::Pull(place, old) => {
                    let mut batch = Batch::default();
                    let mut next = Some((place, old));
                    // No more go together than the pace lets go at this moment.
                    while let Some((place, old)) = next {
                        let units = batch.push(place, old);
                        mover.spent(env.now(), units, rate);
                        spare.spent(env.now(), f64::from(units));
                        self.share.spent(env.now(), f64::from(units));
                        let more = batch.has_room(self.change).then(|| mover.next(env.now(), rate));
                        next = more.and_then(|next| match next {
                            MoverDo::Pull(place, old) => Some((place, old)),
                            _ => None,
                        });
                    }
                    pulls.push(self.bring(batch));
                }
                // Pulls that are under way end meanwhile, also those of a mover that is paused.
                MoverDo::Wait { until } => {
                    let pause = until.map_or(PAUSED, |until| until.since(env.now()));
                    let ended = match pulls.is_empty() {
                        true => None,
                        false => match select(pulls.next(), env.sleep(pause)).await {
                            Either::Left((ended, _)) => ended,
                            Either::Right(_) => continue,
                        },
                    };
                    match ended {
                        None => env.sleep(pause).await,
                        Some(pulled) => {
                            pulled?.into_iter().for_each(|(place, pulled)| mover.pulled(&place, pulled));
                            self.progress.moved(mover.progress().items);
                        }
                    }
                }
                MoverDo::AwaitPulls => {
                    if let Some(pulled) = pulls.next().await {
                        pulled?.into_iter().for_each(|(place, pulled)| mover.pulled(&place, pulled));
                        self.progress.moved(mover.progress().items);
                    }
                }
                MoverDo::Finished(moved) => return Ok(moved),
                MoverDo::Stopped => {
                    return Err(WorkerError::Busy(format!(
                        "Another run moves the key {:?} of table {} now",
                        self.key.text(),
                        self.key.table.name
                    )));
                }
            }
        }
    }

    async fn same_table(&self) -> Result<(), WorkerError> {
        let table = &self.key.table;
        match self.registry.describe(&table.name).await? {
            Some(described) if described.schema.id == table.id => Ok(()),
            _ => Err(WorkerError::Stopped(format!(
                "Table {} was deleted while its items were moved",
                table.name
            ))),
        }
    }

    /// Pulls items, or folds fragments.
    async fn bring(&self, batch: Batch) -> Result<Vec<(Place, Pulled)>, WorkerError> {
        let (places, items): (Vec<Place>, Vec<Old>) = batch.items.into_iter().unzip();
        if items.len() > 1 && self.pull_together(&items).await? {
            return Ok(places.into_iter().map(|place| (place, Pulled::Clear)).collect());
        }
        let mut brought = Vec::with_capacity(places.len());
        for (place, old) in places.into_iter().zip(items) {
            let narrows = self.change == Change::Narrow;
            let pulled = if narrows { self.fold(old).await? } else { self.pull(old).await? };
            brought.push((place, pulled));
        }
        Ok(brought)
    }

    /// The next old slot that items may leave, or whose fragments are folded.
    fn next_slot(&self, after: Option<u16>) -> Option<u16> {
        let mut next = self.from.next_slot(after);
        while let Some(slot) = next.filter(|slot| !protocol::is_left(self.change, self.from, self.to, *slot))
        {
            next = self.from.next_slot(Some(slot));
        }
        next
    }

    /// The page behind a place: the items of it that move.
    async fn read(&self, after: Option<Place>) -> Result<(Page<Place, Old>, u32), WorkerError> {
        let (slot, start) = match after {
            None => (self.next_slot(None), None),
            Some(Place { slot, within: Within::End }) => (self.next_slot(Some(slot)), None),
            Some(Place { slot, within: Within::Upto(sort) }) => (Some(slot), Some(sort)),
        };
        let Some(slot) = slot else { return Ok((Page { rows: Vec::new(), end: None }, 0)) };
        let from = self.key.physical(self.from, slot)?;
        let start = match (&start, &self.key.table.key.sort) {
            (Some(sort), Some(attribute)) => {
                let mut raw = Vec::new();
                sort.write(&mut raw);
                let value: Json = serde_json::from_slice(&raw)
                    .map_err(|_| Error::internal("a sort key could not be written"))?;
                Some(
                    json!({ self.key.table.key.partition.name.as_str(): from, attribute.name.as_str(): value }),
                )
            }
            _ => None,
        };
        let page = self.key.page(self.registry, &from, start.as_ref(), None).await?;
        let mut rows = Vec::new();
        let mut last = Within::End;
        for item in page.items {
            last = match self.key.table.key.sort {
                Some(_) => Within::Upto(self.key.sort(&item)?),
                // The only one.
                None => Within::End,
            };
            let to = self.leaves_for(slot, &last);
            // Other items of this slot stay, or have come here by the move.
            if let Some(to) = to {
                let (from, to) = (from.clone(), self.key.physical(self.to, to)?);
                rows.push((Place { slot, within: last.clone() }, Old { item, from, to }));
            }
        }
        let within = if page.more.is_some() { last } else { Within::End };
        let end = Some(Place { slot, within });
        // The walk is over with the last slot.
        let over =
            self.next_slot(Some(slot)).is_none() && end.as_ref().is_some_and(|end| end.within == Within::End);
        Ok((Page { rows, end: end.filter(|_| !over) }, page.units))
    }

    /// The slot to which what lies there in that slot goes: of a fragment that of the base fragment.
    fn leaves_for(&self, slot: u16, at: &Within) -> Option<u16> {
        match at {
            _ if self.change == Change::Narrow => Some(0),
            Within::Upto(sort) => {
                let to = Key::slot(self.to, sort);
                (Key::slot(self.from, sort) == slot && to != slot).then_some(to)
            }
            // Items without sort key do not move.
            Within::End => None,
        }
    }
}
