//! How far the buckets or the ranges of a Query are opened: which of them have streams, which are due
//! in a round, and what the directory says of others. Buckets that code which bypasses Heatsink began are
//! entered in the directory once something was found in them.
//!
//! Not here: which buckets can hold what a Query asks for, and what the directory's rows mean
//! (`query::buckets`).

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::Bucket;
use serde_json::Value as Json;

use super::merged::Merged;
use crate::query::buckets::{BEGUN, Buckets};
use crate::query::merge::Want;
use crate::query::shard_streams::ShardStream;
use crate::{Calls, PhysicalCall};

/// How far the buckets of a Query are opened; nothing where it has none.
#[derive(Debug, Default)]
pub(super) struct Opening {
    /// The stream that stands for the directory.
    directory: Option<usize>,
    /// Where the directory goes on.
    start: Option<Json>,
    /// The buckets that have streams.
    found: Vec<Bucket>,
    /// How often buckets or ranges were opened: each time twice as many.
    rounds: u32,
    /// The buckets that other code may have begun, once they have streams.
    begun: Option<Vec<Bucket>>,
    /// The buckets of the directory that have no streams yet.
    kept: Vec<Bucket>,
    /// Buckets in which something was found, that are yet to be entered.
    news: Vec<Bucket>,
}

impl Opening {
    /// Adds the streams that a Query of buckets begins with.
    pub(super) fn begin(buckets: &Buckets, merged: &mut Merged) -> Self {
        let mut opening = Opening::default();
        let (first, directory) = buckets.first();
        if directory {
            opening.directory = Some(merged.streams.len());
            merged.add(vec![ShardStream::nowhere()], None);
        }
        if buckets.others() == Some(true) {
            merged.add(buckets.of(None), None);
        }
        first.into_iter().for_each(|bucket| opening.find(buckets, bucket, merged));
        if !directory {
            opening.at_least_one(buckets, merged);
        }
        opening
    }

    /// Adds the streams of a bucket, once.
    fn find(&mut self, buckets: &Buckets, bucket: Bucket, merged: &mut Merged) {
        if !self.found.contains(&bucket) {
            self.found.push(bucket);
            merged.add(buckets.of(Some(bucket)), buckets.from(bucket).as_ref());
        }
    }

    /// Where there is nothing to ask, an empty bucket is asked: the store has to see the request to
    /// refuse what is wrong with it.
    fn at_least_one(&self, buckets: &Buckets, merged: &mut Merged) {
        if merged.streams.len() == usize::from(self.directory.is_some()) {
            merged.add(buckets.of(buckets.any()), None);
        }
    }

    /// Whether a stream stands for the directory.
    pub(super) fn is_directory(&self, stream: usize) -> bool {
        self.directory == Some(stream)
    }

    /// The request for the next page of the directory.
    pub(super) fn directory_body(&self, buckets: &Buckets) -> Bytes {
        buckets.body(self.start.as_ref())
    }

    /// Takes a page of the directory.
    pub(super) fn take_directory(
        &mut self,
        buckets: &Buckets,
        number: usize,
        body: &[u8],
        merged: &mut Merged,
    ) -> Result<(), Error> {
        let found = buckets.read(body)?;
        if buckets.in_order() {
            if self.begun.is_none() {
                let begun = buckets.begun();
                begun.iter().for_each(|bucket| self.find(buckets, *bucket, merged));
                self.begun = Some(begun);
            }
            found.buckets.into_iter().for_each(|bucket| self.find(buckets, bucket, merged));
        } else {
            self.kept.extend(found.buckets);
        }
        match found.more {
            Some((start, last)) => {
                self.start = Some(start);
                if let Some(from) = last.and_then(|last| buckets.beyond(last)) {
                    merged.merge.read(number, [], Some(Some(from).into()));
                }
            }
            None => {
                merged.merge.read(number, [], None);
                if !buckets.in_order() {
                    // The order of streams breaks ties, and cursors know it.
                    let begun = buckets.begun();
                    let mut all = std::mem::take(&mut self.kept);
                    all.extend(&begun);
                    all.sort_unstable();
                    if buckets.descending {
                        all.reverse();
                    }
                    all.into_iter().for_each(|bucket| self.find(buckets, bucket, merged));
                    self.begun = Some(begun);
                }
                if buckets.others() == Some(false) {
                    merged.add(buckets.of(None), None);
                }
                self.at_least_one(buckets, merged);
            }
        }
        Ok(())
    }

    /// Leaves those buckets unopened that are not due yet. `blocked` is the stream without which
    /// the merge cannot go on.
    pub(super) fn hold_back(
        &self,
        buckets: &Buckets,
        blocked: Option<usize>,
        wanted: &mut Vec<Want>,
        merged: &Merged,
    ) {
        let due = self.rounds == 0 || blocked.is_some_and(|stream| merged.is_unopened(stream));
        let unopened = wanted.iter().filter(|want| merged.is_unopened(want.stream));
        let mut next: Vec<Bucket> = unopened.filter_map(|want| merged.bucket(want.stream)).collect();
        next.sort();
        if buckets.descending {
            next.reverse();
        }
        next.dedup();
        next.truncate(if due { 1 << self.rounds.min(16) } else { 0 });
        wanted.retain(|want| {
            if self.is_directory(want.stream) {
                return blocked.is_none_or(|stream| stream == want.stream)
                    || merged.merge.is_unread(want.stream);
            }
            !merged.is_unopened(want.stream)
                || merged.bucket(want.stream).is_some_and(|bucket| next.contains(&bucket))
        });
    }

    /// Leaves those ranges unopened that are not due yet, as buckets are.
    pub(super) fn hold_ranges_back(&self, blocked: Option<usize>, wanted: &mut Vec<Want>, merged: &Merged) {
        let due = self.rounds == 0 || blocked.is_some_and(|stream| merged.is_unopened(stream));
        let mut opens = if due { 1_usize << self.rounds.min(16) } else { 0 };
        wanted.retain(|want| {
            let is_open = !merged.is_unopened(want.stream);
            let opened = !is_open && opens > 0;
            opens -= usize::from(opened);
            is_open || opened
        });
    }

    /// Takes note that these calls are sent.
    pub(super) fn note_sent(&mut self, calls: &[PhysicalCall], merged: &Merged) {
        self.rounds += u32::from(calls.iter().any(|call| merged.is_unopened(call.id)));
    }

    /// Takes note that something was found in a bucket.
    pub(super) fn note_found(&mut self, buckets: &Buckets, bucket: Bucket) {
        if buckets.is_news(bucket) && !self.news.contains(&bucket) {
            self.news.push(bucket);
        }
    }

    /// Enters the buckets in which something was found.
    pub(super) async fn enter_news(&mut self, buckets: &Buckets, calls: &mut dyn Calls) -> Result<(), Error> {
        let news = std::mem::take(&mut self.news);
        if news.is_empty() {
            return Ok(());
        }
        let entry = |(id, bucket): (usize, &Bucket)| PhysicalCall {
            id,
            ..PhysicalCall::only(Operation::PutItem, buckets.entry(*bucket))
        };
        let entries: Vec<PhysicalCall> = news.iter().enumerate().map(entry).collect();
        // One that cannot be entered now is found again by the next Query.
        let mut entered = |entry: usize, answer: Result<Bytes, Error>| {
            if let (Ok(_), Some(bucket)) = (answer, news.get(entry)) {
                buckets.entered(*bucket);
            }
            Ok(())
        };
        calls.round(entries.into(), &mut entered).await
    }

    /// Takes note that the buckets that other code may have begun were all read, if so.
    pub(super) fn note_looked(&self, buckets: &Buckets, merged: &Merged) {
        let Some(begun) = &self.begun else { return };
        let unread = |number: usize| {
            merged.merge.is_unread(number)
                && merged.bucket(number).is_some_and(|bucket| begun.contains(&bucket))
        };
        if !(0..merged.streams.len()).any(unread) {
            buckets.looked();
        }
    }

    /// Which buckets are opened, and why.
    pub(super) fn why(&self, buckets: &Buckets) -> String {
        let order = if buckets.descending { "newest" } else { "oldest" };
        let length = buckets.granularity();
        let opens = match (buckets.few(), buckets.in_order()) {
            (Some(few), _) => format!(
                "{few} {length} bucket(s) can hold what the condition asks for: they are opened {order} first until the page is full, \
                 and what has no time is looked for in shard 0"
            ),
            (None, true) => format!(
                "the buckets of a {length} that the condition can touch are read from the directory ({} of them known here) and opened \
                 {order} first, one, two, four at a time, until the page is full; what has no time is looked for in shard 0",
                self.found.len()
            ),
            (None, false) => {
                "the index is in another order than the buckets: all buckets of the directory are opened"
                    .to_owned()
            }
        };
        match buckets.until().filter(|_| buckets.few().is_none()) {
            None => opens,
            Some(until) => format!(
                "{opens}; so are those that code that bypasses Heatsink may have begun, until {until}: the last {BEGUN}, or where this process has looked into \
                 them before, the last few"
            ),
        }
    }
}
