//! A Query or a Scan, page by page: each row is a read of its item at the page's moments, and what
//! no page has shown was not there at some moment of the walk. Who walks decides which gateway
//! answers which page.

use std::time::Duration;

use heatsink_dynamo::{Error, Operation as Wire};
use heatsink_env::MonotonicInstant;
use heatsink_history::{Answer, Operation};
use serde_json::{Value as Json, json};

use crate::client::{LABELS, PATIENCE, partition_of};
use crate::world::World;
use crate::{INDEX, KEY, TABLE};

/// How long after a change of layouts every gateway knows it, or has stopped.
const KNOWN: Duration = Duration::from_secs(20);
/// More pages than any walk has.
const MOST_PAGES: usize = 1_000;

pub struct Walk {
    wire: Wire,
    /// For the next page.
    request: Json,
    /// What each row is of its item.
    operation: Operation,
    begun: u64,
    begun_at: MonotonicInstant,
    seen: Vec<String>,
    pages: usize,
    /// What lies where nobody looks for it is not seen by reads of single items, which are held
    /// against each other.
    beyond: bool,
}

impl Walk {
    /// A Query of the key, or of the index by a label.
    pub fn query(world: &World, label: Option<u8>, limit: usize) -> Walk {
        let mut request = json!({
            "TableName": TABLE, "KeyConditionExpression": "#k = :k", "Limit": limit, "ConsistentRead": true,
            "ExpressionAttributeNames": { "#k": "pk" }, "ExpressionAttributeValues": { ":k": { "S": KEY } },
        });
        if let Some(label) = label {
            request["IndexName"] = json!(INDEX);
            request["ConsistentRead"] = json!(false);
            request["ExpressionAttributeNames"]["#k"] = json!("status");
            request["ExpressionAttributeValues"][":k"]["S"] = json!(LABELS[usize::from(label)]);
        }
        Walk::begin(world, Wire::Query, request, label.map_or(Operation::Get, Operation::Find))
    }

    /// A Scan of the table, or that segment of so many.
    pub fn scan(world: &World, limit: usize, segment: Option<(usize, usize)>) -> Walk {
        let mut request = json!({ "TableName": TABLE, "Limit": limit, "ConsistentRead": true });
        if let Some((segment, segments)) = segment {
            request["Segment"] = json!(segment);
            request["TotalSegments"] = json!(segments);
        }
        Walk::begin(world, Wire::Scan, request, Operation::Get)
    }

    fn begin(world: &World, wire: Wire, request: Json, operation: Operation) -> Walk {
        let (begun, begun_at, beyond) = (world.book.moment(), world.clock.now(), world.book.is_beyond());
        Walk { wire, request, operation, begun, begun_at, seen: Vec::new(), pages: 0, beyond }
    }

    /// Reads the next page. Whether there is another.
    pub async fn page(&mut self, world: &World, gateway: usize) -> Result<bool, Error> {
        let invoked = world.book.moment();
        let mut page = world.ask(gateway, self.wire, &self.request, PATIENCE).await?;
        for row in page["Items"].as_array().into_iter().flatten() {
            let Some((item, value)) = world.row(row) else { continue };
            if self.beyond {
                continue;
            }
            // A Scan may show an item twice if its key began or ended a move meanwhile, as far as
            // gateways know.
            let changed = || world.network.key_changed_within(world.clock.now().since(self.begun_at) + KNOWN);
            if self.seen.contains(&item) && !(self.wire == Wire::Scan && changed()) {
                world.book.fault(format!("one {} shows {item} twice", self.wire.name()));
            }
            world.book.call(&item, invoked, self.operation, Some(Answer::Saw(Some(value))));
            self.seen.push(item);
        }
        self.pages += 1;
        let start = page["LastEvaluatedKey"].take();
        if start.is_null() {
            return Ok(false);
        }
        if self.pages == MOST_PAGES {
            world.book.fault(format!("a {} does not end", self.wire.name()));
            return Ok(false);
        }
        self.request["ExclusiveStartKey"] = start;
        Ok(true)
    }

    /// The items that none of these walks has shown, which together are one and have ended.
    pub fn missing(walks: &[Walk], world: &World, items: &[String]) {
        let Some(begun) = walks.iter().map(|walk| walk.begun).min() else { return };
        for item in
            items.iter().filter(|item| walks.iter().all(|walk| !walk.beyond && !walk.seen.contains(item)))
        {
            world.book.call(item, begun, walks[0].operation, Some(Answer::Saw(None)));
        }
    }
}

impl World {
    /// A whole Query of the key, or of the index by a label, page by page: a read of every item.
    /// `items`: all that there can be. `absent`: whether an item that is not in it was not there.
    /// `Err` as soon as a page fails.
    pub async fn query(
        &self,
        gateway: usize,
        items: &[String],
        label: Option<u8>,
        limit: usize,
        absent: bool,
    ) -> Result<(), Error> {
        let walk = Walk::query(self, label, limit);
        // A Query of the key shows nothing of other keys.
        let may_be_in = |item: &&String| label.is_some() || partition_of(item) == KEY;
        let items: Vec<String> = items.iter().filter(|item| absent && may_be_in(item)).cloned().collect();
        self.walk(gateway, walk, &items).await
    }

    /// A whole Scan of the table: a read of every item.
    pub async fn scan(&self, gateway: usize, items: &[String], limit: usize) -> Result<(), Error> {
        self.walk(gateway, Walk::scan(self, limit, None), items).await
    }

    async fn walk(&self, gateway: usize, mut walk: Walk, items: &[String]) -> Result<(), Error> {
        while walk.page(self, gateway).await? {}
        Walk::missing(&[walk], self, items);
        Ok(())
    }
}
