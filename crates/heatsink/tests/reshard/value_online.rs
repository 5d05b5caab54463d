//! A value of an index that gateways spread because it was asked for, while clients write and read
//! it through three gateways, and while the gateways that carry it out are killed. Every client
//! keeps account of its own items; every other value stays byte for byte what clients sent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use futures::FutureExt;
use futures::executor::block_on;
use heatsink_control::Fencing;
use heatsink_control::reshard_intent::EndedAs;
use heatsink_dynamo::{Code, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_layout::{ValueLayout, hash};
use serde_json::{Value as Json, json};

use crate::online::killed;
use crate::town::{INDEX, RULES, Town, value};

/// What clients write. Nobody spreads `open#~99`: it is a value of its own.
const STATUSES: [&str; 4] = ["open", "done", "open#~99", "opened"];

/// A client, and the statuses of its own items; `None` for an item without one.
struct Client {
    name: usize,
    rng: Rng,
    items: BTreeMap<String, Option<&'static str>>,
}

impl Client {
    fn key(&self, sort: &str) -> Json {
        json!({ "pk": { "S": format!("client-{}", self.name) }, "sk": { "S": sort } })
    }

    fn write(&mut self, town: &Town, operation: Operation, body: &Json) -> Result<(), Code> {
        town.insist(&mut self.rng, operation, body).map(drop).map_err(|error| error.code)
    }

    /// One request, and what it has to come to.
    fn act(&mut self, town: &Town) {
        let sort = format!("{:02}", self.rng.u32(..25));
        let known = self.items.get(&sort).copied();
        let new = STATUSES[self.rng.usize(..STATUSES.len())];
        let (table, key) = ("Scores", self.key(&sort));
        let names = json!({ "#s": "status" });
        match (self.rng.u32(..8), known) {
            (0 | 1, _) => {
                let mut item = key;
                item["status"] = json!({ "S": new });
                item["kind"] = json!({ "S": "task" });
                self.write(town, Operation::PutItem, &json!({ "TableName": table, "Item": item })).unwrap();
                self.items.insert(sort, Some(new));
            }
            (2, Some(Some(old))) => {
                let body = json!({
                    "TableName": table, "Key": key, "UpdateExpression": "SET #s = :n", "ConditionExpression": "#s = :o",
                    "ExpressionAttributeNames": names, "ExpressionAttributeValues": { ":n": { "S": new }, ":o": { "S": old } },
                });
                self.write(town, Operation::UpdateItem, &body).unwrap();
                self.items.insert(sort, Some(new));
            }
            (3, Some(Some(old))) => {
                let body = json!({
                    "TableName": table, "Key": key, "UpdateExpression": "REMOVE #s", "ConditionExpression": "#s <> :o",
                    "ExpressionAttributeNames": names, "ExpressionAttributeValues": { ":o": { "S": old } },
                });
                let refused = self.write(town, Operation::UpdateItem, &body);
                assert_eq!(refused, Err(Code::ConditionalCheckFailedException), "{sort} is {old}");
            }
            (4, Some(_)) => {
                let body = json!({ "TableName": table, "Key": key, "UpdateExpression": "REMOVE #s", "ExpressionAttributeNames": names });
                self.write(town, Operation::UpdateItem, &body).unwrap();
                self.items.insert(sort, None);
            }
            (5, Some(_)) => {
                self.write(town, Operation::DeleteItem, &json!({ "TableName": table, "Key": key })).unwrap();
                self.items.remove(&sort);
            }
            (6, _) => {
                let body = json!({ "TableName": table, "Key": key, "ConsistentRead": true });
                let found = town.insist(&mut self.rng, Operation::GetItem, &body).unwrap();
                let found = found.get("Item").map(|item| item["status"]["S"].as_str());
                assert_eq!(found, known, "{sort}");
            }
            _ => self.query(town),
        }
    }

    /// Reads one value of an index page by page; begins again where a step of the reshard has
    /// changed the order.
    fn query(&mut self, town: &Town) {
        let status = STATUSES[self.rng.usize(..STATUSES.len())];
        let mut body = json!({
            "TableName": "Scores", "IndexName": INDEX, "KeyConditionExpression": "#s = :s", "Limit": self.rng.u32(3..40),
            "ExpressionAttributeNames": { "#s": "status" }, "ExpressionAttributeValues": { ":s": { "S": status } },
        });
        let mut found = Vec::new();
        loop {
            let page = match town.insist(&mut self.rng, Operation::Query, &body) {
                Ok(page) => page,
                Err(error) => {
                    assert!(body.get("ExclusiveStartKey").is_some(), "{error}");
                    assert_eq!(error.code, Code::ValidationException, "{error}");
                    return;
                }
            };
            for item in page["Items"].as_array().unwrap() {
                assert_eq!(item["status"]["S"], status, "values are logical");
                if item["pk"]["S"] == format!("client-{}", self.name) {
                    found.push(item["sk"]["S"].as_str().unwrap().to_owned());
                }
            }
            match page.get("LastEvaluatedKey") {
                Some(last) => body["ExclusiveStartKey"] = last.clone(),
                None => break,
            }
        }
        found.sort_unstable();
        let own = self.items.iter().filter(|(_, held)| **held == Some(status));
        let own: Vec<String> = own.map(|(sort, _)| sort.clone()).collect();
        assert_eq!(found, own, "{status}");
    }
}

/// Clients until this is over; then what each of them knows.
fn clients(town: &Arc<Town>, over: &Arc<AtomicBool>) -> Vec<std::thread::JoinHandle<Client>> {
    (0..3)
        .map(|name| {
            let (town, over) = (Arc::clone(town), Arc::clone(over));
            std::thread::spawn(move || {
                let mut client = Client { name, rng: Rng::with_seed(name as u64), items: BTreeMap::new() };
                while !over.load(Ordering::Relaxed) {
                    client.act(&town);
                }
                client.query(&town);
                client
            })
        })
        .collect()
}

impl Town {
    /// Items of nobody, each with a status.
    fn with_status(&self, pk: &str, status: &str, items: usize) {
        for number in 0..items {
            let item = json!({ "pk": { "S": pk }, "sk": { "S": format!("{number:04}-old") }, "status": { "S": status }, "kind": { "S": "task" } });
            let body = json!({ "TableName": "Scores", "Item": item });
            block_on(self.raw.call(Operation::PutItem, bytes::Bytes::from(body.to_string()))).unwrap();
        }
    }

    fn layout(&self, of: &str) -> Option<ValueLayout> {
        let record = block_on(self.registry().read(&self.table_id())).unwrap()?;
        record.values.into_iter().find(|one| one.value == of.as_bytes())
    }

    fn spread(&self, of: &str) -> u16 {
        self.layout(of).map_or(1, |layout| layout.shards)
    }

    /// How many items are stored with each status.
    fn stored(&self) -> BTreeMap<String, usize> {
        let mut found = BTreeMap::new();
        for item in self.scanned() {
            if let Some(status) = item["status"]["S"].as_str() {
                *found.entry(status.to_owned()).or_default() += 1;
            }
        }
        found
    }

    /// Every item of `open` is where the hash puts it for so many shards, whatever shard of its own
    /// key it lies in, every other item is as its owner wrote it, and all are there.
    fn assert_spread(&self, shards: u16, clients: &[Client], old: &[(&str, &str, usize)]) {
        let mut expected: BTreeMap<(String, String), Option<&str>> = BTreeMap::new();
        for client in clients {
            let own = client
                .items
                .iter()
                .map(|(sort, status)| ((format!("client-{}", client.name), sort.clone()), *status));
            expected.extend(own);
        }
        for (pk, status, items) in old {
            let own =
                (0..*items).map(|number| (((*pk).to_owned(), format!("{number:04}-old")), Some(*status)));
            expected.extend(own);
        }
        let mut seen = 0;
        for item in self.scanned() {
            let text = |name: &str| item[name]["S"].as_str().map(str::to_owned);
            let (physical, sk, stored) = (text("pk").unwrap(), text("sk").unwrap(), text("status"));
            let pk = physical.split("#~").next().unwrap().to_owned();
            let status = expected[&(pk.clone(), sk.clone())];
            let length = u32::try_from(pk.len()).unwrap().to_be_bytes();
            let shard = hash::jump_xxh3(&[&length[..], pk.as_bytes(), sk.as_bytes()].concat(), shards);
            let wanted = match (status, shard) {
                (Some("open"), 1..) => Some(format!("open#~{shard}")),
                (status, _) => status.map(str::to_owned),
            };
            assert_eq!(stored, wanted, "{pk} {sk}, {shards} shards");
            seen += 1;
        }
        assert_eq!(seen, expected.len(), "no item is lost or doubled");
    }
}

fn joined(clients: Vec<std::thread::JoinHandle<Client>>) -> Vec<Client> {
    clients.into_iter().map(|client| client.join().unwrap()).collect()
}

#[test]
fn a_gateway_spreads_a_value_that_is_asked_for() {
    let town = Town::indexed(RULES);
    town.with_status("old", "open", 120);
    town.with_status("others", "done", 20);
    let over = Arc::new(AtomicBool::new(false));
    let clients = clients(&town, &over);
    let _carried = town.carry();
    for shards in [4, 9, 2, 1, 3] {
        town.ask_for(value("open"), shards.into(), 1, u32::MAX);
        let (how, text) = town.ended_for(value("open"));
        println!("{text}");
        assert_eq!((how, town.spread("open")), (EndedAs::Moved, shards), "{text}");
        let progress = town.intent_for(value("open")).unwrap().progress;
        assert!(progress.moved > 10 && progress.phase.is_none(), "{progress:?}");
    }
    over.store(true, Ordering::Relaxed);
    let clients = joined(clients);
    println!("{} requests", town.requests.load(Ordering::Relaxed));
    town.assert_spread(3, &clients, &[("old", "open", 120), ("others", "done", 20)]);
}

#[test]
fn a_gateway_that_is_killed_at_any_call_is_followed_by_another() {
    let town = Town::indexed(RULES);
    town.with_status("old", "open", 60);
    let over = Arc::new(AtomicBool::new(false));
    let clients = clients(&town, &over);
    let dead = Arc::new(AtomicBool::new(false));
    let killed = killed(&town, 7, 60, &dead);
    for shards in [4, 2, 7] {
        town.ask_for(value("open"), shards.into(), 1, u32::MAX);
        let (how, text) = town.ended_for(value("open"));
        assert_eq!((how, town.spread("open")), (EndedAs::Moved, shards), "{text}");
    }
    dead.store(true, Ordering::Relaxed);
    let kills = killed.join().unwrap();
    println!("{kills} kills");
    assert!(kills > 5, "{kills}");
    over.store(true, Ordering::Relaxed);
    let clients = joined(clients);
    town.assert_spread(7, &clients, &[("old", "open", 60)]);
}

#[test]
fn the_only_gateway_of_its_store_spreads_a_value() {
    let town = Town::indexed_of(&["one"], RULES, |fence, _| Fencing::exclusive(fence));
    town.with_status("old", "open", 60);
    let over = Arc::new(AtomicBool::new(false));
    let clients = clients(&town, &over);
    let _carried = town.carry();
    for shards in [5, 1, 9] {
        town.ask_for(value("open"), shards.into(), 1, u32::MAX);
        let (how, text) = town.ended_for(value("open"));
        assert_eq!((how, town.spread("open")), (EndedAs::Moved, shards), "{text}");
    }
    over.store(true, Ordering::Relaxed);
    let clients = joined(clients);
    town.assert_spread(9, &clients, &[("old", "open", 60)]);
}

#[test]
fn a_gateway_that_stops_gives_its_value_back_between_two_calls() {
    let town = Town::indexed(RULES);
    town.with_status("old", "open", 200);
    let mut carried = vec![town.carries(0, town.raw.clone())];
    // Slowly enough to be stopped on the way.
    town.ask_for(value("open"), 4.into(), 1, 50);
    town.until("an item in its new form", || (town.stored().len() > 1).then_some(()));
    let first = carried.remove(0);
    first.stop.send(()).unwrap();
    town.runtime.block_on(first.task).unwrap();
    let left = town.intent_for(value("open")).unwrap();
    assert!(left.carrier.is_none() && left.is_open() && left.begun, "{left:?}");
    assert!(town.layout("open").unwrap().migration.unwrap().writes_new);
    carried.push(town.carries(1, town.raw.clone()));
    let (how, text) = town.ended_for(value("open"));
    assert_eq!((how, town.spread("open")), (EndedAs::Moved, 4), "{text}");
    town.assert_spread(4, &[], &[("old", "open", 200)]);
    let moved = town.intent_for(value("open")).unwrap().progress.moved;
    let all = town
        .stored()
        .iter()
        .filter(|(status, _)| *status != "open")
        .map(|(_, items)| *items as u64)
        .sum::<u64>();
    assert!(
        text.ends_with(&format!("{moved} items were rewritten")) && moved == all,
        "{moved} of {all}: {text}"
    );
}

#[test]
fn a_value_is_paused_resumed_and_cancelled() {
    let town = Town::indexed(RULES);
    town.with_status("old", "open", 200);
    town.with_status("old-done", "done", 20);
    let _carried = town.carry();
    town.ask_for(value("open"), 4.into(), 1, 50);
    town.until("an item in its new form", || (town.stored().len() > 2).then_some(()));
    assert!(town.change_for(value("open"), |intent| intent.paused = true));
    town.until("the gateway to notice", || {
        let before = town.stored();
        town.pause(Duration::from_millis(300));
        (town.stored() == before).then_some(())
    });
    assert!(town.layout("open").unwrap().migration.is_some());
    // Too late: it goes on, and says so.
    assert!(town.change_for(value("open"), |intent| {
        intent.cancelled = true;
        intent.paused = false;
    }));
    let (how, _) = town.ended_for(value("open"));
    let ended = town.intent_for(value("open")).unwrap();
    assert_eq!((how, town.spread("open"), ended.cancelled), (EndedAs::Moved, 4, false));

    // Before it begins, and while it is paused then.
    town.ask_for(value("done"), 8.into(), 1, 50);
    assert!(town.change_for(value("done"), |intent| intent.cancelled = true));
    let (how, text) = town.ended_for(value("done"));
    assert!(how == EndedAs::Cancelled || how == EndedAs::Moved, "{text}");
    let before = town.spread("done");
    assert_eq!(before, if how == EndedAs::Moved { 8 } else { 1 }, "{text}");
    town.assert_spread_of_done(before);
    assert_eq!(town.layout("done").is_some(), how == EndedAs::Moved, "nothing of it is left on record");
}

impl Town {
    fn assert_spread_of_done(&self, shards: u16) {
        let forms = self.stored().keys().filter(|status| status.starts_with("done")).count();
        assert!(forms <= usize::from(shards), "{:?}", self.stored());
    }
}

#[test]
fn values_of_one_table_wait_for_each_other_in_the_order_asked() {
    let town = Town::indexed(RULES);
    town.with_status("old", "open", 40);
    town.with_status("others", "done", 40);
    town.ask_for(value("open"), 3.into(), 0, u32::MAX);
    town.ask_for(value("done"), 5.into(), 2, u32::MAX);
    let _carried = town.carry();
    let order = ["open", "done"].map(|of| {
        let (how, text) = town.ended_for(value(of));
        assert_eq!(how, EndedAs::Moved, "{text}");
        town.intent_for(value(of)).unwrap().ended.map(|one| one.at).unwrap()
    });
    assert!(order[0] <= order[1], "{order:?}");
    assert_eq!((town.spread("open"), town.spread("done")), (3, 5));
}

/// What clients write has its new shards while the key's items are still on their way; the value's
/// items follow once those have arrived.
#[test]
fn a_value_is_relieved_while_a_key_of_its_table_moves() {
    for first in [true, false] {
        let town = Town::indexed(RULES);
        let over = Arc::new(AtomicBool::new(false));
        let clients = clients(&town, &over);
        // The key's items have that value, too.
        town.with_status("old", "open", 200);
        let key = || town.ask_at("old", 4.into(), 1, 40);
        let _carried = town.carry();
        if first {
            key();
            town.until("items in their new shards", || (town.lies("old").len() > 1).then_some(()));
        }
        town.ask_for(value("open"), 3.into(), 2, u32::MAX);
        if !first {
            let writes_new = |one: ValueLayout| one.migration.is_some_and(|migration| migration.writes_new);
            town.until("the value's new form", || town.layout("open").filter(|one| writes_new(one.clone())));
            key();
        }
        let relieved = town.until("the value's relief", || {
            let layout = town.layout("open")?;
            let writes_new = layout.migration.as_ref().is_none_or(|migration| migration.writes_new);
            (writes_new && layout.extent() > 1).then(|| town.intent("old").unwrap().is_open())
        });
        assert!(relieved || !first, "the key had all of its items moved before");
        for (how, text) in [town.ended("old"), town.ended_for(value("open"))] {
            assert_eq!(how, EndedAs::Moved, "{text}");
        }
        over.store(true, Ordering::Relaxed);
        let clients = joined(clients);
        assert_eq!((town.spread("open"), town.shards("old")), (3, 4));
        town.assert_spread(3, &clients, &[("old", "open", 200)]);
    }
}

/// Whatever is asked for, of a value and of keys beside it, paused, cancelled and killed, in any
/// order: all end in what was wanted last, or where they were, with all of their items.
/// `HEATSINK_SEED` and `HEATSINK_SEEDS`: the first seed, and how many.
#[test]
fn the_value_ends_in_what_was_last_wanted_or_where_it_was() {
    // So that an end that was not clean is soon settled.
    let rules = RULES.replace("straggler = \"2s\"", "straggler = \"100ms\"");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("HEATSINK_SEED").unwrap_or(0);
    for seed in first..first + number("HEATSINK_SEEDS").unwrap_or(4) {
        let mut rng = Rng::with_seed(seed);
        let town = Town::indexed(&rules);
        let over = Arc::new(AtomicBool::new(false));
        let clients = clients(&town, &over);
        town.with_status("old", "open", 40);
        town.fill("game", 20);
        let dead = Arc::new(AtomicBool::new(false));
        let killed = killed(&town, seed, 90, &dead);
        let (mut was, mut wanted, mut asks, mut keys) = (1, 1, 0, 1);
        let mut moved = BTreeMap::new();
        for at in 0..60 {
            match rng.u32(..10) {
                // As the command does: an open intent has to end first.
                0 | 1 if town.intent_for(value("open")).is_none_or(|intent| !intent.is_open()) => {
                    was = town.spread("open");
                    wanted = rng.u16(1..6);
                    asks += 1;
                    town.ask_for(value("open"), wanted.into(), at, u32::MAX);
                }
                2 => drop(town.change_for(value("open"), |intent| intent.paused = true)),
                3 | 4 => drop(town.change_for(value("open"), |intent| intent.paused = false)),
                5 if town.intent("game").is_none_or(|intent| !intent.is_open()) => {
                    keys = rng.u16(1..5);
                    town.ask("game", keys.into(), at);
                }
                6 => drop(town.change_for(value("open"), |intent| intent.cancelled = true)),
                7 | 8 => {
                    // Their items have that value, or another one.
                    let key = ["client-0", "client-1", "old"][rng.usize(..3)];
                    if town.intent(key).is_none_or(|intent| !intent.is_open()) {
                        let shards = rng.u16(1..5);
                        moved.insert(key, shards);
                        town.ask(key, shards.into(), at);
                    }
                }
                _ => {}
            }
            town.pause(Duration::from_millis(rng.u64(..150)));
        }
        town.change_for(value("open"), |intent| intent.paused = false);
        let how = town.until("the end", || match town.intent_for(value("open")) {
            None => Some(EndedAs::Moved),
            Some(intent) => intent.ended.map(|ended| ended.how),
        });
        for key in moved.keys().copied().chain(["game"]) {
            town.until("the end of the key", || match town.intent(key) {
                None => Some(()),
                Some(intent) => intent.ended.map(|_| ()),
            });
        }
        dead.store(true, Ordering::Relaxed);
        let kills = killed.join().unwrap();
        let is = town.spread("open");
        println!(
            "seed {seed}: {was} -> {wanted}, {how:?}, {is} shards; {asks} asked for, {kills} kills; the key has {keys}"
        );
        assert_eq!(is, if how == EndedAs::Cancelled { was } else { wanted }, "seed {seed}: {how:?}");
        assert!(town.layout("open").is_none_or(|layout| layout.migration.is_none()));
        assert_eq!(town.shards("game"), keys);
        for (key, shards) in moved {
            assert_eq!(town.shards(key), shards, "{key}");
        }
        over.store(true, Ordering::Relaxed);
        let clients = joined(clients);
        assert_eq!(town.lies("game").values().sum::<usize>(), 20);
        for shard in town.lies("game").into_keys() {
            let own = bytes::Bytes::from(json!({ "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": shard } } }).to_string());
            let page: Json =
                serde_json::from_slice(&block_on(town.raw.call(Operation::Query, own)).unwrap()).unwrap();
            for item in page["Items"].as_array().unwrap() {
                let key = json!({ "pk": item["pk"], "sk": item["sk"] });
                let delete = json!({ "TableName": "Scores", "Key": key }).to_string();
                block_on(town.raw.call(Operation::DeleteItem, bytes::Bytes::from(delete))).unwrap();
            }
        }
        town.assert_spread(is, &clients, &[("old", "open", 40)]);
    }
}

/// As a program has it that uses the library: a gateway without a socket, and a runner beside it.
#[test]
fn a_gateway_in_a_program_spreads_a_value() {
    let town = Town::indexed_of(&[], RULES, Fencing::shared);
    town.with_status("old", "open", 60);
    let ended = town.runtime.block_on(async {
        let env = Arc::new(RealEnv);
        let fencing = Fencing::exclusive(town.rules.fence()).carrying();
        let gateway = heatsink::Gateway::builder(town.raw.clone()).fencing(fencing).start().await.unwrap();
        let control = gateway.control().clone();
        let runner =
            heatsink::Runner::new(town.raw.clone(), env, control.clone()).with_index_delay(Duration::ZERO);
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let carrying = tokio::spawn(async move { runner.run(stopped.map(drop)).await });
        let keeping = tokio::spawn(async move { control.keep().await });
        let asked = async {
            town.ask_for(value("open"), 4.into(), 1, u32::MAX);
            loop {
                RealEnv.sleep(Duration::from_millis(100)).await;
                if let Some(ended) = town.intent_for(value("open")).and_then(|intent| intent.ended) {
                    return ended;
                }
            }
        };
        let ended = asked.await;
        stop.send(()).unwrap();
        carrying.await.unwrap();
        keeping.abort();
        ended
    });
    assert_eq!(ended.how, EndedAs::Moved, "{ended:?}");
    town.assert_spread(4, &[], &[("old", "open", 60)]);
}
