//! All keys of a table get other layouts while clients write and read them, and make new ones,
//! through three gateways: whole, four shards, three, whole. Whoever does it is killed again and
//! again. Every client keeps account of its own items: each read shows exactly them.
//!
//! Not here: in what order the steps are right (the model of `heatsink-reshard`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use heatsink_control::Rules;
use heatsink_control::reshard_intent::Request;
use heatsink_dynamo::{Code, Error, KeyType, Operation, Outcome};
use heatsink_env::RealEnv;
use heatsink_layout::TablePhase;
use heatsink_store::Store;
use heatsink_workers::{
    Adoption, Direction, Here, LiveAdoption, LiveNext, Pace, PreparedLive, Progress, Unwatched, WorkerError,
};
use serde_json::{Value as Json, json};

use crate::online::Fused;
use crate::town::{RULES, Town};

type Known = BTreeSet<Option<u64>>;

/// A client, and its own items by key and sort key.
struct Client {
    name: usize,
    rng: Rng,
    items: BTreeMap<(String, String), Known>,
    next: u64,
}

impl Client {
    fn new(name: usize) -> Self {
        Client { name, rng: Rng::with_seed(name as u64), items: BTreeMap::new(), next: 0 }
    }

    /// Some item of its own: of a key that all write to, or of a key that nobody has written to.
    fn place(&mut self) -> (String, String) {
        let sort = format!("{:02}-{}", self.rng.u32(..6), self.name);
        match self.rng.u32(..30) {
            0 => (format!("new-{}-{}", self.name, self.next), sort),
            1..5 if self.next > 9 => (format!("new-{}-{}", self.name, self.rng.u64(..self.next)), sort),
            _ => (format!("game{}", self.rng.u32(..8)), sort),
        }
    }

    fn act(&mut self, town: &Town) {
        self.next += 1;
        let place = self.place();
        let known = self.items.get(&place).cloned().unwrap_or_else(|| [None].into());
        let key = json!({ "pk": { "S": place.0 }, "sk": { "S": place.1 } });
        let mut item = key.clone();
        item["v"] = json!({ "N": self.next.to_string() });
        let new: Known = [Some(self.next)].into();
        let (operation, body, done) = match self.rng.u32(..10) {
            0 | 1 => (Operation::PutItem, json!({ "TableName": "Scores", "Item": item }), new),
            2 | 3 => {
                let body = json!({
                    "TableName": "Scores", "Key": key, "UpdateExpression": "ADD v :one", "ExpressionAttributeValues": { ":one": { "N": "1000000" } },
                });
                let added = known.iter().map(|value| Some(value.unwrap_or(0) + 1_000_000)).collect();
                (Operation::UpdateItem, body, added)
            }
            4 => (Operation::DeleteItem, json!({ "TableName": "Scores", "Key": key }), [None].into()),
            5 => {
                let writes = json!({ "Scores": [{ "PutRequest": { "Item": item } }] });
                (Operation::BatchWriteItem, json!({ "RequestItems": writes }), new)
            }
            6 => {
                let put = json!({ "Put": { "TableName": "Scores", "Item": item } });
                (Operation::TransactWriteItems, json!({ "TransactItems": [put] }), new)
            }
            7 => return self.get(town, &place),
            8 => return self.query(town, &place.0),
            _ => return self.scan(town),
        };
        match town.insist(&mut self.rng, operation, &body) {
            Ok(answer) => {
                let refused = answer["UnprocessedItems"].as_object().is_some_and(|left| !left.is_empty());
                if !refused {
                    self.items.insert(place, done);
                }
            }
            Err(error) if error.outcome == Outcome::Unknown || error.retryable() => {
                let both = known.union(&done).copied().collect();
                self.items.insert(place, both);
            }
            Err(error) => panic!("{operation:?}: {error}"),
        }
    }

    fn number(item: &Json) -> Option<u64> {
        item["v"]["N"].as_str().map(|text| text.parse().unwrap())
    }

    fn check(&self, place: &(String, String), shown: Option<u64>, how: &str) {
        let known = self.items.get(place).cloned().unwrap_or_else(|| [None].into());
        assert!(known.contains(&shown), "{how} shows {shown:?} of {place:?}, known: {known:?}");
    }

    fn get(&mut self, town: &Town, place: &(String, String)) {
        let key = json!({ "pk": { "S": place.0 }, "sk": { "S": place.1 } });
        let body = json!({ "TableName": "Scores", "Key": key, "ConsistentRead": true });
        let answer = town.insist(&mut self.rng, Operation::GetItem, &body);
        if let Ok(answer) = unless_unknown(answer) {
            self.check(place, Self::number(&answer["Item"]), "GetItem");
        }
    }

    fn query(&mut self, town: &Town, key: &str) {
        let mut shown = BTreeMap::new();
        let mut start = Json::Null;
        loop {
            let mut body = json!({
                "TableName": "Scores", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": key } }, "ConsistentRead": true,
                "Limit": 7,
            });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let Ok(page) = unless_unknown(town.insist(&mut self.rng, Operation::Query, &body)) else {
                return;
            };
            for item in page["Items"].as_array().unwrap() {
                let sort = item["sk"]["S"].as_str().unwrap().to_owned();
                assert_eq!(item["pk"]["S"], key, "of another key");
                assert!(
                    shown.insert(sort.clone(), Self::number(item)).is_none(),
                    "{key} {sort} is shown twice"
                );
            }
            start = page["LastEvaluatedKey"].clone();
            if start.is_null() {
                break;
            }
        }
        let own: Vec<_> = self.items.keys().filter(|(of, _)| of == key).cloned().collect();
        for place in own {
            self.check(&place, shown.get(&place.1).copied().flatten(), "Query");
        }
    }

    /// A Scan shows every item of its own, perhaps twice. One that is to begin again does.
    fn scan(&mut self, town: &Town) {
        let mut shown: BTreeMap<(String, String), Option<u64>> = BTreeMap::new();
        let mut start = Json::Null;
        let mut begun = 0;
        loop {
            let mut body = json!({ "TableName": "Scores", "ConsistentRead": true, "Limit": 60 });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let page = match unless_unknown(town.insist(&mut self.rng, Operation::Scan, &body)) {
                Ok(page) => page,
                Err(Some(error)) if error.to_string().contains("Begin the Scan") => {
                    begun += 1;
                    assert!(begun < 50, "a Scan is to begin again and again");
                    (shown, start) = (BTreeMap::new(), Json::Null);
                    continue;
                }
                Err(Some(error)) => panic!("Scan: {error}"),
                Err(None) => return,
            };
            for item in page["Items"].as_array().unwrap() {
                let text = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
                assert!(!text("pk").contains("#~"), "a physical key is shown: {item}");
                shown.insert((text("pk"), text("sk")), Self::number(item));
            }
            start = page["LastEvaluatedKey"].clone();
            if start.is_null() {
                break;
            }
        }
        for place in self.items.keys() {
            self.check(place, shown.get(place).copied().flatten(), "Scan");
        }
    }
}

/// An answer; the inner error of one that says nothing is `None`.
fn unless_unknown(answer: Result<Json, Error>) -> Result<Json, Option<Error>> {
    answer.map_err(|error| match error.code {
        Code::ValidationException => Some(error),
        _ if error.retryable() || error.outcome == Outcome::Unknown => None,
        _ => Some(error),
    })
}

pub(super) fn rules(shards: u16) -> Rules {
    let rule = match shards {
        1 => "rule = []".to_owned(),
        _ => format!("rule = [{{ table = \"Scores\", strategy = \"calculated\", shards = {shards} }}]"),
    };
    Rules::read("rules", &RULES.replace("rule = []", &rule)).unwrap()
}

pub(super) async fn run(
    store: Arc<dyn Store>,
    shards: u16,
    up_to: u8,
    watched: Arc<dyn Progress>,
) -> Result<bool, WorkerError> {
    let rules = rules(shards);
    let direction = if shards == 1 { Direction::Back } else { Direction::Adopt };
    let env = Arc::new(RealEnv);
    let prepared =
        LiveAdoption::prepare(store.clone(), env.clone(), &rules, ("Scores", direction), up_to, false).await;
    let mut live = match prepared {
        Ok(PreparedLive::Live(live)) => live,
        Ok(PreparedLive::Done) => return Ok(true),
        Ok(PreparedLive::Offline(not_live)) => panic!("{}", not_live.why),
        // Brought back, and off the record.
        Err(WorkerError::Usage(why)) if why.contains("not on record") => return Ok(true),
        Err(error) => return Err(error),
    };
    loop {
        match live.next(&*watched).await? {
            LiveNext::Done => return Ok(true),
            LiveNext::UpTo => return Ok(false),
            LiveNext::Move(wishes) => {
                let here =
                    Here::new(store.clone(), env.clone(), &rules.clone().without_rules(), "test", false)
                        .at(Pace::DEFAULT.faster(20));
                let request = Request {
                    layout: 1.into(),
                    rate: u32::MAX,
                    streams_confirmed: true,
                    by: "test".to_owned(),
                    asked: 0,
                };
                live.move_here(&here, wishes, &request, &watched).await?;
            }
        }
    }
}

/// One run, killed after so many calls; `carries_out`: the last of them arrives. `None` if it was.
pub(super) fn run_or_die(
    town: &Arc<Town>,
    shards: u16,
    left: i64,
    carries_out: bool,
) -> Option<Result<bool, WorkerError>> {
    let fused = Arc::new(Fused { inner: town.raw.clone(), left: AtomicI64::new(left), carries_out });
    let store: Arc<dyn Store> = fused.clone();
    let task = town.runtime.spawn(run(store, shards, 100, Arc::new(Unwatched)));
    town.until("the end of a run", || {
        (task.is_finished() || fused.left.load(Ordering::SeqCst) <= 0).then_some(())
    });
    if !task.is_finished() {
        task.abort();
        return None;
    }
    Some(block_on(task).unwrap())
}

/// Runs it to its end, killed at most so many times. Says how often.
fn change(town: &Arc<Town>, rng: &mut Rng, shards: u16, kills: u32) -> u32 {
    let mut killed = 0;
    loop {
        let left = if killed < kills { rng.i64(1..400) } else { i64::MAX };
        match run_or_die(town, shards, left, rng.bool()) {
            None => killed += 1,
            Some(Ok(true)) => return killed,
            // Somebody who was killed is not known to be dead yet.
            Some(Ok(false) | Err(WorkerError::Busy(_) | WorkerError::Store(_))) => {}
            Some(Err(error)) => panic!("{error}"),
        }
    }
}

#[test]
fn a_table_gets_other_shards_under_its_clients_and_comes_back() {
    let town = Town::new(RULES);
    let over = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..4)
        .map(|name| {
            let (town, over) = (Arc::clone(&town), Arc::clone(&over));
            std::thread::spawn(move || {
                let mut client = Client::new(name);
                let mut acts = 0;
                while !over.load(Ordering::Relaxed) {
                    client.act(&town);
                    acts += 1;
                    // Else there would be more new keys than are moved meanwhile.
                    town.pause(std::time::Duration::from_millis(10));
                }
                (client, acts)
            })
        })
        .collect();
    town.pause(std::time::Duration::from_millis(300));
    let mut rng = Rng::with_seed(7);
    let mut killed = 0;
    for shards in [4, 3, 1] {
        killed += change(&town, &mut rng, shards, 6);
        let physical =
            town.scanned().iter().filter(|item| item["pk"]["S"].as_str().unwrap().contains("#~")).count();
        assert_eq!(physical > 0, shards > 1, "{shards} shards, {physical} items in others than the first");
    }
    over.store(true, Ordering::Relaxed);
    let clients: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
    let acts: u32 = clients.iter().map(|(_, acts)| acts).sum();
    // Nothing is on record, and the store holds what the clients know.
    assert_eq!(block_on(town.registry().named("Scores")).unwrap(), []);
    let stored: BTreeMap<(String, String), Option<u64>> = town
        .scanned()
        .iter()
        .map(|item| {
            let text = |name: &str| item[name]["S"].as_str().unwrap().to_owned();
            ((text("pk"), text("sk")), Client::number(item))
        })
        .collect();
    let mut known = 0;
    for (client, _) in &clients {
        for place in client.items.keys() {
            client.check(place, stored.get(place).copied().flatten(), "the store");
            known += usize::from(stored.contains_key(place));
        }
    }
    assert_eq!(known, stored.len(), "items of nobody");
    println!("{acts} acts of 4 clients, {known} items, killed {killed} times");
}

/// Looks at what requests meet in each phase.
struct Watched {
    town: Arc<Town>,
    seen: std::sync::Mutex<Vec<TablePhase>>,
}

impl Progress for Watched {
    fn table(&self, phase: TablePhase) {
        self.seen.lock().unwrap().push(phase);
        if phase == TablePhase::Enter {
            // Known to this gateway soon: by then a key that is written like a shard is refused.
            let item = json!({ "pk": { "S": "game0#~2" }, "sk": { "S": "1" } });
            let body = json!({ "TableName": "Scores", "Item": item });
            let town = Arc::clone(&self.town);
            std::thread::spawn(move || {
                let refused = town.until("a refusal", || match town.call(0, Operation::PutItem, &body) {
                    Err(error) => Some(error.to_string()),
                    Ok(_) => {
                        let key = json!({ "TableName": "Scores", "Key": { "pk": { "S": "game0#~2" }, "sk": { "S": "1" } } });
                        town.call(0, Operation::DeleteItem, &key).unwrap();
                        None
                    }
                });
                assert!(refused.contains("written like a shard"), "{refused}");
            })
            .join()
            .unwrap();
        }
    }
}

fn put(town: &Town, key: &str) {
    let item = json!({ "pk": { "S": key }, "sk": { "S": "1" } });
    let body = Bytes::from(json!({ "TableName": "Scores", "Item": item }).to_string());
    block_on(town.raw.call(Operation::PutItem, body)).unwrap();
}

#[test]
fn a_share_of_the_keys_goes_first_and_the_rest_later() {
    let town = Town::new(RULES);
    (0..40).for_each(|key| put(&town, &format!("game{key}")));
    let watched = Arc::new(Watched { town: Arc::clone(&town), seen: Default::default() });
    let go = |up_to| {
        let watched: Arc<dyn Progress> = watched.clone();
        block_on(town.runtime.spawn(run(town.raw.clone(), 4, up_to, watched))).unwrap().unwrap()
    };
    let moved =
        || town.scanned().iter().filter(|item| item["pk"]["S"].as_str().unwrap().contains("#~")).count();
    assert!(!go(50));
    use TablePhase::{Enter, Hold, Prepare, Rest, Turn};
    assert_eq!(*watched.seen.lock().unwrap(), [Enter, Prepare, Hold, Turn, Rest]);
    let half = moved();
    assert!(half > 0);
    // What is born meanwhile lies where it belongs.
    let item = json!({ "pk": { "S": "born" }, "sk": { "S": "1" } });
    town.call(1, Operation::PutItem, &json!({ "TableName": "Scores", "Item": item })).unwrap();
    assert!(go(100));
    assert!(moved() > half);
    let record = block_on(town.registry().named("Scores")).unwrap().remove(0);
    assert_eq!((record.keys, record.layouts.is_empty()), (0, false), "records that are not needed are gone");
    for gateway in 0..3 {
        let shown = town.call(gateway, Operation::Scan, &json!({ "TableName": "Scores" })).unwrap();
        assert_eq!(shown["Count"], 41);
    }
}

#[test]
fn a_key_that_is_written_like_a_shard_stands_in_the_way_and_nothing_changes() {
    let town = Town::new(RULES);
    ["game", "game#~7"].iter().for_each(|key| put(&town, key));
    let rules = rules(4);
    let live = block_on(LiveAdoption::prepare(
        town.raw.clone(),
        Arc::new(RealEnv),
        &rules,
        ("Scores", Direction::Adopt),
        100,
        false,
    ));
    let Ok(PreparedLive::Live(live)) = live else { panic!("not live") };
    assert_eq!(live.key_type(), KeyType::S);
    let survey = block_on(live.survey(1_000, &Unwatched)).unwrap();
    assert_eq!((survey.keys, survey.keys_to_move, survey.items), (2, 2, 2));
    assert!(survey.in_the_way.unwrap().contains("\"game#~7\""));
    assert_eq!(block_on(town.registry().named("Scores")).unwrap(), []);
    // It was born after the look: the run stops, and is taken back.
    let ended = block_on(town.runtime.spawn(run(town.raw.clone(), 4, 100, Arc::new(Unwatched)))).unwrap();
    assert!(matches!(&ended, Err(WorkerError::Stopped(why)) if why.contains("--back")), "{ended:?}");
    block_on(town.runtime.spawn(run(town.raw.clone(), 1, 100, Arc::new(Unwatched)))).unwrap().unwrap();
    assert_eq!(block_on(town.registry().named("Scores")).unwrap(), []);
    assert_eq!(town.scanned().len(), 2);
}

#[test]
fn a_key_with_shards_of_its_own_keeps_them_and_is_in_nobodys_way() {
    let town = Town::new(RULES);
    (0..20).for_each(|key| put(&town, &format!("game{key}")));
    let there = Arc::clone(&town);
    let reshard = town.runtime.spawn(async move { there.reshard("game0", 8).await });
    block_on(reshard).unwrap().unwrap();
    let go = |shards| block_on(town.runtime.spawn(run(town.raw.clone(), shards, 100, Arc::new(Unwatched))));
    assert!(go(4).unwrap().unwrap());
    assert_eq!((town.shards("game0"), town.record("game1").is_none()), (8, true));
    // The rest of the command finds nothing to do, also when it is run again.
    let env = Arc::new(RealEnv);
    let rules = rules(4);
    let rest = Adoption::prepare(town.raw.clone(), env, &rules, "Scores", Direction::Adopt);
    assert!(block_on(rest).unwrap().is_done());
    assert!(go(4).unwrap().unwrap());
    assert!(go(1).unwrap().unwrap());
    assert_eq!(town.shards("game0"), 8);
}
