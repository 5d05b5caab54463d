//! Random draws: from a distribution by popularity, and multinomial counts.

use fastrand::Rng;

/// Draws from a finite distribution in constant time: Walker's alias method in Vose's form ("A
/// Linear Algorithm For Generating Random Numbers With a Given Distribution", 1991).
#[derive(Clone, Debug)]
pub(crate) struct Alias {
    /// Per slot: the chance (of 2^32) to stay, and where to go else.
    slots: Vec<(u32, u32)>,
}

impl Alias {
    /// From weights that are not negative; at least one is more than 0. At most 2^32 of them.
    pub(crate) fn new(weights: &[f64]) -> Alias {
        let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
        let mut scaled: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let number = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        let mut slots: Vec<(u32, u32)> = (0..weights.len()).map(|at| (u32::MAX, number(at))).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..scaled.len()).partition(|at| scaled[*at] < 1.0);
        while let (Some(low), Some(high)) = (small.pop(), large.last().copied()) {
            slots[low] = (chance(scaled[low]), number(high));
            scaled[high] -= 1.0 - scaled[low];
            if scaled[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Alias { slots }
    }

    pub(crate) fn draw(&self, rng: &mut Rng) -> usize {
        // One draw: the slot from the upper half, the coin from the lower.
        let drawn = rng.u64(..);
        let slot = ((drawn >> 32) * self.slots.len() as u64) >> 32;
        let slot = usize::try_from(slot).unwrap_or(0);
        let (stay, other) = self.slots[slot];
        let coin = drawn & u64::from(u32::MAX);
        if coin <= u64::from(stay) { slot } else { other as usize }
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float to integer cast saturates"
)]
fn chance(share: f64) -> u32 {
    (share * f64::from(u32::MAX)) as u32
}

/// Popularity of the k-th of `keys`, from 1: 1 / k^exponent.
pub(crate) fn zipf(keys: usize, exponent: f64) -> Vec<f64> {
    (1..=keys).map(|rank| (rank as f64).powf(-exponent)).collect()
}

/// How many of `count` draws fall on each of `weights`: a multinomial draw, by binomials on what is
/// left.
pub(crate) fn multinomial(rng: &mut Rng, count: u64, weights: &[f64], counts: &mut Vec<u64>) {
    counts.clear();
    let mut left = count;
    let mut mass: f64 = weights.iter().sum();
    for (nth, weight) in weights.iter().enumerate() {
        let last = nth + 1 == weights.len();
        let here = if last { left } else { binomial(rng, left, (weight / mass).clamp(0.0, 1.0)) };
        counts.push(here);
        left -= here;
        mass -= weight;
    }
}

/// Successes of `count` tries of chance `p`. Exact by inversion while few are expected; a rounded
/// normal beyond that (more than 30 expected either way, where it is off by less than a percent of
/// its spread).
fn binomial(rng: &mut Rng, count: u64, p: f64) -> u64 {
    if p > 0.5 {
        return count - binomial(rng, count, 1.0 - p);
    }
    let (n, expected) = (count as f64, count as f64 * p);
    if count == 0 || p <= 0.0 {
        return 0;
    }
    if expected <= 30.0 {
        let (odds, mut term) = (p / (1.0 - p), (1.0 - p).powf(n));
        let (mut drawn, mut successes) = (rng.f64(), 0);
        while drawn > term && successes < count {
            drawn -= term;
            term *= odds * (n - successes as f64) / (successes as f64 + 1.0);
            successes += 1;
        }
        return successes;
    }
    let drawn = expected + normal(rng) * (expected * (1.0 - p)).sqrt();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
    let successes = drawn.round().clamp(0.0, n) as u64;
    successes
}

/// A standard normal draw (Box and Muller).
fn normal(rng: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_follow_their_weights() {
        let weights = [5.0, 0.0, 1.0, 3.0, 1.0];
        let (alias, mut rng) = (Alias::new(&weights), Rng::with_seed(1));
        let mut counts = [0_u32; 5];
        for _ in 0..100_000 {
            counts[alias.draw(&mut rng)] += 1;
        }
        for (count, weight) in counts.iter().zip(weights) {
            assert!((f64::from(*count) - weight * 10_000.0).abs() < 600.0, "{counts:?}");
        }
        assert_eq!(counts[1], 0);
    }

    #[test]
    fn multinomials_add_up_and_follow_their_weights() {
        let weights = [0.5, 0.05, 0.45];
        let mut rng = Rng::with_seed(2);
        for size in [7, 400] {
            let (mut counts, mut sums, mut squares) = (Vec::new(), [0.0; 3], [0.0; 3]);
            for _ in 0..20_000 {
                multinomial(&mut rng, size, &weights, &mut counts);
                assert_eq!(counts.iter().sum::<u64>(), size);
                for (nth, count) in counts.iter().enumerate() {
                    sums[nth] += *count as f64;
                    squares[nth] += (*count as f64).powi(2);
                }
            }
            for (nth, p) in weights.iter().enumerate() {
                let mean = sums[nth] / 20_000.0;
                let variance = squares[nth] / 20_000.0 - mean * mean;
                let expected = size as f64 * p;
                assert!((mean / expected - 1.0).abs() < 0.02, "{mean} {expected}");
                assert!((variance / (expected * (1.0 - p)) - 1.0).abs() < 0.06, "{variance}");
            }
        }
    }
}
