//! Reading rows by BatchGetItem until every one of them has been read.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_layout::{Slot, Table};
use serde_json::Value as Json;

use super::keys::{self, Identity};
use crate::answer::unreadable;
use crate::capacity::add;
use crate::{Calls, PhysicalCall};

/// The most keys of one BatchGetItem (AWS API reference, `BatchGetItem`).
pub(crate) const MOST_KEYS: usize = 100;

/// How often keys are asked for again while not one of them is read. The store refuses a batch of which it can read nothing, so this
/// is hardly ever reached.
const PATIENCE: u32 = 10;

/// What was found of one item.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// Its rows, and where each lies.
    pub(crate) rows: Vec<(Slot, Bytes)>,
}

impl Parts {
    /// The row of a counter that holds all of it but the other rows' numbers.
    pub(crate) fn row0(&self) -> Option<&Bytes> {
        self.rows.iter().find(|(slot, _)| *slot == Slot::default()).map(|(_, row)| row)
    }

    /// The other rows of a counter.
    pub(crate) fn others(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.rows.iter().filter(|(slot, _)| *slot != Slot::default()).map(|(_, row)| &**row)
    }
}

/// Rows to be read, and those that were.
#[derive(Debug)]
pub(crate) struct Fetch {
    table: Arc<Table>,
    /// The table's name as the client wrote it, raw.
    name: Vec<u8>,
    /// What goes with the keys, but for them: `ConsistentRead`, `ProjectionExpression`, its names.
    options: Vec<(&'static str, Vec<u8>)>,
    /// `ReturnConsumedCapacity`, raw.
    report: Option<Vec<u8>>,
    pending: Vec<Bytes>,
    asked: usize,
    idle: u32,
    /// `ConsumedCapacity` of the table, summed.
    pub(crate) capacity: Option<Json>,
    found: HashMap<Identity, Parts>,
}

impl Fetch {
    /// Reads the rows with those raw physical keys.
    pub(crate) fn new(
        table: &Arc<Table>,
        name: Vec<u8>,
        options: Vec<(&'static str, Vec<u8>)>,
        report: Option<Vec<u8>>,
        keys: Vec<Bytes>,
    ) -> Self {
        let table = Arc::clone(table);
        let found = HashMap::new();
        Fetch { table, name, options, report, pending: keys, asked: 0, idle: 0, capacity: None, found }
    }

    /// The bodies of the first calls, for an explanation.
    pub(crate) fn bodies(&self) -> Vec<Bytes> {
        self.pending.chunks(MOST_KEYS).map(|keys| self.body(keys)).collect()
    }

    /// The body for some keys.
    fn body(&self, keys: &[Bytes]) -> Bytes {
        let mut request = Object::new();
        let list = request.name("Keys");
        list.push(b'[');
        list.extend_from_slice(&keys.join(&b','));
        list.push(b']');
        for (name, value) in &self.options {
            request.raw(name, value);
        }
        let mut body = b"{\"RequestItems\":{".to_vec();
        body.extend_from_slice(&self.name);
        body.push(b':');
        body.extend_from_slice(&request.finish());
        body.push(b'}');
        if let Some(report) = &self.report {
            body.extend_from_slice(b",\"ReturnConsumedCapacity\":");
            body.extend_from_slice(report);
        }
        body.push(b'}');
        Bytes::from(body)
    }

    /// Takes the answer to one of the calls.
    ///
    /// # Errors
    /// The store's, or `InternalServerError` for an answer that cannot be read.
    pub(crate) fn take(&mut self, answer: Result<Bytes, Error>) -> Result<(), Error> {
        let body = answer?;
        self.read(&body).map_err(|Malformed| unreadable(Operation::BatchGetItem))
    }

    /// Reads until all is read.
    ///
    /// # Errors
    /// The store's; `ProvisionedThroughputExceededException` when it goes on leaving keys unread.
    pub(crate) async fn read_all(&mut self, calls: &mut dyn Calls) -> Result<(), Error> {
        loop {
            let round = self.calls()?;
            if round.is_empty() {
                return Ok(());
            }
            calls.round(round.into(), &mut |_, answer| self.take(answer)).await?;
        }
    }

    /// The calls that read what is left, numbered from 0; none when all is read.
    ///
    /// # Errors
    /// `ProvisionedThroughputExceededException` when the store goes on leaving keys unread.
    pub(crate) fn calls(&mut self) -> Result<Vec<PhysicalCall>, Error> {
        self.idle = if self.pending.len() < self.asked { 0 } else { self.idle + 1 };
        if self.idle > PATIENCE {
            return Err(Error::new(
                Code::ProvisionedThroughputExceededException,
                "The store left keys unread, again and again; nothing was returned. Try again",
            ));
        }
        self.asked = self.pending.len();
        let pending = std::mem::take(&mut self.pending);
        let call = |(id, keys): (usize, &[Bytes])| PhysicalCall {
            id,
            retry_throttled: true,
            ..PhysicalCall::only(Operation::BatchGetItem, self.body(keys))
        };
        Ok(pending.chunks(MOST_KEYS).enumerate().map(call).collect())
    }

    fn read(&mut self, body: &Bytes) -> Result<(), Malformed> {
        let [responses, unprocessed, capacity] =
            json::attributes_of(body, ["Responses", "UnprocessedKeys", "ConsumedCapacity"])?;
        let tables = |raw: Option<&[u8]>| {
            raw.filter(|raw| *raw != b"null").map_or(Ok(Vec::new()), |raw| {
                let tables = json::members(raw)?;
                Ok::<_, Malformed>(tables.into_iter().map(|(_, table)| body.slice_ref(table)).collect())
            })
        };
        for items in tables(responses)? {
            for item in json::elements(&items)? {
                let (identity, slot) = keys::stored(&self.table, item)?;
                let parts = self.found.entry(identity).or_default();
                parts.rows.push((slot, items.slice_ref(item)));
            }
        }
        for left in tables(unprocessed)? {
            let keys = json::member(&left, "Keys")?.ok_or(Malformed)?;
            self.pending.extend(json::elements(keys)?.into_iter().map(|key| left.slice_ref(key)));
        }
        if let Some(Json::Array(consumed)) = capacity.and_then(|raw| serde_json::from_slice(raw).ok()) {
            for one in consumed {
                add(self.capacity.get_or_insert(Json::Null), one);
            }
        }
        Ok(())
    }

    /// The rows of one item, as far as they are there.
    pub(crate) fn parts(&self, identity: &Identity) -> Option<&Parts> {
        self.found.get(identity)
    }
}
