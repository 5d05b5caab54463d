//! GetItem of an item that is rows under several physical keys, or may lie under any of several: all of them by one BatchGetItem.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Bindings, Checks, Fresh, Projection};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Layout, Table};

use super::fetch::{Fetch, MOST_KEYS};
use super::{keys, whole};
use crate::answer::{pass_refusal, strip_object, unreadable};
use crate::asked;
use crate::capacity::single_capacity;
use crate::context::PlanContext;
use crate::counter::{MEANINGLESS, row0};
use crate::item::{Physical, in_store_words, physical};
use crate::plan::{CallExplanation, Estimate, Explanation, Kind, Plan, Planned, Single};
use crate::point::finish;
use crate::projection;
use crate::projection::project;
use crate::request::Request;
use crate::splice::Splice;
use crate::{Answer, Calls};

/// What a read shows of items: all of them, or a projection, in whichever parameter it came.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) projection: Option<Projection>,
    /// The members that take the place of the client's.
    pub(crate) asked: Vec<(&'static str, Vec<u8>)>,
}

impl Shown {
    /// Of a request, or of one table's part of a BatchGetItem. What is asked for has the key attributes beside.
    ///
    /// # Errors
    /// That of the expression.
    pub(crate) fn read(request: &Request<'_>, table: &Table, checks: Checks) -> Result<Self, Error> {
        let text = request.string("ProjectionExpression")?;
        let bindings = Bindings::read(request.get("ExpressionAttributeNames"), None)?;
        let listed = request.get("AttributesToGet").map(json::elements).transpose();
        let listed = listed.map_err(|Malformed| crate::request::malformed())?;
        let projection = match (text, listed) {
            (Some(_), Some(_)) => {
                return Err(Error::validation(
                    "Can not use both expression and non-expression parameters in the same request",
                ));
            }
            (Some(text), None) => {
                let projection = projection::read(&text, &bindings, checks, table)?;
                if checks == Checks::All {
                    bindings.check_unused(&[&text])?;
                }
                Some(projection)
            }
            (None, Some(names)) => {
                let mut projection = Projection::default();
                for name in names {
                    projection
                        .add_root(&json::string(name).map_err(|Malformed| crate::request::malformed())?);
                }
                Some(projection)
            }
            (None, None) if request.get("ExpressionAttributeNames").is_some() => {
                return Err(Error::validation(
                    "ExpressionAttributeNames can only be specified when using expressions",
                ));
            }
            (None, None) => None,
        };
        let mut asked = Vec::new();
        if let Some(projection) = &projection {
            let wanted = whole_attributes(projection, table);
            if request.get("AttributesToGet").is_some() {
                // In its own words: a batch must not have both.
                let names = wanted.paths.iter().map(|path| path.root.as_str());
                asked.push((
                    "AttributesToGet",
                    serde_json::json!(names.collect::<Vec<_>>()).to_string().into_bytes(),
                ));
                return Ok(Shown { projection: Some(projection.clone()), asked });
            }
            let mut fresh = Fresh::avoiding(&Bindings::default());
            let mut text = Vec::new();
            json::write_string(&mut text, &wanted.render(&mut fresh));
            asked.push(("ProjectionExpression", text));
            if let (Some(names), _) = Bindings::default().rewritten(&[], &fresh) {
                asked.push(("ExpressionAttributeNames", names));
            }
        }
        Ok(Shown { projection, asked })
    }

    /// Whether it shows a declared number.
    pub(crate) fn counts(&self, counted: &[String]) -> bool {
        self.projection
            .as_ref()
            .is_none_or(|projection| projection.paths.iter().any(|path| counted.contains(&path.root)))
    }

    /// What is shown of a whole item, its key made logical.
    pub(crate) fn of(&self, table: &Table, item: &Bytes) -> Result<Vec<u8>, Malformed> {
        let mut splice = Splice::new(item);
        strip_object(table, item, &mut splice)?;
        let item = splice.finish(item);
        let Some(projection) = &self.projection else { return Ok(item.to_vec()) };
        let mut left = Vec::new();
        project(projection, &item, &mut left)?;
        Ok(left)
    }
}

/// What to ask the store for: whole attributes, and the keys. A store shows what a path leaves of an attribute, to which the path means something
/// else when it is applied to the sum.
fn whole_attributes(projection: &Projection, table: &Table) -> Projection {
    let mut wanted = Projection::default();
    for path in &projection.paths {
        wanted.add_root(&path.root);
    }
    for name in table.key.names() {
        wanted.add_root(name);
    }
    wanted
}

/// The plan of a GetItem of an item with that layout.
///
/// # Errors
/// `ValidationException` for a key that its suffix makes too long, or one that cannot be an item's.
pub(crate) fn of_key(
    request: &Request<'_>,
    table: &Arc<Table>,
    layout: &Arc<Layout>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let operation = Operation::GetItem;
    let (body, located) = match physical(request, "Key", table, context)? {
        Physical::Sent { body, located } => (body, located),
        Physical::Invalid => return Ok(pass_refusal(operation, request.body)),
        Physical::Meaningless { body, error } => {
            return Ok(Single::new(operation, body, Some(in_store_words(error)), MEANINGLESS).plan());
        }
    };
    let object = request.get("Key").unwrap_or_default();
    if !keys::is_key(table, object) {
        return Ok(pass_refusal(operation, request.body));
    }
    let keys = keys::keys(table, layout, object)?;
    let shown = match Shown::read(request, table, Checks::All) {
        Ok(shown) => Ok(shown),
        // What only the checks here find wrong the store may take: it decides.
        Err(_) => Shown::read(request, table, Checks::Meaning).map_err(|_| ()),
    };
    let valid = Shown::read(request, table, Checks::All).is_ok();
    let Ok(shown) = shown else { return Ok(pass_refusal(operation, request.body)) };
    if keys.len() == 1 || layout.counted().is_some_and(|counted| !shown.counts(counted)) {
        let why = "what is asked for lies in row 0: one physical request";
        return Ok(row0(operation, body, finish(operation, table, &located), &located, why));
    }
    let mut options = shown.asked.clone();
    let consistent = request.get("ConsistentRead");
    options.extend(consistent.map(|consistent| ("ConsistentRead", consistent.to_vec())));
    let name = request.get("TableName").unwrap_or(b"null").to_vec();
    let report = request.get("ReturnConsumedCapacity").map(<[u8]>::to_vec);
    let rows = keys.len();
    let identity = keys.first().and_then(|key| keys::stored(table, key).ok()).map(|(identity, _)| identity);
    let identity = identity.ok_or_else(|| unreadable(operation))?;
    let fetch = Fetch::new(table, name, options, report, keys);
    let get = Get {
        fetch,
        identity,
        shown,
        layout: Arc::clone(layout),
        table: Arc::clone(table),
        units: f64::from(u32::try_from(rows).unwrap_or(u32::MAX))
            * if consistent == Some(b"true") { 1.0 } else { 0.5 },
    };
    let plan = Plan::Scatter(Box::new(get));
    Ok(if valid {
        plan
    } else {
        asked::first(operation, request.body.clone(), plan, "whether the projection is valid, the store says")
    })
}

struct Get {
    fetch: Fetch,
    identity: keys::Identity,
    shown: Shown,
    layout: Arc<Layout>,
    table: Arc<Table>,
    units: f64,
}

impl Planned for Get {
    fn run<'a>(mut self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            self.fetch.read_all(calls).await?;
            self.answer().map(Answer::from)
        })
    }

    fn explain(&self) -> Explanation {
        let mut calls = Vec::new();
        for keys in self.fetch.bodies() {
            let mut call = CallExplanation::new(Operation::BatchGetItem, &keys);
            call.estimate = Some(Estimate {
                read_units: self.units,
                write_units: 0.0,
                assumes: format!("an item of at most 4 KB; at most {MOST_KEYS} rows a call"),
            });
            calls.push(call);
        }
        let why = if self.layout.is_drawn() {
            "the rule's shards are drawn at random, so that the item may lie in any of them: all are asked at once, and the one that is \
             found is the answer"
        } else {
            "a counter is the sum of its rows: all of them are read at once and folded into one item"
        };
        Explanation { plan: Kind::Scatter, why: why.to_owned(), calls }
    }
}

impl Get {
    /// The answer, when all is read.
    fn answer(&self) -> Result<Bytes, Error> {
        let mut answer = Object::new();
        if let Some(parts) = self.fetch.parts(&self.identity)
            && let Some(item) = whole(&self.table, Some(&self.layout), parts)?
        {
            let item = self.shown.of(&self.table, &item);
            answer.raw("Item", &item.map_err(|Malformed| unreadable(Operation::BatchGetItem))?);
        }
        if let Some(capacity) = &self.fetch.capacity {
            answer.raw("ConsumedCapacity", single_capacity(capacity.clone()).to_string().as_bytes());
        }
        Ok(Bytes::from(answer.finish()))
    }
}
