//! Reads items, whole or as fragments, by BatchGetItem: one round of calls, or as many as it takes
//! until everything has been read.
//!
//! Items of several tables may mix. Of tables that are not sharded, items are kept as they come.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh, Projection};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{AttributeDefinition, Code, Error, Operation};
use heatsink_layout::{Slot, Table};

use crate::answer::unreadable;
use crate::capacity::{Capacity, add_by_table};
use crate::identity::{self, Identity};
use crate::request::quoted;
use crate::tables::table_name;
use crate::{Calls, PhysicalCall};

/// The most keys of one BatchGetItem (AWS API reference, `BatchGetItem`).
pub(crate) const MOST_KEYS: usize = 100;

/// How often keys are asked for again while not one of them is read. The store refuses a batch of
/// which it can read nothing, so this is hardly ever reached.
const PATIENCE: u32 = 10;

/// What was found of one item.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parts {
    /// What lies in its slots, and in which.
    pub(crate) found: Vec<(Slot, Bytes)>,
}

impl Parts {
    /// The base fragment of a counter: all of it but the numbers of the other fragments.
    pub(crate) fn base(&self) -> Option<&Bytes> {
        self.found.iter().find(|(slot, _)| *slot == Slot::default()).map(|(_, fragment)| fragment)
    }

    /// The other fragments of a counter.
    pub(crate) fn others(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.found.iter().filter(|(slot, _)| *slot != Slot::default()).map(|(_, fragment)| &**fragment)
    }
}

/// What is read of one table, and what has been.
#[derive(Clone, Debug)]
pub(crate) struct FromTable {
    /// The table; `None` if it is not sharded.
    pub(crate) table: Option<Arc<Table>>,
    /// Its name as the client wrote it, as a JSON string.
    pub(crate) name: Vec<u8>,
    /// What goes with the keys: `ConsistentRead`, `ProjectionExpression`, its names.
    options: Vec<(&'static str, Vec<u8>)>,
    /// The raw physical keys that are still to be read.
    pub(crate) pending: Vec<Bytes>,
    found: HashMap<Identity, Parts>,
    /// The items of a table that is not sharded.
    pub(crate) plain: Vec<Bytes>,
}

impl FromTable {
    pub(crate) fn new(
        table: Option<Arc<Table>>,
        name: Vec<u8>,
        options: Vec<(&'static str, Vec<u8>)>,
        keys: Vec<Bytes>,
    ) -> Self {
        FromTable { table, name, options, pending: keys, found: HashMap::new(), plain: Vec::new() }
    }

    /// What was found of one item.
    pub(crate) fn parts(&self, identity: &Identity) -> Option<&Parts> {
        self.found.get(identity)
    }

    /// Takes what was found of an item that lies in one slot at most, and in which slot.
    pub(crate) fn take_found(&mut self, identity: &Identity) -> Option<(Slot, Bytes)> {
        self.found.remove(identity)?.found.pop()
    }

    /// Has this found of an item.
    pub(crate) fn put_found(&mut self, identity: &Identity, found: (Slot, Bytes)) {
        self.found.entry(identity.clone()).or_default().found.push(found);
    }

    /// Takes what was found of the items and fragments under these physical keys.
    ///
    /// # Errors
    /// [`Malformed`] for what is no key of the table.
    pub(super) fn take_under(&mut self, keys: &[Bytes]) -> Result<Vec<(Identity, Slot, Bytes)>, Malformed> {
        let (Some(table), mut taken) = (&self.table, Vec::new()) else { return Ok(Vec::new()) };
        for key in keys {
            let (identity, slot) = identity::stored(table, key)?;
            let found = self.found.get_mut(&identity).map(|parts| &mut parts.found);
            if let Some((found, at)) =
                found.and_then(|found| found.iter().position(|(own, _)| *own == slot).map(|at| (found, at)))
            {
                taken.push((identity, slot, found.swap_remove(at).1));
            }
        }
        Ok(taken)
    }

    /// Reads consistently, whatever the client asked for.
    pub(crate) fn consistently(&mut self) {
        self.options.retain(|(name, _)| *name != "ConsistentRead");
        self.options.push(("ConsistentRead", b"true".to_vec()));
    }

    /// Whether these are items of that table.
    pub(crate) fn is_of(&self, table: &Table) -> bool {
        self.table.as_ref().is_some_and(|own| own.name == table.name)
    }

    /// Whether a store that writes the table's name so means this one.
    fn is(&self, name: &str) -> bool {
        json::string(&self.name).is_ok_and(|own| own == name || table_name(&own) == table_name(name))
    }

    fn take(&mut self, items: &Bytes) -> Result<(), Malformed> {
        for item in json::elements(items)? {
            let kept = items.slice_ref(item);
            match &self.table {
                None => self.plain.push(kept),
                Some(table) => {
                    let (identity, slot) = identity::stored(table, item)?;
                    self.found.entry(identity).or_default().found.push((slot, kept));
                }
            }
        }
        Ok(())
    }
}

/// Items to be read, and those that were.
#[derive(Clone, Debug)]
pub(crate) struct Fetch {
    pub(crate) tables: Vec<FromTable>,
    /// `ReturnConsumedCapacity`, raw.
    report: Option<Vec<u8>>,
    /// How many keys the last round asked for.
    asked: usize,
    /// How many rounds in a row have read nothing.
    idle: u32,
    /// `ConsumedCapacity` of each table, summed.
    pub(crate) capacity: Vec<Capacity>,
}

impl Fetch {
    /// Reads what lies under these raw physical keys of one table.
    pub(crate) fn new(
        table: &Arc<Table>,
        name: Vec<u8>,
        options: Vec<(&'static str, Vec<u8>)>,
        report: Option<Vec<u8>>,
        keys: Vec<Bytes>,
    ) -> Self {
        Fetch::of(vec![FromTable::new(Some(Arc::clone(table)), name, options, keys)], report)
    }

    /// Reads of several tables.
    pub(crate) fn of(tables: Vec<FromTable>, report: Option<Vec<u8>>) -> Self {
        Fetch { tables, report, asked: 0, idle: 0, capacity: Vec::new() }
    }

    /// What was found of one item of the first table.
    pub(crate) fn parts(&self, identity: &Identity) -> Option<&Parts> {
        self.tables.first()?.parts(identity)
    }

    /// Reads until all is read; counters of which fragments are folded meanwhile as they are at one
    /// moment.
    ///
    /// # Errors
    /// Those of [`round`](Self::round); `ServiceUnavailable` where folds come between all the time.
    pub(crate) async fn read_all(&mut self, calls: &mut dyn Calls) -> Result<(), Error> {
        let lost = self.take_folded().map_err(|Malformed| unreadable(Operation::BatchGetItem))?;
        if lost.iter().all(Vec::is_empty) {
            return self.read_pending(calls).await;
        }
        self.read_beside_folds(&lost, calls).await
    }

    /// Reads until nothing is pending.
    pub(super) async fn read_pending(&mut self, calls: &mut dyn Calls) -> Result<(), Error> {
        while self.round(calls).await? {}
        Ok(())
    }

    /// Reads what is pending, once; what the store leaves unread stays pending. False if nothing
    /// was.
    ///
    /// # Errors
    /// The store's, `InternalServerError` for an answer that cannot be read, and
    /// `ProvisionedThroughputExceededException` when the store goes on leaving keys unread.
    pub(crate) async fn round(&mut self, calls: &mut dyn Calls) -> Result<bool, Error> {
        let round = self.calls()?;
        if round.is_empty() {
            return Ok(false);
        }
        let mut take = |_, answer: Result<Bytes, Error>| {
            self.take(&answer?).map_err(|Malformed| unreadable(Operation::BatchGetItem))
        };
        calls.round(round.into(), &mut take).await?;
        Ok(true)
    }

    /// The calls that read what is pending, numbered from 0.
    fn calls(&mut self) -> Result<Vec<PhysicalCall>, Error> {
        let mut pending = Vec::new();
        for (at, part) in self.tables.iter_mut().enumerate() {
            pending.extend(part.pending.drain(..).map(|key| (at, key)));
        }
        self.idle = if pending.len() < self.asked { 0 } else { self.idle + 1 };
        if self.idle > PATIENCE {
            return Err(Error::new(
                Code::ProvisionedThroughputExceededException,
                "The store left keys unread, again and again; nothing was returned. Try again",
            ));
        }
        self.asked = pending.len();
        let call = |(id, keys)| PhysicalCall {
            id,
            retry_throttled: true,
            ..PhysicalCall::only(Operation::BatchGetItem, self.body(keys))
        };
        Ok(pending.chunks(MOST_KEYS).enumerate().map(call).collect())
    }

    /// The body for some keys, each with the number of its table.
    fn body(&self, keys: &[(usize, Bytes)]) -> Bytes {
        let mut body = b"{\"RequestItems\":{".to_vec();
        for (at, part) in self.tables.iter().enumerate() {
            let own: Vec<&[u8]> = keys.iter().filter(|(of, _)| *of == at).map(|(_, key)| &**key).collect();
            if own.is_empty() {
                continue;
            }
            if !body.ends_with(b"{") {
                body.push(b',');
            }
            let mut request = Object::new();
            request.raw("Keys", &list(&own));
            for (name, value) in &part.options {
                request.raw(name, value);
            }
            body.extend_from_slice(&part.name);
            body.push(b':');
            body.extend_from_slice(&request.finish());
        }
        body.push(b'}');
        if let Some(report) = &self.report {
            body.extend_from_slice(b",\"ReturnConsumedCapacity\":");
            body.extend_from_slice(report);
        }
        body.push(b'}');
        Bytes::from(body)
    }

    fn take(&mut self, body: &Bytes) -> Result<(), Malformed> {
        let [responses, unprocessed, capacity] =
            json::attributes_of(body, ["Responses", "UnprocessedKeys", "ConsumedCapacity"])?;
        let by_table = |raw: Option<&[u8]>| {
            json::members(raw.filter(|raw| *raw != b"null").unwrap_or(b"{}")).map(|tables| {
                let own = |(name, raw): (std::borrow::Cow<'_, str>, &[u8])| {
                    (name.into_owned(), body.slice_ref(raw))
                };
                tables.into_iter().map(own).collect::<Vec<_>>()
            })
        };
        for (name, items) in by_table(responses)? {
            self.table(&name)?.take(&items)?;
        }
        for (name, left) in by_table(unprocessed)? {
            let keys = json::elements(json::member(&left, "Keys")?.ok_or(Malformed)?)?;
            self.table(&name)?.pending.extend(keys.into_iter().map(|key| left.slice_ref(key)));
        }
        let consumed: Option<Vec<Capacity>> = capacity.and_then(|raw| serde_json::from_slice(raw).ok());
        consumed.iter().flatten().for_each(|one| add_by_table(&mut self.capacity, one));
        Ok(())
    }

    fn table(&mut self, name: &str) -> Result<&mut FromTable, Malformed> {
        match self.tables.as_mut_slice() {
            [only] => Ok(only),
            tables => {
                // A batch may name one table by its name and by its ARN.
                let exactly = |part: &FromTable| json::string(&part.name).is_ok_and(|own| own == name);
                let at =
                    tables.iter().position(exactly).or_else(|| tables.iter().position(|part| part.is(name)));
                at.and_then(|at| tables.get_mut(at)).ok_or(Malformed)
            }
        }
    }
}

/// The options of a read that shows the primary key alone, as it is now.
pub(crate) fn key_only(table: &Table) -> Vec<(&'static str, Vec<u8>)> {
    key_and(table, &[])
}

/// The options of a read that shows the primary key and these attributes, as they are now.
pub(crate) fn key_and(table: &Table, attributes: &[AttributeDefinition]) -> Vec<(&'static str, Vec<u8>)> {
    let mut fresh = Fresh::avoiding(&Bindings::default());
    let mut projection = Projection::default();
    for name in table.key.names().chain(attributes.iter().map(|attribute| &*attribute.name)) {
        projection.add_root(name);
    }
    let text = quoted(&projection.render(&mut fresh));
    let mut options = vec![("ConsistentRead", b"true".to_vec()), ("ProjectionExpression", text)];
    if let (Some(names), _) = Bindings::default().rewritten(&[], &fresh) {
        options.push(("ExpressionAttributeNames", names));
    }
    options
}

/// A JSON list of raw values.
pub(crate) fn list(values: &[&[u8]]) -> Vec<u8> {
    [b"[", values.join(&b","[..]).as_slice(), b"]"].concat()
}
