//! Scans whose pages are read before, while and after keys move, one by one or as a group, through
//! gateways of which one may be a step behind. Every item that is there all the time is shown, nothing else is, and none
//! twice where no key has begun or ended a move meanwhile.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use futures::executor::block_on;
use futures::future::join_all;
use heatsink_control::registry::Registry;
use heatsink_control::{
    KeyLayout, KeyRecord, KeyWrites, Move, REGISTRY, Record, State, TableChange, TableLayouts,
};
use heatsink_dynamo::{Code, Error, KeyType, KeyValue, Operation};
use heatsink_env::{HastyEnv, ManualEnv};
use heatsink_layout::{Glob, LayoutSource, Phase, SortKey, TablePhase};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::compare::{ask, stripped};
use crate::judge::Judge;
use crate::recorded::layout;
use crate::schema::{self, Table};
use crate::world::{A_DAY, World};

const RULES: [&str; 2] =
    ["rule = []", r#"rule = [{ table = "*", keys = "g*", strategy = "calculated", shards = 5 }]"#];

/// Those that move, and others beside them.
const KEYS: [&str; 6] = ["game", "a", "b#~2", "game#1", "quiet", "quiet#~3"];
const MOVING: usize = 4;

/// What a client hands back of a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    /// All of it.
    Polite,
    /// Its key attributes.
    Strips,
    /// Nothing: it takes the key attributes of the page's last item, if it has them.
    Rebuilds,
}

impl Habit {
    fn draw(rng: &mut Rng) -> Habit {
        [Habit::Polite, Habit::Strips, Habit::Rebuilds][rng.usize(..3)]
    }

    fn hands_back(self, page: &Json) -> Option<Json> {
        let last = page.get("LastEvaluatedKey")?.clone();
        let item = page["Items"].as_array().and_then(|items| items.last());
        Some(match (self, item) {
            (Habit::Polite, _) => last,
            (Habit::Rebuilds, Some(item)) => {
                let key = stripped(last.clone());
                let names = key.as_object().into_iter().flat_map(|key| key.keys());
                let rebuilt: Option<serde_json::Map<String, Json>> =
                    names.map(|name| Some((name.clone(), item.get(name)?.clone()))).collect();
                rebuilt.map_or(key, Json::Object)
            }
            _ => stripped(last),
        })
    }
}

/// Whether a position says under which layouts it was given out, or that it was at a time when keys
/// were on record.
fn is_marked(position: &Json) -> bool {
    position.get("heatsink:layout").is_some()
        || position["pk"]["S"].as_str().is_some_and(|key| key.starts_with("heatsink:layout="))
}

fn is_to_begin_again(error: &Error) -> bool {
    error.code == Code::ValidationException
        && error.to_string().contains("Begin the Scan, the Query, or the statement again")
}

/// A table whose keys move, and what knows of it.
struct Town {
    rules: &'static str,
    table: Table,
    raw: Arc<dyn Store>,
    registry: Registry,
    record: Option<Record>,
    keys: BTreeMap<&'static str, KeyRecord>,
    /// The items, as clients know them.
    items: Vec<Json>,
    /// A gateway that knows all, and one that has yet to learn of the last step.
    now: World,
    before: Option<World>,
    /// How many keys may move beside each other.
    beside: usize,
    /// How often a key has begun or ended a move, and how often by the last step.
    changes: usize,
    changed_by_last: usize,
    /// How often the layouts of the whole table have changed, or keys have left the record: after
    /// which every position is refused.
    turns: usize,
    /// Whether the last step was such a change: then a gateway that has yet to learn of it refuses
    /// positions that are newer.
    turned: bool,
    /// Whether the last page came from the gateway that has yet to learn of the last step.
    behind: bool,
}

fn call(store: &dyn Store, operation: Operation, body: Json) -> Json {
    block_on(ask(store, operation, &body)).unwrap_or_else(|error| panic!("{error}: {body}"))
}

impl Town {
    /// `rests`: whatever is written into its registry was written long ago.
    fn new(rng: &mut Rng, rests: bool) -> Town {
        let rules = RULES[rng.usize(..RULES.len())];
        let table = schema::tables().swap_remove(0);
        let now = World::new(Judge::Engine, std::slice::from_ref(&table), rules);
        let mut items = Vec::new();
        for (at, key) in KEYS.iter().enumerate() {
            for number in 0..rng.usize(0..14) {
                let mut item = json!({ "pk": { "S": key }, "sk": { "S": format!("s{number:02}") } });
                if rng.u32(..4) > 0 {
                    item["t"] = json!({ "S": format!("t{}", rng.u32(..3)) });
                    item["n"] = json!({ "N": at.to_string() });
                }
                call(&now.service, Operation::PutItem, json!({ "TableName": table.name, "Item": item }));
                items.push(item);
            }
        }
        let raw = now.raw.clone();
        let env = ManualEnv::seeded(1);
        if !rests {
            env.advance(A_DAY);
        }
        // Who writes many records pauses between them.
        let registry = Registry::new(raw.clone(), Arc::new(HastyEnv(env)), REGISTRY);
        let described = block_on(registry.describe(table.name)).unwrap().unwrap();
        let record = block_on(registry.read(&described.schema.id)).unwrap();
        let keys = BTreeMap::new();
        Town {
            rules,
            table,
            raw,
            registry,
            record,
            keys,
            items,
            now,
            before: None,
            // Of these draws the others do not depend: a seed of one key is what it was.
            beside: [1, 1, 2, 4][rng.clone().usize(..4)],
            changes: 0,
            changed_by_last: 0,
            turns: 0,
            turned: false,
            behind: false,
        }
    }

    fn on_record(&self) -> Record {
        let described = block_on(self.registry.describe(self.table.name)).unwrap().unwrap();
        let entry = block_on(self.registry.entry(self.table.name)).unwrap();
        let first = self.registry.first_record(&described, TableLayouts::default(), true);
        block_on(self.registry.create(entry.as_ref(), &first)).unwrap()
    }

    /// One step of a change of the layouts of all keys, for a table under rules.
    fn table_step(&mut self, rng: &mut Rng) {
        let table = match self.record.take() {
            Some(record) => block_on(self.registry.read(&record.id)).unwrap().expect("it is on record"),
            None => self.on_record(),
        };
        self.record = Some(table.clone());
        let rule = |shards| TableLayouts::new(vec![KeyLayout::new(Glob::new("g*"), layout(shards))]);
        let own = table.layouts.own();
        let moves = self.keys.values().any(|one| one.moves.is_some());
        let mut recorded = 0;
        let (turns, next) = match &table.state {
            State::Active => {
                let shards = [2, 3, 5][rng.usize(..3)];
                let change = TableChange { phase: TablePhase::Enter, run: rng.u64(..), other: rule(shards) };
                (0, Record { state: State::ChangingKeys(change), ..table.clone() })
            }
            State::ChangingKeys(change) => {
                let phase = match change.phase {
                    TablePhase::Enter => Some(TablePhase::Prepare),
                    TablePhase::Prepare => Some(TablePhase::Hold),
                    TablePhase::Hold => Some(TablePhase::Turn),
                    TablePhase::Turn => Some(TablePhase::Rest),
                    // Keys that lie as before move one by one, as others do, or stay on record.
                    TablePhase::Rest if moves => return,
                    TablePhase::Rest => None,
                };
                if phase == Some(TablePhase::Prepare) {
                    // Positions of an index name which keys are on record.
                    recorded = self.put_on_record(&table);
                }
                let table = self.record.clone().expect("it is on record");
                match phase {
                    None => {
                        let needless = |one: &&KeyRecord| {
                            table.layouts.of(&one.key).is_some_and(|of| of.places_as(&one.layout))
                        };
                        let needless: Vec<KeyRecord> = self.keys.values().filter(needless).cloned().collect();
                        let left = block_on(self.registry.forget_keys(&table, &needless)).unwrap().unwrap();
                        self.keys.retain(|key, _| !needless.iter().any(|one| one.key == key.as_bytes()));
                        (usize::from(!needless.is_empty()), Record { state: State::Active, ..left })
                    }
                    Some(TablePhase::Turn) => {
                        let change = TableChange { phase: TablePhase::Turn, other: own, ..change.clone() };
                        let State::ChangingKeys(TableChange { other: to, .. }) = &table.state else {
                            unreachable!()
                        };
                        let layouts = to.clone();
                        let state = State::ChangingKeys(change);
                        (1, Record { layouts, state, adopted: true, ..table })
                    }
                    Some(phase) => {
                        let change = TableChange { phase, ..change.clone() };
                        (0, Record { state: State::ChangingKeys(change), ..table })
                    }
                }
            }
            state => panic!("{state:?}"),
        };
        let from = block_on(self.registry.read(&next.id)).unwrap().unwrap();
        let next = Record { version: from.version + 1, ..next };
        assert!(block_on(self.registry.replace(&from, &next)).unwrap());
        self.record = Some(next);
        self.turns += turns;
        self.turned = turns > 0;
        self.changed_by_last = turns + recorded;
        self.changes += turns + recorded;
        let now = World::before(self.raw.clone(), self.raw.clone(), self.rules);
        self.before = Some(std::mem::replace(&mut self.now, now));
    }

    /// Puts the keys under rules on record as they lie.
    fn put_on_record(&mut self, table: &Record) -> usize {
        let writes = KeyWrites::default();
        let before = self.keys.len();
        for key in KEYS.iter().filter(|key| key.starts_with('g')) {
            let table = self.record.clone().unwrap_or_else(|| table.clone());
            if self.keys.contains_key(key) {
                continue;
            }
            let to = KeyRecord { version: 1, ..lies(&table, key) };
            let written = block_on(writes.replace(&self.registry, &table, None, &to)).unwrap();
            let (table, record) = written.expect("nobody else writes");
            self.record = Some(table);
            self.keys.insert(key, record);
        }
        self.keys.len() - before
    }

    /// One step: of the keys that move, or of others that begin. Some of a group go on together, by
    /// one write of their records, and the others wait for their own step.
    fn step(&mut self, rng: &mut Rng) {
        // Of this draw the others do not depend.
        if self.rules == RULES[1] && rng.clone().u32(..4) == 0 {
            return self.table_step(rng);
        }
        // A gateway that meets the table first puts a tag on it, and says so in the record.
        let table = match self.record.take() {
            Some(record) => block_on(self.registry.read(&record.id)).unwrap().expect("it is on record"),
            None => self.on_record(),
        };
        let moves = |town: &Town, key: &str| town.keys.get(key).is_some_and(|record| record.moves.is_some());
        let (moving, still): (Vec<&str>, Vec<&str>) =
            KEYS[..MOVING].iter().copied().partition(|key| moves(self, key));
        let mut next: Vec<&str> = match moving.len() {
            0 | 1 => moving.clone(),
            _ => moving.iter().copied().filter(|_| rng.bool()).collect(),
        };
        if moving.len() < self.beside && (moving.is_empty() || rng.bool()) {
            next.push(still[rng.usize(..still.len())]);
        }
        let before = self.changes;
        let stepped = next.into_iter().filter_map(|key| self.next_step(rng, &table, key));
        let stepped: Vec<_> = stepped.collect();
        self.record = Some(table.clone());
        if stepped.is_empty() {
            return;
        }
        self.changed_by_last = self.changes - before;
        self.turned = false;
        let writes = KeyWrites::default();
        let written =
            stepped.iter().map(|(_, from, to)| writes.replace(&self.registry, &table, from.as_ref(), to));
        for ((key, ..), written) in stepped.iter().zip(block_on(join_all(written))) {
            let (table, record) = written.unwrap().expect("nobody else writes");
            self.record = Some(table);
            self.keys.insert(key, record);
        }
        let now = World::before(self.raw.clone(), self.raw.clone(), self.rules);
        self.before = Some(std::mem::replace(&mut self.now, now));
    }

    /// The record of a key as it is and at its next step; `None` where some of its items are moved,
    /// and nothing else.
    fn next_step(
        &mut self,
        rng: &mut Rng,
        table: &Record,
        key: &'static str,
    ) -> Option<(&'static str, Option<KeyRecord>, KeyRecord)> {
        let from = self.keys.get(key).cloned();
        let mut to = from.clone().unwrap_or_else(|| lies(table, key));
        let reserved = to.reserved;
        to.version += 1;
        to.moves = match to.moves.take() {
            None => {
                let shards = (1..8).filter(|shards| *shards != to.layout.shards).nth(rng.usize(..6)).unwrap();
                // Every third list is of other slots than the usual ones.
                let slots: Vec<u16> = if table.version.is_multiple_of(3) {
                    (1..=shards).rev().collect()
                } else {
                    (0..shards).collect()
                };
                let new = layout(shards).with_slots(&slots).unwrap();
                to.reserved = reserved.max(new.slot_bound());
                let phase = Phase::Reserve;
                Some(Move {
                    to: new,
                    phase,
                    reserved_before: reserved,
                    closing: false,
                    expires: None,
                    marks: false,
                    high_water: None,
                })
            }
            Some(moves) => {
                let next = match moves.phase {
                    Phase::Reserve if rng.u32(..6) == 0 => None,
                    Phase::Reserve => Some(Phase::Prepare),
                    Phase::Prepare => Some(Phase::Hold),
                    Phase::Hold => Some(Phase::Move),
                    // Some of its items.
                    _ if rng.u32(..3) > 0 => {
                        self.pull(rng, &to, &moves, false);
                        return None;
                    }
                    _ => {
                        self.pull(rng, &to, &moves, true);
                        to.layout = moves.to.clone();
                        None
                    }
                };
                // In RESERVE all lies as ever.
                let ends = next.is_none() && moves.phase != Phase::Reserve;
                self.changes += usize::from(ends || next == Some(Phase::Prepare));
                let high_water = match next {
                    Some(Phase::Move) if rng.bool() => self.highest(&to.key),
                    _ => None,
                };
                next.map(|phase| Move { phase, high_water, ..moves })
            }
        };
        Some((key, from, to))
    }

    /// The highest sort key of a key's items.
    fn highest(&self, key: &[u8]) -> Option<KeyValue<'static>> {
        let of_key = self.items.iter().filter(|item| item["pk"]["S"].as_str().unwrap().as_bytes() == key);
        let highest = of_key.map(|item| item["sk"]["S"].as_str().unwrap()).max()?;
        Some(KeyValue::S(highest.to_owned().into()))
    }

    /// Brings items of the key to their new slots: some, of which old copies may stay behind, or
    /// all.
    fn pull(&self, rng: &mut Rng, record: &KeyRecord, moves: &Move, all: bool) {
        let name = self.table.name;
        block_on(ask(&self.now.service, Operation::Scan, &json!({ "TableName": name, "Limit": 1 }))).unwrap();
        let schema = self.now.control.table(name).expect("it is on record");
        for item in
            self.items.iter().filter(|item| item["pk"]["S"].as_str().unwrap().as_bytes() == record.key)
        {
            let sort = Some(SortKey::S(item["sk"]["S"].as_str().unwrap()));
            let slots = [&record.layout, &moves.to].map(|layout| layout.slot_of(sort).unwrap());
            if slots[0] == slots[1] || !all && rng.bool() {
                continue;
            }
            let place = |layout, slot| String::from_utf8(schema.physical(&record.key, layout, slot).unwrap());
            let [old, new] =
                [place(&record.layout, slots[0]), place(&moves.to, slots[1])].map(Result::unwrap);
            let mut copy = item.clone();
            copy["pk"] = json!({ "S": new });
            call(&*self.raw, Operation::PutItem, json!({ "TableName": name, "Item": copy }));
            copy["pk"] = json!({ "S": old });
            if all || rng.bool() {
                let key = json!({ "pk": copy["pk"], "sk": copy["sk"] });
                call(&*self.raw, Operation::DeleteItem, json!({ "TableName": name, "Key": key }));
            } else {
                copy["stale"] = json!({ "BOOL": true });
                call(&*self.raw, Operation::PutItem, json!({ "TableName": name, "Item": copy }));
            }
        }
    }

    /// Whether some key is in a phase of which that holds.
    fn any_in(&self, phase: impl Fn(Phase) -> bool) -> bool {
        self.keys.values().any(|record| record.moves.as_ref().is_some_and(|moves| phase(moves.phase)))
    }

    /// Whether some key is on its way, so that positions say more than the keys.
    fn moves(&self) -> bool {
        self.any_in(|phase| phase > Phase::Reserve)
    }

    /// One page, through the one gateway or the other; `None` where it says that the Scan has to
    /// begin again.
    fn page(&mut self, rng: &mut Rng, operation: Operation, body: &Json) -> Option<Json> {
        self.behind = false;
        // The segments of a parallel Scan have to begin under the same keys.
        let begins = body.get("ExclusiveStartKey").is_none() && body.get("Segment").is_some();
        if let Some(before) = self.before.as_ref().filter(|_| !begins && rng.u32(..3) == 0) {
            self.behind = true;
            match block_on(before.service.call(operation, Bytes::from(body.to_string()))) {
                Ok(answer) => return serde_json::from_slice(&answer).unwrap(),
                Err(error) if is_to_begin_again(&error) => return None,
                Err(error) => assert_eq!(error.code, Code::ServiceUnavailable, "{error}"),
            }
            self.behind = false;
        }
        match block_on(ask(&self.now.service, operation, body)) {
            Ok(page) => Some(page),
            Err(error) if is_to_begin_again(&error) => None,
            Err(error) => panic!("{error}: {body}"),
        }
    }
}

/// A key without a record, as one.
fn lies(table: &Record, key: &str) -> KeyRecord {
    let of = table.layouts.of(key.as_bytes());
    KeyRecord {
        key: key.as_bytes().to_vec(),
        key_type: KeyType::S,
        layout: of.map_or_else(|| layout(1), |of| (**of).clone()),
        moves: None,
        settled: true,
        reserved: of.map_or(1, |of| of.shards),
        version: 0,
        changed: 0,
        since: 0,
    }
}

#[test]
fn a_scan_across_moves_shows_every_item() {
    let cases = crate::setting("HEATSINK_ACROSS", 150);
    let first = crate::setting("HEATSINK_SEED", 1);
    let mut gave_up = 0;
    'cases: for seed in first..first + cases {
        let mut rng = Rng::with_seed(seed);
        let calm = rng.u32(..4) == 0;
        let rests = calm && rng.bool();
        let mut town = Town::new(&mut rng, rests);
        for _ in 0..rng.usize(..12) {
            town.step(&mut rng);
        }
        if rests {
            // Every gateway knows all.
            town.before = None;
        }
        let habit = Habit::draw(&mut rng);
        let mut body = json!({ "TableName": town.table.name });
        if rng.u32(..4) > 0 {
            body["Limit"] = json!(rng.u32(1..9));
        }
        let index = [None, None, Some("t-n"), Some("by-t"), Some("inverted")][rng.usize(..5)];
        if let Some(index) = index {
            body["IndexName"] = json!(index);
        }
        let segments = if rng.u32(..3) == 0 { rng.usize(2..5) } else { 1 };
        let first_pages: Vec<Json> = (0..segments)
            .map(|segment| {
                let mut body = body.clone();
                if segments > 1 {
                    body["TotalSegments"] = json!(segments);
                    body["Segment"] = json!(segment);
                }
                body
            })
            .collect();
        let mut reads = first_pages.clone();
        let mut shown: BTreeMap<String, usize> = BTreeMap::new();
        let (mut changes, mut turns, mut agains) = (town.changes, town.turns, 0);
        // In PREPARE each segment shows the items of the key; a gateway may be a step behind.
        let (mut begun, mut pages, mut prepared) = (0, 0, false);
        while !reads.is_empty() {
            // All segments begin before the first change.
            let at = if begun < segments { begun.min(reads.len() - 1) } else { rng.usize(..reads.len()) };
            if begun >= segments && !calm {
                (0..rng.usize(..3)).for_each(|_| town.step(&mut rng));
            }
            let prepares = |phase| matches!(phase, Phase::Prepare | Phase::Hold);
            prepared |= segments > 1 && town.any_in(prepares);
            let moves = town.moves();
            let Some(page) = town.page(&mut rng, Operation::Scan, &reads[at]) else {
                let position = &reads[at]["ExclusiveStartKey"];
                assert!(
                    !is_marked(position) || town.turns > turns || town.turned,
                    "seed {seed}: {position} says all that there is to say"
                );
                assert!(moves || !rests, "seed {seed}: {position} is refused at rest");
                assert!(
                    habit == Habit::Rebuilds || town.changes > changes || town.turned,
                    "seed {seed}: {position} is refused, and nothing has changed since it was given out"
                );
                agains += 1;
                if agains > 3 {
                    // Its pages are too short for a time of changes.
                    gave_up += 1;
                    continue 'cases;
                }
                (reads, shown, begun, prepared) = (first_pages.clone(), BTreeMap::new(), 0, false);
                (changes, turns) = (town.changes, town.turns);
                continue;
            };
            if town.behind && reads[at].get("ExclusiveStartKey").is_none() {
                // It begins before the last change, by what that gateway knows.
                changes = town.changes - town.changed_by_last;
                // The last step may have turned the table.
                turns = turns.min(town.turns.saturating_sub(1));
            }
            begun += 1;
            pages += 1;
            assert!(pages < 2_000, "seed {seed}: it does not end: {page}");
            for item in page["Items"].as_array().unwrap() {
                *shown.entry(item.to_string()).or_default() += 1;
            }
            match habit.hands_back(&page) {
                Some(last) => reads[at]["ExclusiveStartKey"] = last,
                // Segments that end with their first page must not shift the others.
                None if begun < segments => reads[at]["ended"] = json!(true),
                None => drop(reads.remove(at)),
            }
            if begun == segments {
                reads.retain(|read| read.get("ended").is_none());
            }
        }
        let held = |item: &&Json| matches!(index, None | Some("inverted")) || item.get("t").is_some();
        for item in town.items.iter().filter(held) {
            let times = shown.remove(&item.to_string()).unwrap_or_default();
            assert!(times > 0, "seed {seed}: {item} is missing of {body} {}", town.rules);
            assert!(
                times == 1 || town.changes > changes || prepared,
                "seed {seed}: {habit:?}, moves {}, rests {rests}: {item} is shown {times} times by {body} {}",
                town.moves(),
                town.rules
            );
        }
        assert!(shown.is_empty(), "seed {seed}: {shown:?} are no items of {body}");
    }
    assert!(gave_up * 4 < cases, "{gave_up} of {cases} Scans had to begin again more than three times");
}

/// Rows with equal index keys have an order of their own while keys move. Where one is in the way
/// of a page that goes on, the Query is refused.
#[test]
fn an_index_query_across_moves_shows_every_item_once() {
    let (mut whole, cases) = (0, crate::setting("HEATSINK_ACROSS", 150));
    let first = crate::setting("HEATSINK_SEED", 1);
    for seed in first..first + cases {
        let mut rng = Rng::with_seed(seed);
        let calm = rng.u32(..3) == 0;
        let rests = calm && rng.bool();
        let mut town = Town::new(&mut rng, rests);
        for _ in 0..rng.usize(..12) {
            town.step(&mut rng);
        }
        let habit = Habit::draw(&mut rng);
        let (index, name, value) = match rng.u32(..4) {
            0 => ("t-n", "t", format!("t{}", rng.u32(..3))),
            1 => ("inverted", "sk", format!("s{:02}", rng.u32(..6))),
            local => (["pk-t", "by-t"][local as usize - 2], "pk", KEYS[rng.usize(..MOVING)].to_owned()),
        };
        let mut body = json!({
            "TableName": town.table.name, "IndexName": index, "Limit": rng.u32(1..6), "KeyConditionExpression": "#k = :k",
            "ExpressionAttributeNames": { "#k": name }, "ExpressionAttributeValues": { ":k": { "S": value } },
            "ScanIndexForward": rng.bool(),
        });
        let changes = town.changes;
        let mut shown: BTreeMap<String, usize> = BTreeMap::new();
        let ended = loop {
            let page = match block_on(ask(&town.now.service, Operation::Query, &body)) {
                Ok(page) => page,
                Err(error) => {
                    assert!(error.to_string().contains("is of another layout"), "seed {seed}: {error}");
                    break false;
                }
            };
            for item in page["Items"].as_array().unwrap() {
                *shown.entry(format!("{} {}", item["pk"], item["sk"])).or_default() += 1;
            }
            match habit.hands_back(&page) {
                Some(last) => body["ExclusiveStartKey"] = last,
                None => break true,
            }
            if !calm {
                (0..rng.usize(..3)).for_each(|_| town.step(&mut rng));
            }
        };
        let moves = town.moves();
        let may_be_refused = town.changes > changes || habit == Habit::Rebuilds && (moves || !rests);
        assert!(ended || may_be_refused, "seed {seed}: {habit:?}, refused though nothing has changed");
        whole += usize::from(ended && town.changes > changes);
        let held = |item: &&Json| item[name]["S"] == value && (name == "sk" || item.get("t").is_some());
        for item in town.items.iter().filter(held) {
            let times = shown.remove(&format!("{} {}", item["pk"], item["sk"])).unwrap_or_default();
            assert!(
                times == 1 || !ended && times == 0,
                "seed {seed}: {item} is shown {times} times by {body}"
            );
        }
        assert!(shown.is_empty(), "seed {seed}: {shown:?} are no items of {body}");
    }
    assert!(whole > 0, "no Query went on across a change");
}
