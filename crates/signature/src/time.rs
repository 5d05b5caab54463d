//! Moments as signatures write them: `20260101T000000Z`, in UTC, to the second.
//!
//! Not here: how far a client's clock may be off (`refusal`).

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use crate::text::push;

/// Milliseconds in a day.
pub const DAY_MILLIS: u64 = 86_400_000;

/// The day of a moment, such as `20260101`.
pub(crate) fn date(unix_millis: u64) -> String {
    let millis = i64::try_from(unix_millis).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX).strftime("%Y%m%d").to_string()
}

/// The moment on a day that is known as text.
pub(crate) fn timestamp_on(date: &str, unix_millis: u64) -> String {
    let second = u32::try_from(unix_millis / 1000 % 86_400).unwrap_or_default();
    let mut text = String::with_capacity(16);
    push(&mut text, &[date, "T"]);
    for number in [second / 3600, second / 60 % 60, second % 60] {
        text.extend([number / 10, number % 10].into_iter().filter_map(|digit| char::from_digit(digit, 10)));
    }
    text.push('Z');
    text
}

/// The moment as text.
pub(crate) fn timestamp(unix_seconds: u64) -> String {
    let millis = unix_seconds.saturating_mul(1000);
    timestamp_on(&date(millis), millis)
}

/// Reads such a text: seconds since 1970. `None` for another form, for a date that no calendar has,
/// and for one before 1970.
pub(crate) fn read_timestamp(text: &str) -> Option<u64> {
    let bytes: &[u8; 16] = text.as_bytes().try_into().ok()?;
    let [date @ .., b'T', h, m, i, j, s, t, b'Z'] = bytes else { return None };
    let [y, e, a, r, n, o, d, p] = date;
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0_i16, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + i16::from(digit - b'0'))
        })
    };
    let pair = |high: &u8, low: &u8| i8::try_from(number(&[*high, *low])?).ok();
    let year = number(&[*y, *e, *a, *r])?;
    let moment =
        DateTime::new(year, pair(n, o)?, pair(d, p)?, pair(h, m)?, pair(i, j)?, pair(s, t)?, 0).ok()?;
    u64::try_from(TimeZone::UTC.to_timestamp(moment).ok()?.as_second()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_read_back() {
        // The epoch, leap days, the ends of years, a century that is none, the last moment.
        for second in
            [0, 951_782_400, 1_709_164_800, 1_767_225_599, 1_767_225_600, 4_107_542_400, 253_402_207_200]
        {
            let text = timestamp(second);
            assert_eq!(read_timestamp(&text), Some(second), "{text}");
        }
        assert_eq!(timestamp(1_767_225_599), "20251231T235959Z");
    }

    #[test]
    fn only_moments_of_the_calendar_are_read() {
        for text in [
            "",
            "20260101",
            "2026-01-01T00:00:00Z",
            "20260101T000000",
            "20260101t000000Z",
            "20260101T000000z",
            "20260101T000000Z ",
            "20260001T000000Z",
            "20260229T000000Z",
            "20260101T240000Z",
            "20260101T000060Z",
            "2026010+T000000Z",
            "19691231T235959Z",
            "２0260101T0000Z",
        ] {
            assert_eq!(read_timestamp(text), None, "{text:?}");
        }
    }
}
