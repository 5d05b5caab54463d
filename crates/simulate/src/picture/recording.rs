//! Draws what was recorded of a real load: its requests and its table's partitions over time, with
//! what happened when.

use heatsink_physics::{PARTITION_READS, PARTITION_WRITES, PartitionSnapshot};

use super::chart::chart;
use super::frame::Frame;
use super::svg::{Anchor, Svg, wrap};
use super::{INK, MARGIN, SOFT, WIDTH, heat, legend};
use crate::counts::Heat;
use crate::report::Map;

/// What was recorded.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// The heading.
    pub title: String,
    /// What is to be seen.
    pub about: String,
    /// How long it lasts, in seconds.
    pub seconds: f64,
    /// Requests per second: the end of the interval in seconds, those that were accepted, those
    /// that were throttled.
    pub requests: Vec<(f64, f64, f64)>,
    /// The table.
    pub table: String,
    /// Its partitions at some moments, in seconds.
    pub partitions: Vec<(f64, Vec<PartitionSnapshot>)>,
    /// What happened when, in seconds.
    pub marks: Vec<(f64, String)>,
}

impl Recording {
    /// The picture, as SVG.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        svg.bold((MARGIN, 40.0), 21.0, INK, &self.title);
        let mut y = 60.0;
        for line in wrap(&self.about, 13.0, WIDTH - 2.0 * MARGIN) {
            svg.text((MARGIN, y), 13.0, SOFT, Anchor::Start, &line);
            y += 17.0;
        }
        legend(&mut svg, y);
        y += 46.0;
        let top = y;
        let (left, width, seconds) = (MARGIN + 52.0, WIDTH - 2.0 * MARGIN - 62.0, self.seconds);
        // Marks stand above the charts, each on a line of its own so that near ones can be read.
        y += 13.0 * (self.marks.len() as f64) + 8.0;
        let requests = Frame { left, top: y, width, height: 150.0, seconds };
        chart(&mut svg, &requests, "writes/s", &self.requests);
        let partitions = Frame { left, top: requests.bottom() + 26.0, width, height: 300.0, seconds };
        heat::heat(&mut svg, &partitions, &self.map());
        for (nth, (at, what)) in self.marks.iter().enumerate() {
            let (x, line) = (partitions.x(*at), top + 13.0 * nth as f64);
            svg.line((x, line + 3.0), (x, partitions.bottom()), MARK);
            // Near the right edge there is room on the left.
            let (x, anchor) = match x > partitions.left + 0.8 * width {
                true => (x - 4.0, Anchor::End),
                false => (x + 4.0, Anchor::Start),
            };
            svg.text((x, line + 8.0), 11.0, INK, anchor, what);
        }
        partitions.times(&mut svg);
        svg.finish(WIDTH, partitions.bottom() + 30.0)
    }

    fn map(&self) -> Map {
        let heat = |of: &PartitionSnapshot| {
            let units =
                of.writes_per_second / PARTITION_WRITES as f64 + of.reads_per_second / PARTITION_READS as f64;
            let refused = of.throttles_per_second as f64 / PARTITION_WRITES as f64;
            #[allow(clippy::cast_possible_truncation, reason = "a colour")]
            let asked = (units + refused) as f32;
            Heat { first: of.from, reads: 0.0, writes: 0.0, throttles: 0.0, refused: 0.0, asked }
        };
        let steps = self.partitions.iter().map(|(_, of)| of.iter().map(heat).collect()).collect();
        let ends = self.partitions.iter().map(|(at, _)| *at).collect();
        Map { name: self.table.clone(), index: false, ends, steps }
    }
}

const MARK: &str = "#1d2329";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_requests_stand_at_their_times() {
        let recording = Recording {
            title: "A & B".to_owned(),
            seconds: 10.0,
            requests: vec![(5.0, 100.0, 50.0), (10.0, 150.0, 0.0)],
            marks: vec![(0.0, "begin".to_owned()), (10.0, "<end>".to_owned())],
            ..Recording::default()
        };
        let svg = recording.svg();
        assert!(svg.contains("A &amp; B") && svg.contains("&lt;end&gt;"), "{svg}");
        // The frame's left edge, and its right one.
        assert!(svg.contains("\"M80.0 ") && svg.contains("\"M1202.0 "), "{svg}");
    }
}
