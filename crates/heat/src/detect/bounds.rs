//! How far a sum may be off because its parts were drawn, and not all counted.
//!
//! The sum of drawn weights is a weighted sum of Poisson counts. Its bounds are quantiles of gamma
//! distributions with the same mean and variance (Fay and Feuer, "Confidence intervals for directly
//! standardized rates", 1997), which hold for few draws too, also for none. The quantiles are
//! Wilson and Hilferty's: of a cube.

use serde::{Deserialize, Serialize};

/// Standard deviations: each bound holds in 99.8 % of windows.
const SIGMAS: f64 = 3.0;

/// What of a sum was drawn. Sums of several windows or gateways add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Drawn {
    /// What all draws stand for.
    pub units: f64,
    /// The sum of the squares of what each stands for.
    pub variance: f64,
    /// What one draw more would stand for: where others are drawn, none may have been by chance. 0
    /// where all are counted. Older gateways do not tell it.
    #[serde(default)]
    pub one: f64,
}

impl Drawn {
    /// By how much the true sum may be less.
    pub fn below(self) -> f64 {
        self.units - quantile(self.units, self.variance, -SIGMAS)
    }

    /// By how much it may be more.
    pub fn above(self) -> f64 {
        quantile(self.units + self.one, self.variance + self.one * self.one, SIGMAS) - self.units
    }

    /// With another sum.
    #[must_use]
    pub fn plus(self, other: Drawn) -> Drawn {
        Drawn {
            units: self.units + other.units,
            variance: self.variance + other.variance,
            // Draws of several are like those of one: each stands for as much.
            one: self.one.max(other.one),
        }
    }

    /// So many times the sum.
    #[must_use]
    pub fn times(self, factor: f64) -> Drawn {
        Drawn {
            units: self.units * factor,
            variance: self.variance * factor * factor,
            one: self.one * factor,
        }
    }
}

/// So many standard deviations from the middle of a gamma distribution with that mean and variance.
fn quantile(mean: f64, variance: f64, sigmas: f64) -> f64 {
    if mean <= 0.0 || variance <= 0.0 {
        return mean.max(0.0);
    }
    let ninth = variance / (9.0 * mean * mean);
    mean * (1.0 - ninth + sigmas * ninth.sqrt()).max(0.0).powi(3)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bounds_are_those_of_tables() {
        // Exact Poisson limits for 0, 1, 10 and 100 counts, each side with a chance of 0.00135
        // (Python: scipy.stats.chi2.ppf).
        for (count, low, high) in
            [(0.0, 0.0, 6.608), (1.0, 0.00135, 8.900), (10.0, 3.084, 23.63), (100.0, 72.61, 133.9)]
        {
            let drawn = Drawn { units: count, variance: count, one: 1.0 };
            let (below, above) = (count - drawn.below(), count + drawn.above());
            assert!((below - low).abs() < 0.05 + 0.02 * low, "{count}: {below} {low}");
            assert!((above / high - 1.0).abs() < 0.025, "{count}: {above} {high}");
        }
        assert_eq!((Drawn::default().below(), Drawn::default().above()), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_sum_and_narrow_as_windows_add_up(
            units in 0.0..1e6f64, weight in 1.0..256.0f64, windows in 1_u8..60,
        ) {
            let one = Drawn { units, variance: units * weight, one: weight };
            let all = one.times(f64::from(windows)).plus(Drawn::default());
            let pooled = Drawn { variance: one.variance * f64::from(windows), ..all }.times(1.0 / f64::from(windows));
            prop_assert!(one.below() >= 0.0 && one.below() <= units + 1e-9 && one.above() > 0.0);
            prop_assert!(pooled.above() <= one.above() + 1e-6);
            prop_assert!(pooled.below() <= one.below() + 1e-6);
        }
    }
}
