//! Items of the registry that are put back as they were before a later change, changed by hand, or
//! cut: none of them is believed, and each is named; put right, it is believed again.

use std::sync::Arc;
use std::time::Duration;

use futures::executor::block_on;
use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Control, Fencing, KeyRecord, Move, REGISTRY, Record, Rules, TableLayouts};
use heatsink_dynamo::{KeyType, KeyValue, Operation};
use heatsink_env::{Env, HastyEnv, ManualEnv};
use heatsink_layout::{By, Hash, Layout, LayoutSource, Phase, Strategy};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::support::{call, memory, table};

/// The longest that a gateway goes on with what it has read.
const LEASE: Duration = Duration::from_secs(60);

fn shards(shards: u16) -> Layout {
    let (strategy, hash) = (Strategy::calculated(By::SortKey), Hash::JumpXxh3);
    Layout { strategy, shards, hash, version: 1 }
}

fn at_rest(key: &str, layout: Layout, version: u64) -> KeyRecord {
    KeyRecord {
        key: key.as_bytes().to_vec(),
        key_type: KeyType::S,
        reserved: layout.shards,
        layout,
        moves: None,
        settled: true,
        version,
        changed: 0,
        since: 0,
    }
}

/// A key whose items move to four shards, above a high water.
fn moving(key: &str, version: u64) -> KeyRecord {
    let moves = Move {
        to: shards(4),
        phase: Phase::Move,
        reserved_before: 1,
        closing: false,
        expires: None,
        marks: false,
        high_water: Some(KeyValue::S("s77".into())),
    };
    KeyRecord { moves: Some(moves), settled: false, reserved: 4, ..at_rest(key, Layout::none(), version) }
}

/// A store with a registry, a table of which keys are on record, and a gateway of several.
struct World {
    store: Arc<dyn Store>,
    env: HastyEnv,
    registry: Registry,
    changer: Changer,
    table: Record,
}

impl World {
    fn new() -> Self {
        let store = memory();
        let env = HastyEnv(ManualEnv::seeded(1));
        let shared: Arc<dyn Env> = Arc::new(env.clone());
        let fencing = Fencing::exclusive(Rules::default().fence());
        let changer = Changer::beside(Arc::clone(&store), Arc::clone(&shared), fencing);
        let registry = Registry::new(Arc::clone(&store), shared, REGISTRY);
        let table = block_on(async {
            changer.freeze(false).await.unwrap();
            call(&*store, Operation::CreateTable, table("Tab", "S")).await;
            let described = registry.describe("Tab").await.unwrap().unwrap();
            let first = registry.first_record(&described, TableLayouts::default(), true);
            registry.create(None, &first).await.unwrap()
        });
        World { store, env, registry, changer, table }
    }

    /// Writes a key's record, and makes it known.
    fn write(&mut self, from: Option<&KeyRecord>, to: &KeyRecord) -> KeyRecord {
        let written = block_on(self.registry.replace_key(&self.table, from, to)).unwrap();
        let (table, key) = written.unwrap();
        self.table = table;
        block_on(self.changer.make_known("Tab", self.table.version)).unwrap();
        key
    }

    fn key(&self, key: &str) -> KeyRecord {
        block_on(self.registry.key_record(&self.table.id, key.as_bytes(), KeyType::S)).unwrap().unwrap()
    }

    fn started(&self) -> Result<Control, String> {
        let rules = Rules::default();
        let fencing = Fencing::shared(rules.fence(), "one");
        let joined = Control::join(Arc::clone(&self.store), Arc::new(self.env.clone()), rules, fencing);
        block_on(joined).map_err(|error| error.to_string())
    }

    fn gateway(&self) -> Control {
        self.started().unwrap()
    }

    /// What a gateway says of the table, whose lease is over.
    fn asked(&self, control: &Control) -> Result<(), String> {
        self.env.0.advance(LEASE + Duration::from_secs(1));
        block_on(control.resolve(&["Tab"])).map(drop).map_err(|error| error.to_string())
    }

    fn item(&self, pk: &str, sk: &str) -> Json {
        let key = json!({ "pk": { "S": pk }, "sk": { "S": sk } });
        let body = json!({ "TableName": REGISTRY, "Key": key, "ConsistentRead": true });
        block_on(call(&*self.store, Operation::GetItem, body))["Item"].take()
    }

    fn put(&self, item: &Json) {
        block_on(call(&*self.store, Operation::PutItem, json!({ "TableName": REGISTRY, "Item": item })));
    }

    /// Puts an item, asks a gateway that has served and one that starts, and puts what was there
    /// back: then both serve.
    fn refused_with(&self, served: &Control, item: &Json) -> [Result<(), String>; 2] {
        let right = self.item(item["pk"]["S"].as_str().unwrap(), item["sk"]["S"].as_str().unwrap());
        self.put(item);
        let started = self.started();
        let of_started = started.as_ref().map_err(String::clone).and_then(|control| self.asked(control));
        let told = [self.asked(served), of_started];
        self.put(&right);
        for gateway in [Some(served), started.as_ref().ok()].into_iter().flatten() {
            assert_eq!(self.asked(gateway), Ok(()), "it is right again");
        }
        told
    }
}

/// Both gateways refuse, and say why.
fn named(told: &[Result<(), String>], why: &str, item: &Json) {
    for told in told {
        assert!(told.as_ref().is_err_and(|told| told.contains(why)), "{told:?} with {item}");
    }
}

#[test]
fn a_tables_record_that_is_older_than_its_keys_is_refused() {
    let mut world = World::new();
    let id = world.table.id.clone();
    // Before any key was on record; before the second was; before the first changed.
    let none = world.item(&id, "table");
    let a = world.write(None, &at_rest("a", shards(4), 1));
    let one = world.item(&id, "table");
    world.write(None, &at_rest("b", shards(4), 1));
    let two = world.item(&id, "table");
    world.write(Some(&a), &at_rest("a", shards(8), 2));
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    for older in [&none, &one, &two] {
        // The head tells it, too, as long as it names the change.
        named(&world.refused_with(&served, older), "older than the head", older);
    }
    for number in 0..20 {
        block_on(world.changer.make_known(&format!("Other{number}"), 1)).unwrap();
    }
    for older in [&none, &one, &two] {
        named(&world.refused_with(&served, older), "older than the records of its keys", older);
    }
}

#[test]
fn a_keys_record_that_is_older_than_its_tables_is_refused() {
    let mut world = World::new();
    let id = world.table.id.clone();
    let a = world.write(None, &at_rest("a", Layout::none(), 1));
    let before = world.item(&id, "key:a");
    world.write(Some(&a), &at_rest("a", shards(4), 2));
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    let told = world.refused_with(&served, &before);
    // One that has served goes by what it has read, which is right.
    assert_eq!(told[0], Ok(()));
    named(&told[1..], "one of them is older", &before);
}

#[test]
fn a_tables_record_that_is_older_than_the_head_says_is_refused() {
    let world = World::new();
    let older = world.item(&world.table.id, "table");
    let next = Record { version: world.table.version + 1, ..world.table.clone() };
    assert!(block_on(world.registry.replace(&world.table, &next)).unwrap());
    block_on(world.changer.make_known("Tab", next.version)).unwrap();
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    named(&world.refused_with(&served, &older), "older than the head", &older);
}

/// What somebody's hand, or half a write, makes of an attribute.
fn changed(value: &Json) -> Vec<Json> {
    let mut all = vec![
        Json::Null,
        json!({ "S": "" }),
        json!({ "N": "0" }),
        json!({ "BOOL": true }),
        json!({ "L": [] }),
    ];
    if let Some(text) = value["S"].as_str() {
        let half = text.char_indices().map(|(at, _)| at).nth(text.chars().count() / 2).unwrap_or_default();
        all.extend([
            json!({ "S": &text[..half] }),
            json!({ "S": format!("{text}x") }),
            json!({ "B": "eA==" }),
        ]);
        // Each digit of it, one at a time.
        for (at, digit) in text.char_indices().filter(|(_, one)| one.is_ascii_digit()) {
            let other = if digit == '9' { '8' } else { char::from(digit as u8 + 1) };
            all.push(json!({ "S": format!("{}{other}{}", &text[..at], &text[at + 1..]) }));
        }
    }
    if let Some(number) = value["N"].as_str() {
        let number: u64 = number.parse().unwrap();
        all.extend(
            [number + 1, number.saturating_sub(1), number * 2, 1 << 62]
                .map(|n| json!({ "N": n.to_string() })),
        );
        all.extend(["-1", "1.5", "18446744073709551615"].map(|n| json!({ "N": n })));
        all.push(json!({ "S": number.to_string() }));
    }
    if let Some(flag) = value["BOOL"].as_bool() {
        all.push(json!({ "BOOL": !flag }));
    }
    all.retain(|other| other != value);
    all
}

#[test]
fn no_item_with_a_changed_attribute_is_believed() {
    let mut world = World::new();
    let id = world.table.id.clone();
    world.write(None, &moving("a", 1));
    world.write(None, &at_rest("b", shards(4), 1));
    block_on(world.changer.freeze(true)).unwrap();
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    let mut tried = 0;
    for (pk, sk) in [(&*id, "table"), (&id, "key:a"), (&id, "key:b"), ("name:Tab", "name"), ("head", "head")]
    {
        let right = world.item(pk, sk);
        for (name, value) in right.as_object().unwrap() {
            if ["pk", "sk", "seal"].contains(&name.as_str()) {
                continue;
            }
            for other in changed(value) {
                let mut item = right.clone();
                match other {
                    Json::Null => drop(item.as_object_mut().unwrap().remove(name)),
                    other => item[name] = other,
                }
                tried += 1;
                let [served, started] = world.refused_with(&served, &item);
                // One that has served goes by the records of keys that it has read.
                for told in [started].into_iter().chain((!sk.starts_with("key:")).then_some(served)) {
                    let why = told.expect_err(&format!("{name} of {sk}: {item}"));
                    let named = why.contains("damaged") || why.contains("another version");
                    assert!(named, "{name} of {sk}: {why}");
                }
            }
        }
    }
    assert!(tried > 300, "{tried}");
}

#[test]
fn no_item_in_the_place_of_another_is_believed() {
    let mut world = World::new();
    let id = world.table.id.clone();
    world.write(None, &at_rest("a", shards(4), 1));
    world.write(None, &at_rest("b", shards(8), 1));
    let other = {
        block_on(call(&*world.store, Operation::CreateTable, table("Other", "S")));
        let described = block_on(world.registry.describe("Other")).unwrap().unwrap();
        let first = world.registry.first_record(&described, TableLayouts::default(), true);
        block_on(world.registry.create(None, &first)).unwrap()
    };
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    for (from, to) in [
        ((&*other.id, "table"), (&*id, "table")),
        ((&id, "key:a"), (&id, "key:b")),
        (("name:Other", "name"), ("name:Tab", "name")),
    ] {
        let mut item = world.item(from.0, from.1);
        (item["pk"], item["sk"]) = (json!({ "S": to.0 }), json!({ "S": to.1 }));
        let told = world.refused_with(&served, &item);
        // One that has served goes by the records of keys that it has read.
        named(if to.1 == "key:b" { &told[1..] } else { &told }, "damaged", &item);
    }
}

/// Builds before the seal write none, and what they wrote is believed.
#[test]
fn an_item_without_a_seal_is_believed_as_it_was_before_there_was_one() {
    let mut world = World::new();
    let id = world.table.id.clone();
    world.write(None, &at_rest("a", shards(4), 1));
    let served = world.gateway();
    for (pk, sk) in [(&*id, "table"), (&id, "key:a"), ("name:Tab", "name"), ("head", "head")] {
        let mut item = world.item(pk, sk);
        assert!(item.as_object_mut().unwrap().remove("seal").is_some(), "{sk}");
        assert_eq!(world.refused_with(&served, &item), [Ok(()), Ok(())], "{sk}");
    }
}

/// A changer that has seen nothing yet, beside gateways.
fn changer_of(world: &World) -> Changer {
    let fencing = Fencing::shared(Rules::default().fence(), "changer");
    Changer::beside(Arc::clone(&world.store), Arc::new(world.env.clone()), fencing)
}

/// The head shows another epoch for a while, and is put right; then changes are counted up to where
/// it was.
#[test]
fn who_has_followed_a_head_that_was_ahead_acknowledges_nothing_and_looks_at_everything_anew() {
    let mut world = World::new();
    let a = world.write(None, &at_rest("a", Layout::none(), 1));
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    let right = world.item("head", "head");
    for _ in 0..4 {
        block_on(world.changer.make_known("Other", 1)).unwrap();
    }
    assert_eq!(world.asked(&served), Ok(()));
    world.put(&right);
    // A changer of now does not take the newer epoch for an acknowledgement of its change.
    let begun = world.env.now();
    block_on(changer_of(&world).announce("Other", 1)).unwrap();
    assert!(world.env.now().since(begun) >= LEASE, "{:?}", world.env.now().since(begun));
    let told = world.asked(&served).unwrap_err();
    assert!(told.contains("older epoch than before"), "{told}");
    let next = at_rest("a", shards(4), 2);
    (world.table, _) = block_on(world.registry.replace_key(&world.table, Some(&a), &next)).unwrap().unwrap();
    for _ in 0..3 {
        block_on(changer_of(&world).make_known("Tab", world.table.version)).unwrap();
    }
    assert_eq!(world.asked(&served), Ok(()));
    let layout = served.table("Tab").unwrap().layout_of(b"a").map(|layout| layout.shards);
    assert_eq!(layout, Some(4));
}

/// A head that was deleted is made anew, and every gateway looks at everything anew.
#[test]
fn a_head_that_is_lost_is_made_anew_beyond_all_that_was_acknowledged() {
    let mut world = World::new();
    let a = world.write(None, &at_rest("a", Layout::none(), 1));
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    let key = json!({ "pk": { "S": "head" }, "sk": { "S": "head" } });
    block_on(call(&*world.store, Operation::DeleteItem, json!({ "TableName": REGISTRY, "Key": key })));
    assert!(world.asked(&served).is_err());
    world.changer = changer_of(&world);
    world.write(Some(&a), &at_rest("a", shards(4), 2));
    assert_eq!(world.asked(&served), Ok(()));
    let layout = served.table("Tab").unwrap().layout_of(b"a").map(|layout| layout.shards);
    assert_eq!(layout, Some(4));
}

/// Commands and movers read records by themselves, and write by them.
#[test]
fn whoever_reads_a_tables_record_by_itself_compares_it_with_the_head() {
    let mut world = World::new();
    let id = world.table.id.clone();
    let a = world.write(None, &at_rest("a", shards(4), 1));
    let older = [world.item(&id, "table"), world.item(&id, "key:a")];
    world.write(Some(&a), &at_rest("a", shards(8), 2));
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    // One that has read it before, and has not followed the head since.
    let known = Registry::new(Arc::clone(&world.store), Arc::new(world.env.clone()), REGISTRY);
    block_on(known.read(&id)).unwrap();
    let key = world.write(Some(&world.key("a")), &at_rest("a", shards(2), 3));
    assert_eq!(key.version, 3);
    older.iter().for_each(|item| world.put(item));
    assert!(block_on(known.read(&id)).unwrap_err().to_string().contains("older than the head"));
    let read = || {
        let registry = Registry::new(Arc::clone(&world.store), Arc::new(world.env.clone()), REGISTRY);
        block_on(registry.read(&id)).map(drop).map_err(|error| error.to_string())
    };
    assert!(read().unwrap_err().contains("older than the head"));
    assert!(world.asked(&served).unwrap_err().contains("older than the head"));
    // Once the head names other changes, who has read the newer record still knows.
    for number in 0..20 {
        block_on(world.changer.make_known(&format!("Other{number}"), 1)).unwrap();
    }
    assert_eq!(read(), Ok(()), "nothing tells it");
    let told = world.asked(&served).unwrap_err();
    assert!(told.contains("older than this gateway has read before"), "{told}");
}

/// A registration is sent, its connection breaks, and it lands after the gateway has registered
/// again.
#[test]
fn a_registration_that_lands_late_is_replaced_and_damages_nothing() {
    let world = World::new();
    let served = world.gateway();
    assert_eq!(world.asked(&served), Ok(()));
    let (id, _) = served.identity();
    let late = world.item("gateways", id);
    block_on(world.changer.strike(id)).unwrap();
    assert_eq!(world.asked(&served), Ok(()));
    assert_ne!(world.item("gateways", id)["since"], late["since"]);
    world.put(&late);
    assert_eq!(world.asked(&served), Ok(()));
    let (_, listed) = block_on(world.changer.gateways()).unwrap().unwrap();
    assert_eq!(listed.len(), 1);
    assert_ne!(world.item("gateways", id)["since"], late["since"]);
}
