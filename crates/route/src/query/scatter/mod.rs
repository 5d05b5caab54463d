//! The execution of a Query over several shards: rounds of physical Queries, merged until the page
//! is full.
//!
//! Beneath: `wanted` (what is asked for), `merged` (the shards' streams), `fill` (how much of the
//! page is left), `opening` (which buckets have streams), `round` (the next calls), `one_page` (what one range
//! answers). Not here: how
//! streams are merged (`query::merge`), what the client gets of the rows (`query::shape`).

mod fill;
mod merged;
mod one_page;
mod opening;
mod round;
pub(super) mod wanted;

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Fault};
use heatsink_layout::Slot;

use self::fill::PageFill;
use self::merged::Merged;
use self::opening::Opening;
use self::round::NextRound;
use self::wanted::Wanted;
use super::answer::ShardTags;
use super::merge::Next;
use super::page::{Collected, Row};
use super::source::Source;
use crate::collection::position::Position;
use crate::directory::not_done;
use crate::dry_run::explained;
use crate::plan::CallExplanation;
use crate::{Answer, Calls};

/// From this many bytes of pages on, those are let go of which nothing will be in the answer.
const HELD: usize = 4 * 1024 * 1024;

/// A Query under way.
pub(crate) struct Scatter {
    wanted: Arc<Wanted>,
    merged: Merged,
    opening: Opening,
    fill: PageFill,
    collected: Collected,
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

impl Scatter {
    pub(crate) fn new(wanted: Arc<Wanted>) -> Self {
        let mut merged = Merged::new(wanted.descending);
        let opening = match &wanted.source {
            Source::Streams(streams) => {
                merged.add(streams.clone(), None);
                Opening::default()
            }
            Source::Ranges(ranges) => {
                merged.add_in_turn(&ranges.streams);
                Opening::default()
            }
            Source::Buckets(buckets) => Opening::begin(buckets, &mut merged),
        };
        Scatter {
            merged,
            opening,
            fill: PageFill::new(Arc::clone(&wanted)),
            wanted,
            collected: Collected::default(),
            held: 0,
            missing: Vec::new(),
            left_out: None,
            passed: Vec::new(),
            probes: true,
        }
    }

    /// Carries a Query out.
    ///
    /// # Errors
    /// The first error of a shard.
    pub(crate) async fn read(wanted: Arc<Wanted>, calls: &mut dyn Calls) -> Result<Answer, Error> {
        let mut scatter = Scatter::new(Arc::clone(&wanted));
        if let Some(body) = scatter.one_page(calls).await? {
            return Ok(Answer::from(body));
        }
        let mut page = scatter.collect(calls).await?;
        let body = wanted.gathering.answer(&mut page, None, calls).await?;
        Ok(Answer { body, missing: scatter.missing.iter().map(label).collect() })
    }

    /// Gathers a page.
    ///
    /// # Errors
    /// The first error of a shard.
    pub(crate) async fn collect(&mut self, calls: &mut dyn Calls) -> Result<Collected, Error> {
        while !self.fill.is_full() {
            match self.merged.merge.advance() {
                Next::Row(_, row) => {
                    self.fill.add(&row);
                    self.collected.rows.push(row);
                }
                Next::End => break,
                Next::Blocked(stream) => {
                    self.let_go();
                    let round = self.next_round().round(stream);
                    self.opening.note_sent(&round.calls, &self.merged);
                    calls.round(round, &mut |stream, answer| self.take_answer(stream, answer)).await?;
                }
            }
        }
        let wanted = Arc::clone(&self.wanted);
        if let Some(buckets) = wanted.buckets() {
            self.opening.enter_news(buckets, calls).await?;
            if self.missing.is_empty() {
                self.opening.note_looked(buckets, &self.merged);
            }
        }
        if let (true, Some(error)) = (self.collected.pages.is_empty(), self.left_out.take()) {
            // Nothing could be read at all.
            return Err(error);
        }
        self.fill.learn();
        let shape = &wanted.gathering.shape;
        let merge = &self.merged.merge;
        let at_end = if shape.unique {
            !self.collected.rows.is_empty()
        } else {
            shape.end.is_some() && merge.last().is_some_and(|last| last.first() == shape.end.as_ref())
        };
        // What a shard may have behind the end of the condition is not asked for.
        self.collected.more =
            if at_end { merge.has_more_at_hand() } else { self.fill.is_limited() || !merge.is_empty() };
        self.collected.tied = shape.tags == ShardTags::Ties
            && (at_end || merge.tied(shape.from.clone().map(|from| Some(from).into()).as_ref()));
        Ok(std::mem::take(&mut self.collected))
    }

    fn next_round(&self) -> NextRound<'_> {
        let Scatter { wanted, merged, opening, fill, probes, .. } = self;
        NextRound { wanted, merged, opening, fill, probes: *probes }
    }

    /// Lets go of pages of which nothing will be in the answer: the rows at hand before them fill
    /// it.
    fn let_go(&mut self) {
        if self.held < HELD {
            return;
        }
        let forgotten = self.merged.merge.trim(self.fill.is_full_with());
        let kept: std::collections::HashSet<usize> = self.collected.rows.iter().map(|row| row.page).collect();
        for page in forgotten.into_iter().map(|row| row.page).filter(|page| !kept.contains(page)) {
            if let Some(page) = self.collected.pages.get_mut(page) {
                self.held -= std::mem::take(page).len().min(self.held);
            }
        }
    }

    /// Takes the answer of a stream.
    fn take_answer(&mut self, stream: usize, answer: Result<Bytes, Error>) -> Result<(), Error> {
        let answer = if self.opening.is_directory(stream) { answer.map_err(not_done) } else { answer };
        match answer {
            Err(error) if self.leaves_out(stream, &error) => {
                self.leave_out(stream, error);
                Ok(())
            }
            answer => self.take(stream, answer?),
        }
    }

    /// Whether the answer may go without that shard: not for what is wrong with the request, nor
    /// without the directory.
    fn leaves_out(&self, stream: usize, error: &Error) -> bool {
        let unreadable = error.retryable() || error.fault() == Fault::Server;
        self.wanted.partial && unreadable && !self.opening.is_directory(stream)
    }

    fn leave_out(&mut self, number: usize, error: Error) {
        self.merged.merge.close(number);
        self.left_out.get_or_insert(error);
        if let Some(stream) = self.merged.streams.get(number) {
            self.missing.push(stream.slot);
        }
    }

    fn take(&mut self, number: usize, body: Bytes) -> Result<(), Error> {
        let buckets = self.wanted.buckets();
        if let Some(buckets) = buckets.filter(|_| self.opening.is_directory(number)) {
            return self.opening.take_directory(buckets, number, &body, &mut self.merged);
        }
        let page = self.wanted.gathering.reader.read(self.collected.pages.len(), &body)?;
        let Some(stream) = self.merged.streams.get_mut(number) else { return Ok(()) };
        self.fill.note_read(page.bytes, page.rows.len());
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
        if let (Some(buckets), Some(bucket), false) = (buckets, stream.slot.bucket, page.rows.is_empty()) {
            self.opening.note_found(buckets, bucket);
        }
        let passed = self.wanted.passed.as_ref();
        if passed.is_some() && page.rows.iter().any(|(at, _)| at.first() == passed) {
            self.passed.push(stream.slot);
            if self.passed.len() > 1 {
                return Err(ambiguous(&self.passed));
            }
        }
        let wanted =
            |(at, _): &(Position, Row)| !part.drops(at) && (passed.is_none() || at.first() != passed);
        self.merged.merge.read(number, page.rows.into_iter().filter(wanted), more);
        self.held += body.len();
        self.collected.pages.push(body);
        Ok(())
    }

    /// The calls that it begins with, were the size of the items known.
    pub(crate) fn explain(self) -> Vec<CallExplanation> {
        let mut known = Scatter { probes: false, ..self };
        explained(async |calls| known.collect(calls).await)
    }

    /// Why it is gathered, and how.
    pub(crate) fn why(&self) -> String {
        let shares = self.next_round().shares(None);
        let why = format!(
            "the matching items may lie in {} shards: each is asked for its likely share of the page, {} items, the answers are merged by sort \
             key, and shards that run dry before the page is full are asked again",
            shares.len(),
            shares.first().map_or(0, |(_, share)| *share)
        );
        match (&self.wanted.gathering.fold, &self.wanted.source) {
            (Some(fold), _) => fold.why(&why),
            (None, Source::Buckets(buckets)) => format!("{}; {why}", self.opening.why(buckets)),
            (None, Source::Ranges(ranges)) => ranges.why(),
            (None, Source::Streams(_)) => why,
        }
    }
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
