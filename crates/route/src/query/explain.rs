//! The gathered plans of a Query, and how they explain themselves.

use std::sync::Arc;

use futures::future::BoxFuture;
use heatsink_dynamo::{Error, KeyValue, Operation};

use super::inverted::Inverted;
use super::page::count;
use super::scatter::{Scatter, Wanted};
use super::strong;
use crate::plan::{CallExplanation, Estimate, Explanation, Kind, Planned};
use crate::{Answer, Calls, PhysicalCall};

/// A plan of several rounds.
pub(crate) enum Gather {
    Shards {
        wanted: Arc<Wanted>,
        /// Whether it reads consistently.
        consistent: bool,
        /// Whether it shows its shards as they were at one moment.
        strong: bool,
    },
    Inverted(Box<Inverted>),
}

impl Planned for Gather {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        match *self {
            Gather::Shards { wanted, strong: false, .. } => Box::pin(Scatter::read(wanted, calls)),
            Gather::Shards { wanted, strong: true, .. } => Box::pin(strong::read(wanted, calls)),
            Gather::Inverted(inverted) => Box::pin(inverted.read(calls)),
        }
    }

    fn explain(&self) -> Explanation {
        match self {
            Gather::Shards { wanted, consistent, strong } => {
                let mut explanation = explain_scatter(&Scatter::new(Arc::clone(wanted)), *consistent);
                if *strong {
                    explanation.why += "; all of it twice, with consistent reads, so that the page shows all shards as they were at \
                                        one moment (consistency = \"strong\")";
                }
                explanation
            }
            Gather::Inverted(inverted) => explain_inverted(inverted),
        }
    }
}

fn explain_scatter(scatter: &Scatter, consistent: bool) -> Explanation {
    let shares = scatter.shares(None);
    let size = scatter.item_size();
    let mut calls = Vec::new();
    for (lane, share) in &shares {
        let Some((lane, call)) = scatter.call(*lane, *share) else { continue };
        let mut explained = explained(&call);
        explained.shard = Some(lane.slot.shard);
        explained.key = match &lane.partition {
            KeyValue::S(text) => Some(text.clone().into_owned()),
            _ => None,
        };
        let steps = (count(*share) * size / 4096.0).ceil().max(1.0);
        explained.estimate = Some(Estimate {
            read_units: if consistent { steps } else { steps / 2.0 },
            write_units: 0.0,
            assumes: format!("{share} items of {size:.0} bytes; a shard with fewer costs less"),
        });
        calls.push(explained);
    }
    let share = shares.first().map_or(0, |(_, share)| *share);
    let why = format!(
        "the matching items may lie in {} shards: each is asked for its likely share of the page, {share} items, the answers \
         are merged by sort key, and shards that run dry before the page is full are asked again",
        shares.len()
    );
    let why = match (scatter.opens(), scatter.fold()) {
        (_, Some(fold)) => fold.why(),
        (Some(opens), None) => format!("{opens}; {why}"),
        (None, None) => why,
    };
    Explanation { plan: Kind::Scatter, why, calls }
}

fn explain_inverted(inverted: &Inverted) -> Explanation {
    let why = if inverted.is_turning() {
        "the index's partition key is being spread, or brought back: plain and spread values are both read, and rows with equal sort \
         keys are ordered by primary key, so each page reads all rows that have its last sort key"
    } else {
        "the index's sort key is the table's partition key, which is stored with shard suffixes: for every page the \
         whole collection of the index key (with = on the sort key, only that key's shards) is read, sorted by logical \
         keys and cut, so each page costs as much as reading all of it"
    };
    let calls = inverted.calls().iter().map(explained).collect();
    Explanation { plan: Kind::Scatter, why: why.to_owned(), calls }
}

fn explained(call: &PhysicalCall) -> CallExplanation {
    CallExplanation::new(Operation::Query, &call.body)
}
