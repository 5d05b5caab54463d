//! The directory of buckets, as requests use it: a bucket's row is written before the first item
//! that this process puts into it.
//!
//! Not here: reading the directory, which a Query does beside its shards (`query::buckets`).

pub(crate) mod known;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_layout::{Bucket, DIRECTORY};
use serde_json::json;

use self::known::KnownBuckets;
use crate::plan::{CallExplanation, Explanation, Plan, Planned};
use crate::{Answer, Calls, PhysicalCall};

/// The plan, after the rows of those of its buckets that are not known to have one.
pub(crate) fn enter_first(plan: Plan, mut rows: Vec<(String, Bucket)>, known: &Arc<KnownBuckets>) -> Plan {
    rows.retain(|(key, bucket)| !known.has(key, *bucket));
    rows.sort();
    rows.dedup();
    if rows.is_empty() {
        return plan;
    }
    plan.wrapped(|then| Registered { rows, known: Arc::clone(known), then })
}

/// A write, after the rows of its buckets.
struct Registered {
    rows: Vec<(String, Bucket)>,
    known: Arc<KnownBuckets>,
    then: Box<dyn Planned>,
}

/// The entry of a bucket.
pub(crate) fn put(key: &str, bucket: Bucket) -> Bytes {
    let item = json!({ "pk": { "S": key }, "sk": { "S": bucket.to_string() } });
    Bytes::from(json!({ "TableName": DIRECTORY, "Item": item }).to_string())
}

impl Planned for Registered {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Registered { rows, known, then } = *self;
        Box::pin(async move {
            let entry = |(id, (key, bucket)): (usize, &(String, Bucket))| PhysicalCall {
                id,
                retry_throttled: true,
                ..PhysicalCall::only(Operation::PutItem, put(key, *bucket))
            };
            let entries: Vec<PhysicalCall> = rows.iter().enumerate().map(entry).collect();
            calls.round(entries.into(), &mut |_, answer| answer.map(drop).map_err(not_done)).await?;
            for (key, bucket) in rows {
                known.learn(&key, bucket);
            }
            then.run(calls).await
        })
    }

    fn explain(&self) -> Explanation {
        let mut explanation = self.then.explain();
        explanation.why = format!(
            "the first item of this process in {} bucket(s), which are first entered in the directory of buckets: {}",
            self.rows.len(),
            explanation.why
        );
        let entries = self
            .rows
            .iter()
            .map(|(key, bucket)| CallExplanation::new(Operation::PutItem, &put(key, *bucket)));
        explanation.calls.splice(0..0, entries);
        explanation
    }
}

/// An error of the directory: the client's own request was not sent.
pub(crate) fn not_done(mut error: Error) -> Error {
    if error.code == Code::ResourceNotFoundException {
        error = Error::internal(format!(
            "The table {DIRECTORY}, which holds the directory of buckets, is missing"
        ));
    }
    error.outcome = Outcome::NotDone;
    error
}
