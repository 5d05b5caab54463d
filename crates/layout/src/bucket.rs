//! A bucket: one hour, day, week or month of the calendar, how it is numbered and how it is
//! written.
//!
//! The calendar is `jiff`'s. Not here: where in a sort key the time stands ([`Time`](crate::Time)).

use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, ISOWeekDate, Weekday, date};
use jiff::fmt::strtime::{self, BrokenDownTime};
use serde::{Deserialize, Serialize};

/// How long a bucket is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Granularity {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A calendar month.
    Month,
    /// A week from Monday to Sunday, numbered as ISO 8601 does: the first of a year is the one that
    /// holds its first Thursday.
    Week,
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

/// One bucket: an hour, day, week or month between the years 0 and 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bucket {
    granularity: Granularity,
    /// How many whole ones lie between it and the one that 1970 begins with.
    number: i32,
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

/// The first day of Unix time.
const EPOCH: Date = date(1970, 1, 1);

/// The Monday of the week of [`EPOCH`], from which weeks are numbered.
const FIRST_MONDAY: Date = date(1969, 12, 29);

/// Unix time at the end of the year 9999.
const END: i64 = 253_402_300_800;

impl Bucket {
    /// The bucket that a Unix time lies in, from 1970 to 9999.
    pub fn at(seconds: i64, granularity: Granularity) -> Option<Self> {
        if !(0..END).contains(&seconds) {
            return None;
        }
        let at = DateTime::from(EPOCH).checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Bucket::holding(at, granularity)
    }

    /// Reads a bucket that is written as `format` says; all of `text` must be it.
    pub fn read(text: &[u8], granularity: Granularity, format: &str) -> Option<Self> {
        if text.len() != width(format) {
            return None;
        }
        let parts = BrokenDownTime::parse(format, text).ok()?;
        let (date, hour) = match (parts.iso_week_year(), parts.iso_week(), granularity) {
            (Some(year), Some(week), Granularity::Week) => {
                (ISOWeekDate::new(year, week, Weekday::Monday).ok()?.date(), 0)
            }
            _ => {
                let day = Date::new(parts.year()?, parts.month()?, parts.day().unwrap_or(1)).ok()?;
                (day, parts.hour().unwrap_or(0))
            }
        };
        let time = DateTime::new(date.year(), date.month(), date.day(), hour, 0, 0, 0).ok()?;
        // The parser takes more than one text for a date, signs and blanks among them; a bucket has
        // one text only.
        let written = strtime::format(format, time).ok()?;
        if written.as_bytes() != text {
            return None;
        }
        Bucket::holding(time, granularity)
    }

    /// The bucket that a time lies in. There is none before the year 0, to which the week of its
    /// first days belongs.
    fn holding(time: DateTime, granularity: Granularity) -> Option<Self> {
        let year =
            if granularity == Granularity::Week { time.date().iso_week_date().year() } else { time.year() };
        if year < 0 {
            return None;
        }
        let days = |since: Date| time.date().duration_since(since).as_hours() / 24;
        let number = match granularity {
            Granularity::Hour => time.duration_since(EPOCH.into()).as_hours(),
            Granularity::Day => days(EPOCH),
            Granularity::Month => (i64::from(time.year()) - 1970) * 12 + i64::from(time.month()) - 1,
            Granularity::Week => days(FIRST_MONDAY).div_euclid(7),
        };
        Some(Bucket { granularity, number: i32::try_from(number).ok()? })
    }

    /// Writes it as `format` says: `%Y`, `%m`, `%d`, `%H`, and of weeks `%G` and `%V`; all else
    /// stands for itself.
    ///
    /// What lies beyond the calendar has no such text: it is a colon, which sorts after every
    /// digit, or nothing, which sorts before.
    pub fn write(self, format: &str) -> String {
        match self.first() {
            Some(first) => strtime::format(format, first).unwrap_or_default(),
            None if self.number > 0 => ":".to_owned(),
            None => String::new(),
        }
    }

    /// What string sort keys begin with on its first day.
    pub(crate) fn first_day(self) -> String {
        self.write(Granularity::Day.format())
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

    /// Its first second, as a Unix time; of one beyond the calendar the end of the calendar on that
    /// side.
    pub fn start(self) -> i64 {
        match self.first() {
            Some(first) => first.duration_since(EPOCH.into()).as_secs(),
            None if self.number > 0 => END,
            None => date(0, 1, 1).duration_since(EPOCH).as_secs(),
        }
    }

    /// Its first second as ISO-8601 text.
    pub fn begins(self) -> String {
        self.write("%Y-%m-%dT%H:00:00Z")
    }

    /// When it begins, if that is between the years 0 and 9999.
    fn first(self) -> Option<DateTime> {
        let number = i64::from(self.number);
        let first = match self.granularity {
            Granularity::Hour => DateTime::from(EPOCH).checked_add(SignedDuration::from_hours(number)),
            Granularity::Day => DateTime::from(EPOCH).checked_add(SignedDuration::from_hours(number * 24)),
            Granularity::Month => {
                let months = jiff::Span::new().try_months(number);
                months.and_then(|months| DateTime::from(EPOCH).checked_add(months))
            }
            Granularity::Week => {
                DateTime::from(FIRST_MONDAY).checked_add(SignedDuration::from_hours(number * 24 * 7))
            }
        };
        first.ok().filter(|first| first.year() >= 0)
    }
}

/// All lengths of buckets, the longest text first: an hour's text ends in no day's.
pub(crate) const GRANULARITIES: [Granularity; 4] =
    [Granularity::Hour, Granularity::Day, Granularity::Week, Granularity::Month];

impl Serialize for Bucket {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Bucket {
    /// Its text, which tells its length.
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let read =
            |granularity: Granularity| Bucket::read(text.as_bytes(), granularity, granularity.format());
        GRANULARITIES
            .into_iter()
            .find_map(read)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no hour, day, week or month")))
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
