//! The directory of buckets, as requests use it: a bucket's row is written before the first item
//! that this process puts into it. So are the rows of keys that are entered (`unrecorded`).
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
    let puts = rows.iter().map(|(key, bucket)| put(key, *bucket)).collect();
    let why = format!(
        "the first item of this process in {} bucket(s), which are first entered in the directory of buckets",
        rows.len()
    );
    let known = Arc::clone(known);
    after(plan, puts, why, move || rows.iter().for_each(|(key, bucket)| known.learn(key, *bucket)))
}

/// The plan, after these rows, if there are any; `learn` once they are there. `why`, in words.
pub(crate) fn after(
    plan: Plan,
    puts: Vec<Bytes>,
    why: String,
    learn: impl FnOnce() + Send + Sync + 'static,
) -> Plan {
    if puts.is_empty() {
        return plan;
    }
    plan.wrapped(|then| Entered { puts, why, learn: Box::new(learn), then })
}

/// A write, after rows of the directory.
struct Entered {
    puts: Vec<Bytes>,
    why: String,
    learn: Box<dyn FnOnce() + Send + Sync>,
    then: Box<dyn Planned>,
}

/// The entry of a bucket.
pub(crate) fn put(key: &str, bucket: Bucket) -> Bytes {
    let item = json!({ "pk": { "S": key }, "sk": { "S": bucket.to_string() } });
    Bytes::from(json!({ "TableName": DIRECTORY, "Item": item }).to_string())
}

impl Planned for Entered {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Entered { puts, learn, then, .. } = *self;
        Box::pin(async move {
            let entry = |(id, put): (usize, Bytes)| PhysicalCall {
                id,
                retry_throttled: true,
                ..PhysicalCall::only(Operation::PutItem, put)
            };
            let entries: Vec<PhysicalCall> = puts.into_iter().enumerate().map(entry).collect();
            calls.round(entries.into(), &mut |_, answer| answer.map(drop).map_err(not_done)).await?;
            learn();
            then.run(calls).await
        })
    }

    fn explain(&self) -> Explanation {
        let mut explanation = self.then.explain();
        explanation.why = format!("{}: {}", self.why, explanation.why);
        let entries = self.puts.iter().map(|put| CallExplanation::new(Operation::PutItem, put));
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
