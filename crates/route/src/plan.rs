//! What is to be done for a request, and how it explains itself.

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use serde::Serialize;

use crate::{Answer, Calls, PhysicalCall};

/// What a request becomes.
pub enum Plan {
    /// The request goes on byte for byte, and so does its answer.
    Forward {
        /// The operation.
        operation: Operation,
        /// The body as it came.
        body: Bytes,
        /// Why.
        why: &'static str,
    },
    /// One physical request, its keys rewritten; its answer's keys are made logical again.
    Single(Box<dyn Planned>),
    /// Several physical requests, whose answers become one.
    Scatter(Box<dyn Planned>),
}

/// A plan that is more than passing bytes on.
pub trait Planned: Send + Sync {
    /// Carries it out.
    ///
    /// # Errors
    /// What the client is answered with.
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>>;

    /// Says what it would do. Needs no store.
    fn explain(&self) -> Explanation;

    /// Whether it is one call, whatever is answered.
    fn is_one_call(&self) -> bool {
        false
    }
}

impl Plan {
    /// Carries the plan out.
    ///
    /// # Errors
    /// What the client is answered with: DynamoDB's own error for the request, or the store's.
    pub fn run(self, calls: &mut dyn Calls) -> BoxFuture<'_, Result<Answer, Error>> {
        match self {
            Plan::Forward { operation, body, .. } => Box::pin(one_call(calls, operation, body, None)),
            Plan::Single(planned) | Plan::Scatter(planned) => planned.run(calls),
        }
    }

    /// Whether it is one call, whatever is answered: of one item, at rest.
    pub fn is_one_call(&self) -> bool {
        match self {
            Plan::Forward { .. } => true,
            Plan::Single(planned) => planned.is_one_call(),
            Plan::Scatter(_) => false,
        }
    }

    /// The plan with what `with` makes of it, unless the request goes on as it came.
    pub(crate) fn wrapped<P: Planned + 'static>(self, with: impl FnOnce(Box<dyn Planned>) -> P) -> Plan {
        match self {
            Plan::Single(then) => Plan::Single(Box::new(with(then))),
            Plan::Scatter(then) => Plan::Scatter(Box::new(with(then))),
            forward @ Plan::Forward { .. } => forward,
        }
    }

    /// What the plan would do, why, and at what cost.
    pub fn explain(&self) -> Explanation {
        match self {
            Plan::Forward { operation, body, why } => Explanation {
                plan: Kind::Forward,
                why: (*why).to_owned(),
                calls: vec![CallExplanation::new(*operation, body)],
            },
            Plan::Single(planned) | Plan::Scatter(planned) => planned.explain(),
        }
    }
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.explain())
    }
}

/// The kinds of plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Kind {
    /// Bytes go on unchanged.
    Forward,
    /// One physical request.
    Single,
    /// Several, merged.
    Scatter,
    /// None: the request is answered with an error.
    Refused,
}

/// What a plan would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// Its kind.
    pub plan: Kind,
    /// Why it is of that kind.
    pub why: String,
    /// The first physical calls, in order. A scatter may come back to shards that ran dry; `why`
    /// says so.
    pub calls: Vec<CallExplanation>,
}

impl Explanation {
    /// The explanation of a request that the router refuses.
    pub fn refused(error: &Error) -> Self {
        Explanation { plan: Kind::Refused, why: error.to_string(), calls: Vec::new() }
    }
}

/// One physical call of an explanation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CallExplanation {
    /// The operation's name.
    pub operation: String,
    /// The shard, where the call goes to one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shard: Option<u16>,
    /// The physical partition key, where the call goes to one; binary keys in base64.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// What it costs, where that can be said beforehand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimate: Option<Estimate>,
    /// The body.
    pub body: serde_json::Value,
}

impl CallExplanation {
    /// A call that goes to no shard in particular.
    pub fn new(operation: Operation, body: &[u8]) -> Self {
        CallExplanation {
            operation: operation.name().to_owned(),
            shard: None,
            key: None,
            estimate: None,
            body: serde_json::from_slice(body).unwrap_or_default(),
        }
    }
}

impl From<&PhysicalCall> for CallExplanation {
    fn from(call: &PhysicalCall) -> Self {
        let explained = CallExplanation::new(call.operation, &call.body);
        let Some(target) = &call.target else { return explained };
        let bytes = f64::from(u32::try_from(target.items).unwrap_or(u32::MAX)) * target.item_bytes;
        let steps = (bytes / STEP).ceil().max(1.0);
        CallExplanation {
            shard: Some(target.shard),
            key: Some(target.key.clone()),
            estimate: Some(Estimate {
                read_units: if target.consistent { steps } else { steps / 2.0 },
                write_units: 0.0,
                assumes: format!(
                    "{} items of {:.0} bytes; a shard with fewer costs less",
                    target.items, target.item_bytes
                ),
            }),
            ..explained
        }
    }
}

/// DynamoDB counts reads in steps of 4 KB (AWS, "Read and write operations").
const STEP: f64 = 4096.0;

/// Estimated capacity units of a call.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Read capacity units.
    pub read_units: f64,
    /// Write capacity units.
    pub write_units: f64,
    /// What the figures assume.
    pub assumes: String,
}

/// What to make of a call's answer.
pub(crate) type Finish = Box<dyn FnOnce(Result<Bytes, Error>) -> Result<Bytes, Error> + Send + Sync>;

/// Carries out a plan that is one call.
pub(crate) async fn one_call(
    calls: &mut dyn Calls,
    operation: Operation,
    body: Bytes,
    finish: Option<Finish>,
) -> Result<Answer, Error> {
    let answer = calls.one(PhysicalCall::only(operation, body)).await;
    let body = match finish {
        Some(finish) => finish(answer),
        None => answer,
    };
    body.map(Answer::from)
}

/// A plan of one call.
pub(crate) struct Single {
    pub(crate) operation: Operation,
    pub(crate) body: Bytes,
    pub(crate) finish: Option<Finish>,
    pub(crate) why: String,
    pub(crate) shard: Option<u16>,
    pub(crate) key: Option<String>,
    pub(crate) estimate: Option<Estimate>,
}

impl Single {
    /// One call that goes to no shard in particular.
    pub(crate) fn new(
        operation: Operation,
        body: Bytes,
        finish: Option<Finish>,
        why: impl Into<String>,
    ) -> Self {
        Single { operation, body, finish, why: why.into(), shard: None, key: None, estimate: None }
    }

    pub(crate) fn plan(self) -> Plan {
        Plan::Single(Box::new(self))
    }
}

impl Planned for Single {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Single { operation, body, finish, .. } = *self;
        Box::pin(one_call(calls, operation, body, finish))
    }

    fn explain(&self) -> Explanation {
        let mut call = CallExplanation::new(self.operation, &self.body);
        call.shard = self.shard;
        call.key.clone_from(&self.key);
        call.estimate.clone_from(&self.estimate);
        Explanation { plan: Kind::Single, why: self.why.clone(), calls: vec![call] }
    }
}
