//! What clients ask of a key that moves: reads and writes of every kind, alone, in batches and in
//! transactions, and Queries whose pages are apart.
//!
//! Every answer is written down as calls on single items, those of a transaction too. That a
//! transaction is all or nothing is seen of two items that are only written together: a
//! TransactGetItems shows both of one write, or both gone.

use std::time::Duration;

use fastrand::Rng;
use futures::future::join_all;
use heatsink_dynamo::{Code, Error, Operation as Wire, Outcome};
use heatsink_history::{Answer, Operation, Value};
use serde_json::{Value as Json, json};

use crate::TABLE;
use crate::client::{LABELS, PATIENCE, body, key, partition_of};
use crate::clock::up_to;
use crate::reshard::Stage;
use crate::walk::Walk;
use crate::world::{World, name};

/// The operation of a write in a transaction, with its action.
type Action = (String, Operation, Json);
/// So many kinds of them there are.
const ACTIONS: u32 = 5;
/// So often a client asks for a page of a Scan again.
const SCAN_TRIES: usize = 8;
/// How long one segment of a Scan may have ended before another's first page comes.
const TOGETHER: Duration = Duration::from_secs(1);

impl Stage {
    /// One call of a client.
    pub async fn act(&self, rng: &mut Rng) {
        let gateway = rng.usize(..self.world.gateways());
        let singles = self.singles();
        let item = singles[rng.usize(..singles.len())].clone();
        let patience = if rng.u32(0..8) == 0 { up_to(rng, PATIENCE / 12) } else { PATIENCE };
        let operation = match rng.u32(0..36) {
            0..4 => Operation::Put(self.value()),
            4..6 => Operation::Create(self.value()),
            6..8 => Operation::Update(self.value()),
            8 => Operation::Delete,
            9..12 => Operation::Add(rng.i64(1..10)),
            12..14 => Operation::Get,
            14 => return self.returning(gateway, &item, Operation::Put(self.value())).await,
            15 => return self.returning(gateway, &item, Operation::Delete).await,
            16..18 => return self.batch(rng, gateway).await,
            18..21 => return self.transact_singles(rng, gateway).await,
            21..23 => return self.transact_pair(rng, gateway).await,
            23 => return self.get_many(gateway, false).await,
            24..27 => return self.get_many(gateway, true).await,
            27..30 => return self.scan(rng, gateway).await,
            30 => {
                let (label, limit) = (rng.u8(1..3), rng.usize(1..4));
                let done = self.world.query(gateway, &self.items, Some(label), limit, false).await;
                return self.note(gateway, done);
            }
            _ => return self.query(rng, gateway).await,
        };
        self.world.call(gateway, &item, operation, patience).await;
    }

    fn note(&self, gateway: usize, done: Result<(), Error>) {
        if let Err(error) = done {
            self.world.log.line(format!("  not by {}: {error}", name(gateway)));
        }
    }

    /// Writes down what became of a write.
    fn wrote(&self, item: &str, invoked: u64, operation: Operation, answer: Result<Answer, &Error>) {
        match answer {
            Ok(answer) => self.world.book.call(item, invoked, operation, Some(answer)),
            Err(error) if error.outcome == Outcome::Unknown => {
                self.world.book.call(item, invoked, operation, None);
            }
            Err(error) => self.world.log.line(format!("  {item}: {operation}: not done: {error}")),
        }
    }

    /// A put or a delete that shows what was there: a write, and a read at the same moment.
    async fn returning(&self, gateway: usize, item: &str, operation: Operation) {
        let (wire, mut request) = match operation {
            Operation::Put(value) => (Wire::PutItem, json!({ "Item": body(item, value) })),
            _ => (Wire::DeleteItem, json!({ "Key": key(item) })),
        };
        request["TableName"] = json!(TABLE);
        request["ReturnValues"] = json!("ALL_OLD");
        let invoked = self.world.book.moment();
        let answer = self.world.ask(gateway, wire, &request, PATIENCE).await;
        if let Ok(answer) = &answer {
            let old = answer.get("Attributes").and_then(|row| self.world.row(row)).map(|(_, value)| value);
            self.world.book.call(item, invoked, Operation::Get, Some(Answer::Saw(old)));
        }
        self.wrote(item, invoked, operation, answer.as_ref().map(|_| Answer::Done));
    }

    /// Puts and deletes in one batch.
    async fn batch(&self, rng: &mut Rng, gateway: usize) {
        let some = rng.u32(1..1 << self.singles().len());
        let some = self.singles().iter().enumerate().filter(|(at, _)| some >> at & 1 == 1);
        let writes = some.map(|(_, item)| match rng.u32(0..4) {
            0 => (item.clone(), Operation::Delete, json!({ "DeleteRequest": { "Key": key(item) } })),
            _ => {
                let value = self.value();
                (item.clone(), Operation::Put(value), json!({ "PutRequest": { "Item": body(item, value) } }))
            }
        });
        let writes: Vec<Action> = writes.collect();
        let requests: Vec<&Json> = writes.iter().map(|(_, _, request)| request).collect();
        let request = json!({ "RequestItems": { TABLE: requests } });
        let invoked = self.world.book.moment();
        let answer = self.world.ask(gateway, Wire::BatchWriteItem, &request, PATIENCE).await;
        for (item, operation, request) in writes {
            let left = |answer: &Json| {
                let left = answer["UnprocessedItems"][TABLE].as_array();
                left.is_some_and(|left| left.contains(&request))
            };
            match &answer {
                Ok(answer) if left(answer) => {}
                answer => self.wrote(&item, invoked, operation, answer.as_ref().map(|_| Answer::Done)),
            }
        }
    }

    /// A transaction over one or two items.
    async fn transact_singles(&self, rng: &mut Rng, gateway: usize) {
        let mut items = self.singles().to_vec();
        rng.shuffle(&mut items);
        items.truncate(rng.usize(1..=2));
        let actions = items.iter().map(|item| action(rng.u32(..ACTIONS), item, self.value()));
        let actions = actions.collect();
        self.transact(rng, gateway, actions).await;
    }

    /// A transaction that does the same to both items of the pair.
    async fn transact_pair(&self, rng: &mut Rng, gateway: usize) {
        // The store deletes what expires one by one.
        let (kind, value) = (rng.u32(..ACTIONS), Value { label: u8::from(rng.bool()), ..self.value() });
        let actions = self.pair().iter().map(|item| action(kind, item, value)).collect();
        self.transact(rng, gateway, actions).await;
    }

    /// A transaction; with a token it is sent again, through any gateway, while its outcome is
    /// unknown.
    async fn transact(&self, rng: &mut Rng, gateway: usize, actions: Vec<Action>) {
        let token = rng.bool();
        let wanted: Vec<&Json> = actions.iter().map(|(_, _, action)| action).collect();
        let mut request = json!({ "TransactItems": wanted });
        let world = &self.world;
        let invoked = world.book.moment();
        if token {
            request["ClientRequestToken"] = json!(format!("token-{invoked}"));
        }
        let mut answer = world.ask(gateway, Wire::TransactWriteItems, &request, PATIENCE).await;
        let unknown = |answer: &Result<Json, Error>| {
            answer.as_ref().is_err_and(|error| error.outcome == Outcome::Unknown)
        };
        if unknown(&answer) && token {
            for _ in 0..3 {
                self.pause(rng).await;
                let gateway = rng.usize(..world.gateways());
                let again = world.ask(gateway, Wire::TransactWriteItems, &request, PATIENCE).await;
                // What refuses the second says nothing of the first.
                if again.is_ok() {
                    answer = again;
                    break;
                }
            }
        }
        for (at, (item, operation, _)) in actions.iter().enumerate() {
            match &answer {
                Err(error) if error.code == Code::TransactionCanceledException => {
                    let why =
                        &error.members.get("CancellationReasons").cloned().unwrap_or_default()[at]["Code"];
                    if why == "ConditionalCheckFailed" {
                        world.book.call(item, invoked, *operation, Some(Answer::Refused));
                    }
                    world.log.line(format!("  {item}: {operation}: cancelled: {why}"));
                }
                answer => self.wrote(item, invoked, *operation, answer.as_ref().map(|_| Answer::Done)),
            }
        }
    }

    /// All items in one batch, or in one transaction.
    async fn get_many(&self, gateway: usize, transact: bool) {
        let world = &self.world;
        let invoked = world.book.moment();
        let keys: Vec<Json> = self.items.iter().map(|item| key(item)).collect();
        let (wire, request) = if transact {
            let gets = keys.iter().map(|key| json!({ "Get": { "TableName": TABLE, "Key": key } }));
            (Wire::TransactGetItems, json!({ "TransactItems": gets.collect::<Vec<_>>() }))
        } else {
            let of_table = json!({ "Keys": keys, "ConsistentRead": true });
            (Wire::BatchGetItem, json!({ "RequestItems": { TABLE: of_table } }))
        };
        let answer = match world.ask(gateway, wire, &request, PATIENCE).await {
            Ok(answer) => answer,
            Err(error) => return self.note(gateway, Err(error)),
        };
        let mut pair = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            let row = if transact {
                answer["Responses"][at].get("Item").cloned()
            } else {
                let unread = answer["UnprocessedKeys"][TABLE]["Keys"].as_array();
                if unread.is_some_and(|unread| unread.contains(&key(item))) {
                    continue;
                }
                let rows = answer["Responses"][TABLE].as_array().into_iter().flatten();
                let mut rows = rows.filter(|row| row["sk"]["S"] == **item);
                let row = rows.next().cloned();
                if rows.next().is_some() {
                    world.book.fault(format!("one {} shows {item} twice", wire.name()));
                }
                row
            };
            let seen = row.and_then(|row| world.row(&row)).map(|(_, value)| value);
            world.book.call(item, invoked, Operation::Get, Some(Answer::Saw(seen)));
            pair.extend(self.pair().contains(item).then_some(seen));
        }
        if transact && pair.iter().any(|seen| *seen != pair[0]) {
            world.book.fault(format!("one TransactGetItems shows a part of a transaction: {pair:?}"));
        }
    }

    /// A Scan, or two segments of one that begin together, with pauses between the pages. Any
    /// gateway may answer the next page.
    async fn scan(&self, rng: &mut Rng, gateway: usize) {
        let (world, limit) = (&self.world, rng.usize(1..4));
        let segments = rng.usize(1..=2);
        let segment = |segment| (segments > 1).then_some((segment, segments));
        let mut walks: Vec<Walk> = (0..segments).map(|at| Walk::scan(world, limit, segment(at))).collect();
        let first = walks.iter_mut().map(|walk| async {
            let page = walk.page(world, gateway).await;
            (page, world.clock.now())
        });
        let (first, at): (Vec<_>, Vec<_>) = join_all(first).await.into_iter().unzip();
        // One of the requests may have waited. Where the other segment had ended by then, they did
        // not begin together (docs/explain/reshard.md, "Scans").
        let ended =
            first.iter().zip(&at).filter(|(page, _)| matches!(page, Ok(false))).map(|(_, at)| *at).min();
        let last = at.iter().max();
        let together = ended.zip(last).is_none_or(|(ended, last)| last.since(ended) <= TOGETHER);
        for (walk, first) in walks.iter_mut().zip(first) {
            let mut more = match first {
                Ok(more) => more,
                Err(error) => return self.note(gateway, Err(error)),
            };
            let mut tries = 0;
            while more {
                self.pause(rng).await;
                let gateway = rng.usize(..world.gateways());
                match walk.page(world, gateway).await {
                    Ok(next) => more = next,
                    // It may have yet to learn what another one knew.
                    Err(error) if error.retryable() && tries < SCAN_TRIES => tries += 1,
                    Err(error) => return self.note(gateway, Err(error)),
                }
            }
        }
        if together {
            Walk::missing(&walks, world, &self.items);
        }
    }

    /// A Query of the key, page by page, with pauses between the pages; it may end early.
    async fn query(&self, rng: &mut Rng, gateway: usize) {
        let (backwards, limit) = (rng.bool(), rng.usize(1..4));
        let mut pages = Pages::new(self.keys()[rng.usize(..self.keys().len())], backwards, limit);
        loop {
            let gateway = if rng.u32(0..3) == 0 { rng.usize(..self.world.gateways()) } else { gateway };
            match self.page(gateway, &mut pages).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.note(gateway, Err(error)),
            }
            if rng.bool() {
                self.pause(rng).await;
            }
        }
    }

    /// A Query of each whole key.
    pub async fn query_all(&self, gateway: usize, backwards: bool) -> Result<(), Error> {
        for key in self.keys() {
            let mut pages = Pages::new(key, backwards, 3);
            while self.page(gateway, &mut pages).await? {}
        }
        Ok(())
    }

    /// The next page, held against what it must show: the items behind the page before, up to its
    /// own end, in order. Whether there is another.
    async fn page(&self, gateway: usize, pages: &mut Pages) -> Result<bool, Error> {
        let book = &self.world.book;
        let invoked = book.moment();
        let mut page = self.world.ask(gateway, Wire::Query, &pages.request, PATIENCE).await?;
        let rows = page["Items"].as_array().into_iter().flatten();
        let rows: Vec<_> = rows.filter_map(|row| self.world.row(row)).collect();
        let start = page["LastEvaluatedKey"].take();
        let end = start["sk"]["S"].as_str().map(str::to_owned);
        let within = |item: &str| {
            partition_of(item) == pages.key
                && pages.after.as_deref().is_none_or(|after| pages.is_behind(item, after))
                && end.as_deref().is_none_or(|end| !pages.is_behind(item, end))
        };
        let mut before: Option<&str> = None;
        for (item, _) in &rows {
            if !within(item) || before.is_some_and(|before| !pages.is_behind(item, before)) {
                book.fault(format!(
                    "a page of a Query shows {item} out of order, or twice: {rows:?} up to {end:?}"
                ));
            }
            before = Some(item);
        }
        for item in self.items.iter().filter(|item| within(item)) {
            let row = rows.iter().find(|(found, _)| found == item);
            let seen = Answer::Saw(row.map(|(_, value)| *value));
            book.call(item, invoked, Operation::Get, Some(seen));
        }
        pages.after = end;
        pages.request["ExclusiveStartKey"] = start.clone();
        Ok(!start.is_null())
    }
}

/// One of so many kinds of action on an item, for a transaction.
fn action(kind: u32, item: &str, value: Value) -> Action {
    let put = |condition: Option<&str>| {
        let mut put = json!({ "TableName": TABLE, "Item": body(item, value) });
        if let Some(condition) = condition {
            put["ConditionExpression"] = json!(condition);
        }
        json!({ "Put": put })
    };
    let (operation, action) = match kind {
        0 => (Operation::Put(value), put(None)),
        1 => (Operation::Create(value), put(Some("attribute_not_exists(pk)"))),
        2 => (
            Operation::Update(value),
            json!({ "Update": crate::client::request(item, Operation::Update(value)).1 }),
        ),
        3 => (Operation::Update(value), put(Some("attribute_exists(pk)"))),
        _ => (Operation::Delete, json!({ "Delete": { "TableName": TABLE, "Key": key(item) } })),
    };
    (item.to_owned(), operation, action)
}

/// A Query on its way.
struct Pages {
    key: &'static str,
    request: Json,
    backwards: bool,
    /// Where the last page ended.
    after: Option<String>,
}

impl Pages {
    fn new(key: &'static str, backwards: bool, limit: usize) -> Pages {
        let request = json!({
            "TableName": TABLE, "KeyConditionExpression": "pk = :k", "Limit": limit, "ConsistentRead": true,
            "ScanIndexForward": !backwards, "ExpressionAttributeValues": { ":k": { "S": key } },
        });
        Pages { key, request, backwards, after: None }
    }

    /// Whether an item comes after a place.
    fn is_behind(&self, item: &str, place: &str) -> bool {
        if self.backwards { item < place } else { item > place }
    }
}

impl World {
    /// Every row of the table as it lies in the store: its physical key, its sort key and what it
    /// holds.
    pub async fn rows_by_key(&self) -> Vec<(String, String, heatsink_history::State)> {
        let request = json!({ "TableName": TABLE, "ConsistentRead": true });
        let page = self.past(Wire::Scan, &request).await.expect("the table is there");
        let rows = page["Items"].as_array().into_iter().flatten();
        let rows = rows.map(|row| {
            self.log.line(format!("row {row}"));
            let text = |name: &str| row[name]["S"].as_str().unwrap_or_default().to_owned();
            let label =
                LABELS.iter().position(|label| row["status"]["S"] == *label).unwrap_or_default() as u8;
            let value = crate::client::number(row).map(|number| Value { number, label });
            (text("pk"), text("sk"), value)
        });
        rows.collect()
    }
}
