//! How many of many points fall on which partition.

use crate::place::Point;
use crate::ranges::Ranges;

/// How many of some points fall on which partition. Kept for its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct HitCounts {
    /// By partition; zero between uses.
    pub counts: Vec<u64>,
    /// The partitions on which any falls.
    pub touched: Vec<usize>,
    /// The partition of each point.
    pub places: Vec<usize>,
}

impl HitCounts {
    /// Counts these points; what was counted before has to be taken first.
    pub fn count(&mut self, points: &[Point], ranges: &Ranges) {
        let HitCounts { counts, touched, places } = self;
        counts.resize(ranges.all.len(), 0);
        places.clear();
        for point in points {
            let at = ranges.find(point);
            places.push(at);
            if counts[at] == 0 {
                touched.push(at);
            }
            counts[at] += 1;
        }
    }

    /// The partitions on which any falls, and how many; forgets them.
    pub fn take(&mut self) -> impl Iterator<Item = (usize, u64)> {
        let HitCounts { counts, touched, .. } = self;
        touched.drain(..).map(|at| (at, std::mem::take(&mut counts[at])))
    }
}
