//! Events of partitions and capacity, for tools, tests and pictures.

use std::collections::VecDeque;

use crate::demand::ResourceId;
use crate::key_position::KeyPosition;
use crate::split::Refusal;

/// Most events kept until they are taken; the oldest go first.
const KEPT: usize = 10_000;

/// One event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When, in nanoseconds on the model's clock.
    pub at: u64,
    /// The table or index.
    pub on: ResourceId,
    /// What happened.
    pub kind: EventKind,
}

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A partition will be split.
    SplitStarted {
        /// Its id.
        partition: u64,
        /// Where.
        point: KeyPosition,
        /// When it takes effect.
        due: u64,
    },
    /// A partition was split in two.
    Split {
        /// The id that is gone.
        partition: u64,
        /// The ids that came: below the point, and from it on.
        into: [u64; 2],
        /// Where.
        point: KeyPosition,
    },
    /// A hot partition is not split. Told once for as long as the reason stands.
    SplitRefused {
        /// Its id.
        partition: u64,
        /// Why.
        why: Refusal,
    },
    /// Partitions were added because more capacity was configured, or an on-demand table grew.
    Grown {
        /// Partitions before.
        from: usize,
        /// Partitions now.
        to: usize,
    },
    /// An on-demand table's or index's peak has stood for 30 minutes: it now serves twice as much.
    PeakRegistered {
        /// Of writes, else of reads.
        writes: bool,
        /// The new previous peak, units per second.
        peak: u64,
        /// What is served from now on, units per second.
        limit: u64,
    },
}

/// The latest events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Events {
    kept: VecDeque<Event>,
    /// How often partitions or capacity changed.
    changes: u64,
}

impl Events {
    pub(crate) fn push(&mut self, at: u64, on: ResourceId, kind: EventKind) {
        let changes = matches!(
            kind,
            EventKind::Split { .. } | EventKind::Grown { .. } | EventKind::PeakRegistered { .. }
        );
        self.changes += u64::from(changes);
        if self.kept.len() == KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back(Event { at, on, kind });
    }

    pub(crate) fn take(&mut self) -> Vec<Event> {
        self.kept.drain(..).collect()
    }

    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}
