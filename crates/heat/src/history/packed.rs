//! A sum in 16 bits: as good as a picture needs, and half of what single precision takes.

/// A number that is not negative. It is right to 1/512 up to 8, and to 1 in 4,096 beyond that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Packed(u16);

/// Parts of one that are told apart.
const PARTS: f64 = 256.0;
/// Digits of two behind the first that are kept.
const DIGITS: u32 = 11;
/// The most whole parts that there is a code for.
const MOST: f64 = (0xfff_u64 << 30) as f64;

impl Packed {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "clamped to what there are codes for"
    )]
    pub(super) fn new(value: f32) -> Self {
        let parts = (f64::from(value) * PARTS).clamp(0.0, MOST);
        let shift = (u64::BITS - (parts as u64).leading_zeros()).saturating_sub(DIGITS + 1);
        // Rounded once. Rounding up may carry into the next power of two, whose code is the next
        // one.
        let digits = (parts / (1_u64 << shift) as f64).round() as u64;
        Packed(((u64::from(shift) << DIGITS) + digits).min(u64::from(u16::MAX)) as u16)
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "twelve digits of two")]
    pub(super) fn value(self) -> f32 {
        let shift = (u32::from(self.0) >> DIGITS).saturating_sub(1);
        let digits = u64::from(self.0) - (u64::from(shift) << DIGITS);
        ((digits << shift) as f64 / PARTS) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_is_one_number_and_they_rise() {
        let values: Vec<f32> = (0..=u16::MAX).map(|code| Packed(code).value()).collect();
        assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
        assert!((0..=u16::MAX).all(|code| Packed::new(Packed(code).value()) == Packed(code)));
    }

    #[test]
    fn it_is_as_exact_as_it_says() {
        for at in 0..90_000_i32 {
            #[allow(clippy::cast_possible_truncation, reason = "single precision is what is packed")]
            let value = (1.000_3_f64.powi(at) / 100.0) as f32;
            let off = (f64::from(Packed::new(value).value()) - f64::from(value)).abs();
            assert!(off <= (1.0_f64 / 512.0).max(f64::from(value) / 4_096.0), "{value}: {off}");
        }
        for (value, packed) in [(0.0, 0.0), (-1.0, 0.0), (f32::NAN, 0.0), (10.0, 10.0), (1_000.0, 1_000.0)] {
            assert_eq!(Packed::new(value).value(), packed);
        }
        assert!(Packed::new(f32::INFINITY).value() > 1e10);
    }
}
