//! The time in a sort key: which hour, day, week or month it falls into, in UTC, and between which
//! sort keys those lie.
//!
//! A string sort key is read by the ISO-8601 text that it begins with (`2026-06-22T01`), taken as
//! it stands: no zone is converted, so that buckets lie in the order in which the store sorts the
//! keys. A numeric one is a Unix time.

use heatsink_dynamo::Number;
use serde::{Deserialize, Serialize};

use crate::bucket::width;
use crate::{Bucket, Granularity, SortKey};

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

/// All sort keys of a bucket lie between these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// String sort keys: exactly those that begin with this text.
    BeginsWith(String),
    /// String sort keys: from the first text on, below the second. Sort keys without a time can lie
    /// there too.
    Within(String, String),
    /// Numeric sort keys: from the first number on, below the second.
    Between(u64, u64),
}

impl Time {
    /// The bucket of a sort key; `None` if it holds no time.
    pub fn bucket_of(&self, sort: SortKey<'_>) -> Option<Bucket> {
        match sort {
            SortKey::S(text) => {
                let time = text.strip_prefix(self.prefix.as_str())?;
                let format = match self.granularity {
                    // ISO-8601 texts begin with a date, whatever the week.
                    Granularity::Week => Granularity::Day.format(),
                    other => other.format(),
                };
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
        if !numeric && bucket.granularity() == Granularity::Week {
            let from = |bucket: Bucket| format!("{}{}", self.prefix, bucket.first_day());
            return Span::Within(from(bucket), from(bucket.next()));
        }
        if !numeric {
            return Span::BeginsWith(format!("{}{bucket}", self.prefix));
        }
        let unit = if self.epoch == Epoch::Milliseconds { 1000 } else { 1 };
        let at = |bucket: Bucket| u64::try_from(bucket.start()).unwrap_or(0).saturating_mul(unit);
        Span::Between(at(bucket), at(bucket.next()))
    }
}
