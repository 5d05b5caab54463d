//! The gathered plans of a Query, and how they explain themselves.

use std::sync::Arc;

use futures::future::BoxFuture;
use heatsink_dynamo::Error;

use super::locally_sorted::LocallySorted;
use super::scatter::Scatter;
use super::scatter::wanted::Wanted;
use super::strong;
use crate::dry_run::explained;
use crate::plan::{Explanation, Kind, Planned};
use crate::{Answer, Calls};

/// A plan of several rounds.
pub(crate) enum Gather {
    Shards {
        wanted: Arc<Wanted>,
        /// Whether it shows its shards as they were at one moment.
        strong: bool,
    },
    LocallySorted(Box<LocallySorted>),
}

impl Planned for Gather {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        match *self {
            Gather::Shards { wanted, strong: false } => Box::pin(Scatter::read(wanted, calls)),
            Gather::Shards { wanted, strong: true } => Box::pin(strong::read(wanted, calls)),
            Gather::LocallySorted(locally_sorted) => Box::pin(locally_sorted.read(calls)),
        }
    }

    fn explain(&self) -> Explanation {
        let (why, calls) = match self {
            Gather::Shards { wanted, strong } => {
                let scatter = Scatter::new(Arc::clone(wanted));
                let mut why = scatter.why();
                if *strong {
                    why += "; all of it twice, with consistent reads, so that the page shows all shards as they were at one moment \
                            (consistency = \"strong\")";
                }
                (why, scatter.explain())
            }
            Gather::LocallySorted(locally_sorted) => {
                let first = locally_sorted.as_ref().clone();
                (locally_sorted.why.to_owned(), explained(async |calls| first.read(calls).await))
            }
        };
        Explanation { plan: Kind::Scatter, why, calls }
    }
}
