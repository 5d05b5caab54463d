//! What a request accesses: the partition key of each item or page, what it costs, what became of it.
//!
//! Keys are the logical ones, as the client sent them. What cannot be read is left out: the answer is the client's in any case.

use std::borrow::Cow;

use heatsink_dynamo::capacity::Consistency;
use heatsink_dynamo::number::ascending_bits;
use heatsink_dynamo::{Code, Error, KeyType, Number, Operation, Origin, json};
use heatsink_env::MonotonicInstant;
use heatsink_heat::detect::{Outcome, PartId};
use heatsink_route::table_name;
use heatsink_trace as trace;

use super::condition;
use super::statements;
use super::tables::{TableKeys, Tables};
use super::units::consumed;

/// The type of a key and its text: of a number the canonical one, of a binary value base64.
pub(super) type KeyText<'a> = (KeyType, Cow<'a, str>);

/// One access.
#[derive(Clone, Debug)]
pub(super) struct Found<'a> {
    pub(super) part: PartId,
    /// `None` where it has none, or is not known.
    pub(super) key: Option<KeyText<'a>>,
    /// Thousandths of capacity units.
    pub(super) units: u64,
    pub(super) outcome: Outcome,
    /// The sort key of a write, as an attribute value.
    pub(super) sort: Option<&'a [u8]>,
    /// What identifies a read among those of its key.
    pub(super) page: Option<&'a [u8]>,
    /// The size of the item, in bytes; 0 where it is not known.
    pub(super) item: usize,
    /// What it does.
    pub(super) operation: trace::Operation,
    /// Whether it is a strongly consistent read.
    pub(super) strong: bool,
    /// The items that a page is made of, and their bytes; 0 where that is not known, or not recorded.
    pub(super) items: (u32, usize),
}

/// What became of a request.
#[derive(Clone, Copy)]
pub(super) enum Fate<'a> {
    /// It was carried out. With the answer, empty if its own condition refused it.
    Done(&'a [u8]),
    /// All of it was throttled.
    Throttled(Outcome),
    /// A transaction was cancelled: some of its items may have been throttled.
    Cancelled(&'a Error),
}

impl<'a> Fate<'a> {
    /// `None` for a request that took no capacity: it was wrong, or its answer was lost.
    fn of(answer: Result<&'a [u8], &'a Error>) -> Option<Self> {
        let error = match answer {
            Ok(answer) => return Some(Fate::Done(answer)),
            Err(error) => error,
        };
        match error.code {
            // Refused here, and never sent.
            _ if error.origin != Origin::DynamoDb => None,
            Code::ProvisionedThroughputExceededException
            | Code::ThrottlingException
            | Code::RequestLimitExceeded => Some(Fate::Throttled(throttle(error))),
            Code::ConditionalCheckFailedException => Some(Fate::Done(b"")),
            Code::TransactionCanceledException => Some(Fate::Cancelled(error)),
            _ => None,
        }
    }

    fn answer(self) -> &'a [u8] {
        if let Fate::Done(answer) = self { answer } else { b"" }
    }

    /// Of the item at that place of the request.
    pub(super) fn outcome(self, at: usize) -> Outcome {
        match self {
            Fate::Done(_) => Outcome::Done,
            Fate::Throttled(outcome) => outcome,
            Fate::Cancelled(error) => {
                let reason = error.members.get("CancellationReasons").and_then(|all| all.get(at));
                let code = reason.and_then(|reason| reason.get("Code")?.as_str()).unwrap_or_default();
                match code {
                    "ThrottlingError" | "ProvisionedThroughputExceeded" => Outcome::Throttled,
                    _ => Outcome::Done,
                }
            }
        }
    }
}

/// Why a request was throttled, where DynamoDB's `ThrottlingReasons` say so (`TableWriteKeyRangeThroughputExceeded`).
fn throttle(error: &Error) -> Outcome {
    let reasons = error.members.get("ThrottlingReasons").and_then(serde_json::Value::as_array);
    let by_partition = reasons.into_iter().flatten().any(|reason| {
        let reason = reason.get("reason").and_then(serde_json::Value::as_str).unwrap_or_default();
        reason.contains("KeyRange")
    });
    if by_partition { Outcome::ThrottledByPartition } else { Outcome::Throttled }
}

/// The accesses of a request that was answered so. `recorded`: how large pages are is wanted too.
pub(super) fn find<'a>(
    operation: Operation,
    body: &'a [u8],
    answer: Result<&'a [u8], &'a Error>,
    tables: &Tables,
    now: MonotonicInstant,
    recorded: bool,
) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    if let Some(fate) = Fate::of(answer) {
        let mut finder = Finder { fate, tables, now, recorded, found: &mut found };
        // What is not well-formed was refused, and is not found here either.
        let _ = finder.find(operation, body);
    }
    found
}

pub(super) struct Finder<'f, 'a> {
    pub(super) fate: Fate<'a>,
    tables: &'f Tables,
    now: MonotonicInstant,
    recorded: bool,
    pub(super) found: &'f mut Vec<Found<'a>>,
}

/// A write of one item.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Write {
    /// With the whole item.
    Put,
    /// By its key.
    Other,
}

impl<'a> Finder<'_, 'a> {
    fn find(&mut self, operation: Operation, body: &'a [u8]) -> Option<()> {
        match operation {
            Operation::GetItem => {
                let names = ["TableName", "Key", "ConsistentRead", "ReturnConsumedCapacity"];
                let [table, key, consistent, capacity] = json::attributes_of(body, names).ok()?;
                let table = self.table(table?)?;
                let answer = self.fate.answer();
                let consistency = consistency(consistent);
                let (item, units) = table.ratio.read_item(answer, consistency);
                let units = consumed(capacity, answer).unwrap_or(units);
                self.read(&table, key?, 0, (item, units), consistency)
            }
            Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => {
                let names = ["TableName", "Item", "Key", "ReturnConsumedCapacity"];
                let [table, item, key, capacity] = json::attributes_of(body, names).ok()?;
                let table = self.table(table?)?;
                let units = consumed(capacity, self.fate.answer());
                match item {
                    Some(item) => self.write(&table, item, Write::Put, 0, 1, units),
                    None => self.write(&table, key?, Write::Other, 0, 1, units),
                }
            }
            Operation::Query | Operation::Scan => self.pages(operation, body),
            Operation::BatchGetItem => self.batch_get(body),
            Operation::BatchWriteItem => self.batch_write(body),
            Operation::TransactGetItems => {
                let elements = json::elements(json::member(body, "TransactItems").ok()??).ok()?;
                let length = self.fate.answer().len() / elements.len().max(1);
                for (at, element) in elements.into_iter().enumerate() {
                    let get = json::member(element, "Get").ok()??;
                    let [table, key] = json::attributes_of(get, ["TableName", "Key"]).ok()?;
                    let Some(table) = self.table(table?) else { continue };
                    let read = table.ratio.read(length, Consistency::Transactional);
                    self.read(&table, key?, at, read, Consistency::Transactional);
                }
                Some(())
            }
            Operation::TransactWriteItems => {
                let elements = json::elements(json::member(body, "TransactItems").ok()??).ok()?;
                for (at, element) in elements.into_iter().enumerate() {
                    let all = ["Put", "Update", "Delete", "ConditionCheck"];
                    let action = json::attributes_of(element, all).ok()?.into_iter().flatten().next()?;
                    let [table, item, key] =
                        json::attributes_of(action, ["TableName", "Item", "Key"]).ok()?;
                    let Some(table) = self.table(table?) else { continue };
                    match item {
                        Some(item) => self.write(&table, item, Write::Put, at, 2, None),
                        None => self.write(&table, key?, Write::Other, at, 2, None),
                    };
                }
                Some(())
            }
            Operation::ExecuteStatement
            | Operation::BatchExecuteStatement
            | Operation::ExecuteTransaction => statements::find(self, operation, body),
            _ => None,
        }
    }

    fn table(&self, name: &[u8]) -> Option<std::sync::Arc<TableKeys>> {
        self.named(&json::string(name).ok()?)
    }

    pub(super) fn named(&self, name: &str) -> Option<std::sync::Arc<TableKeys>> {
        self.tables.get(table_name(name), self.now)
    }

    /// A read of one item.
    fn read(
        &mut self,
        table: &TableKeys,
        key: &'a [u8],
        at: usize,
        (item, units): (usize, u64),
        consistency: Consistency,
    ) -> Option<()> {
        let [partition] = json::attributes_of(key, [table.partition.as_str()]).ok()?;
        let outcome = self.fate.outcome(at);
        let (part, key_text) = (table.parts.read, key_text(doubted(table, partition)?));
        self.found.push(Found {
            part,
            key: key_text,
            units,
            outcome,
            sort: None,
            page: Some(key),
            item,
            operation: trace::Operation::Get,
            strong: consistency != Consistency::Eventual,
            items: (1, 0),
        });
        Some(())
    }

    /// A write of one item, in the table and in the indexes that it is known to be in. `item`: all of it, or its key.
    fn write(
        &mut self,
        table: &TableKeys,
        item: &'a [u8],
        write: Write,
        at: usize,
        times: u64,
        consumed: Option<u64>,
    ) -> Option<()> {
        let sort = table.sort.as_deref().unwrap_or_default();
        let [partition, sort] = json::attributes_of(item, [table.partition.as_str(), sort]).ok()?;
        let (size, units) = if write == Write::Put { table.ratio.write(item) } else { (0, 1_000) };
        let outcome = self.fate.outcome(at);
        let units = units * times;
        let key = key_text(doubted(table, partition)?);
        let found = Found {
            part: table.parts.write,
            key,
            units: consumed.unwrap_or(units),
            outcome,
            sort,
            page: None,
            item: size,
            operation: if write == Write::Put { trace::Operation::Put } else { trace::Operation::Update },
            strong: false,
            items: (1, 0),
        };
        self.found.push(found);
        if write == Write::Put && table.indexes.iter().any(|index| !index.local) {
            let members = json::members(item).ok()?;
            let value =
                |name: &str| members.iter().find(|(member, _)| member == name).map(|(_, value)| *value);
            for index in table.indexes.iter().filter(|index| !index.local) {
                if index.attributes.iter().all(|name| value(name).is_some()) {
                    let key = index.partition.as_deref().and_then(value).and_then(key_text);
                    let part = index.parts.write;
                    self.found.push(Found {
                        part,
                        key,
                        units,
                        outcome,
                        sort: None,
                        page: None,
                        item: size,
                        operation: trace::Operation::Put,
                        strong: false,
                        items: (1, 0),
                    });
                }
            }
        }
        Some(())
    }

    fn pages(&mut self, operation: Operation, body: &'a [u8]) -> Option<()> {
        let names = [
            "TableName",
            "IndexName",
            "ConsistentRead",
            "ReturnConsumedCapacity",
            "FilterExpression",
            "KeyConditionExpression",
            "ExpressionAttributeNames",
            "ExpressionAttributeValues",
            "KeyConditions",
        ];
        let [table, index, consistent, capacity, filter, condition, names, values, legacy] =
            json::attributes_of(body, names).ok()?;
        let table = self.table(table?)?;
        let index = match index {
            Some(index) => Some(table.index(&json::string(index).ok()?)?),
            None => None,
        };
        let attribute = index.map_or(Some(&table.partition), |index| index.partition.as_ref());
        let key = match (operation, attribute) {
            (Operation::Query, Some(attribute)) => match (condition, legacy) {
                (Some(text), _) => condition::partition(&json::string(text).ok()?, names, values, attribute),
                (None, Some(legacy)) => {
                    let test = json::member(legacy, attribute).ok().flatten()?;
                    let list = json::member(test, "AttributeValueList").ok().flatten()?;
                    json::elements(list).ok()?.into_iter().next()
                }
                (None, None) => None,
            },
            _ => None,
        };
        let answer = self.fate.answer();
        let consistency = consistency(consistent);
        let (bytes, units) = table.ratio.read(evaluated(filter, answer), consistency);
        let part = index.map_or(table.parts, |index| index.parts).read;
        self.found.push(Found {
            part,
            key: key.and_then(key_text),
            units: consumed(capacity, answer).unwrap_or(units),
            outcome: self.fate.outcome(0),
            sort: None,
            page: Some(body),
            item: 0,
            operation: match operation {
                Operation::Query => trace::Operation::Query,
                _ => trace::Operation::Scan,
            },
            strong: consistency != Consistency::Eventual,
            items: if self.recorded { (scanned(answer), bytes) } else { (0, 0) },
        });
        Some(())
    }

    fn batch_get(&mut self, body: &'a [u8]) -> Option<()> {
        let tables = json::members(json::member(body, "RequestItems").ok()??).ok()?;
        let answer = self.fate.answer();
        let refused = unprocessed(answer, "UnprocessedKeys");
        let mut wanted = Vec::with_capacity(tables.len());
        let mut count = 0;
        for (name, request) in &tables {
            let [keys, consistent] = json::attributes_of(request, ["Keys", "ConsistentRead"]).ok()?;
            let keys = json::elements(keys?).ok()?;
            count += keys.len();
            wanted.push((name, keys, consistency(consistent)));
        }
        let length = answer.len() / count.max(1);
        for (name, keys, consistency) in wanted {
            let Some(table) = self.named(name) else { continue };
            let read = table.ratio.read(length, consistency);
            let refused = refused_of(refused, name, "Keys");
            for key in keys {
                let first = self.found.len();
                self.read(&table, key, 0, read, consistency);
                self.refuse(first, &refused, key);
            }
        }
        Some(())
    }

    fn batch_write(&mut self, body: &'a [u8]) -> Option<()> {
        let refused = unprocessed(self.fate.answer(), "UnprocessedItems");
        for (name, requests) in json::members(json::member(body, "RequestItems").ok()??).ok()? {
            let Some(table) = self.named(&name) else { continue };
            let refused: Vec<&[u8]> =
                refused_of(refused, &name, "").into_iter().filter_map(written).collect();
            for request in json::elements(requests).ok()? {
                let put = json::member(request, "PutRequest").ok().flatten().is_some();
                let item = written(request)?;
                let first = self.found.len();
                self.write(&table, item, if put { Write::Put } else { Write::Other }, 0, 1, None);
                self.refuse(first, &refused, item);
            }
        }
        Some(())
    }

    /// The accesses from `first` on were left unprocessed, if their key or item is among these. A store may spell it otherwise than the client.
    fn refuse(&mut self, first: usize, refused: &[&[u8]], sent: &[u8]) {
        let same = |one: &&[u8]| {
            let value = |raw: &[u8]| serde_json::from_slice::<serde_json::Value>(raw).ok();
            *one == sent || value(one) == value(sent)
        };
        if refused.iter().any(same) {
            self.found.iter_mut().skip(first).for_each(|one| one.outcome = Outcome::Throttled);
        }
    }
}

/// The attribute of a key that every request of the table has. Without it the table is another one than we know.
fn doubted<'a>(table: &TableKeys, partition: Option<&'a [u8]>) -> Option<&'a [u8]> {
    if partition.is_none() {
        table.doubt();
    }
    partition
}

fn consistency(consistent: Option<&[u8]>) -> Consistency {
    Consistency::of(consistent.is_some_and(|flag| matches!(flag, b"true" | b"\"true\"")))
}

/// The length of the items that a page was made of: with a filter, more than it shows.
fn evaluated(filter: Option<&[u8]>, answer: &[u8]) -> usize {
    if filter.is_none() {
        return answer.len();
    }
    let whole = |raw: Option<&[u8]>| raw.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<usize>().ok());
    let [shown, read] = json::attributes_of(answer, ["Count", "ScannedCount"]).unwrap_or_default();
    match (whole(shown), whole(read)) {
        (Some(shown), Some(read)) if shown > 0 => answer.len() * read.max(shown) / shown,
        _ => answer.len(),
    }
}

/// Items that a page is made of; 0 where the answer does not say.
fn scanned(answer: &[u8]) -> u32 {
    let count = json::member(answer, "ScannedCount").ok().flatten();
    count.and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).unwrap_or_default()
}

/// What a batch left unprocessed, by table. Most answers leave nothing, and need not be read to say so.
fn unprocessed<'a>(answer: &'a [u8], member: &str) -> Option<&'a [u8]> {
    let none = format!("\"{member}\":{{}}");
    if answer.is_empty() || memchr::memmem::rfind(answer, none.as_bytes()).is_some() {
        return None;
    }
    json::member(answer, member).ok().flatten()
}

/// Of one table; `list`: under which member its list is, if not at once.
fn refused_of<'a>(unprocessed: Option<&'a [u8]>, table: &str, list: &str) -> Vec<&'a [u8]> {
    let of_table = unprocessed.and_then(|tables| json::member(tables, table).ok().flatten());
    let list = match list {
        "" => of_table,
        list => of_table.and_then(|of_table| json::member(of_table, list).ok().flatten()),
    };
    list.and_then(|list| json::elements(list).ok()).unwrap_or_default()
}

/// The item or the key of a member of BatchWriteItem.
fn written(request: &[u8]) -> Option<&[u8]> {
    let [put, delete] = json::attributes_of(request, ["PutRequest", "DeleteRequest"]).ok()?;
    match (put, delete) {
        (Some(put), _) => json::member(put, "Item").ok()?,
        (None, Some(delete)) => json::member(delete, "Key").ok()?,
        (None, None) => None,
    }
}

/// A key by its attribute value. Equal keys have equal texts, however they are written.
pub(super) fn key_text(raw: &[u8]) -> Option<KeyText<'_>> {
    let [text, number, binary] = json::attributes_of(raw, ["S", "N", "B"]).ok()?;
    if let Some(text) = text {
        return Some((KeyType::S, json::string(text).ok()?));
    }
    if let Some(number) = number {
        let number = json::string(number).ok()?;
        let plain = number.len() <= 38
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && (number.len() == 1 || !number.starts_with('0'));
        let canonical = if plain { number } else { Number::parse(&number).ok()?.to_string().into() };
        return Some((KeyType::N, canonical));
    }
    Some((KeyType::B, json::string(binary?).ok()?))
}

/// Bytes that are ordered as sort keys are; of numbers about 16 digits are compared.
pub(super) fn ordered(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    match key_text(raw)? {
        (KeyType::S, Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_bytes())),
        (KeyType::S, Cow::Owned(text)) => Some(Cow::Owned(text.into_bytes())),
        (KeyType::N, text) => Some(Cow::Owned(ascending_bits(text.parse().ok()?).to_be_bytes().to_vec())),
        // Base64 is not ordered as what it stands for.
        (KeyType::B, _) => None,
    }
}
