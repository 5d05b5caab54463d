//! Counts how many of a list of key positions fall on each partition.

use crate::key_position::KeyPosition;
use crate::ranges::Ranges;

/// How many key positions fall on each partition. Kept between uses to reuse its memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct HitCounts {
    /// By partition; zero between uses.
    pub counts: Vec<u64>,
    /// The partitions that were hit at least once.
    pub touched: Vec<usize>,
    /// The partition of each position.
    pub places: Vec<usize>,
}

impl HitCounts {
    /// Counts these positions. The previous counts must have been taken.
    pub fn count(&mut self, points: &[KeyPosition], ranges: &Ranges) {
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

    /// Returns each partition that was hit with its count, and resets the counts.
    pub fn take(&mut self) -> impl Iterator<Item = (usize, u64)> {
        let HitCounts { counts, touched, .. } = self;
        touched.drain(..).map(|at| (at, std::mem::take(&mut counts[at])))
    }
}
