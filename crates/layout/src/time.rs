//! Buckets of time: which hour, day, week or month a sort key falls into, in UTC, and how a bucket is written.
//!
//! A string sort key is read by the ISO-8601 text that it begins with (`2026-06-22T01`), taken as it stands: no zone is
//! converted, so that buckets lie in the order in which the store sorts the keys. A numeric one is a Unix time.

use heatsink_dynamo::Number;
use serde::{Deserialize, Serialize};

use crate::SortKey;

/// How long a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Granularity {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A calendar month.
    Month,
    /// A week from Monday to Sunday, numbered as ISO 8601 does: the first of a year is the one that holds its first Thursday.
    Week,
}

/// The unit of numeric sort keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Epoch {
    /// Seconds since 1970-01-01T00:00:00Z.
    Seconds,
    /// Milliseconds since then.
    Milliseconds,
}

/// Where in a sort key its time stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Time {
    /// How long a bucket is.
    pub granularity: Granularity,
    /// What stands before the time in a string sort key.
    pub prefix: String,
    /// The unit of a numeric sort key.
    pub epoch: Epoch,
}

/// One bucket: an hour, day, week or month between the years 0 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    granularity: Granularity,
    /// How many whole ones lie between it and the one that 1970 begins with.
    number: i32,
}

/// All sort keys of a bucket lie between these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// String sort keys: exactly those that begin with this text.
    BeginsWith(String),
    /// String sort keys: from the first text on, below the second. Sort keys without a time can lie there too.
    Within(String, String),
    /// Numeric sort keys: from the first number on, below the second.
    Between(u64, u64),
}

impl PartialOrd for Bucket {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Bucket {
    /// In order of time; buckets of one layout have one granularity.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.number.cmp(&other.number).then((self.granularity as u8).cmp(&(other.granularity as u8)))
    }
}

impl Granularity {
    /// The format of a bucket where none is chosen: the start of ISO-8601.
    pub const fn format(self) -> &'static str {
        match self {
            Granularity::Hour => "%Y-%m-%dT%H",
            Granularity::Day => "%Y-%m-%d",
            Granularity::Month => "%Y-%m",
            Granularity::Week => "%G-W%V",
        }
    }

    /// What a string sort key begins with, which is what its bucket is read from.
    const fn of_sort_key(self) -> &'static str {
        match self {
            Granularity::Week => Granularity::Day.format(),
            other => other.format(),
        }
    }

    /// Its name, as rules have it.
    pub const fn name(self) -> &'static str {
        match self {
            Granularity::Hour => "hour",
            Granularity::Day => "day",
            Granularity::Month => "month",
            Granularity::Week => "week",
        }
    }
}

impl Time {
    /// The bucket of a sort key; `None` if it holds no time.
    pub fn bucket_of(&self, sort: SortKey<'_>) -> Option<Bucket> {
        match sort {
            SortKey::S(text) => {
                let time = text.strip_prefix(self.prefix.as_str())?;
                let format = self.granularity.of_sort_key();
                Bucket::read(time.as_bytes().get(..width(format))?, self.granularity, format)
            }
            SortKey::N(text) => {
                let plain = Number::parse(text).ok()?.to_string();
                let whole: i64 = plain.split('.').next()?.parse().ok()?;
                // Below 1970 a fraction would round towards it.
                if plain.starts_with('-') {
                    return None;
                }
                let seconds = match self.epoch {
                    Epoch::Seconds => whole,
                    Epoch::Milliseconds => whole / 1000,
                };
                Bucket::at(seconds, self.granularity)
            }
            SortKey::B(_) => None,
        }
    }

    /// Between which sort keys a bucket's items lie; `numeric` says of which type they are.
    pub fn span(&self, bucket: Bucket, numeric: bool) -> Span {
        if !numeric && bucket.granularity == Granularity::Week {
            return Span::Within(self.day(bucket), self.day(bucket.next()));
        }
        if !numeric {
            return Span::BeginsWith(format!("{}{bucket}", self.prefix));
        }
        let unit = if self.epoch == Epoch::Milliseconds { 1000 } else { 1 };
        let at = |bucket: Bucket| u64::try_from(bucket.start()).unwrap_or(0).saturating_mul(unit);
        Span::Between(at(bucket), at(bucket.next()))
    }

    /// What sort keys begin with on the first day of a bucket.
    fn day(&self, bucket: Bucket) -> String {
        let days = bucket.start().div_euclid(86_400);
        let (year, month, day) = civil(days);
        match year {
            // The colon sorts after every digit.
            10_000.. => format!("{}:", self.prefix),
            0.. => format!("{}{year:04}-{month:02}-{day:02}", self.prefix),
            _ => self.prefix.clone(),
        }
    }
}

impl Bucket {
    /// The bucket that a Unix time lies in, from 1970 to 9999.
    pub fn at(seconds: i64, granularity: Granularity) -> Option<Self> {
        const END: i64 = 253_402_300_800;
        if !(0..END).contains(&seconds) {
            return None;
        }
        let number = match granularity {
            Granularity::Hour => seconds.div_euclid(3_600),
            Granularity::Day => seconds.div_euclid(86_400),
            Granularity::Month => {
                let (year, month, _) = civil(seconds.div_euclid(86_400));
                (year - 1970) * 12 + month - 1
            }
            Granularity::Week => week_of(seconds.div_euclid(86_400)),
        };
        Some(Bucket { granularity, number: i32::try_from(number).ok()? })
    }

    /// Reads a bucket that is written as `format` says; all of `text` must be it.
    pub fn read(text: &[u8], granularity: Granularity, format: &str) -> Option<Self> {
        if text.len() != width(format) {
            return None;
        }
        let (mut year, mut month, mut day, mut hour) = (None, None, 1, 0);
        let (mut week_year, mut week) = (None, None);
        let mut rest = text;
        let mut pattern = format.chars();
        while let Some(c) = pattern.next() {
            if c != '%' {
                rest = rest.strip_prefix(c.encode_utf8(&mut [0; 4]).as_bytes())?;
                continue;
            }
            let field = pattern.next()?;
            let (digits, after) = rest.split_at_checked(if matches!(field, 'Y' | 'G') { 4 } else { 2 })?;
            let mut value = 0_i64;
            for digit in digits {
                value = value * 10 + i64::from(digit.is_ascii_digit().then(|| digit - b'0')?);
            }
            rest = after;
            match field {
                'G' => week_year = Some(value),
                'V' => week = Some(value),
                'Y' => year = Some(value),
                'm' => month = Some(value),
                'd' => day = value,
                'H' => hour = value,
                _ => return None,
            }
        }
        if let (Some(year), Some(week), Granularity::Week) = (week_year, week, granularity) {
            // The first Thursday of the year, and of the week.
            let thursday = (days(year, 1, 1) + 6).div_euclid(7) + week - 1;
            let is_one = week >= 1 && civil(thursday * 7).0 == year;
            return is_one.then_some(Bucket { granularity, number: i32::try_from(thursday).ok()? });
        }
        let (year, month) = (year?, month?);
        if !(1..=12).contains(&month) || hour > 23 {
            return None;
        }
        let days = days(year, month, day);
        if civil(days) != (year, month, day) {
            return None;
        }
        let number = match granularity {
            Granularity::Hour => days * 24 + hour,
            Granularity::Day => days,
            Granularity::Month => (year - 1970) * 12 + month - 1,
            // The first day of the year 0 lies in a week of the year before.
            Granularity::Week => Some(week_of(days)).filter(|week| civil(week * 7).0 >= 0)?,
        };
        Some(Bucket { granularity, number: i32::try_from(number).ok()? })
    }

    /// Writes it as `format` says: `%Y`, `%m`, `%d`, `%H`, and of weeks `%G` and `%V`; all else stands for itself.
    pub fn write(self, format: &str) -> String {
        let (days, hour) = match self.granularity {
            Granularity::Hour => {
                (i64::from(self.number).div_euclid(24), i64::from(self.number).rem_euclid(24))
            }
            Granularity::Day => (i64::from(self.number), 0),
            Granularity::Month => {
                let months = i64::from(self.number) + 1970 * 12;
                (days(months.div_euclid(12), months.rem_euclid(12) + 1, 1), 0)
            }
            Granularity::Week => (i64::from(self.number) * 7 - TO_THURSDAY, 0),
        };
        let (year, month, day) = civil(days);
        let thursday = week_of(days) * 7;
        let week_year = civil(thursday).0;
        let week = (thursday - self::days(week_year, 1, 1)).div_euclid(7) + 1;
        let mut out = String::with_capacity(format.len() + 4);
        let mut pattern = format.chars();
        while let Some(c) = pattern.next() {
            match (c, if c == '%' { pattern.next() } else { None }) {
                ('%', Some('G')) => out.push_str(&format!("{week_year:04}")),
                ('%', Some('V')) => out.push_str(&format!("{week:02}")),
                ('%', Some('Y')) => out.push_str(&format!("{year:04}")),
                ('%', Some('m')) => out.push_str(&format!("{month:02}")),
                ('%', Some('d')) => out.push_str(&format!("{day:02}")),
                ('%', Some('H')) => out.push_str(&format!("{hour:02}")),
                (c, _) => out.push(c),
            }
        }
        out
    }

    /// The one after it.
    pub fn next(self) -> Self {
        Bucket { number: self.number.saturating_add(1), ..self }
    }

    /// The one that lies so many before it.
    pub fn back(self, buckets: usize) -> Self {
        let buckets = i32::try_from(buckets).unwrap_or(i32::MAX);
        Bucket { number: self.number.saturating_sub(buckets), ..self }
    }

    /// How many buckets lie between it and a later one; 0 for an earlier one.
    pub fn until(self, later: Self) -> usize {
        usize::try_from(i64::from(later.number) - i64::from(self.number)).unwrap_or(0)
    }

    /// How long it is.
    pub const fn granularity(self) -> Granularity {
        self.granularity
    }

    /// Its first second, as a Unix time.
    pub fn start(self) -> i64 {
        match self.granularity {
            Granularity::Hour => i64::from(self.number) * 3_600,
            Granularity::Day => i64::from(self.number) * 86_400,
            Granularity::Month => {
                let months = i64::from(self.number) + 1970 * 12;
                days(months.div_euclid(12), months.rem_euclid(12) + 1, 1) * 86_400
            }
            Granularity::Week => (i64::from(self.number) * 7 - TO_THURSDAY) * 86_400,
        }
    }
}

impl std::fmt::Display for Bucket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.write(self.granularity.format()))
    }
}

/// How many bytes a format writes: `%Y` and `%G` stand for four digits, every other field for two.
pub(crate) fn width(format: &str) -> usize {
    format.len() + 2 * (format.matches("%Y").count() + format.matches("%G").count())
}

/// How many days after its Monday the Thursday of a week is, which decides to which year the week belongs. 1970-01-01 was one.
const TO_THURSDAY: i64 = 3;

/// The week of a day: how many weeks after that of 1970-01-01.
fn week_of(days: i64) -> i64 {
    (days + TO_THURSDAY).div_euclid(7)
}

/// Days since 1970-01-01 of a date of the proleptic Gregorian calendar (Howard Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// The date that lies so many days after 1970-01-01.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}
