//! Advances a table or index to a point in time: measuring windows end, hot partitions split,
//! on-demand capacity grows.

use crate::ceilings::PARTITION_BYTES;
use crate::event::{EventKind, Events};
use crate::heat::WINDOW;
use crate::key_position::KeyPosition;
use crate::partition::Health;
use crate::resource::Resource;
use crate::rules::{HOT, Rules, SUSTAINED_SECONDS};
use crate::split::{Inside, Refusal, choose};

const SECOND: u64 = 1_000_000_000;
const WINDOWS_PER_MINUTE: u64 = 60 * SECOND / WINDOW;

impl Resource {
    /// Carries out everything that is due up to `now`, in order of time.
    pub(crate) fn advance(&mut self, now: u64, rules: &Rules, events: &mut Events) {
        while self.next <= now {
            let at = self.next;
            self.finish_splits(at, events);
            if at >= self.window_end {
                let idle = self.close_window(at, rules, events);
                self.window_end += WINDOW;
                // Nothing can happen in idle windows: skip them.
                if idle && self.window_end <= now && self.due().is_none() {
                    let skipped = (now - self.window_end) / WINDOW;
                    self.windows += skipped;
                    self.window_end += skipped * WINDOW;
                }
            }
            self.next = self.due().unwrap_or(u64::MAX).min(self.window_end);
        }
    }

    fn finish_splits(&mut self, now: u64, events: &mut Events) {
        let mut at = 0;
        while at < self.ranges.all.len() {
            let partition = &mut self.ranges.all[at];
            if matches!(partition.health, Health::Splitting(due) if due <= now) {
                let (old, point) = (partition.id, partition.point);
                partition.health = Health::Calm;
                // Capacity may have been added in the meantime, and have cut it elsewhere.
                if self.ranges.splits(at, point) && !self.ranges.full() {
                    let into = self.ranges.split(now, at, point);
                    events.push(now, self.id, EventKind::Split { partition: old, into, point });
                    at += 1;
                }
            }
            at += 1;
        }
    }

    /// Ends a window. Returns whether it was idle: nothing was used in it and no event is pending.
    fn close_window(&mut self, now: u64, rules: &Rules, events: &mut Events) -> bool {
        let mut idle = true;
        for at in 0..self.ranges.all.len() {
            idle &= self.ranges.all[at].heat.close(HOT);
            if rules.splits {
                self.consider(now, at, rules, events);
            }
        }
        self.windows += 1;
        if self.windows.is_multiple_of(WINDOWS_PER_MINUTE) {
            self.close_minute(now, events);
        }
        idle && self.capacity.quiet()
    }

    /// Whether a partition has to split, and where.
    fn consider(&mut self, now: u64, at: usize, rules: &Rules, events: &mut Events) {
        let inside = match () {
            () if self.local_indexes => Inside::Never(Refusal::LocalIndex),
            () if rules.one_key_one_partition => Inside::Never(Refusal::OneKey),
            () => Inside::Allowed,
        };
        let partition = &self.ranges.all[at];
        let (id, health) = (partition.id, partition.health);
        if matches!(health, Health::Splitting(_)) {
            return;
        }
        let hot = partition.heat.hot_for() >= SUSTAINED_SECONDS * SECOND;
        let verdict = if hot { choose(&partition.heat.samples(), inside) } else { None };
        let useful = |point: &KeyPosition| self.ranges.splits(at, *point);
        match verdict {
            Some(Ok(point)) if useful(&point) => self.start_split(now, at, point, rules, events),
            Some(Err(why)) if health != Health::Stuck(why) => {
                self.ranges.all[at].health = Health::Stuck(why);
                events.push(now, self.id, EventKind::SplitRefused { partition: id, why });
            }
            None if !hot => self.ranges.all[at].health = Health::Calm,
            _ => {}
        }
        if !matches!(self.ranges.all[at].health, Health::Splitting(_))
            && self.ranges.all[at].bytes > PARTITION_BYTES
        {
            // Where its bytes lie is not known: in the middle. An item collection with a local
            // index stays whole.
            let whole = inside != Inside::Allowed;
            if let Some(point) =
                self.ranges.middle(at).filter(|point| !whole || *point == KeyPosition::first(point.position))
            {
                self.start_split(now, at, point, rules, events);
            }
        }
    }

    fn start_split(&mut self, now: u64, at: usize, point: KeyPosition, rules: &Rules, events: &mut Events) {
        let (least, most) = rules.split_delay_seconds;
        let delay = self.random.between(least.saturating_mul(SECOND), most.saturating_mul(SECOND));
        let due = now.saturating_add(delay);
        let partition = &mut self.ranges.all[at];
        partition.health = Health::Splitting(due);
        partition.point = point;
        events.push(now, self.id, EventKind::SplitStarted { partition: partition.id, point, due });
    }

    fn close_minute(&mut self, now: u64, events: &mut Events) {
        for (writes, registered) in [false, true].into_iter().zip(self.capacity.close_minute(now)) {
            if let Some((peak, limit)) = registered {
                events.push(now, self.id, EventKind::PeakRegistered { writes, peak, limit });
            }
        }
        if !self.capacity.mode().provisioned() {
            self.grow(now, events);
        }
    }

    /// Adds the partitions that an on-demand table's or a warmed table's capacity needs.
    pub(crate) fn grow(&mut self, now: u64, events: &mut Events) {
        self.add(now, self.capacity.partitions(), false, events);
    }

    /// Changes the mode or the capacity. A raise beyond what the partitions carry doubles their
    /// number, as often as need be (docs/explain/partitions.md#how-much-a-table-may-take); nothing
    /// ever takes partitions away.
    pub(crate) fn change(&mut self, now: u64, mode: crate::mode::Mode, events: &mut Events) {
        self.capacity.change(now, mode);
        if mode.provisioned() {
            self.add(now, usize::try_from(mode.partitions()).unwrap_or(usize::MAX), true, events);
        } else {
            self.grow(now, events);
        }
    }

    fn add(&mut self, now: u64, needed: usize, halves: bool, events: &mut Events) {
        let from = self.ranges.all.len();
        self.ranges.grow(now, needed, halves);
        self.grown(now, from, events);
    }

    fn grown(&mut self, now: u64, from: usize, events: &mut Events) {
        let to = self.ranges.all.len();
        if to > from {
            events.push(now, self.id, EventKind::Grown { from, to });
        }
    }
}
