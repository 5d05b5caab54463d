//! DynamoDB's numbers: up to 38 significant digits, magnitudes 1E-130 to 9.99…E+125, exact.
//!
//! Not here: the text that a client sent; [`crate::Value::N`] keeps that.
//! Facts: AWS, "Supported data types: Number"; wording of errors as AWS gives them.

use std::cmp::Ordering;
use std::fmt;

use crate::Error;

/// The most significant digits a number has.
const DIGITS: u32 = 38;
/// The largest power of ten of a number's first digit.
const TOP: i64 = 125;
/// The smallest.
const BOTTOM: i64 = -130;

/// A number. Equal values are equal here, however they were written: `1.0`, `1` and `10e-1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Number {
    /// Never set for zero.
    negative: bool,
    /// Significant digits, without trailing zeros; below 10^38.
    digits: u128,
    /// The power of ten of the last digit; 0 for zero.
    exponent: i16,
}

impl Number {
    /// Zero.
    pub const ZERO: Number = Number { negative: false, digits: 0, exponent: 0 };

    /// Reads a number as DynamoDB does: sign, digits with at most one point, exponent; no white
    /// space.
    ///
    /// # Errors
    /// `ValidationException` for what is no number, has more than 38 significant digits, or is out
    /// of range.
    pub fn parse(text: &str) -> Result<Number, Error> {
        if text.is_empty() {
            return Err(Error::validation("The parameter cannot be converted to a numeric value"));
        }
        let unreadable =
            || Error::validation(format!("The parameter cannot be converted to a numeric value: {text}"));
        let (negative, unsigned) = match text.as_bytes() {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        let (mut digits, mut significant, mut zeros) = (0_u128, 0_u32, 0_u32);
        let (mut seen, mut fraction, mut point) = (0_i64, 0_i64, false);
        let mut written = 0_i64;
        for (at, byte) in unsigned.iter().enumerate() {
            match byte {
                b'0'..=b'9' => {
                    seen += 1;
                    fraction += i64::from(point);
                    if *byte == b'0' {
                        zeros += u32::from(digits != 0);
                        continue;
                    }
                    significant = significant.saturating_add(zeros + 1);
                    if significant <= DIGITS {
                        digits = digits * 10_u128.pow(zeros + 1) + u128::from(byte - b'0');
                    }
                    zeros = 0;
                }
                b'.' if !point => point = true,
                b'e' | b'E' => {
                    let exponent = unsigned.get(at + 1..).unwrap_or_default();
                    written = read_exponent(exponent).ok_or_else(unreadable)?;
                    break;
                }
                _ => return Err(unreadable()),
            }
        }
        if seen == 0 {
            return Err(unreadable());
        }
        if significant > DIGITS {
            return Err(too_many_digits());
        }
        let exponent = written.saturating_sub(fraction).saturating_add(i64::from(zeros));
        if digits == 0 {
            // AWS holds a zero to the same range, as if its last written digit were a 1.
            in_range(written.saturating_sub(fraction))?;
            return Ok(Number::ZERO);
        }
        in_range(exponent.saturating_add(i64::from(significant) - 1))?;
        let exponent = i16::try_from(exponent).map_err(|_| unreadable())?;
        Ok(Number { negative, digits, exponent })
    }

    /// The sum.
    ///
    /// # Errors
    /// `ValidationException` when the exact sum has more than 38 significant digits or is out of
    /// range.
    pub fn plus(self, other: Number) -> Result<Number, Error> {
        if self.digits == 0 {
            return Ok(other);
        }
        if other.digits == 0 {
            return Ok(self);
        }
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        // The lower operand's last digit is not zero, so neither is the sum's unless both end at
        // the same place, where nothing is shifted. A shifted operand that does not fit in 128 bits
        // therefore leaves at least 39 digits.
        let shift = u32::try_from(high.exponent - low.exponent).unwrap_or(u32::MAX);
        let shifted = 10_u128
            .checked_pow(shift)
            .and_then(|power| high.digits.checked_mul(power))
            .ok_or_else(too_many_digits)?;
        let (negative, digits) = if high.negative == low.negative {
            (high.negative, shifted.checked_add(low.digits).ok_or_else(too_many_digits)?)
        } else if shifted >= low.digits {
            (high.negative, shifted - low.digits)
        } else {
            (low.negative, low.digits - shifted)
        };
        Number::normal(negative, digits, low.exponent)
    }

    /// The difference.
    ///
    /// # Errors
    /// As [`Number::plus`].
    pub fn minus(self, other: Number) -> Result<Number, Error> {
        self.plus(Number { negative: !other.negative && other.digits != 0, ..other })
    }

    /// Bytes that are equal exactly for equal numbers: the canonical text.
    pub fn canonical_bytes(self) -> Vec<u8> {
        self.to_string().into_bytes()
    }

    /// Significant digits before and behind the decimal point; what an item's size counts.
    pub(crate) fn digits_around_point(self) -> (u32, u32) {
        let significant = self.significant();
        let whole = i64::from(significant) + i64::from(self.exponent);
        let whole = u32::try_from(whole.clamp(0, i64::from(significant))).unwrap_or(0);
        (whole, significant - whole)
    }

    pub(crate) fn is_negative(self) -> bool {
        self.negative
    }

    fn normal(negative: bool, mut digits: u128, mut exponent: i16) -> Result<Number, Error> {
        if digits == 0 {
            return Ok(Number::ZERO);
        }
        while digits.is_multiple_of(10) {
            digits /= 10;
            exponent += 1;
        }
        let number = Number { negative, digits, exponent };
        if number.significant() > DIGITS {
            return Err(too_many_digits());
        }
        in_range(number.top())?;
        Ok(number)
    }

    fn significant(self) -> u32 {
        self.digits.checked_ilog10().map_or(0, |log| log + 1)
    }

    /// The power of ten of the first digit.
    fn top(self) -> i64 {
        i64::from(self.exponent) + i64::from(self.significant()) - 1
    }
}

/// An exponent that does not fit in 64 bits is no number to AWS.
fn read_exponent(text: &[u8]) -> Option<i64> {
    let digits = match text {
        [b'+' | b'-', digits @ ..] => digits,
        digits => digits,
    };
    let well_formed = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    well_formed.then(|| std::str::from_utf8(text).ok()?.parse().ok()).flatten()
}

fn too_many_digits() -> Error {
    Error::validation("Attempting to store more than 38 significant digits in a Number")
}

fn in_range(top: i64) -> Result<(), Error> {
    if top > TOP {
        return Err(Error::validation(
            "Number overflow. Attempting to store a number with magnitude larger than supported range",
        ));
    }
    if top < BOTTOM {
        return Err(Error::validation(
            "Number underflow. Attempting to store a number with magnitude smaller than supported range",
        ));
    }
    Ok(())
}

impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        let sign = |number: &Number| match (number.digits, number.negative) {
            (0, _) => 0,
            (_, true) => -1,
            (_, false) => 1,
        };
        let by_sign = sign(self).cmp(&sign(other));
        if by_sign != Ordering::Equal {
            return by_sign;
        }
        let by_magnitude = self.top().cmp(&other.top()).then_with(|| {
            // The same first place: bring both to 38 digits.
            let full = |number: &Number| number.digits * 10_u128.pow(DIGITS - number.significant());
            full(self).cmp(&full(other))
        });
        if self.negative { by_magnitude.reverse() } else { by_magnitude }
    }
}

impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Number::normal(false, u128::from(value), 0).unwrap_or(Number::ZERO)
    }
}

/// The canonical text, as DynamoDB gives numbers back: no exponent, no needless zeros.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        let digits = self.digits.to_string();
        if let Ok(zeros) = usize::try_from(self.exponent) {
            return write!(f, "{digits}{}", "0".repeat(zeros));
        }
        let fraction = usize::from(self.exponent.unsigned_abs());
        match digits.len().checked_sub(fraction).and_then(|whole| digits.split_at_checked(whole)) {
            Some((whole, fraction)) if !whole.is_empty() => write!(f, "{whole}.{fraction}"),
            _ => write!(f, "0.{}{digits}", "0".repeat(fraction - digits.len())),
        }
    }
}

/// Bits that are ordered as the floats are that they stand for, as unsigned numbers: where numbers
/// only have to be compared.
#[inline]
pub const fn ascending_bits(number: f64) -> u64 {
    let bits = number.to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(text: &str) -> Number {
        Number::parse(text).unwrap()
    }

    #[test]
    fn texts_become_canonical() {
        for (text, canonical) in [
            ("0", "0"),
            ("-0", "0"),
            ("0.000", "0"),
            ("+5", "5"),
            ("5.", "5"),
            (".5", "0.5"),
            ("00042", "42"),
            ("1.200", "1.2"),
            ("1e3", "1000"),
            ("1E-3", "0.001"),
            ("-12.5e1", "-125"),
            ("120e-1", "12"),
            ("123e-2", "1.23"),
        ] {
            assert_eq!(number(text).to_string(), canonical, "{text}");
        }
        assert_eq!(number("1e125").to_string().len(), 126);
        assert_eq!(number("1e-130").to_string(), format!("0.{}1", "0".repeat(129)));
        assert_eq!(number(&"9".repeat(38)).to_string(), "9".repeat(38));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "e2",
            "1e",
            "1e+",
            "1.2.3",
            "++5",
            " 5",
            "5 ",
            "NaN",
            "1_000",
            "0x1",
            "1e99999999999999999999",
        ] {
            let message = Number::parse(text).unwrap_err().message.unwrap();
            assert!(
                message.starts_with("The parameter cannot be converted to a numeric value"),
                "{text}: {message}"
            );
        }
        for (text, start) in [
            ("1e126", "Number overflow"),
            ("-1e126", "Number overflow"),
            ("0e126", "Number overflow"),
            ("10e99999999999", "Number overflow"),
            ("1e-131", "Number underflow"),
            ("0.0e-130", "Number underflow"),
        ] {
            assert!(Number::parse(text).unwrap_err().message.unwrap().starts_with(start), "{text}");
        }
        assert!(Number::parse(&"1".repeat(39)).is_err());
        assert!(Number::parse(&format!("1{}1", "0".repeat(5_000_000))).is_err());
        assert!(Number::parse(&format!("{}1", "0".repeat(1000))).is_ok());
    }

    #[test]
    fn sums_are_exact_or_refused() {
        let sum = |a: &str, b: &str| number(a).plus(number(b)).map(|sum| sum.to_string());
        assert_eq!(sum("0.1", "0.2").unwrap(), "0.3");
        assert_eq!(sum("5", "-5").unwrap(), "0");
        assert_eq!(sum("1e38", "-1").unwrap(), "9".repeat(38));
        assert_eq!(sum("1e-130", "1e-130").unwrap(), number("2e-130").to_string());
        for (a, b) in [("1e38", "1"), ("1e125", "1e-130"), ("9e125", "9e125"), ("1e40", "-1")] {
            assert!(sum(a, b).is_err(), "{a} + {b}");
        }
        assert_eq!(number("3").minus(number("10")).unwrap().to_string(), "-7");
        assert_eq!(number("3").minus(Number::ZERO).unwrap(), number("3"));
    }

    proptest! {
        #[test]
        fn reads_back_orders_and_adds_like_integers(a in -1_000_000_000_i64..1_000_000_000, b in -1_000_000_000_i64..1_000_000_000, e in -30_i32..30) {
            let (x, y) = (number(&format!("{a}e{e}")), number(&format!("{b}e{e}")));
            prop_assert_eq!(number(&x.to_string()), x);
            prop_assert_eq!(x.cmp(&y), a.cmp(&b));
            prop_assert_eq!(x.plus(y).unwrap(), number(&format!("{}e{e}", a + b)));
            prop_assert_eq!(x.minus(y).unwrap(), number(&format!("{}e{e}", a - b)));
        }

        #[test]
        fn order_agrees_with_floats_and_equal_values_have_equal_bytes(a in -999_i32..999, ea in -20_i32..20, b in -999_i32..999, eb in -20_i32..20) {
            let (ta, tb) = (format!("{a}e{ea}"), format!("{b}e{eb}"));
            let (fa, fb): (f64, f64) = (ta.parse().unwrap(), tb.parse().unwrap());
            prop_assert_eq!(number(&ta).cmp(&number(&tb)), fa.partial_cmp(&fb).unwrap());
            prop_assert_eq!(number(&ta).canonical_bytes() == number(&tb).canonical_bytes(), fa == fb);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[-+0-9.eE ]{0,60}") {
            if let Ok(number) = Number::parse(&text) {
                prop_assert_eq!(Number::parse(&number.to_string()).unwrap(), number);
            }
        }
    }
}
