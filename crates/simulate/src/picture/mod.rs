//! Draws a report: for each run its throughput and throttles over time, and its partitions over key
//! space and time.
//!
//! The output is SVG. The command line converts it to PNG with the machine's fonts.

mod chart;
mod frame;
mod heat;
mod recording;
mod svg;

pub use recording::Recording;

use crate::diagnosis::hottest;
use crate::numbers::{grouped, percent};
use crate::report::{Report, Run};
use chart::{ACCEPTED, THROTTLED, chart};
use frame::Frame;
use svg::{Anchor, Svg, wrap};

const INK: &str = "#1d2329";
const SOFT: &str = "#5b6470";
const MARGIN: f64 = 28.0;
const WIDTH: f64 = 1_240.0;

impl Report {
    /// The picture, as SVG. Two panels beside each other where there are several runs.
    pub fn svg(&self) -> String {
        let mut svg = Svg::default();
        svg.bold((MARGIN, 40.0), 21.0, INK, &self.scenario);
        let mut y = 60.0;
        for line in wrap(&self.about, 13.0, WIDTH - 2.0 * MARGIN) {
            svg.text((MARGIN, y), 13.0, SOFT, Anchor::Start, &line);
            y += 17.0;
        }
        legend(&mut svg, y);
        y += 36.0;
        let columns = if self.runs.len() > 1 { 2.0 } else { 1.0 };
        let width = (WIDTH - MARGIN * (columns + 1.0)) / columns;
        let (left, right) = (MARGIN, 2.0 * MARGIN + width);
        for row in self.runs.chunks(if columns > 1.0 { 2 } else { 1 }) {
            let bottoms =
                row.iter().zip([left, right]).map(|(run, x)| self.panel(&mut svg, run, x, y, width));
            y = bottoms.fold(y, f64::max) + 30.0;
        }
        svg.finish(WIDTH, y)
    }

    /// One run; where it ends.
    fn panel(&self, svg: &mut Svg, run: &Run, x: f64, top: f64, width: f64) -> f64 {
        svg.rect(x, top, width, 2.0, INK);
        svg.bold((x, top + 21.0), 15.0, INK, &run.name);
        let shares: Vec<String> = run
            .workloads
            .iter()
            .map(|load| format!("{} {}", load.name, percent(load.throttled_share)))
            .collect();
        let figures = format!("throttled: {}   ${}/month", shares.join(", "), grouped(run.usd_per_month));
        let mut y = top + 38.0;
        for line in wrap(&figures, 11.5, width) {
            svg.text((x, y), 11.5, INK, Anchor::Start, &line);
            y += 15.0;
        }
        let lines = wrap(&run.diagnosis, 10.5, width);
        for line in lines.iter().take(3) {
            svg.text((x, y), 10.5, SOFT, Anchor::Start, line);
            y += 14.0;
        }
        // Panels beside each other line up.
        y = if self.runs.len() > 1 { y.max(top + 81.0) } else { y } + 14.0;
        let wide = self.runs.len() == 1;
        let frame = |top: f64, height: f64| Frame {
            left: x + 52.0,
            top,
            width: width - 62.0,
            height,
            seconds: self.seconds,
        };
        let points = |of: fn(&crate::Point) -> (f64, f64)| -> Vec<(f64, f64, f64)> {
            run.series.iter().map(|point| (point.seconds, of(point).0, of(point).1)).collect()
        };
        for (title, points) in [
            ("writes/s", points(|point| (point.writes_accepted, point.writes_throttled))),
            ("reads/s", points(|point| (point.reads_accepted, point.reads_throttled))),
        ] {
            let any = self.runs.iter().any(|run| run.has(title == "writes/s"));
            if any {
                let frame = frame(y, if wide { 130.0 } else { 62.0 });
                chart(svg, &frame, title, &points);
                y = frame.bottom() + 24.0;
            }
        }
        let frame = frame(y, if wide { 220.0 } else { 92.0 });
        if let Some(map) = hottest(&run.heat) {
            heat::heat(svg, &frame, map);
        }
        frame.times(svg);
        frame.bottom() + 18.0
    }
}

impl Run {
    fn has(&self, writes: bool) -> bool {
        self.series.iter().any(|point| {
            let (accepted, throttled) = if writes {
                (point.writes_accepted, point.writes_throttled)
            } else {
                (point.reads_accepted, point.reads_throttled)
            };
            accepted + throttled > 0.0
        })
    }
}

fn legend(svg: &mut Svg, y: f64) {
    svg.rect(MARGIN, y - 2.0, 11.0, 11.0, ACCEPTED);
    svg.text((MARGIN + 16.0, y + 7.5), 10.5, SOFT, Anchor::Start, "accepted");
    svg.rect(MARGIN + 84.0, y - 2.0, 11.0, 11.0, THROTTLED);
    svg.text((MARGIN + 100.0, y + 7.5), 10.5, SOFT, Anchor::Start, "throttled");
    svg.text((MARGIN + 190.0, y + 7.5), 10.5, SOFT, Anchor::Start, "asked of a partition:");
    heat::legend(svg, MARGIN + 318.0, y - 1.0);
}
