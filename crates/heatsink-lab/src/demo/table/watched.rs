//! What is seen of the adoption while it goes on.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use heatsink_env::{Env, MonotonicInstant};
use heatsink_layout::TablePhase;
use heatsink_workers::Progress;

use crate::output::Output;

/// When each phase began, and what has moved.
pub(super) struct Watched {
    env: Arc<dyn Env>,
    output: Output,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    phases: Vec<(TablePhase, MonotonicInstant)>,
    /// Whether what is passed is of keys that move.
    counts: bool,
    moved: Moved,
}

/// What has moved, of keys that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Moved {
    /// When the first keys began, and the last one ended.
    pub span: Option<(MonotonicInstant, MonotonicInstant)>,
    pub keys: u64,
    pub items: u64,
}

impl Watched {
    pub(super) fn new(env: Arc<dyn Env>, output: Output) -> Self {
        Watched { env, output, seen: Mutex::default() }
    }

    /// Whether keys move from now on: what is passed of other work is not counted.
    pub(super) fn moves(&self, moves: bool) {
        let now = self.env.now();
        let mut seen = self.seen();
        seen.moved.span.get_or_insert((now, now));
        seen.counts = moves;
    }

    pub(super) fn moved(&self) -> Moved {
        self.seen().moved
    }

    pub(super) fn phases(&self) -> Vec<(TablePhase, MonotonicInstant)> {
        self.seen().phases.clone()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Watched {
    fn passed(&self, items: u64) {
        let now = self.env.now();
        let mut seen = self.seen();
        if let (Some((first, _)), true) = (seen.moved.span, seen.counts) {
            let Moved { keys, items: before, .. } = seen.moved;
            seen.moved = Moved { span: Some((first, now)), keys: keys + 1, items: before + items };
        }
    }

    fn table(&self, phase: TablePhase) {
        let now = self.env.now();
        let mut seen = self.seen();
        seen.phases.push((phase, now));
        if self.output == Output::Text {
            let since = seen.phases.first().map_or(0.0, |(_, first)| now.since(*first).as_secs_f64());
            eprintln!("{phase:?} after {since:.1} s");
        }
    }
}
