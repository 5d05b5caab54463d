//! The two stores that are compared: one embedded engine as it is, one behind sharding.

use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::RealEnv;
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;

use crate::schema::Table;

/// The rules that cases draw from. `*` is every table with a sort key and a partition key that can take a suffix.
pub const RULES: &[&str] = &[
    r#"rule = [{ table = "*", strategy = "calculated", shards = 4 }]"#,
    r#"rule = [{ table = "*", strategy = "calculated", shards = 2 }]"#,
    r#"rule = [{ table = "*", strategy = "calculated", shards = 1 }]"#,
    r#"rule = [{ table = "*", strategy = "calculated", shards = 13 }]"#,
    r##"rule = [{ table = "Strings", strategy = "calculated", shards = 7, by = { attribute = "sk", separator = "#", part = 1 } }]"##,
    r##"rule = [
        { table = "S*", keys = "game*", strategy = "calculated", shards = 5 },
        { table = "S*", keys = "a", strategy = "calculated", shards = 3 },
        { table = "Numbers", strategy = "calculated", shards = 3 },
    ]"##,
    r#"rule = [{ table = "*", strategy = "random", shards = 5 }]"#,
    r#"rule = [{ table = "*", strategy = "bucket", bucket = "day" }]"#,
    r#"rule = [{ table = "*", strategy = "bucket", bucket = "month", shards = 3 }]"#,
    r##"rule = [
        { table = "*", keys = "*1*", strategy = "bucket", bucket = "hour", shards = 2, by = { attribute = "sk", separator = "#", part = 1 } },
        { table = "*", keys = "a*", strategy = "bucket", bucket = "day" },
        { table = "*", keys = "g*", strategy = "calculated", shards = 3 },
    ]"##,
    r##"rule = [{ table = "*", strategy = "template", template = "{pk}#{shard}", hash = "md5", shards = 4 }]"##,
    r##"rule = [
        { table = "*", keys = "game*", strategy = "template", template = "{pk}.{shard+1}", hash = "fnv1a32", shards = 3 },
        { table = "S*", keys = "a*", strategy = "template", template = "{pk}#~{shard}", hash = "sha256", shards = 2, by = { attribute = "sk", separator = "#", part = 1 } },
    ]"##,
    r#"rule = [{ table = "*", strategy = "counter", attributes = ["c"], shards = 4 }]"#,
    r#"rule = [{ table = "*", strategy = "counter", attributes = ["c", "unused"], shards = 13 }]"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "counter", attributes = ["c"], shards = 3 },
        { table = "*", keys = "a*", strategy = "calculated", shards = 3 },
    ]"#,
    r##"rule = [{ table = "Times", strategy = "template", template = "{pk}#{bucket:%Y%m%d}#{shard}", bucket = "day", hash = "fnv1a64", shards = 2 }]"##,
    r#"rule = [
        { table = "*", strategy = "calculated", shards = 3 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 4 },
        { table = "*", index = "t-only", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 5 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 2 },
    ]"#,
    r#"rule = [
        { table = "*", index = "t-b", strategy = "calculated", shards = 3 },
        { table = "*", index = "t-only", strategy = "calculated", shards = 13 },
        { table = "*", index = "t-n", keys = "t1*", strategy = "calculated", shards = 4 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 3 },
    ]"#,
];

/// The rules of a case; only of those that hold `HEATSINK_RULES`, if it is set.
pub fn draw(rng: &mut Rng) -> String {
    let named = std::env::var("HEATSINK_RULES").unwrap_or_default();
    let rules: Vec<&str> = RULES.iter().copied().filter(|rules| rules.contains(&named)).collect();
    rules[rng.usize(..rules.len())].to_owned()
}

/// A gateway's service, seen as a store.
pub struct Sharded(Service);

impl Store for Sharded {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        self.0.call(operation, body).boxed()
    }
}

fn create(store: &dyn Store, tables: &[Table]) {
    for table in tables {
        let body = Bytes::from(table.create().to_string());
        block_on(store.call(Operation::CreateTable, body)).expect("the table is valid");
    }
}

/// The engine as it is.
pub fn unsharded(tables: &[Table]) -> Arc<dyn Store> {
    let store = Embedded::memory().expect("memory");
    create(&store, tables);
    Arc::new(store)
}

/// The same engine behind a service that shards by rules.
pub struct World {
    pub service: Sharded,
    /// The engine itself, with physical keys.
    pub raw: Arc<dyn Store>,
    /// Which layouts are in force.
    pub control: Control,
}

impl World {
    /// A service on a fresh engine, with the tables made through it.
    pub fn new(tables: &[Table], rules: &str) -> World {
        let raw: Arc<dyn Store> = Arc::new(Embedded::memory().expect("memory"));
        let world = World::before(raw.clone(), raw, rules);
        create(&world.service, tables);
        world
    }

    /// A gateway that reaches the engine `raw` through `store`. Its tables are made by another.
    pub fn before(raw: Arc<dyn Store>, store: Arc<dyn Store>, rules: &str) -> World {
        let env = Arc::new(RealEnv);
        let rules = Rules::read("rules", rules).expect("the rules are valid");
        let control =
            block_on(Control::start(store.clone(), env.clone(), rules)).expect("the registry can be read");
        let service = Sharded(Service::new(store, control.clone(), env, Limits::default(), "us-east-1"));
        World { service, raw, control }
    }
}
