//! The execution of a Query over several shards: rounds of physical Queries, merged until the page is full.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Fault, KeyValue, Operation};
use heatsink_layout::{Bucket, Slot};
use serde_json::Value as Json;

use super::answer::ShardTags;
use super::buckets::{BEGUN, Buckets, Source};
use super::merge::{Merge, Next, Want};
use super::page::{Collected, Row, count};
use super::shape::Gathering;
use super::shard_streams::ShardStream;
use super::share::{ItemSizes, PAGE_BYTES, likely, mean};
use crate::collection::keys::Key;
use crate::collection::position::Position;
use crate::collection::template::Ask;
use crate::directory::not_done;
use crate::dry_run::explained;
use crate::plan::CallExplanation;
use crate::{Answer, Calls, PhysicalCall, Round, Target};

/// How many bytes the bodies of one round hold, and how many its answers are expected to. What is beyond them waits for the next round.
const ROUND_BODIES: usize = 16 * 1024 * 1024;
const ROUND_ANSWERS: f64 = 32.0 * PAGE_BYTES;

/// How many shards are asked at first while nothing is known of the size of the items.
const PROBED: usize = 32;

/// From this many bytes of pages on, those are let go of which nothing will be in the answer.
const HELD: usize = 4 * 1024 * 1024;

/// What a gathered Query asks for: enough to read it from its start, as often as needed.
pub(crate) struct Wanted {
    pub(crate) gathering: Gathering,
    pub(crate) source: Source,
    /// The sort key of a cursor that does not say in which of several shards its item lies.
    pub(crate) passed: Option<Key>,
    /// Whether shards that cannot be read are left out.
    pub(crate) partial: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) descending: bool,
    pub(crate) sizes: Arc<ItemSizes>,
    /// The name under which item sizes are learned.
    pub(crate) learned_as: String,
}

/// A Query under way.
pub(crate) struct Scatter {
    wanted: Arc<Wanted>,
    streams: Vec<ShardStream>,
    opening: Opening,
    merge: Merge<Position, Row>,
    collected: Collected,
    /// Bytes of evaluated data, estimated so that they are not too many.
    evaluated: f64,
    /// All that was read: bytes and items.
    read: (f64, usize),
    /// Bytes of the pages in [`Self::collected`].
    held: usize,
    /// The shards that are left out, and the error of the first.
    missing: Vec<Slot>,
    left_out: Option<Error>,
    /// The shards that hold the sort key of [`Wanted::passed`].
    passed: Vec<Slot>,
    /// Whether a few shards are asked first while nothing is known of the size of the items.
    probes: bool,
}

/// How far the buckets of a Query are opened.
#[derive(Debug, Default)]
struct Opening {
    /// The stream that stands for the directory.
    directory: Option<usize>,
    /// Where the directory goes on.
    start: Option<Json>,
    /// The buckets that have streams.
    found: Vec<Bucket>,
    /// How often buckets were opened: each time twice as many.
    rounds: u32,
    /// The buckets that other code may have begun, once they have streams.
    begun: Option<Vec<Bucket>>,
    /// The buckets of the directory that have no streams yet.
    kept: Vec<Bucket>,
    /// Buckets in which something was found, that are yet to be entered.
    news: Vec<Bucket>,
}

impl Scatter {
    pub(crate) fn new(wanted: Arc<Wanted>) -> Self {
        let mut scatter = Scatter {
            merge: Merge::new(0, wanted.descending),
            streams: Vec::new(),
            opening: Opening::default(),
            wanted: Arc::clone(&wanted),
            collected: Collected::default(),
            evaluated: 0.0,
            read: (0.0, 0),
            held: 0,
            missing: Vec::new(),
            left_out: None,
            passed: Vec::new(),
            probes: true,
        };
        match &wanted.source {
            Source::Streams(streams) => scatter.add(streams.clone(), None),
            Source::Buckets(buckets) => {
                let (first, directory) = buckets.first();
                if directory {
                    scatter.opening.directory = Some(scatter.streams.len());
                    scatter.add(vec![ShardStream::nowhere()], None);
                }
                if buckets.others() == Some(true) {
                    scatter.add(buckets.of(None), None);
                }
                first.into_iter().for_each(|bucket| scatter.find(buckets, bucket));
                if !directory {
                    scatter.at_least_one(buckets);
                }
            }
        }
        scatter
    }

    /// Adds streams of which nothing comes before `from`, if that is known.
    fn add(&mut self, streams: Vec<ShardStream>, from: Option<&Key>) {
        for stream in streams {
            let number = self.merge.add(from.map(|from| Some(from.clone()).into()));
            if stream.is_closed() {
                self.merge.close(number);
            }
            self.streams.push(stream);
        }
    }

    /// Adds the streams of a bucket, once.
    fn find(&mut self, buckets: &Buckets, bucket: Bucket) {
        if !self.opening.found.contains(&bucket) {
            self.opening.found.push(bucket);
            self.add(buckets.of(Some(bucket)), buckets.from(bucket).as_ref());
        }
    }

    /// Carries a Query out.
    ///
    /// # Errors
    /// The first error of a shard.
    pub(crate) async fn read(wanted: Arc<Wanted>, calls: &mut dyn Calls) -> Result<Answer, Error> {
        let mut scatter = Scatter::new(Arc::clone(&wanted));
        let mut page = scatter.collect(calls).await?;
        let body = wanted.gathering.answer(&mut page, None, calls).await?;
        Ok(Answer { body, missing: scatter.missing.iter().map(label).collect() })
    }

    /// Gathers a page.
    ///
    /// # Errors
    /// The first error of a shard.
    pub(crate) async fn collect(&mut self, calls: &mut dyn Calls) -> Result<Collected, Error> {
        while !self.full() {
            match self.merge.advance() {
                Next::Row(_, row) => {
                    self.evaluated += row.size;
                    self.collected.rows.push(row);
                }
                Next::End => break,
                Next::Blocked(stream) => {
                    self.let_go();
                    let round = self.round(stream);
                    calls.round(round, &mut |stream, answer| self.take_answer(stream, answer)).await?;
                }
            }
        }
        self.enter_news(calls).await?;
        self.looked();
        if let (true, Some(error)) = (self.collected.pages.is_empty(), self.left_out.take()) {
            // Nothing could be read at all.
            return Err(error);
        }
        self.wanted.sizes.learn(&self.wanted.learned_as, self.read.0, self.read.1);
        let limited = self.wanted.limit.is_some_and(|limit| self.collected.rows.len() >= limit);
        let shape = &self.wanted.gathering.shape;
        let at_end = if shape.unique {
            !self.collected.rows.is_empty()
        } else {
            shape.end.is_some() && self.merge.last().is_some_and(|last| last.first() == shape.end.as_ref())
        };
        // What a shard may have behind the end of the condition is not asked for.
        self.collected.more =
            if at_end { self.merge.has_more_at_hand() } else { limited || !self.merge.is_empty() };
        self.collected.tied = shape.tags == ShardTags::Ties
            && (at_end || self.merge.tied(shape.from.clone().map(|from| Some(from).into()).as_ref()));
        Ok(std::mem::take(&mut self.collected))
    }

    /// The next round, of as many calls as its bounds let in. `blocked` is the stream without which the merge cannot go on.
    fn round(&mut self, blocked: usize) -> Round {
        let mut shares = self.shares(Some(blocked));
        shares.sort_by_key(|(stream, _)| *stream != blocked);
        let size = self.item_size();
        let known = !self.probes || self.read.1 > 0 || self.wanted.sizes.knows(&self.wanted.learned_as);
        let (mut bodies, mut answers) = (0, 0.0);
        let mut calls: Vec<PhysicalCall> = Vec::new();
        for (stream, share) in shares {
            let full = bodies >= ROUND_BODIES || answers >= ROUND_ANSWERS || !known && calls.len() >= PROBED;
            if full {
                break;
            }
            let Some(call) = self.call(stream, share) else { continue };
            bodies += call.body.len();
            // An item has 400 KB at most, and a page 1 MB.
            answers += (count(share) * size).min(PAGE_BYTES);
            calls.push(call);
        }
        self.opening.rounds += u32::from(calls.iter().any(|call| self.is_unopened(call.id)));
        // A bucket's page is read while the store still looks for others in the directory, and in shard 0 for what has no time.
        let bucket = |call: &PhysicalCall| self.streams.get(call.id).and_then(|stream| stream.slot.bucket);
        calls.sort_by_key(|call| (bucket(call).is_none(), call.id));
        Round { answers: bytes(answers), bodies: self.bodies_left(&calls), calls }
    }

    /// How many bytes of bodies are sent at least: the merge gives no row before every shard was read. Which buckets will be, nobody knows.
    fn bodies_left(&self, calls: &[PhysicalCall]) -> usize {
        let Source::Streams(_) = self.wanted.source else { return 0 };
        let unread = (0..self.streams.len()).filter(|stream| self.merge.is_unread(*stream)).count();
        calls.iter().map(|call| call.body.len()).min().unwrap_or_default().saturating_mul(unread)
    }

    /// Lets go of pages of which nothing will be in the answer: the rows at hand before them fill it.
    fn let_go(&mut self) {
        if self.held < HELD {
            return;
        }
        let mut rows = self.wanted.limit.map(|limit| limit.saturating_sub(self.collected.rows.len()));
        let mut bytes = self.evaluated;
        let forgotten = self.merge.trim(|row: &Row| {
            bytes += row.size;
            rows = rows.map(|rows| rows.saturating_sub(1));
            rows == Some(0) || bytes >= PAGE_BYTES
        });
        let kept: std::collections::HashSet<usize> = self.collected.rows.iter().map(|row| row.page).collect();
        for page in forgotten.into_iter().map(|row| row.page).filter(|page| !kept.contains(page)) {
            if let Some(page) = self.collected.pages.get_mut(page) {
                self.held -= std::mem::take(page).len().min(self.held);
            }
        }
    }

    /// Enters the buckets in which something was found.
    async fn enter_news(&mut self, calls: &mut dyn Calls) -> Result<(), Error> {
        let Source::Buckets(buckets) = &self.wanted.source else { return Ok(()) };
        let news = std::mem::take(&mut self.opening.news);
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

    /// Takes note that the buckets that other code may have begun were all read.
    fn looked(&self) {
        let (Source::Buckets(buckets), Some(begun)) = (&self.wanted.source, &self.opening.begun) else {
            return;
        };
        let unread = |(number, stream): (usize, &ShardStream)| {
            self.merge.is_unread(number) && stream.slot.bucket.is_some_and(|bucket| begun.contains(&bucket))
        };
        if self.missing.is_empty() && !self.streams.iter().enumerate().any(unread) {
            buckets.looked();
        }
    }

    /// Where there is nothing to ask, an empty bucket is asked: the store has to see the request to refuse what is wrong with it.
    fn at_least_one(&mut self, buckets: &Buckets) {
        if self.streams.len() == usize::from(self.opening.directory.is_some()) {
            self.add(buckets.of(buckets.any()), None);
        }
    }

    /// Whether a stream is a bucket's that has not been read.
    fn is_unopened(&self, stream: usize) -> bool {
        self.merge.is_unread(stream)
            && self.streams.get(stream).is_some_and(|stream| stream.slot.bucket.is_some())
    }

    /// The streams to ask next, and how many items of each. `blocked` is the one without which the merge cannot go on.
    fn shares(&self, blocked: Option<usize>) -> Vec<(usize, usize)> {
        let by_bytes = self.rows_left_by_bytes();
        let left = self.rows_left();
        let mut wanted = self.merge.wanted(left);
        let all = self.merge.open();
        let in_order = match &self.wanted.source {
            Source::Buckets(buckets) if buckets.in_order() => Some(buckets),
            _ => None,
        };
        if in_order.is_some() {
            self.hold_back(blocked, &mut wanted);
        }
        let bucket = |want: &Want| self.streams.get(want.stream).and_then(|stream| stream.slot.bucket);
        let share = |want: Want| {
            let open = in_order.map_or(all, |buckets| buckets.shards(bucket(&want)).into());
            let share = match want.reads {
                0 if left == by_bytes => mean(want.rows, open),
                0 => likely(want.rows, open),
                // Where one shard holds most of what is wanted, its share doubles from round to round.
                reads => likely(want.rows, open).saturating_mul(1 << (reads - 1).min(16)).min(want.rows),
            };
            (want.stream, share)
        };
        wanted.into_iter().map(share).collect()
    }

    /// Leaves those buckets unopened that are not due yet.
    fn hold_back(&self, blocked: Option<usize>, wanted: &mut Vec<Want>) {
        let due = self.opening.rounds == 0 || blocked.is_some_and(|stream| self.is_unopened(stream));
        let bucket = |want: &Want| self.streams.get(want.stream).and_then(|stream| stream.slot.bucket);
        let unopened = wanted.iter().filter(|want| self.is_unopened(want.stream));
        let mut next: Vec<Bucket> = unopened.filter_map(bucket).collect();
        next.sort();
        if self.wanted.descending {
            next.reverse();
        }
        next.dedup();
        next.truncate(if due { 1 << self.opening.rounds.min(16) } else { 0 });
        wanted.retain(|want| {
            if Some(want.stream) == self.opening.directory {
                return blocked.is_none_or(|stream| stream == want.stream)
                    || self.merge.is_unread(want.stream);
            }
            !self.is_unopened(want.stream) || bucket(want).is_some_and(|bucket| next.contains(&bucket))
        });
    }

    /// The physical call that asks a stream for `share` items.
    fn call(&self, stream: usize, share: usize) -> Option<PhysicalCall> {
        let asked = self.streams.get(stream)?;
        let call = |body| PhysicalCall {
            id: stream,
            retry_throttled: true,
            ..PhysicalCall::only(Operation::Query, body)
        };
        if let (Some(directory), Source::Buckets(buckets)) = (self.opening.directory, &self.wanted.source)
            && stream == directory
        {
            return Some(call(buckets.body(self.opening.start.as_ref())));
        }
        let target = Target {
            shard: asked.slot.shard,
            key: match &asked.partition {
                KeyValue::S(text) => Some(text.clone().into_owned()),
                _ => None,
            },
            items: share,
            item_bytes: self.item_size(),
            consistent: self.wanted.gathering.reader.consistent,
        };
        let body = self.wanted.gathering.template.body(Ask {
            partition: &asked.partition,
            others: &asked.others,
            conditions: &asked.parts.first()?.conditions,
            start: asked.start.as_deref(),
            limit: Some(share),
        });
        Some(PhysicalCall { target: Some(target), ..call(body) })
    }

    /// Which buckets are opened, and why; `None` without buckets.
    fn opens(&self) -> Option<String> {
        let Source::Buckets(buckets) = &self.wanted.source else { return None };
        let order = if self.wanted.descending { "newest" } else { "oldest" };
        let length = buckets.granularity();
        let opens = match (buckets.few(), buckets.in_order()) {
            (Some(few), _) => format!(
                "{few} {length} bucket(s) can hold what the condition asks for: they are opened {order} first until the page is full, \
                 and what has no time is looked for in shard 0"
            ),
            (None, true) => format!(
                "the buckets of a {length} that the condition can touch are read from the directory ({} of them known here) and opened \
                 {order} first, one, two, four at a time, until the page is full; what has no time is looked for in shard 0",
                self.opening.found.len()
            ),
            (None, false) => {
                "the index is in another order than the buckets: all buckets of the directory are opened"
                    .to_owned()
            }
        };
        Some(match buckets.until().filter(|_| buckets.few().is_none()) {
            None => opens,
            Some(until) => format!(
                "{opens}; so are those that code that bypasses Heatsink may have begun, until {until}: the last {BEGUN}, or where this process has looked into \
                 them before, the last few"
            ),
        })
    }

    /// The calls that it begins with, were the size of the items known.
    pub(crate) fn explain(self) -> Vec<CallExplanation> {
        let mut known = Scatter { probes: false, ..self };
        explained(async |calls| known.collect(calls).await)
    }

    /// Why it is gathered, and how.
    pub(crate) fn why(&self) -> String {
        let shares = self.shares(None);
        let why = format!(
            "the matching items may lie in {} shards: each is asked for its likely share of the page, {} items, the answers are merged by sort \
             key, and shards that run dry before the page is full are asked again",
            shares.len(),
            shares.first().map_or(0, |(_, share)| *share)
        );
        match (&self.wanted.gathering.fold, self.opens()) {
            (Some(fold), _) => fold.why(&why),
            (None, Some(opens)) => format!("{opens}; {why}"),
            (None, None) => why,
        }
    }

    /// What an item weighs, as far as is known.
    fn item_size(&self) -> f64 {
        match self.read {
            (bytes, items) if items > 0 && bytes > 0.0 => (bytes / count(items)).max(1.0),
            _ => self.wanted.sizes.expected(&self.wanted.learned_as),
        }
    }

    fn full(&self) -> bool {
        self.wanted.limit.is_some_and(|limit| self.collected.rows.len() >= limit)
            || self.evaluated >= PAGE_BYTES
    }

    fn rows_left(&self) -> usize {
        let by_bytes = self.rows_left_by_bytes();
        self.wanted
            .limit
            .map_or(by_bytes, |limit| (limit - self.collected.rows.len().min(limit)).min(by_bytes))
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and the bytes of a page"
    )]
    fn rows_left_by_bytes(&self) -> usize {
        ((PAGE_BYTES - self.evaluated) / self.item_size()).ceil().clamp(1.0, PAGE_BYTES) as usize
    }

    /// Whether the answer may go without that shard: not for what is wrong with the request, nor without the directory.
    fn leaves_out(&self, stream: usize, error: &Error) -> bool {
        let unreadable = error.retryable() || error.fault() == Fault::Server;
        self.wanted.partial && unreadable && self.opening.directory != Some(stream)
    }

    fn leave_out(&mut self, number: usize, error: Error) {
        self.merge.close(number);
        self.left_out.get_or_insert(error);
        if let Some(stream) = self.streams.get(number) {
            self.missing.push(stream.slot);
        }
    }

    /// Takes a page of the directory.
    fn take_directory(&mut self, number: usize, body: &[u8]) -> Result<(), Error> {
        let wanted = Arc::clone(&self.wanted);
        let Source::Buckets(buckets) = &wanted.source else { return Ok(()) };
        let found = buckets.read(body)?;
        if buckets.in_order() {
            if self.opening.begun.is_none() {
                let begun = buckets.begun();
                begun.iter().for_each(|bucket| self.find(buckets, *bucket));
                self.opening.begun = Some(begun);
            }
            found.buckets.into_iter().for_each(|bucket| self.find(buckets, bucket));
        } else {
            self.opening.kept.extend(found.buckets);
        }
        match found.more {
            Some((start, last)) => {
                self.opening.start = Some(start);
                if let Some(from) = buckets.beyond(last) {
                    self.merge.read(number, [], Some(Some(from).into()));
                }
            }
            None => {
                self.merge.read(number, [], None);
                if !buckets.in_order() {
                    // The order of streams breaks ties, and cursors know it.
                    let begun = buckets.begun();
                    let mut all = std::mem::take(&mut self.opening.kept);
                    all.extend(&begun);
                    all.sort_unstable();
                    if buckets.descending {
                        all.reverse();
                    }
                    all.into_iter().for_each(|bucket| self.find(buckets, bucket));
                    self.opening.begun = Some(begun);
                }
                if buckets.others() == Some(false) {
                    self.add(buckets.of(None), None);
                }
                self.at_least_one(buckets);
            }
        }
        Ok(())
    }

    /// Takes the answer of a stream.
    fn take_answer(&mut self, stream: usize, answer: Result<Bytes, Error>) -> Result<(), Error> {
        let answer = if self.opening.directory == Some(stream) { answer.map_err(not_done) } else { answer };
        match answer {
            Err(error) if self.leaves_out(stream, &error) => {
                self.leave_out(stream, error);
                Ok(())
            }
            answer => self.take(stream, answer?),
        }
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        if self.opening.directory == Some(number) {
            return self.take_directory(number, &body);
        }
        let page = self.wanted.gathering.reader.read(self.collected.pages.len(), &body)?;
        let Some(stream) = self.streams.get_mut(number) else { return Ok(()) };
        self.read.0 += page.bytes;
        self.read.1 += page.rows.len();
        if let Some(capacity) = &page.capacity {
            self.collected.capacity.get_or_insert_default().add(capacity);
        }
        let part = stream.parts.first().cloned().unwrap_or_default();
        let (at, last) = page.more.unzip();
        stream.read_to(last);
        let more = match at {
            None if stream.is_closed() => None,
            // The next part comes after the rows of this one.
            None => Some(page.rows.last().map_or_else(|| stream.from.clone(), |(last, _)| last.clone())),
            at => at,
        };
        if let (Source::Buckets(buckets), Some(bucket), false) =
            (&self.wanted.source, stream.slot.bucket, page.rows.is_empty())
            && buckets.is_news(bucket)
            && !self.opening.news.contains(&bucket)
        {
            self.opening.news.push(bucket);
        }
        if let Some(passed) = &self.wanted.passed
            && page.rows.iter().any(|(at, _)| at.first() == Some(passed))
        {
            self.passed.push(stream.slot);
            if self.passed.len() > 1 {
                return Err(ambiguous(&self.passed));
            }
        }
        let passed = self.wanted.passed.as_ref();
        let wanted =
            |(at, _): &(Position, Row)| !part.drops(at) && (passed.is_none() || at.first() != passed);
        self.merge.read(number, page.rows.into_iter().filter(wanted), more);
        self.held += body.len();
        self.collected.pages.push(body);
        Ok(())
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the sum of a round's pages")]
fn bytes(expected: f64) -> usize {
    expected as usize
}

/// The refusal of a cursor that was made of an item whose sort key several shards hold.
fn ambiguous(slots: &[Slot]) -> Error {
    let slots: Vec<String> = slots.iter().map(Slot::to_string).collect();
    Error::gateway_rejection(format!(
        "The provided starting key does not say in which shard it stands, and its sort key lies in {}: other writers assign the rule's shards \
         (hash = \"random\"). Hand LastEvaluatedKey back with all its attributes",
        slots.join(" and in ")
    ))
}

/// How an answer names a shard that it goes without.
fn label(slot: &Slot) -> String {
    match slot.bucket {
        Some(bucket) => format!("{bucket}#{}", slot.shard),
        None => slot.shard.to_string(),
    }
}
