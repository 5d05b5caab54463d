//! Reads the time in a sort key: an ISO-8601 text anywhere in it, without conversion of its zone,
//! or a number since 1970.

use heatsink_layout::{Bucket, Granularity, SortKey};

/// When an item was written, as its sort key says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The first second of the time, since 1970.
    pub second: i64,
    /// Its precision in seconds: 1, 60 for a minute, 3,600 for an hour, 86,400 for a day.
    pub window: i64,
    /// Where it begins in a text.
    pub from: usize,
    /// Where it ends there, with what belongs to it: fractions of a second and a zone.
    pub to: usize,
}

/// Numbers of these sizes count as times: seconds from 2001 on, and milliseconds.
const SECONDS: std::ops::Range<i64> = 1_000_000_000..100_000_000_000;
const MILLISECONDS: std::ops::Range<i64> = 1_000_000_000_000..100_000_000_000_000;

/// The first time in a sort key.
pub(super) fn of(sort: SortKey<'_>) -> Option<Stamp> {
    match sort {
        SortKey::S(text) => find(text),
        SortKey::N(text) => {
            let whole: i64 = text.split('.').next()?.parse().ok()?;
            let second = if SECONDS.contains(&whole) {
                whole
            } else if MILLISECONDS.contains(&whole) {
                whole / 1_000
            } else {
                return None;
            };
            Some(Stamp { second, window: 1, from: 0, to: text.len() })
        }
        SortKey::B(_) => None,
    }
}

/// The first ISO-8601 time of a text.
pub(super) fn find(text: &str) -> Option<Stamp> {
    let bytes = text.as_bytes();
    let mut inside = false;
    for (from, byte) in bytes.iter().enumerate() {
        if !inside && byte.is_ascii_digit() {
            let (second, window, length) = match bytes.get(from..).and_then(read) {
                Some(found) => found,
                None => {
                    inside = true;
                    continue;
                }
            };
            let tail = bytes.get(from + length..).unwrap_or_default();
            // Fractions and zones; a day is over where its digits are.
            let of_it = |byte: &&u8| window < 86_400 && (byte.is_ascii_digit() || b".,Z+".contains(byte));
            return Some(Stamp {
                second,
                window,
                from,
                to: from + length + tail.iter().take_while(of_it).count(),
            });
        }
        inside = byte.is_ascii_alphanumeric();
    }
    None
}

/// The time at the start of a text: its first second, its precision in seconds, and its length.
fn read(text: &[u8]) -> Option<(i64, i64, usize)> {
    // The calendar is asked only for what looks like a date.
    if !matches!(text, [_, _, _, _, b'-', _, _, b'-', ..]) {
        return None;
    }
    let bucket = |length: usize, granularity: Granularity| {
        Bucket::read(text.get(..length)?, granularity, granularity.format()).map(Bucket::start)
    };
    let two = |at: usize| -> Option<i64> {
        let digits = text.get(at..at + 3)?.strip_prefix(b":")?;
        let digits =
            std::str::from_utf8(digits).ok().filter(|text| text.bytes().all(|c| c.is_ascii_digit()))?;
        let number: i64 = digits.parse().ok()?;
        (0..60).contains(&number).then_some(number)
    };
    let Some(hour) = bucket(13, Granularity::Hour) else {
        return bucket(10, Granularity::Day).map(|day| (day, 86_400, 10));
    };
    let Some(minute) = two(13) else { return Some((hour, 3_600, 13)) };
    let minute = hour + minute * 60;
    Some(two(16).map_or((minute, 60, 16), |second| (minute + second, 1, 19)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Option<(i64, i64, &str)> {
        find(text).map(|stamp| (stamp.second, stamp.window, &text[stamp.from..stamp.to]))
    }

    #[test]
    fn times_are_found_where_they_stand() {
        assert_eq!(
            at("2026-06-22T01:02:03.456Z#agent"),
            Some((1_782_090_123, 1, "2026-06-22T01:02:03.456Z"))
        );
        assert_eq!(at("ALERT#2026-06-22T01:02Z"), Some((1_782_090_120, 60, "2026-06-22T01:02Z")));
        assert_eq!(at("ALERT#2026-06-22T01"), Some((1_782_090_000, 3_600, "2026-06-22T01")));
        assert_eq!(at("ALERT#2026-06-22T01:+5"), Some((1_782_090_000, 3_600, "2026-06-22T01")));
        assert_eq!(at("BRAND#2026-06-22#7"), Some((1_782_086_400, 86_400, "2026-06-22")));
        for text in ["", "META", "0000012345#player", "2026-13-01", "x2026-06-22", "12026-06-22", "é2026"] {
            assert_eq!(at(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_of_the_right_size_are_times() {
        let at = |text| of(SortKey::N(text)).map(|stamp| stamp.second);
        assert_eq!(at("1718000000"), Some(1_718_000_000));
        assert_eq!(at("1718000000.25"), Some(1_718_000_000));
        assert_eq!(at("1718000000123"), Some(1_718_000_000));
        assert_eq!((at("42"), at("-1718000000"), at("1e9")), (None, None, None));
        assert_eq!(of(SortKey::B(b"2026-06-22")), None);
    }
}
