//! Pages of Queries and Scans to one answer of ExecuteStatement.

use std::collections::{BTreeSet, VecDeque};

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Condition, Path, Step as PathStep};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{Error, Item, Operation, Value};
use serde_json::Value as Json;

use super::token::Position;
use crate::answer::unreadable;
use crate::capacity::add;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::{Answer, Calls};

/// Beyond this many bytes the next partition key waits for the next page.
const PAGE: usize = 1 << 20;

/// What a SELECT shows of the items that it reads.
pub(super) struct Shape {
    pub(super) filter: Option<Condition>,
    /// The attributes that the filter sees; `None` is all.
    pub(super) seen: Option<BTreeSet<String>>,
    /// The paths shown; empty is all.
    pub(super) shown: Vec<Path>,
    /// The attributes of a position.
    pub(super) cursor: Vec<String>,
    pub(super) fingerprint: u64,
    /// The order of a Scan, where layouts decide it.
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
        let mut page = Page { part: first, evaluated: 0, read: 0, shown: vec![b'['], capacity: None };
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
struct Page {
    /// The number of the current part.
    part: usize,
    /// Items read so far, shown or not.
    evaluated: usize,
    /// Their bytes.
    read: usize,
    shown: Vec<u8>,
    capacity: Option<Json>,
}

/// What follows a part.
enum More {
    /// The next one is read, if there is one.
    Read,
    /// The answer ends, and the next page goes on there.
    At(Position),
}

impl Page {
    /// Takes a part's page. `last_part`: no other follows.
    fn take(
        &mut self,
        shape: &Shape,
        limit: Option<usize>,
        body: &[u8],
        last_part: bool,
    ) -> Result<More, Malformed> {
        let [items, last, capacity] =
            json::attributes_of(body, ["Items", "LastEvaluatedKey", "ConsumedCapacity"])?;
        let mut items = json::elements(items.unwrap_or(b"[]"))?;
        if let Some(capacity) = capacity.and_then(|raw| serde_json::from_slice::<Json>(raw).ok()) {
            add(self.capacity.get_or_insert(Json::Null), capacity);
        }
        let room = limit.map(|limit| limit.saturating_sub(self.evaluated));
        let full = room.is_some_and(|room| items.len() >= room);
        let cut = room.is_some_and(|room| items.len() > room);
        let last = last.filter(|last| *last != b"null");
        items.truncate(room.unwrap_or(usize::MAX));
        for item in &items {
            self.evaluated += 1;
            self.read += item.len();
            shape.show(item, &mut self.shown)?;
        }
        let at = |part, after: Vec<u8>| More::At(Position { part, after: Some(Bytes::from(after)) });
        if let (true, Some(item)) = (cut, items.last()) {
            return Ok(at(self.part, shape.key(item)?));
        }
        if let Some(last) = last {
            return Ok(at(self.part, last.to_vec()));
        }
        self.part += 1;
        // DynamoDB gives a position whenever the limit is reached: here that of what comes next, if anything does.
        let ends = full && !items.is_empty() || !last_part && self.read >= PAGE;
        Ok(if ends { More::At(Position { part: self.part, after: None }) } else { More::Read })
    }

    fn answer(mut self, shape: &Shape, more: Option<&Position>, missing: Vec<String>) -> Answer {
        self.shown.push(b']');
        let mut answer = Object::new();
        answer.raw("Items", &self.shown);
        if let Some(position) = more {
            answer.string("NextToken", &position.write(shape.fingerprint, shape.order.as_deref()));
        }
        if let Some(capacity) = &self.capacity {
            answer.raw("ConsumedCapacity", capacity.to_string().as_bytes());
        }
        Answer { body: Bytes::from(answer.finish()), missing }
    }
}

impl Shape {
    /// Writes what is shown of an item, if it passes.
    fn show(&self, raw: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        let part = |out: &mut Vec<u8>| {
            if out.len() > 1 {
                out.push(b',');
            }
        };
        if self.filter.is_none() && self.shown.is_empty() {
            part(out);
            out.extend_from_slice(raw);
            return Ok(());
        }
        let item = read_item(raw).map_err(|_| Malformed)?;
        if let Some(filter) = &self.filter {
            let passes = match &self.seen {
                None => filter.holds(&item),
                Some(seen) => {
                    let seen = item.iter().filter(|(name, _)| seen.contains(*name));
                    filter.holds(&seen.map(|(name, value)| (name.clone(), value.clone())).collect())
                }
            };
            if !passes {
                return Ok(());
            }
        }
        part(out);
        if self.shown.is_empty() {
            out.extend_from_slice(raw);
        } else {
            write_item(&shown(&item, &self.shown), out);
        }
        Ok(())
    }

    /// The raw key at which a page ends that ended with an item.
    fn key(&self, item: &[u8]) -> Result<Vec<u8>, Malformed> {
        let members = json::members(item)?;
        let mut key = Object::new();
        for name in &self.cursor {
            let (_, value) = members.iter().find(|(found, _)| found == name).ok_or(Malformed)?;
            key.raw(name, value);
        }
        Ok(key.finish())
    }
}

/// Each path's value under the last name of the path and the indexes behind it, as DynamoDB names them.
fn shown(item: &Item, paths: &[Path]) -> Item {
    let mut left = Item::new();
    for path in paths {
        let mut name = path.root.clone();
        let mut found = item.get(&path.root);
        for step in &path.rest {
            match step {
                PathStep::Name(step) => name.clone_from(step),
                PathStep::Index(index) => name = format!("{name}[{index}]"),
            }
            found = match (step, found) {
                (PathStep::Name(step), Some(Value::M(map))) => map.get(step),
                (PathStep::Index(index), Some(Value::L(list))) => list.get(*index),
                _ => None,
            };
        }
        if let Some(value) = found {
            left.insert(name, value.clone());
        }
    }
    left
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
