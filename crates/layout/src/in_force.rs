//! What is in force for one logical key at one moment.
//!
//! Not here: where that is looked up ([`LayoutSource`](crate::LayoutSource)).

use std::sync::Arc;

use crate::moving::with_adds;
use crate::{Bucket, Layout, Moving, Narrowing, Phase, Placement, SortKey, Stepping, Unplaced, Widening};

/// What is in force for one logical key right now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InForce {
    /// One layout.
    Stable(Arc<Layout>),
    /// Two layouts, while the key moves from the one to the other.
    Moving(Arc<Moving>),
    /// One layout, of which some fragments take no ADDs yet.
    Widening(Arc<Widening>),
    /// One layout, of which some fragments take no ADDs any more.
    Narrowing(Arc<Narrowing>),
    /// One layout, under which nothing is put into some buckets yet.
    Stepping(Arc<Stepping>),
}

impl InForce {
    /// Where the item with that sort key may lie; `None` for one that changes its slot: it has two
    /// ([`Moving::slots`]), and the protocol of moves says which of them a request is for.
    ///
    /// # Errors
    /// As [`Layout::placement`].
    pub fn placement(&self, sort: Option<SortKey<'_>>) -> Result<Option<Placement>, Unplaced> {
        match self {
            InForce::Moving(moving) if moving.slots(sort)?.is_some() => Ok(None),
            InForce::Moving(moving) => moving.from.placement(sort).map(Some),
            InForce::Stable(layout) => layout.placement(sort).map(Some),
            InForce::Stepping(stepping) => stepping.layout.placement(sort).map(Some),
            InForce::Widening(one) => {
                one.layout.placement(sort).map(|placement| Some(with_adds(placement, one.adds)))
            }
            InForce::Narrowing(one) => {
                one.layout.placement(sort).map(|placement| Some(with_adds(placement, one.adds)))
            }
        }
    }

    /// Whether a write that can put an item into that bucket waits.
    pub fn holds(&self, bucket: Bucket) -> bool {
        matches!(self, InForce::Stepping(stepping) if bucket >= stepping.held_from)
    }

    /// The layout that holds, or that held before the move.
    pub fn settled(&self) -> &Arc<Layout> {
        match self {
            InForce::Stable(layout) => layout,
            InForce::Moving(moving) => &moving.from,
            InForce::Widening(widening) => &widening.layout,
            InForce::Narrowing(narrowing) => &narrowing.layout,
            InForce::Stepping(stepping) => &stepping.layout,
        }
    }
}

impl Moving {
    /// What gateways plan by.
    #[must_use]
    pub fn in_force(self) -> InForce {
        if self.phase > Phase::Reserve && Moving::widens(&self.from, &self.to) {
            let adds = self.from.shards.max(1);
            return InForce::Widening(Arc::new(Widening { layout: self.to, adds }));
        }
        if self.phase > Phase::Reserve && Moving::narrows(&self.from, &self.to) {
            let (adds, folds) = (self.to.shards.max(1), self.phase == Phase::Move);
            return InForce::Narrowing(Arc::new(Narrowing { layout: self.from, adds, folds }));
        }
        if let Some(held_from) = Moving::steps(&self.from, &self.to) {
            let layout = if self.phase > Phase::Reserve { self.to } else { self.from };
            return InForce::Stepping(Arc::new(Stepping { layout, held_from }));
        }
        InForce::Moving(Arc::new(self))
    }
}
