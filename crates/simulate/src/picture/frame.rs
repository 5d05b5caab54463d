//! The rectangle of a chart, with a time axis.

use super::svg::{Anchor, Svg};

/// The position of a chart, and the length of its time axis.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub left: f64,
    pub top: f64,
    pub width: f64,
    pub height: f64,
    pub seconds: f64,
}

impl Frame {
    pub(crate) fn right(&self) -> f64 {
        self.left + self.width
    }

    pub(crate) fn bottom(&self) -> f64 {
        self.top + self.height
    }

    pub(crate) fn x(&self, seconds: f64) -> f64 {
        self.left + self.width * seconds / self.seconds
    }

    /// From 0 at the top to 1 at the bottom.
    pub(crate) fn y(&self, share: f64) -> f64 {
        self.top + self.height * share
    }

    /// Times below the frame.
    pub(crate) fn times(&self, svg: &mut Svg) {
        let step = [
            1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1_800.0, 3_600.0, 10_800.0, 21_600.0,
            86_400.0, 604_800.0,
        ]
        .into_iter()
        .find(|step| self.seconds / step <= 6.5)
        .unwrap_or(self.seconds);
        let mut at = 0.0;
        while at <= self.seconds * 1.001 {
            let x = self.x(at);
            svg.line((x, self.bottom()), (x, self.bottom() + 3.0), "#5b6470");
            svg.text((x, self.bottom() + 13.0), 10.0, "#5b6470", Anchor::Middle, &clock(at));
            at += step;
        }
    }
}

fn clock(seconds: f64) -> String {
    match seconds {
        0.0 => "0".to_owned(),
        days if days % 86_400.0 == 0.0 => format!("{} d", days / 86_400.0),
        hours if hours % 3_600.0 == 0.0 => format!("{} h", hours / 3_600.0),
        minutes if minutes % 60.0 == 0.0 => format!("{} min", minutes / 60.0),
        seconds => format!("{seconds} s"),
    }
}
