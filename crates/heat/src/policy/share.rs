//! A share that was measured on some of the requests, and what is certain of it.

use crate::KeyLoad;
use crate::detect::{Drawn, Kind};

/// A share from 0 to 1, and on how many requests it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Share {
    pub(super) share: f64,
    pub(super) measured_on: f64,
}

impl Share {
    /// The share at least. The bound holds in 99.8 % of measurements, also of few requests.
    pub(super) fn least(self) -> f64 {
        if self.measured_on <= 0.0 {
            return 0.0;
        }
        let found = self.share * self.measured_on;
        (found - Drawn { units: found, variance: found, one: 1.0 }.below()) / self.measured_on
    }

    /// Its standard deviation.
    pub(super) fn deviation(self) -> f64 {
        (self.share * (1.0 - self.share) / self.measured_on.max(1.0)).sqrt()
    }

    /// Whether two shares may be one.
    pub(super) fn is_near(self, other: Share) -> bool {
        let sigma = self.deviation().hypot(other.deviation());
        (self.share - other.share).abs() <= 0.03 + 3.0 * sigma
    }
}

/// On how many requests of that kind shares of a load were measured: all that were counted in the
/// windows that the load is the mean of.
pub(super) fn measured_on(load: &KeyLoad, kind: Kind, windows: f64) -> f64 {
    let counted = load.refused(kind).counted;
    if counted > 0.0 {
        return counted * windows;
    }
    // An older gateway tells only how much was drawn.
    let (drawn, units) = (load.drawn(kind), load.units(kind));
    if drawn.variance <= 0.0 || drawn.units <= 0.0 {
        return load.refused(kind).requests * windows;
    }
    let draws = drawn.units * drawn.units / drawn.variance;
    draws * (units / drawn.units).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_draw_is_no_evidence_and_many_are() {
        let share = |share, measured_on| Share { share, measured_on };
        assert!(share(0.25, 4.0).least() < 0.01, "one of four");
        assert!(share(0.25, 60.0).least() > 0.08);
        assert!(share(0.03, 100.0).least() < 0.01 && share(0.03, 2_000.0).least() > 0.015);
        assert_eq!(Share::default().least(), 0.0);
        assert!(
            share(0.2, 60.0).is_near(share(0.3, 60.0)) && !share(0.2, 9_000.0).is_near(share(0.3, 9_000.0))
        );
    }

    #[test]
    fn what_was_drawn_counts_as_often_as_it_was_drawn() {
        let load = KeyLoad {
            writes: 1_024.0,
            requests: 1_024.0,
            writes_drawn: Drawn { units: 1_024.0, variance: 1_024.0 * 32.0, one: 32.0 },
            ..KeyLoad::default()
        };
        assert!((measured_on(&load, Kind::Write, 1.0) - 32.0).abs() < 1e-9);
        let exact = KeyLoad { writes_drawn: Drawn::default(), ..load };
        assert!((measured_on(&exact, Kind::Write, 3.0) - 3_072.0).abs() < 1e-9);
    }
}
