//! A key with items is sharded, grown, made smaller and brought back while clients write and read
//! it through three gateways, which notice each phase at different moments. Every client keeps
//! account of its own items: each read shows exactly them, in order, none twice.
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::Fencing;
use heatsink_control::reshard_intent::{EndedAs, WantedLayout};
use heatsink_dynamo::{Code, Error, KeyValue, Operation, Outcome};
use heatsink_env::{Env, RealEnv};
use heatsink_layout::{Bucket, By, Granularity, SplitPoints};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::town::{RULES, Town};

/// What one item may hold, as far as its client knows: one value, or one of several after answers
/// that leave it open. `None`: it is not there.
type Known = BTreeSet<Option<u64>>;

/// A store that one gateway's runner uses, and that hangs after so many calls: the runner was
/// killed there.
pub(super) struct Fused {
    pub(super) inner: Arc<dyn Store>,
    pub(super) left: AtomicI64,
    /// Whether the last call is carried out, and only its answer lost.
    pub(super) carries_out: bool,
}

impl Store for Fused {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        // Looks at intents go on all the time.
        let looks = operation == Operation::Query && body.windows(10).any(|part| part == b"\"reshards\"");
        let left = if looks { i64::MAX } else { self.left.fetch_sub(1, Ordering::SeqCst) };
        Box::pin(async move {
            if left > 1 {
                return self.inner.call(operation, body).await;
            }
            if left == 1 && self.carries_out {
                let _ = self.inner.call(operation, body).await;
            }
            futures::future::pending().await
        })
    }
}

/// Three gateways whose runners are killed again and again, each at one of so many calls, until
/// they are told to live.
pub(super) fn killed(
    town: &Arc<Town>,
    seed: u64,
    most: i64,
    over: &Arc<AtomicBool>,
) -> std::thread::JoinHandle<u32> {
    let (town, over) = (Arc::clone(town), Arc::clone(over));
    std::thread::spawn(move || {
        let mut rng = Rng::with_seed(seed);
        let mut kills = 0;
        let fused = |rng: &mut Rng| {
            let left = AtomicI64::new(rng.i64(1..most));
            Arc::new(Fused { inner: town.raw.clone(), left, carries_out: rng.bool() })
        };
        let mut lives: Vec<_> = (0..3)
            .map(|gateway| {
                let store = fused(&mut rng);
                (town.carries(gateway, store.clone()), store)
            })
            .collect();
        while !over.load(Ordering::Relaxed) {
            for (gateway, (carries, store)) in lives.iter_mut().enumerate() {
                if store.left.load(Ordering::SeqCst) <= 0 {
                    carries.task.abort();
                    kills += 1;
                    *store = fused(&mut rng);
                    *carries = town.carries(gateway, store.clone());
                }
            }
            town.pause(Duration::from_millis(5));
        }
        for (carries, _) in lives {
            carries.task.abort();
        }
        kills
    })
}

/// A client, and its own items.
struct Client {
    name: usize,
    rng: Rng,
    items: BTreeMap<String, Known>,
    next: u64,
    /// The newest hour that items are of, where sort keys begin with one; all are of the last few
    /// hours before, or rarely of the one after it.
    front: Option<Arc<AtomicU64>>,
}

impl Client {
    /// The sort key of some item of its own.
    fn sort(&mut self) -> String {
        let sort = format!("{:02}-{}", self.rng.u32(..40), self.name);
        match &self.front {
            None => sort,
            Some(front) => {
                let newest = front.load(Ordering::Relaxed);
                let hour = if self.rng.u32(..20) == 0 { newest + 1 } else { newest - self.rng.u64(..4) };
                format!("{}:{sort}", hour_text(hour))
            }
        }
    }

    fn key(&self, sort: &str) -> Json {
        json!({ "pk": { "S": "game" }, "sk": { "S": sort } })
    }

    /// One request, and what follows from its answer.
    fn act(&mut self, town: &Town) {
        let sort = self.sort();
        let known = self.items.entry(sort.clone()).or_insert_with(|| [None].into()).clone();
        self.next += 1;
        let value = self.next;
        let mut item = self.key(&sort);
        item["v"] = json!({ "N": value.to_string() });
        let key = self.key(&sort);
        let new: Known = [Some(value)].into();
        let gone: Known = [None].into();
        let (operation, body, done, failed): (Operation, Json, Known, Known) = match self.rng.u32(..9) {
            0 | 1 => (Operation::PutItem, json!({ "TableName": "Scores", "Item": item }), new, Known::new()),
            2 => {
                let body = json!({ "TableName": "Scores", "Item": item, "ConditionExpression": "attribute_not_exists(pk)" });
                let there = known.iter().copied().filter(Option::is_some).collect();
                (Operation::PutItem, body, new, there)
            }
            3 => (Operation::DeleteItem, json!({ "TableName": "Scores", "Key": key }), gone, Known::new()),
            4 => {
                let body = json!({
                    "TableName": "Scores", "Key": key, "UpdateExpression": "ADD v :one",
                    "ExpressionAttributeValues": { ":one": { "N": "1000000" } },
                });
                let done = known.iter().map(|value| Some(value.unwrap_or(0) + 1_000_000)).collect();
                (Operation::UpdateItem, body, done, Known::new())
            }
            5 => {
                let writes = json!([{ "PutRequest": { "Item": item } }]);
                (
                    Operation::BatchWriteItem,
                    json!({ "RequestItems": { "Scores": writes } }),
                    new,
                    Known::new(),
                )
            }
            6 => {
                let put = json!({ "TableName": "Scores", "Item": item });
                (
                    Operation::TransactWriteItems,
                    json!({ "TransactItems": [{ "Put": put }] }),
                    new,
                    Known::new(),
                )
            }
            7 => return self.get(town, &sort),
            _ => return self.query(town),
        };
        match town.insist(&mut self.rng, operation, &body) {
            Ok(_) => {
                self.items.insert(sort, done);
            }
            Err(error) if error.code == Code::ConditionalCheckFailedException => {
                assert!(
                    !failed.is_empty(),
                    "{operation:?} of {sort} found an item where {known:?} was known"
                );
                self.items.insert(sort, failed);
            }
            Err(error) if error.outcome == Outcome::Unknown => {
                town.open.fetch_add(1, Ordering::Relaxed);
                self.items.entry(sort).or_default().extend(done);
            }
            Err(error) => panic!("{operation:?}: {error}"),
        }
    }

    fn get(&mut self, town: &Town, sort: &str) {
        let body = json!({ "TableName": "Scores", "Key": self.key(sort), "ConsistentRead": true });
        let answer = town.insist(&mut self.rng, Operation::GetItem, &body).unwrap();
        self.saw(sort, value(&answer["Item"]), "GetItem");
    }

    fn query(&mut self, town: &Town) {
        let mut body = json!({
            "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "game" } },
            "ConsistentRead": true, "ScanIndexForward": self.rng.bool(), "Limit": self.rng.u32(3..30),
        });
        let mut found: Vec<(String, Option<u64>)> = Vec::new();
        loop {
            let page = town.insist(&mut self.rng, Operation::Query, &body).unwrap();
            let items = page["Items"].as_array().unwrap();
            found
                .extend(items.iter().map(|item| (item["sk"]["S"].as_str().unwrap().to_owned(), value(item))));
            match page.get("LastEvaluatedKey") {
                Some(last) => body["ExclusiveStartKey"] = last.clone(),
                None => break,
            }
        }
        let mut sorts: Vec<&String> = found.iter().map(|(sort, _)| sort).collect();
        if body["ScanIndexForward"] == false {
            sorts.reverse();
        }
        assert!(sorts.windows(2).all(|two| two[0] < two[1]), "out of order, or twice: {sorts:?}");
        let mut own: BTreeMap<String, Option<u64>> = found.into_iter().collect();
        own.retain(|sort, _| sort.ends_with(&format!("-{}", self.name)));
        for sort in self.items.keys().cloned().collect::<Vec<_>>() {
            self.saw(&sort, own.remove(&sort).flatten(), "Query");
        }
        assert!(own.is_empty(), "a Query shows what was never written: {own:?}");
    }

    /// A read settles what was open: nobody else writes the item, and every answer is in.
    fn saw(&mut self, sort: &str, found: Option<u64>, by: &str) {
        let known = self.items.get(sort).unwrap();
        assert!(known.contains(&found), "{by} shows {found:?} of {sort}, and {known:?} is known");
        if known.len() > 1 && found.is_some() {
            // A request whose outcome was open may still take effect; only what was seen is certain
            // now.
            self.items.get_mut(sort).unwrap().insert(found);
        }
    }
}

fn value(item: &Json) -> Option<u64> {
    item["v"]["N"].as_str().map(|text| text.parse().unwrap())
}

/// An hour since 1970 as sort keys write it.
pub(super) fn hour_text(hour: u64) -> String {
    Bucket::at(i64::try_from(hour).unwrap() * 3_600, Granularity::Hour).unwrap().to_string()
}

/// Clients of one key, who keep account until this is over.
fn clients(town: &Arc<Town>, over: &Arc<AtomicBool>) -> Vec<std::thread::JoinHandle<()>> {
    clients_of(town, over, None)
}

/// The same, whose items are of the hours up to that one.
pub(super) fn clients_of(
    town: &Arc<Town>,
    over: &Arc<AtomicBool>,
    front: Option<&Arc<AtomicU64>>,
) -> Vec<std::thread::JoinHandle<()>> {
    (0..4)
        .map(|name| {
            let (town, over, front) = (Arc::clone(town), Arc::clone(over), front.cloned());
            std::thread::spawn(move || {
                let rng = Rng::with_seed(name as u64);
                let mut client = Client { name, rng, items: BTreeMap::new(), next: 0, front };
                while !over.load(Ordering::Relaxed) {
                    client.act(&town);
                }
                client.query(&town);
            })
        })
        .collect()
}

/// Clients write and read while the key gets so many shards, one count after the other.
fn under_load(rules: &str, counts: &[u16]) {
    let town = Town::new(rules);
    let over = Arc::new(AtomicBool::new(false));
    let clients = clients(&town, &over);
    town.pause(Duration::from_millis(300));
    for shards in counts {
        let before = town.requests.load(Ordering::Relaxed);
        town.longest.store(0, Ordering::Relaxed);
        let begun = RealEnv.now();
        let report = town.runtime.block_on(town.reshard("game", *shards));
        let report = report.unwrap_or_else(|error| panic!("to {shards} shards: {error}"));
        assert_eq!(report.to, *shards);
        println!(
            "{} to {shards} shards: {} items in {:?}; {} requests meanwhile, the longest took {} ms",
            report.from,
            report.moved,
            RealEnv.now().since(begun),
            town.requests.load(Ordering::Relaxed) - before,
            town.longest.load(Ordering::Relaxed),
        );
        town.pause(Duration::from_millis(200));
    }
    over.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    println!("{} outcomes were left open", town.open.load(Ordering::Relaxed));
    let scanned =
        block_on(town.raw.call(Operation::Scan, Bytes::from_static(b"{\"TableName\":\"Scores\"}"))).unwrap();
    let scanned: Json = serde_json::from_slice(&scanned).unwrap();
    let keys: BTreeSet<&str> =
        scanned["Items"].as_array().unwrap().iter().map(|item| item["pk"]["S"].as_str().unwrap()).collect();
    assert_eq!(keys.len(), usize::from(*counts.last().unwrap()), "{keys:?}");
}

#[test]
fn a_key_without_a_rule_is_sharded_while_clients_use_it() {
    under_load(RULES, &[4, 16, 7, 1]);
}

#[test]
fn a_key_of_a_rule_gets_another_count_while_clients_use_it() {
    let rules = RULES.replace(
        "rule = []",
        "rule = [{ table = \"Scores\", keys = \"g*\", strategy = \"calculated\", shards = 3 }]",
    );
    under_load(&rules, &[5, 2, 8]);
}

fn ranges(points: &[&str]) -> WantedLayout {
    let points = points.iter().map(|point| KeyValue::S((*point).to_owned().into()));
    SplitPoints::new(points.collect()).unwrap().into()
}

#[test]
fn a_gateway_carries_out_what_is_asked_for() {
    let town = Town::new(RULES);
    let over = Arc::new(AtomicBool::new(false));
    let clients = clients(&town, &over);
    let _carried = town.carry();
    let part = By::Part { separator: "-".to_owned(), part: 1 };
    let by = |shards: u16, by: By| WantedLayout { by: Some(by), ..WantedLayout::from(shards) };
    // The same number of shards, and another part of the sort key that decides.
    // Ranges of it: out of shards, split, shifted, merged, and back.
    for layout in [
        WantedLayout::from(4),
        by(4, part.clone()),
        by(6, part),
        by(6, By::SortKey),
        ranges(&["10", "30"]),
        ranges(&["10", "20", "30", "x0020"]),
        ranges(&["20", "25-"]),
        by(3, By::SortKey),
        ranges(&["15"]),
        WantedLayout::from(1),
    ] {
        town.ask("game", layout.clone(), 1);
        let (how, text) = town.ended("game");
        println!("{layout:?}: {text}");
        assert_eq!((how, town.shards("game")), (EndedAs::Moved, layout.shards), "{text}");
    }
    over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(town.lies("game").len(), 1);
}

#[test]
fn a_gateway_that_is_killed_at_any_call_is_followed_by_another() {
    let town = Town::new(RULES);
    let over = Arc::new(AtomicBool::new(false));
    let clients = clients(&town, &over);
    town.fill("game", 60);
    let dead = Arc::new(AtomicBool::new(false));
    let killed = killed(&town, 7, 90, &dead);
    let hashed = |shards: u16| WantedLayout { by: Some(By::SortKey), ..shards.into() };
    for layout in [hashed(4), ranges(&["20", "x0030"]), ranges(&["20", "30", "x0030"]), hashed(2), hashed(7)]
    {
        town.ask("game", layout.clone(), 1);
        let (how, text) = town.ended("game");
        assert_eq!((how, town.shards("game")), (EndedAs::Moved, layout.shards), "{text}");
    }
    dead.store(true, Ordering::Relaxed);
    let kills = killed.join().unwrap();
    println!("{kills} kills");
    assert!(kills > 5, "{kills}");
    over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    let lies = town.lies("game");
    assert_eq!(lies.len(), 7, "{lies:?}");
}

#[test]
fn the_only_gateway_of_its_store_carries_out_what_is_asked_for() {
    let town = Town::of(&["one"], RULES, |fence, _| Fencing::exclusive(fence));
    let over = Arc::new(AtomicBool::new(false));
    let clients = clients(&town, &over);
    let _carried = town.carry();
    for shards in [5, 2, 9] {
        town.ask("game", shards.into(), 1);
        let (how, text) = town.ended("game");
        assert_eq!((how, town.shards("game")), (EndedAs::Moved, shards), "{text}");
    }
    over.store(true, Ordering::Relaxed);
    clients.into_iter().for_each(|client| client.join().unwrap());
    assert_eq!(town.lies("game").len(), 9);
}

#[test]
fn a_gateway_that_stops_gives_its_reshard_back_between_two_calls() {
    let town = Town::new(RULES);
    town.fill("game", 200);
    let mut carried = vec![town.carries(0, town.raw.clone())];
    // Slowly enough to be stopped on the way.
    town.ask_at("game", 4.into(), 1, 400);
    town.until("a mover", || (town.lies("game").len() > 1).then_some(()));
    let first = carried.remove(0);
    first.stop.send(()).unwrap();
    town.runtime.block_on(first.task).unwrap();
    let left = town.intent("game").unwrap();
    assert!(left.carrier.is_none() && left.is_open() && left.begun, "{left:?}");
    carried.push(town.carries(1, town.raw.clone()));
    let (how, text) = town.ended("game");
    assert_eq!((how, town.shards("game")), (EndedAs::Moved, 4), "{text}");
    assert_eq!(town.lies("game").values().sum::<usize>(), 200);
    let moved = town.intent("game").unwrap().progress.moved;
    assert!((100..200).contains(&moved), "{moved} items by both");
    assert!(text.ends_with(&format!("{moved} items were moved")), "{text}");
}

#[test]
fn a_reshard_is_paused_resumed_and_cancelled() {
    let town = Town::new(RULES);
    town.fill("game", 200);
    let _carried = town.carry();
    town.ask_at("game", 4.into(), 1, 400);
    town.until("a mover", || (town.lies("game").len() > 1).then_some(()));
    assert!(town.change("game", |intent| intent.paused = true));
    town.until("the gateway to notice", || {
        let before = town.lies("game");
        town.pause(Duration::from_millis(300));
        (town.lies("game") == before).then_some(())
    });
    assert!(town.record("game").unwrap().moves.is_some());
    // Too late: it goes on, and says so.
    assert!(town.change("game", |intent| {
        intent.cancelled = true;
        intent.paused = false;
    }));
    let (how, _) = town.ended("game");
    let ended = town.intent("game").unwrap();
    assert_eq!((how, town.shards("game"), ended.cancelled), (EndedAs::Moved, 4, false));

    // Before it begins.
    town.ask("new", 8.into(), 1);
    assert!(town.change("new", |intent| intent.cancelled = true));
    let (how, text) = town.ended("new");
    assert!(how == EndedAs::Cancelled || how == EndedAs::Moved, "{text}");
    assert_eq!(town.shards("new"), if how == EndedAs::Moved { 8 } else { 1 });
}

#[test]
fn an_intent_of_another_version_hinders_nobody() {
    let town = Town::new(RULES);
    let newer = json!({
        "pk": { "S": "reshards" }, "sk": { "S": "id/other" }, "form": { "N": "9" }, "name": { "S": "Scores" }, "key": { "S": "other" },
    });
    let body = json!({ "TableName": town.registry().name(), "Item": newer });
    block_on(town.raw.call(Operation::PutItem, Bytes::from(body.to_string()))).unwrap();
    let _carried = town.carry();
    town.ask("game", 3.into(), 1);
    assert_eq!(town.ended("game").0, EndedAs::Moved);
    let body =
        json!({ "TableName": town.registry().name(), "Key": { "pk": newer["pk"], "sk": newer["sk"] } });
    let left = block_on(town.raw.call(Operation::GetItem, Bytes::from(body.to_string()))).unwrap();
    assert_eq!(serde_json::from_slice::<Json>(&left).unwrap()["Item"], newer);
}

/// Whatever is asked for, paused, frozen, cancelled and killed, in any order: the key ends in what
/// was wanted last, or where it was, with all of its items. `HEATSINK_SEED` and `HEATSINK_SEEDS`:
/// the first seed, and how many.
#[test]
fn the_key_ends_in_what_was_last_wanted_or_where_it_was() {
    // So that an end that was not clean is soon settled.
    let rules = RULES.replace("straggler = \"2s\"", "straggler = \"100ms\"");
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let first = number("HEATSINK_SEED").unwrap_or(0);
    for seed in first..first + number("HEATSINK_SEEDS").unwrap_or(4) {
        let mut rng = Rng::with_seed(seed);
        let town = Town::new(&rules);
        let over = Arc::new(AtomicBool::new(false));
        let clients = clients(&town, &over);
        town.fill("game", 40);
        let dead = Arc::new(AtomicBool::new(false));
        let killed = killed(&town, seed, 90, &dead);
        let (mut was, mut wanted, mut asks) = (1, 1, 0);
        for _ in 0..60 {
            match rng.u32(..9) {
                7 => town.freeze(true),
                8 => town.freeze(false),
                0 | 1 => {
                    // As the command does: an open intent has to end first.
                    if town.intent("game").is_none_or(|intent| !intent.is_open()) {
                        was = town.shards("game");
                        wanted = rng.u16(1..6);
                        asks += 1;
                        town.ask("game", wanted.into(), 1);
                    }
                }
                2 => drop(town.change("game", |intent| intent.paused = true)),
                3 | 4 => drop(town.change("game", |intent| intent.paused = false)),
                5 => {}
                _ => drop(town.change("game", |intent| intent.cancelled = true)),
            }
            town.pause(Duration::from_millis(rng.u64(..150)));
        }
        town.change("game", |intent| intent.paused = false);
        town.freeze(false);
        let how = town.until("the end", || match town.intent("game") {
            None => Some(EndedAs::Moved),
            Some(intent) => intent.ended.map(|ended| ended.how),
        });
        dead.store(true, Ordering::Relaxed);
        let kills = killed.join().unwrap();
        let is = town.shards("game");
        println!("seed {seed}: {was} -> {wanted}, {how:?}, {is} shards; {asks} asked for, {kills} kills");
        assert_eq!(is, if how == EndedAs::Cancelled { was } else { wanted }, "seed {seed}: {how:?}");
        assert!(town.record("game").is_none_or(|record| record.moves.is_none()));
        over.store(true, Ordering::Relaxed);
        clients.into_iter().for_each(|client| client.join().unwrap());
        let lies = town.lies("game");
        assert_eq!((town.old(), lies.len() <= usize::from(is)), (40, true), "seed {seed}: {lies:?}");
    }
}
