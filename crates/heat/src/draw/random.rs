//! Random draws, so that no pattern of requests keeps time with those that are examined.
//!
//! Not here: secrets, and what is drawn.

use std::sync::atomic::{AtomicU64, Ordering};

/// A linear congruential generator with Knuth's constants: a draw is two instructions beside a
/// request. Two threads that draw at once may draw the same.
#[derive(Debug)]
pub struct Draws(AtomicU64);

impl Draws {
    /// Begins with a random number.
    pub fn new(seed: u64) -> Self {
        Draws(AtomicU64::new(seed))
    }

    fn next(&self) -> u64 {
        let next = self
            .0
            .load(Ordering::Relaxed)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0.store(next, Ordering::Relaxed);
        next
    }

    /// A number below that one, which is not 0.
    pub fn below(&self, below: u32) -> u32 {
        u32::try_from((self.next() >> 33) % u64::from(below.max(1))).unwrap_or_default()
    }

    /// How many are passed over before the next one, where each is drawn by itself with a chance of
    /// one in `one_in`.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "`as` cuts to the range"
    )]
    pub fn passed_over(&self, one_in: u32) -> u32 {
        if one_in <= 1 {
            return 0;
        }
        // Above 0, so that its logarithm is finite.
        let uniform = ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        (uniform.ln() / (-1.0 / f64::from(one_in)).ln_1p()) as u32
    }
}
