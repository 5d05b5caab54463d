//! Random draws, so that no pattern of requests keeps time with those that are examined.
//!
//! Not here: secrets, and what is drawn.

/// A linear congruential generator with Knuth's constants: a draw is two instructions beside a request.
pub(super) struct Draws(u64);

impl Draws {
    /// Begins with a random number.
    pub(super) fn new(seed: u64) -> Self {
        Draws(seed)
    }

    /// A number below that one, which is not 0.
    pub(super) fn below(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from((self.0 >> 33) % u64::from(below.max(1))).unwrap_or_default()
    }
}
