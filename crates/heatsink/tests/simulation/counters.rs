//! Counters in a simulation: what was added to each, and what a read of it may show.
//!
//! Every add to an item has a digit of its own, so a sum tells which adds it holds, and whether one
//! was counted twice. A sum holds every add that was acknowledged before it was asked for, and none
//! that was sent after its answer. Of adds beside the read it may hold any: a read of several rows
//! is no snapshot.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use heatsink_dynamo::{Code, Error, Operation as Wire, Outcome};
use heatsink_workers::Direction;
use serde_json::{Value as Json, json};

use crate::client::{KEY_NAMES, PATIENCE, key, number};
use crate::ending::QUIET;
use crate::world::{World, name};
use crate::{KEY, TABLE};

/// Digits have this base, so that one which is counted twice is seen.
const BASE: i64 = 4;
/// So many of them fit into a number.
const DIGITS: usize = 31;
/// How often a read is tried again at the end, and after how long.
const TRIES: usize = 60;
const PAUSE: Duration = Duration::from_secs(3);

pub struct Counters {
    world: Rc<World>,
    items: Vec<String>,
    adds: RefCell<BTreeMap<String, Vec<Add>>>,
}

/// One add: when it was sent, and what became of it.
#[derive(Clone, Copy)]
struct Add {
    sent: u64,
    outcome: Became,
}

#[derive(Clone, Copy, PartialEq)]
enum Became {
    /// It was acknowledged at that moment.
    Done(u64),
    NotDone,
    Unknown,
}

impl Counters {
    pub fn new(world: Rc<World>, items: Vec<String>) -> Counters {
        Counters { world, items, adds: RefCell::default() }
    }

    /// Adds the next digit of an item.
    pub async fn add(&self, gateway: usize, item: &str, patience: Duration) -> Result<(), Error> {
        let sent = self.world.book.moment();
        let digit = {
            let mut adds = self.adds.borrow_mut();
            let adds = adds.entry(item.to_owned()).or_default();
            if adds.len() == DIGITS {
                return Ok(());
            }
            adds.push(Add { sent, outcome: Became::Unknown });
            adds.len() - 1
        };
        let request = json!({
            "TableName": TABLE, "Key": key(item), "UpdateExpression": "ADD n :d",
            "ExpressionAttributeValues": { ":d": { "N": BASE.pow(digit as u32).to_string() } },
        });
        let answer = self.world.ask(gateway, Wire::UpdateItem, &request, patience).await;
        let outcome = match &answer {
            Ok(_) => Became::Done(self.world.book.added()),
            Err(error) if error.outcome == Outcome::Unknown => Became::Unknown,
            Err(_) => Became::NotDone,
        };
        self.adds.borrow_mut().get_mut(item).unwrap()[digit].outcome = outcome;
        self.world.log.line(format!(
            "  {item}: digit {digit} by {}: {:?}",
            name(gateway),
            answer.as_ref().map(drop)
        ));
        answer.map(drop)
    }

    /// Reads one counter. `None` for none.
    pub async fn read(&self, gateway: usize, item: &str) -> Result<Option<i64>, Error> {
        let asked = self.world.book.moment();
        let request = json!({ "TableName": TABLE, "Key": key(item), "ConsistentRead": true });
        let answer = self.world.ask(gateway, Wire::GetItem, &request, PATIENCE).await?;
        let sum = answer.get("Item").map(|row| number(row).unwrap_or_default());
        self.shows(gateway, item, sum, asked);
        Ok(sum)
    }

    /// Reads them all by a Query.
    pub async fn read_all(&self, gateway: usize) -> Result<(), Error> {
        let asked = self.world.book.moment();
        let request = json!({
            "TableName": TABLE, "KeyConditionExpression": "pk = :k", "ConsistentRead": true,
            "ExpressionAttributeValues": { ":k": { "S": KEY } },
        });
        self.show_all(gateway, Wire::Query, &request, asked).await
    }

    /// Reads them all by a Scan.
    pub async fn scan(&self, gateway: usize) -> Result<(), Error> {
        let asked = self.world.book.moment();
        let request = json!({ "TableName": TABLE, "ConsistentRead": true });
        self.show_all(gateway, Wire::Scan, &request, asked).await
    }

    async fn show_all(
        &self,
        gateway: usize,
        operation: Wire,
        request: &Json,
        asked: u64,
    ) -> Result<(), Error> {
        let answer = self.world.ask(gateway, operation, request, PATIENCE).await?;
        let rows = answer["Items"].as_array().cloned().unwrap_or_default();
        for row in &rows {
            if KEY_NAMES.iter().any(|name| row[name]["S"].as_str().is_none_or(|text| text.contains("#~"))) {
                self.world.book.fault(format!("a client is shown {row}"));
            }
        }
        for item in &self.items {
            let mut of_item = rows.iter().filter(|row| row["sk"]["S"] == **item);
            let sum = of_item.next().map(|row| number(row).unwrap_or_default());
            if of_item.next().is_some() {
                self.world.book.fault(format!("one {} shows {item} twice", operation.name()));
            }
            self.shows(gateway, item, sum, asked);
        }
        Ok(())
    }

    /// Holds a sum against what was added before and meanwhile.
    fn shows(&self, gateway: usize, item: &str, sum: Option<i64>, asked: u64) {
        let adds = self.adds.borrow();
        let adds = adds.get(item).map_or(&[][..], Vec::as_slice);
        let mut left = sum.unwrap_or_default();
        let mut wrong = Vec::new();
        for (digit, add) in adds.iter().enumerate() {
            let shown = left.rem_euclid(BASE);
            left /= BASE;
            match (shown, add.outcome) {
                (0, Became::Done(at)) if at < asked => wrong.push(format!("digit {digit} is missing")),
                (0, _) | (1, Became::Done(_) | Became::Unknown) => {}
                (1, Became::NotDone) => wrong.push(format!("digit {digit} was said not to be done")),
                _ => wrong.push(format!("digit {digit} is counted {shown} times")),
            }
        }
        if left != 0 {
            wrong.push("it holds what nobody added".to_owned());
        }
        if !wrong.is_empty() {
            let sent: Vec<u64> = adds.iter().map(|add| add.sent).collect();
            self.world.book.fault(format!(
                "{} shows {sum:?} of {item}, asked for at {asked}, of adds sent at {sent:?}: {}",
                name(gateway),
                wrong.join(", ")
            ));
        }
    }

    /// The end: time to live and counters are not both in force; every gateway shows every add that
    /// was acknowledged, and all the same; and that is what lies in the store.
    pub async fn end(&self, rules: &str) -> Vec<String> {
        let world = &self.world;
        world.clear_up().await;
        if world.expires().await {
            let rows = world.rows().await;
            world.log.line(format!("time to live is on, over {} rows", rows.len()));
            if world.holds_physical_keys().await {
                world.book.fault("the store deletes rows of counters by time to live".to_owned());
            }
            // Until then no gateway starts that has a rule for counters.
            world.keep_all().await;
        }
        world.start_all().await;
        let mut adopted = false;
        for gateway in 0..world.gateways() {
            if let Err(error) = self.read_surely(gateway).await {
                if error.code == Code::ValidationException && !adopted {
                    adopted = true;
                    world.adopt_surely(rules, Direction::Adopt).await;
                    world.clock.sleep(QUIET).await;
                }
                if let Err(error) = self.read_surely(gateway).await {
                    world.book.fault(format!("the table cannot be read through {}: {error}", name(gateway)));
                }
            }
        }
        let mut sums: BTreeMap<String, i64> = BTreeMap::new();
        for (item, state) in world.rows().await {
            *sums.entry(item).or_default() += state.map_or(0, |value| value.number);
        }
        for gateway in 0..world.gateways() {
            for item in &self.items {
                let (Ok(shown), stored) = (self.read(gateway, item).await, sums.get(item)) else { continue };
                if shown != stored.copied() {
                    world.book.fault(format!(
                        "{} shows {shown:?} of {item}; the store holds {stored:?}",
                        name(gateway)
                    ));
                }
            }
        }
        world.book.judge()
    }

    async fn read_surely(&self, gateway: usize) -> Result<(), Error> {
        for _ in 0..TRIES {
            match self.read_all(gateway).await {
                Err(error) if error.retryable() => self.world.clock.sleep(PAUSE).await,
                other => {
                    other?;
                    break;
                }
            }
        }
        for item in &self.items {
            self.read(gateway, item).await?;
        }
        self.read_all(gateway).await
    }
}

impl World {
    /// Whether any row lies under a physical key.
    async fn holds_physical_keys(&self) -> bool {
        let rows = self.past(Wire::Scan, &json!({ "TableName": TABLE })).await.expect("the table is there");
        let physical = |row: &Json| row["pk"]["S"].as_str().is_some_and(|key| key != KEY);
        rows["Items"].as_array().into_iter().flatten().any(physical)
    }
}
