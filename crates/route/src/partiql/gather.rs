//! Pages of Queries and Scans to one answer of ExecuteStatement.

use std::collections::VecDeque;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{Malformed, Object, Picked};
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{Error, Operation};

use super::token::Position;
use crate::answer::unreadable;
use crate::capacity::{Capacity, Report};
use crate::collection::page::{MOST_BYTES, Page};
use crate::collection::selection::{Listing, Selection};
use crate::cursor;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::{Answer, Calls};

/// What a SELECT shows of the items that it reads.
pub(super) struct Shape {
    pub(super) selection: Selection,
    /// The attributes of a position.
    pub(super) cursor: Vec<String>,
    pub(super) fingerprint: u64,
    /// The order of a Query of an index, where layouts decide it.
    pub(super) order: Option<String>,
}

/// The plan of a SELECT: parts that are read one after the other.
pub(super) struct Gather {
    parts: VecDeque<Plan>,
    shape: Shape,
    limit: Option<usize>,
    first: usize,
}

impl Gather {
    /// A plan of `parts`, of which `first` more were read on earlier pages.
    pub(super) fn new(parts: Vec<Plan>, shape: Shape, limit: Option<usize>, first: usize) -> Self {
        Gather { parts: parts.into(), shape, limit, first }
    }

    pub(super) fn plan(self) -> Plan {
        Plan::Scatter(Box::new(self))
    }
}

impl Planned for Gather {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(self.read(calls))
    }

    fn explain(&self) -> Explanation {
        let mut calls: Vec<CallExplanation> = Vec::new();
        let mut why =
            "the SELECT is read by the plan of a Query or a Scan, its WHERE clause evaluated here".to_owned();
        for part in &self.parts {
            let explained = part.explain();
            why = format!("{why}; {}", explained.why);
            calls.extend(explained.calls);
        }
        Explanation { plan: Kind::Scatter, why, calls }
    }
}

impl Gather {
    async fn read(self: Box<Self>, calls: &mut dyn Calls) -> Result<Answer, Error> {
        let Gather { mut parts, shape, limit, first } = *self;
        let shown = shape.selection.list();
        let mut page = Answered { part: first, evaluated: 0, bytes: 0, shown, capacity: None };
        let mut missing = Vec::new();
        // Of a statement whose list of partition keys is empty there is none.
        while let Some(part) = parts.pop_front() {
            let answer = part.run(calls).await?;
            missing.extend(answer.missing);
            let taken = page.take(&shape, limit, &answer.body, parts.is_empty());
            match taken.map_err(|Malformed| unreadable(Operation::ExecuteStatement))? {
                More::Read => {}
                More::At(position) => return Ok(page.answer(&shape, Some(&position), missing)),
            }
        }
        Ok(page.answer(&shape, None, missing))
    }
}

/// What is read, and shown, of a SELECT so far.
struct Answered<'s> {
    /// The number of the current part.
    part: usize,
    /// Items read so far, shown or not.
    evaluated: usize,
    /// Their bytes, where there are several parts.
    bytes: usize,
    shown: Listing<'s>,
    capacity: Option<Capacity>,
}

/// What follows a part.
enum More {
    /// The next one is read, if there is one.
    Read,
    /// The answer ends, and the next page goes on there.
    At(Position),
}

impl Answered<'_> {
    /// Takes a part's page. `last_part`: no other follows.
    fn take(
        &mut self,
        shape: &Shape,
        limit: Option<usize>,
        body: &[u8],
        last_part: bool,
    ) -> Result<More, Malformed> {
        let page = Page::<0>::read(body, [])?;
        if let Some(capacity) = page.capacity() {
            self.capacity.get_or_insert_default().add(&capacity);
        }
        let (mut items, last) = (page.items, page.last);
        let several = !last_part || self.evaluated > 0;
        let fitting = if several { self.fitting(&items)? } else { items.len() };
        let room = limit.map(|limit| limit.saturating_sub(self.evaluated));
        let full = room.is_some_and(|room| items.len() >= room);
        let shown = room.unwrap_or(usize::MAX).min(fitting);
        let cut = items.len() > shown;
        items.truncate(shown);
        for item in &items {
            self.evaluated += 1;
            self.shown.add(item.raw)?;
        }
        let at = |part, after| More::At(Position { part, after });
        if cut {
            // Of a part that finds no room at all the next page is the first.
            let after = items.last().map(|item| cursor::of_item(&shape.cursor, item.raw)).transpose()?;
            return Ok(at(self.part, after));
        }
        if let Some(last) = last {
            return Ok(at(self.part, Some(Bytes::copy_from_slice(last))));
        }
        self.part += 1;
        // DynamoDB gives a position whenever the limit is reached: here that of what comes next, if
        // anything does.
        let ends = full && !items.is_empty() || !last_part && self.bytes >= MOST_BYTES;
        Ok(if ends { at(self.part, None) } else { More::Read })
    }

    /// How many of a part's items the page takes by their bytes; of the first part one at least.
    fn fitting<const N: usize>(&mut self, items: &[Picked<'_, N>]) -> Result<usize, Malformed> {
        for (at, item) in items.iter().enumerate() {
            let bytes = self.bytes + scan_item(item.raw, [])?.bytes;
            if bytes > MOST_BYTES && self.evaluated + at > 0 {
                return Ok(at);
            }
            self.bytes = bytes;
        }
        Ok(items.len())
    }

    fn answer(self, shape: &Shape, more: Option<&Position>, missing: Vec<String>) -> Answer {
        let mut answer = Object::new();
        answer.raw("Items", &self.shown.items());
        if let Some(position) = more {
            answer.string("NextToken", &position.write(shape.fingerprint, shape.order.as_deref()));
        }
        // The plans beneath show as much of the capacity as the client asks for.
        if let Some(capacity) = self.capacity.and_then(|capacity| capacity.shown(Report::Indexes)) {
            answer.raw("ConsumedCapacity", &capacity);
        }
        Answer { body: Bytes::from(answer.finish()), missing }
    }
}

/// A plan that sends nothing and refuses.
pub(super) struct Refused(pub(super) Error);

impl Refused {
    pub(super) fn plan(self) -> Plan {
        Plan::Single(Box::new(self))
    }
}

impl Planned for Refused {
    fn run<'a>(self: Box<Self>, _calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(std::future::ready(Err(self.0)))
    }

    fn explain(&self) -> Explanation {
        Explanation::refused(&self.0)
    }
}
