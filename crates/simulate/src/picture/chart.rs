//! A chart of throughput over time: accepted below, throttled above it.

use std::fmt::Write;

use super::frame::Frame;
use super::svg::{Anchor, Svg};
use crate::numbers::grouped;

pub(crate) const ACCEPTED: &str = "#3b7dd8";
pub(crate) const THROTTLED: &str = "#e4572e";
const INK: &str = "#5b6470";
const GRID: &str = "#e3e7ec";

/// A stacked chart of requests per second; `points` are (end of the step, accepted, throttled).
pub(crate) fn chart(svg: &mut Svg, frame: &Frame, title: &str, points: &[(f64, f64, f64)]) {
    let peak = points.iter().map(|(_, accepted, throttled)| accepted + throttled).fold(0.0, f64::max);
    let top = round_up(peak);
    for share in [0.0, 0.5, 1.0] {
        let y = frame.y(1.0 - share);
        svg.line((frame.left, y), (frame.right(), y), GRID);
        svg.text((frame.left - 5.0, y + 3.5), 10.0, INK, Anchor::End, &grouped(top * share));
    }
    let level = |value: f64| frame.y(1.0 - value / top);
    area(svg, frame, points, |_| level(0.0), |point| level(point.1), ACCEPTED);
    area(svg, frame, points, |point| level(point.1), |point| level(point.1 + point.2), THROTTLED);
    svg.text((frame.left + 4.0, frame.top - 4.0), 10.5, INK, Anchor::Start, title);
}

type Reading = (f64, f64, f64);

/// The area between two curves, in steps.
fn area(
    svg: &mut Svg,
    frame: &Frame,
    points: &[Reading],
    low: impl Fn(&Reading) -> f64,
    high: impl Fn(&Reading) -> f64,
    fill: &str,
) {
    if points.iter().all(|point| (low(point) - high(point)).abs() < 0.05) {
        return;
    }
    let mut data = String::new();
    let mut last = frame.left;
    for point in points {
        let x = frame.x(point.0);
        let _ =
            write!(data, "{}{last:.1} {:.1}H{x:.1}", if data.is_empty() { 'M' } else { 'L' }, high(point));
        last = x;
    }
    for (nth, point) in points.iter().enumerate().rev() {
        let start = nth.checked_sub(1).map_or(frame.left, |before| frame.x(points[before].0));
        let _ = write!(data, "L{:.1} {:.1}H{start:.1}", frame.x(point.0), low(point));
    }
    data.push('Z');
    svg.path(&data, fill);
}

/// A round number not below `peak`.
fn round_up(peak: f64) -> f64 {
    if peak <= 0.0 {
        return 1.0;
    }
    let power = 10.0_f64.powf(peak.log10().floor());
    [1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0]
        .iter()
        .map(|step| step * power)
        .find(|step| *step >= peak)
        .unwrap_or(peak)
}
