//! A Query over buckets of time: which of them to open, and in which order.
//!
//! Buckets lie in the order of the sort keys, so a page of the table rarely needs more than the
//! next one or two: they are opened one, two, four at a time, newest first where the Query
//! descends, until the page is full. Which buckets there are says the directory, which is read in
//! the same direction, beside the shards; it takes part in the merge as a stream without rows.
//! Where the condition spans a few buckets only, they are tried without asking it. On an index,
//! whose order is another, all buckets are opened. Sort keys without a time lie outside all
//! buckets, in shard 0, which is always asked.
//!
//! Code that bypasses Heatsink and writes by a template does not register the buckets that it
//! begins. So the buckets up to now are tried too ([`Buckets::begun`]), and those in which
//! something is found are entered.

use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, KeyValue, Number};
use heatsink_layout::{Bucket, DIRECTORY, Layout, Slot, SortKey, Span, Strategy, Time, directory_key};
use serde_json::{Value as Json, json};

use super::request::Query;
use super::shard_streams::{ShardStream, ShardStreams};
use crate::collection::keys::Key;
use crate::collection::keys::physical;
use crate::collection::range::Range;
use crate::directory::known::KnownBuckets;
use crate::directory::put;
use crate::refusal::Unplanned;
use crate::shared::Shared;

/// Up to so many buckets are tried without a look into the directory, which costs as much as a few
/// empty shards.
const FEW: usize = 8;

/// How many buckets up to now are tried that the directory does not have: four days of hours, three
/// months of days.
pub(crate) const BEGUN: usize = 100;

/// How many of them are tried again when a Query of this process has tried all of them before: for
/// items that come late.
const LATE: usize = 8;

/// How far clocks of other writers may be ahead, in milliseconds.
const AHEAD: u64 = 5 * 60 * 1000;

/// Rows of one page of the directory: some 7 KB.
const ROWS: usize = 100;

/// The buckets of one Query.
pub(crate) struct Buckets {
    streams: ShardStreams,
    known: Arc<KnownBuckets>,
    key: String,
    time: Time,
    /// What is asked for, from the cursor on; `None` on an index, where buckets and rows are
    /// ordered differently.
    range: Option<Range>,
    numeric: bool,
    layout: Arc<Layout>,
    pub(crate) descending: bool,
    consistent: bool,
    /// Whether items without a time have a place.
    others: bool,
    /// The buckets that can hold what is asked for, where these are few.
    few: Option<Vec<Bucket>>,
    /// The newest bucket that other code can have begun; `None` where none writes.
    until: Option<Bucket>,
}

/// A page of the directory.
pub(crate) struct Found {
    /// Buckets that can hold what is asked for, in the direction of reading.
    pub(crate) buckets: Vec<Bucket>,
    /// Where the directory goes on, and the last bucket read: none where all rows of the page are
    /// of another rule that the key once had.
    pub(crate) more: Option<(Json, Option<Bucket>)>,
}

impl Buckets {
    pub(crate) fn new(
        shared: &Shared,
        query: &Query<'_>,
        layout: &Arc<Layout>,
        time: &Time,
        now: Option<u64>,
    ) -> Result<Self, Unplanned> {
        query.schema.admit(&query.partition.canonical_bytes())?;
        // A key that leaves no room for a suffix is refused as its writes were.
        physical(query.schema, layout, &query.partition, Slot::default()).or_else(|unplaced| {
            if layout.template().is_some() { Ok(query.partition.clone()) } else { Err(unplaced) }
        })?;
        let range = match query.index {
            Some(_) => None,
            None => {
                let range = Range::of(query.conditions.first());
                let sort = query.cursor()?.and_then(|cursor| cursor.into_iter().nth(1));
                Some(match sort {
                    Some((at, _)) if range.contains(&at) => {
                        // Other shards can hold the same sort key, where they are externally
                        // assigned.
                        let bound = if query.assigned { Bound::Included(at) } else { Bound::Excluded(at) };
                        range.from(bound, query.descending)
                    }
                    _ => range,
                })
            }
        };
        let mut buckets = Buckets {
            streams: ShardStreams::new(query, layout)?,
            known: Arc::clone(&shared.buckets),
            key: directory_key(query.schema, &query.partition.canonical_bytes()),
            time: time.clone(),
            range,
            numeric: query
                .schema
                .key
                .sort
                .as_ref()
                .is_some_and(|sort| sort.key_type == heatsink_dynamo::KeyType::N),
            layout: Arc::clone(layout),
            descending: query.descending,
            consistent: query.consistent,
            others: matches!(layout.strategy, Strategy::Bucket { .. }),
            few: None,
            until: now.filter(|_| layout.template().is_some()).and_then(|now| {
                let seconds = i64::try_from((now + AHEAD) / 1000).ok()?;
                Bucket::at(seconds, time.granularity)
            }),
        };
        buckets.few = buckets.span();
        Ok(buckets)
    }

    /// The buckets between the two ends of the range, if both have one and few lie between.
    fn span(&self) -> Option<Vec<Bucket>> {
        use Bound::{Excluded, Included};
        let range = self.range.as_ref()?;
        let (Included(from) | Excluded(from), Included(to) | Excluded(to)) = (&range.lower, &range.upper)
        else {
            return None;
        };
        let (from, to) = (self.bucket_of(from)?, self.bucket_of(to)?);
        if from.until(to) >= FEW {
            return None;
        }
        let mut buckets: Vec<Bucket> = std::iter::successors(Some(from), |bucket| Some(bucket.next()))
            .take(from.until(to) + 1)
            .collect();
        buckets.retain(|bucket| self.holds(*bucket));
        if self.descending {
            buckets.reverse();
        }
        Some(buckets)
    }

    fn bucket_of(&self, key: &Key) -> Option<Bucket> {
        match key {
            KeyValue::S(text) => self.time.bucket_of(SortKey::S(text)),
            KeyValue::N(number) => self.time.bucket_of(SortKey::N(&number.to_string())),
            KeyValue::B(_) => None,
        }
    }

    /// Whether a bucket can hold what is asked for.
    fn holds(&self, bucket: Bucket) -> bool {
        use Bound::{Excluded, Included, Unbounded};
        let Some(range) = &self.range else { return true };
        match self.time.span(bucket, self.numeric) {
            Span::BeginsWith(prefix) => {
                let after = match &range.lower {
                    Included(KeyValue::S(from)) | Excluded(KeyValue::S(from)) => {
                        prefix.as_str() >= &**from || from.starts_with(&prefix)
                    }
                    _ => true,
                };
                after
                    && match &range.upper {
                        Included(KeyValue::S(to)) | Excluded(KeyValue::S(to)) => prefix.as_str() <= &**to,
                        _ => true,
                    }
            }
            Span::Within(first, end) => {
                let after = match &range.lower {
                    Included(KeyValue::S(from)) | Excluded(KeyValue::S(from)) => **from < *end,
                    _ => true,
                };
                after
                    && match &range.upper {
                        Included(KeyValue::S(to)) | Excluded(KeyValue::S(to)) => *first <= **to,
                        _ => true,
                    }
            }
            Span::Between(first, end) => {
                let (first, end) = (KeyValue::N(Number::from(first)), KeyValue::N(Number::from(end)));
                let after = match &range.lower {
                    Unbounded => true,
                    Included(from) | Excluded(from) => *from < end,
                };
                after
                    && match &range.upper {
                        Unbounded => true,
                        Included(to) | Excluded(to) => first <= *to,
                    }
            }
        }
    }

    /// What no row of a bucket comes before, in the direction of reading.
    pub(crate) fn from(&self, bucket: Bucket) -> Option<Key> {
        self.range.as_ref()?;
        let bucket_after = bucket.next();
        Some(match (self.time.span(bucket, self.numeric), self.time.span(bucket_after, self.numeric)) {
            (Span::Between(first, end), _) => {
                KeyValue::N(Number::from(if self.descending { end } else { first }))
            }
            (Span::Within(first, end), _) => KeyValue::S(if self.descending { end } else { first }.into()),
            (Span::BeginsWith(prefix), _) if !self.descending => KeyValue::S(prefix.into()),
            (_, Span::BeginsWith(next)) => KeyValue::S(next.into()),
            (Span::BeginsWith(prefix), Span::Within(..) | Span::Between(..)) => KeyValue::S(prefix.into()),
        })
    }

    /// What no row of the buckets after `bucket` comes before, in the direction of reading.
    pub(crate) fn beyond(&self, bucket: Bucket) -> Option<Key> {
        self.range.as_ref()?;
        let next = if self.descending { bucket } else { bucket.next() };
        Some(match self.time.span(next, self.numeric) {
            Span::BeginsWith(first) | Span::Within(first, _) => KeyValue::S(first.into()),
            Span::Between(first, _) => KeyValue::N(Number::from(first)),
        })
    }

    /// The buckets to begin with, and whether the directory has to be asked for more.
    pub(crate) fn first(&self) -> (Vec<Bucket>, bool) {
        match (&self.few, &self.range) {
            (Some(few), _) => (few.clone(), false),
            // On an index the order of streams is that of the directory.
            (None, None) => (Vec::new(), true),
            (None, Some(_)) => {
                let end = self
                    .known
                    .end(&self.key, self.descending)
                    .filter(|bucket| bucket.granularity() == self.time.granularity && self.holds(*bucket));
                let until = self.until.filter(|until| {
                    self.descending && self.holds(*until) && end.is_none_or(|end| end < *until)
                });
                (until.into_iter().chain(end).collect(), true)
            }
        }
    }

    /// The buckets up to now that are tried whether the directory has them or not, in the direction
    /// of reading. A row of the directory says nothing of those before it: who reads the newest
    /// items only enters the newest buckets only.
    pub(crate) fn begun(&self) -> Vec<Bucket> {
        let Some(until) = self.until else { return Vec::new() };
        let searched = self.known.searched(&self.key).map(|searched| searched.back(LATE - 1));
        let first = searched.max(Some(until.back(BEGUN - 1)));
        let buckets = std::iter::successors(first, |bucket| Some(bucket.next()));
        let mut buckets: Vec<Bucket> = buckets.take_while(|bucket| *bucket <= until).collect();
        buckets.retain(|bucket| self.holds(*bucket));
        if self.descending {
            buckets.reverse();
        }
        buckets
    }

    /// Takes note that all buckets without a row were looked into, if this Query looks at all.
    pub(crate) fn looked(&self) {
        let everything =
            |range: &Range| (&range.lower, &range.upper) == (&Bound::Unbounded, &Bound::Unbounded);
        if let Some(until) = self.until.filter(|_| self.range.as_ref().is_none_or(everything)) {
            self.known.search(&self.key, until);
        }
    }

    /// Whether something was found in a bucket that has no row yet, as far as is known here.
    pub(crate) fn is_news(&self, bucket: Bucket) -> bool {
        !self.others && !self.known.has(&self.key, bucket)
    }

    /// The call that enters a bucket.
    pub(crate) fn entry(&self, bucket: Bucket) -> Bytes {
        put(&self.key, bucket)
    }

    /// Takes note that a bucket is entered.
    pub(crate) fn entered(&self, bucket: Bucket) {
        self.known.learn(&self.key, bucket);
    }

    /// The newest bucket that other code can have begun.
    pub(crate) fn until(&self) -> Option<Bucket> {
        self.until
    }

    /// How many shards a bucket has; those of the newest for what lies in none.
    pub(crate) fn shards(&self, bucket: Option<Bucket>) -> u16 {
        bucket.map_or(self.layout.shards, |bucket| self.layout.shards_in(bucket))
    }

    /// The streams of a bucket, in the order that breaks ties.
    pub(crate) fn of(&self, bucket: Option<Bucket>) -> Vec<ShardStream> {
        let shards = bucket.map_or(1, |bucket| self.layout.shards_in(bucket));
        let mut streams: Vec<ShardStream> =
            (0..shards).filter_map(|shard| self.streams.stream(Slot { bucket, shard })).collect();
        if self.descending {
            streams.reverse();
        }
        streams
    }

    /// When the stream of items without a time is opened: `Some(true)` before all buckets,
    /// `Some(false)` behind them.
    pub(crate) fn others(&self) -> Option<bool> {
        self.others.then_some(self.range.is_some() || !self.descending)
    }

    /// The request for the next page of the directory.
    pub(crate) fn body(&self, start: Option<&Json>) -> Bytes {
        let mut body = json!({
            "TableName": DIRECTORY, "KeyConditionExpression": "pk = :k", "ConsistentRead": self.consistent,
            "ExpressionAttributeValues": { ":k": { "S": self.key } }, "ScanIndexForward": !self.descending, "Limit": ROWS,
        });
        if let Some(start) = start {
            body["ExclusiveStartKey"] = start.clone();
        }
        Bytes::from(body.to_string())
    }

    /// Reads a page of the directory.
    pub(crate) fn read(&self, body: &[u8]) -> Result<Found, Error> {
        let unreadable =
            || Error::internal(format!("The store's answer to Query of {DIRECTORY} could not be read"));
        let page: Json = serde_json::from_slice(body).map_err(|_| unreadable())?;
        let granularity = self.time.granularity;
        let mut found = Found { buckets: Vec::new(), more: None };
        let mut last = None;
        for row in page["Items"].as_array().ok_or_else(unreadable)? {
            let text = row["sk"]["S"].as_str().ok_or_else(unreadable)?;
            // A row of another granularity is of another rule that the key once had.
            let Some(bucket) = Bucket::read(text.as_bytes(), granularity, granularity.format()) else {
                continue;
            };
            self.known.learn(&self.key, bucket);
            last = Some(bucket);
            if self.holds(bucket) {
                found.buckets.push(bucket);
            } else if !found.buckets.is_empty() {
                // Past the end of what is asked for.
                return Ok(found);
            }
        }
        let start = &page["LastEvaluatedKey"];
        if !start.is_null() {
            found.more = Some((start.clone(), last));
        }
        Ok(found)
    }

    /// Whether the rows lie in the order of the buckets.
    pub(crate) fn in_order(&self) -> bool {
        self.range.is_some()
    }

    /// Some bucket.
    pub(crate) fn any(&self) -> Option<Bucket> {
        Bucket::at(0, self.time.granularity)
    }

    /// How many buckets are tried without the directory.
    pub(crate) fn few(&self) -> Option<usize> {
        self.few.as_ref().map(Vec::len)
    }

    /// The buckets' length, in words.
    pub(crate) fn granularity(&self) -> &'static str {
        self.time.granularity.name()
    }
}

impl std::fmt::Debug for Buckets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "buckets of {}", self.key)
    }
}
