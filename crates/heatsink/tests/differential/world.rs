//! The two stores that are compared: one as it is, one of the same kind behind sharding.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, Prepared, REGISTRY, Rules};
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{ManualEnv, RealEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::changing;
use crate::judge::Judge;
use crate::lacking;
use crate::recorded;
use crate::schema::Table;
use crate::stepping;
use crate::together::{self, Moved};
use crate::valued;
use crate::widening;

/// The rules that cases draw from. `*` is every table with a sort key; of numbers, where the rule
/// has no buckets and no template.
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
    r#"rule = [{ table = "*", strategy = "bucket", bucket = "week", shards = 2 }]"#,
    r##"rule = [{ table = "*", strategy = "template", template = "{shard:02}#{pk}", hash = "crc32", shards = 4 }]"##,
    r##"rule = [
        { table = "S*", keys = "game*", strategy = "template", template = "{shard+1}.{pk}", hash = "java_abs", shards = 3 },
        { table = "*", keys = "a*", strategy = "template", template = "{pk}#{shard:02}", hash = "sha1", hex_digits = 8, shards = 12 },
    ]"##,
    r##"rule = [{ table = "Times", strategy = "template", template = "{bucket}/{pk}#{shard}", bucket = "week", hash = "md5", hex_digits = -4, shards = 2 }]"##,
    r##"rule = [{ table = "*", strategy = "template", template = "{shard}#{pk}", hash = "random", shards = 3 }]"##,
    r#"rule = [{ table = "*", strategy = "counter", attributes = ["c"], shards = 4 }]"#,
    r#"rule = [{ table = "*", strategy = "counter", attributes = ["c", "unused"], shards = 13 }]"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "counter", attributes = ["c"], shards = 3 },
        { table = "*", keys = "a*", strategy = "calculated", shards = 3 },
    ]"#,
    r##"rule = [{ table = "Times", strategy = "template", template = "{pk}#{bucket:%Y%m%d}#{shard}", bucket = "day", hash = "fnv1a64", shards = 2 }]"##,
    r##"rule = [{ table = "*", strategy = "template", template = "{pk}#{shard}", hash = "random", shards = 4 }]"##,
    r##"rule = [
        { table = "*", keys = "game*", strategy = "template", template = "{pk}.{shard+1}", hash = "random", shards = 3 },
        { table = "S*", keys = "a*", strategy = "template", template = "{pk}#~{shard}", hash = "sha256", shards = 2 },
    ]"##,
    r##"rule = [{ table = "Times", strategy = "template", template = "{pk}#{bucket}#{shard}", bucket = "day", hash = "random", shards = 3 }]"##,
    r##"rule = [
        { table = "*", strategy = "template", template = "{pk}#{shard}", hash = "random", shards = 3 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 3 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 2 },
    ]"##,
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
    r#"rule = [
        { table = "*", index = "t-b", strategy = "calculated", shards = 3 },
        { table = "*", index = "t-only", strategy = "calculated", shards = 4 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 3 },
    ]
    # spreading"#,
    r#"rule = [
        { table = "*", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 2 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 3 },
    ]
    # bringing back"#,
    r#"rule = [
        { table = "*", strategy = "counter", attributes = ["c"], shards = 3 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 3 },
        { table = "*", index = "t-only", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 4 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 2 },
        { table = "*", index = "t_n", strategy = "calculated", shards = 2 },
    ]"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "counter", attributes = ["c"], shards = 4 },
        { table = "*", keys = "a*", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 3 },
        { table = "*", index = "t-only", strategy = "calculated", shards = 3 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 3 },
    ]
    # spreading"#,
    r#"rule = [
        { table = "*", strategy = "counter", attributes = ["c"], shards = 2 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-n", keys = "t1*", strategy = "calculated", shards = 3 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 2 },
    ]
    # bringing back"#,
    r#"rule = [{ table = "*", index = "t_n", strategy = "calculated", shards = 4 }]"#,
    r#"rule = [
        { table = "*", strategy = "calculated", shards = 3 },
        { table = "*", index = "t_n", strategy = "calculated", shards = 2 },
    ]"#,
    r##"rule = [
        { table = "S*", strategy = "template", template = "{pk}#{shard}", hash = "random", shards = 2 },
        { table = "S*", index = "t_n", keys = "t1*", strategy = "calculated", shards = 3 },
    ]"##,
    r#"rule = [
        { table = "S*", keys = "g*", strategy = "calculated", shards = 2 },
        { table = "S*", index = "t_n", strategy = "calculated", shards = 3 },
    ]
    # spreading"#,
    r#"rule = [{ table = "S*", index = "t_n", strategy = "calculated", shards = 2 }]
    # bringing back"#,
    r#"rule = []
    # keys on record"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "calculated", shards = 5 },
        { table = "*", keys = "b", strategy = "calculated", shards = 3 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 3 },
    ]
    # keys on record"#,
    r#"rule = [
        { table = "*", index = "t-b", strategy = "calculated", shards = 3 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 3 },
    ]
    # keys on record"#,
    r#"rule = []
    # keys move"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "calculated", shards = 5 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 3 },
    ]
    # keys move"#,
    r#"rule = [{ table = "*", strategy = "calculated", shards = 5 }]
    # tables enter keys"#,
    r#"rule = [
        { table = "*", strategy = "calculated", shards = 3 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 3 },
    ]
    # tables have turned"#,
    r#"rule = []
    # counters widen"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "counter", attributes = ["c"], shards = 2 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 3 },
    ]
    # counters widen"#,
    r#"rule = [{ table = "*", strategy = "bucket", bucket = "day", shards = 2 }]
    # buckets step"#,
    r##"rule = [
        { table = "*", keys = "*1*", strategy = "bucket", bucket = "hour", shards = 2, by = { attribute = "sk", separator = "#", part = 1 } },
        { table = "*", keys = "a*", strategy = "bucket", bucket = "day" },
        { table = "*", keys = "g*", strategy = "calculated", shards = 3 },
    ]
    # buckets step"##,
    r#"rule = [{ table = "*", strategy = "bucket", bucket = "week" }]
    # buckets step"#,
    r#"rule = [
        { table = "NumericKey", keys = "1*", strategy = "calculated", shards = 12 },
        { table = "NumericKey", keys = "-*", strategy = "counter", attributes = ["c"], shards = 3 },
        { table = "NumericKey", keys = "2.5*", strategy = "random", shards = 4 },
        { table = "NumericKey", index = "t-n", strategy = "calculated", shards = 3 },
    ]"#,
];

/// The same of worlds in which the values of index keys get another number of shards meanwhile.
pub const RESPREAD: &[&str] = &[
    r#"rule = [
        { table = "*", index = "t-b", strategy = "calculated", shards = 7 },
        { table = "*", index = "t-only", strategy = "calculated", shards = 7 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 7 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 5 },
    ]
    # from 2 shards"#,
    r#"rule = [
        { table = "*", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-only", strategy = "calculated", shards = 2 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 3 },
    ]
    # from 5 shards"#,
    r#"rule = [{ table = "S*", index = "t_n", keys = "t1*", strategy = "calculated", shards = 4 }]
    # from 3 shards"#,
    r#"rule = [
        { table = "*", strategy = "counter", attributes = ["c"], shards = 2 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 1 },
        { table = "*", index = "t-n", keys = "t1*", strategy = "calculated", shards = 3 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 6 },
    ]
    # from 4 shards"#,
    r#"rule = [
        { table = "*", strategy = "calculated", shards = 2 },
        { table = "*", index = "t-b", strategy = "calculated", shards = 6 },
        { table = "*", index = "t-only", keys = "t1*", strategy = "calculated", shards = 3 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 2 },
    ]
    # back to 4 shards"#,
    r#"rule = []
    # values on record"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "calculated", shards = 3 },
        { table = "*", keys = "a*", strategy = "counter", attributes = ["c"], shards = 2 },
    ]
    # values on record"#,
    r#"rule = []
    # values migrate"#,
    r#"rule = [{ table = "*", strategy = "calculated", shards = 2 }]
    # values migrate"#,
    r#"rule = []
    # keys move beside values"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "calculated", shards = 5 },
        { table = "*", keys = "t*", strategy = "calculated", shards = 2 },
    ]
    # keys move beside values"#,
    r#"rule = []
    # keys move beside values that migrate"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "calculated", shards = 5 },
        { table = "*", keys = "t*", strategy = "calculated", shards = 2 },
    ]
    # keys move beside values that migrate"#,
];

/// The same of worlds in which shards have slots by name.
pub const IN_SLOTS: &[&str] = &[
    r#"rule = []
    # keys in slots"#,
    r#"rule = []
    # keys move between slots"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "calculated", shards = 5 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 3 },
    ]
    # keys move between slots"#,
    r#"rule = [
        { table = "*", index = "t-b", strategy = "calculated", shards = 3 },
        { table = "*", index = "b-pk", strategy = "calculated", shards = 3 },
    ]
    # keys in slots"#,
];

/// The same of worlds with keys that lie in ranges of their sort keys.
pub const IN_RANGES: &[&str] = &[
    r##"rule = [
        { table = "S*", strategy = "range", split_at = ["02", "03#p2", "2026-06-29", "2026-07"] },
        { table = "Numbers", strategy = "range", split_at = [0, 2.5, 10, { N = "1782090000.5" }] },
        { table = "Bytes", strategy = "range", split_at = [{ B = "YSN+MA==" }, { B = "Yg==" }] },
        { table = "Times", strategy = "range", split_at = ["2026-06-29", "2026-07-01T01#p1"], consistency = "strong" },
        { table = "*", keys = "*1*", strategy = "range", split_at = ["03#p2"] },
        { table = "*", strategy = "range", split_at = ["01#p3", "02", "02#p0", "02#p1", "03", "04", "05"] },
        { table = "*", index = "t-n", strategy = "calculated", shards = 3 },
    ]"##,
    r##"rule = [
        { table = "*", keys = "g*", strategy = "range", split_at = ["02#p3", "2026-06-28T01"] },
        { table = "*", keys = "a*", strategy = "calculated", shards = 2 },
        { table = "*", keys = "b*", strategy = "counter", attributes = ["c"], shards = 2 },
    ]"##,
    r#"rule = []
    # keys in ranges"#,
    r#"rule = []
    # keys move between ranges"#,
    r#"rule = [{ table = "*", index = "t-n", strategy = "calculated", shards = 3 }]
    # keys move between ranges"#,
];

/// The same of worlds in which several keys move as a group, from their first step to their last.
/// Drawn where `HEATSINK_RULES` names them alone: what Scans, tokens and positions may show while
/// gateways are a step apart is not compared exactly yet.
pub const TOGETHER: &[&str] = &[
    r#"rule = []
    # keys move together"#,
    r#"rule = [
        { table = "*", keys = "g*", strategy = "calculated", shards = 5 },
        { table = "*", index = "t-n", strategy = "calculated", shards = 3 },
    ]
    # keys move together"#,
];

/// By how much the clocks of gateways are ahead of those that write the registry.
pub(crate) const A_DAY: Duration = Duration::from_secs(86_400);

/// After so many calls the next change of a counter is known: a case goes through all of them.
const CALLS: usize = 60;

/// The rules of a case; only of those that hold `HEATSINK_RULES`, if it is set.
pub fn draw(rng: &mut Rng, judge: Judge) -> String {
    let named = std::env::var("HEATSINK_RULES").unwrap_or_default();
    let can = |rules: &&str| judge == Judge::Engine || lacking::can(rules);
    let all = RULES.iter().chain(RESPREAD).chain(IN_SLOTS).chain(IN_RANGES).chain(TOGETHER).copied();
    let rules: Vec<&str> = all.filter(can).filter(|rules| rules.contains(&named)).collect();
    // Worlds that came later take some of the cases and leave the others what they were: a seed
    // goes on to name its case.
    let (widen, others): (Vec<&str>, Vec<&str>) = rules.into_iter().partition(|rules| widening::has(rules));
    let (step, others): (Vec<&str>, Vec<&str>) = others.into_iter().partition(|rules| stepping::has(rules));
    let (respread, others): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|rules| RESPREAD.contains(rules));
    let (slots, others): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|rules| IN_SLOTS.contains(rules));
    let (ranges, others): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|rules| IN_RANGES.contains(rules));
    let (together, others): (Vec<&str>, Vec<&str>) =
        others.into_iter().partition(|rules| together::has(rules));
    let one_in_sixteen = rng.clone().u32(..16);
    let groups = match one_in_sixteen {
        0 => [widen, others, respread, step, slots, ranges, together],
        1 | 2 => [respread, others, widen, step, slots, ranges, together],
        3 => [step, others, widen, respread, slots, ranges, together],
        4 => [slots, others, widen, respread, step, ranges, together],
        5 | 6 => [ranges, others, widen, respread, step, slots, together],
        _ => [others, widen, respread, step, slots, ranges, together],
    };
    let rules = groups.into_iter().find(|rules| !rules.is_empty()).unwrap_or_default();
    rules[rng.usize(..rules.len())].to_owned()
}

/// How index keys migrate.
#[derive(Clone, Copy)]
pub enum Turn {
    Rules {
        /// To what the rules say; otherwise from there to what was before.
        forward: bool,
        /// How many shards values had before, if they were spread.
        before: Option<u16>,
    },
    /// Values on record.
    Values,
}

/// How index keys are on their way under these rules, if they are: items hold both forms of their
/// values.
pub fn turns(rules: &str) -> Option<Turn> {
    let comment = rules.rsplit_once("# ")?.1.trim();
    match comment {
        "spreading" => Some(Turn::Rules { forward: true, before: None }),
        "bringing back" => Some(Turn::Rules { forward: false, before: None }),
        "values migrate" => Some(Turn::Values),
        _ => {
            let (way, shards) = comment.strip_suffix(" shards")?.rsplit_once(' ')?;
            let forward = way == "from";
            let before = shards.parse().ok().filter(|_| forward || way == "back to")?;
            Some(Turn::Rules { forward, before: Some(before) })
        }
    }
}

/// Gateways' services, seen as a store. Calls go to each in turn; all hear of what happens to
/// tables.
pub struct Sharded {
    gateways: Vec<(Service, Control)>,
    calls: AtomicUsize,
    /// Each gateway knows a change more than the one before it, and after so many calls the oldest
    /// takes no more. `None`: all take calls all the time.
    changes_after: Option<usize>,
    /// What has to wait for the change is answered at once: nothing would end it.
    waits: bool,
    /// Keys that move as a group, or whose fragments are folded.
    pub moved: Option<Moved>,
}

impl Sharded {
    fn new(gateways: Vec<(Service, Control)>) -> Self {
        Sharded { gateways, calls: AtomicUsize::new(0), changes_after: None, waits: false, moved: None }
    }

    /// Which gateway takes the next call.
    fn next(&self, operation: Operation) -> usize {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(after) = self.changes_after {
            if let Some(moved) = &self.moved {
                moved.come_to(call / after + 1);
            }
            // No two gateways are further apart than one change.
            return (call / after + call % 2).min(self.gateways.len() - 1);
        }
        // A retry with a token is the request that it was at the same gateway only, while an
        // adoption goes from step to step.
        let tokens = [Operation::TransactWriteItems, Operation::ExecuteTransaction].contains(&operation);
        if tokens { 0 } else { call % self.gateways.len() }
    }
}

impl Store for Sharded {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let at = self.next(operation);
        // Into buckets to come no client writes before their change begins.
        let knows = if self.moved.is_some() { at } else { at.max(1) };
        if self.waits
            && let Some(waits) = stepping::waits(&self.gateways[knows].1, operation, &body)
        {
            return async move { Err(waits) }.boxed();
        }
        let call = async move {
            let mut answer = self.gateways[at].0.call(operation, body.clone()).await;
            if let (Some(moved), Err(error)) = (&self.moved, &answer)
                && error.to_string().contains("has yet to learn of it")
            {
                // As clients do, it tries again: here at the gateway that knows more.
                answer = self.gateways[moved.newest()].0.call(operation, body).await;
            }
            if !operation.touches_items() {
                for (_, control) in &self.gateways {
                    control.after(operation, &[""; 0], Prepared::default(), answer.as_ref()).await;
                }
            }
            answer
        };
        call.boxed()
    }
}

fn create(judge: Judge, store: &dyn Store, tables: &[Table]) {
    for table in tables {
        let body = match judge {
            Judge::Engine => table.create(),
            Judge::DynamoDbLocal => lacking::without_stream(table.create()),
        };
        let body = Bytes::from(body.to_string());
        block_on(store.call(Operation::CreateTable, body)).expect("the table is valid");
    }
}

/// A store as it is.
pub fn unsharded(judge: Judge, tables: &[Table]) -> Arc<dyn Store> {
    let store = judge.store();
    create(judge, &*store, tables);
    store
}

/// Such a store behind a service that shards by rules.
pub struct World {
    pub service: Sharded,
    /// The store itself, with physical keys.
    pub raw: Arc<dyn Store>,
    /// Which layouts are in force.
    pub control: Control,
}

impl World {
    /// A service on a fresh store, with the tables made through it.
    pub fn new(judge: Judge, tables: &[Table], rules: &str) -> World {
        let raw = judge.store();
        let turn = turns(rules);
        let read = Rules::read("rules", rules).expect("the rules are valid");
        create(judge, &Sharded::new(vec![gateway(&raw, &read)]), tables);
        if recorded::has(rules) {
            tables.iter().for_each(|table| recorded::write(&raw, table, rules));
        }
        if let Some(phase) = changing::phase(rules) {
            tables.iter().for_each(|table| changing::write(&raw, table, phase));
        }
        if widening::has(rules) {
            let views = widening::VIEWS.map(|view| {
                tables.iter().for_each(|table| widening::write(&raw, table, rules, view));
                let gateway = gateway(&raw, &read);
                // It looks them up now, and not again.
                let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
                block_on(gateway.1.resolve(&names)).expect("the registry can be read");
                gateway
            });
            // Its layouts read whatever the others have written.
            let control = views.last().expect("there are some").1.clone();
            let controls = views.iter().map(|view| view.1.clone()).collect();
            let moved = Some(Moved::new(&raw, tables, controls));
            let changes_after = Some(widening::CALLS);
            let service = Sharded { changes_after, moved, ..Sharded::new(views.into()) };
            return World { service, raw, control };
        }
        if stepping::has(rules) {
            let views = stepping::VIEWS.map(|view| {
                tables.iter().for_each(|table| stepping::write(&raw, table, view));
                let gateway = gateway(&raw, &read);
                // It looks them up now, and not again.
                let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
                block_on(gateway.1.resolve(&names)).expect("the registry can be read");
                gateway
            });
            // Its layouts read whatever the others have written.
            let control = views.last().expect("there are some").1.clone();
            let service = Sharded { changes_after: Some(CALLS), waits: true, ..Sharded::new(views.into()) };
            return World { service, raw, control };
        }
        if together::has(rules) {
            let views: Vec<_> = (0..together::VIEWS)
                .map(|view| {
                    tables.iter().for_each(|table| together::write(&raw, table, view));
                    let gateway = gateway(&raw, &read);
                    // It looks them up now, and not again.
                    let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
                    block_on(gateway.1.resolve(&names)).expect("the registry can be read");
                    gateway
                })
                .collect();
            let controls: Vec<Control> = views.iter().map(|view| view.1.clone()).collect();
            let control = controls.last().expect("there are some").clone();
            let moved = Some(Moved::new(&raw, tables, controls));
            let changes_after = Some(together::CALLS);
            let service = Sharded { changes_after, waits: true, moved, ..Sharded::new(views) };
            return World { service, raw, control };
        }
        if valued::has(rules) && turn.is_none() {
            tables.iter().for_each(|table| valued::write(&raw, table, rules, false));
        }
        let Some(turn) = turn else { return World::before(raw.clone(), raw, rules) };
        // Two gateways between two steps of an adoption.
        let gateways = [false, true].map(|writes_new| {
            for table in tables {
                match turn {
                    Turn::Values => valued::write(&raw, table, rules, writes_new),
                    Turn::Rules { forward, before } => {
                        turn_on_record(judge, &*raw, table.name, (forward, before), writes_new)
                    }
                }
            }
            let gateway = gateway(&raw, &read);
            // It looks them up now, and not again.
            let names: Vec<&str> = tables.iter().map(|table| table.name).collect();
            let _ = block_on(gateway.1.resolve(&names));
            gateway
        });
        let control = gateways[0].1.clone();
        World { service: Sharded::new(gateways.into()), raw, control }
    }

    /// The layouts by which the newest gateway that takes calls goes.
    pub fn newest(&self) -> &Control {
        self.service.moved.as_ref().map_or(&self.control, Moved::control)
    }

    /// A gateway that reaches the store `raw` through `store`. Its tables are made by another.
    pub fn before(raw: Arc<dyn Store>, store: Arc<dyn Store>, rules: &str) -> World {
        let rules = Rules::read("rules", rules).expect("the rules are valid");
        let gateway = gateway(&store, &rules);
        let control = gateway.1.clone();
        World { service: Sharded::new(vec![gateway]), raw, control }
    }
}

/// A gateway whose clock stands still: what it knows of a table it does not look up again. What
/// others wrote into the registry they wrote a day ago: tables rest, unless the gateway itself sees
/// them change.
fn gateway(store: &Arc<dyn Store>, rules: &Rules) -> (Service, Control) {
    let env = Arc::new(ManualEnv::seeded(1));
    env.advance(A_DAY);
    let control =
        block_on(Control::start(store.clone(), env, rules.clone())).expect("the registry can be read");
    (Service::new(store.clone(), control.clone(), Arc::new(RealEnv), Limits::default(), "us-east-1"), control)
}

/// Makes the registry say that a table's index keys are on their way, as `heatsink adopt` does.
fn turn_on_record(
    judge: Judge,
    raw: &dyn Store,
    table: &str,
    (forward, before): (bool, Option<u16>),
    writes_new: bool,
) {
    let ask = |operation, body: Json| -> Result<Json, Error> {
        let answer = block_on(raw.call(operation, Bytes::from(body.to_string())))?;
        Ok(serde_json::from_slice(&answer).expect("JSON"))
    };
    let found = match ask(Operation::Scan, json!({ "TableName": REGISTRY })) {
        // It has no indexes of several key attributes, and rules for nothing else hold for none of
        // its tables.
        Err(error) if judge == Judge::DynamoDbLocal && error.code == Code::ResourceNotFoundException => {
            return;
        }
        found => found.expect("the store answers"),
    };
    // Its name has an entry too, and a store scans them in its own order.
    let of_table = |item: &&Json| item["name"]["S"] == table && item["sk"]["S"] == "table";
    let Some(record) = found["Items"].as_array().into_iter().flatten().find(of_table) else { return };
    let mut state = json!({
        "state": "TURNING", "attributes": ["t", "b"], "spreads": forward, "writes_new": writes_new, "touched": true, "items": 0, "run": 1,
    });
    let mut record = record.clone();
    if let Some(shards) = before {
        let text = record["layouts"]["S"].as_str().expect("a record has layouts");
        let mut before: Vec<Json> = serde_json::from_str(text).expect("JSON");
        before.retain(|layout| layout.get("index").is_some());
        before.iter_mut().for_each(|layout| layout["layout"]["shards"] = json!(shards));
        state["before"] = json!(before);
    }
    record["state"]["S"] = json!(state.to_string());
    // As somebody writes it who means it so.
    record.as_object_mut().expect("an item").remove("seal");
    ask(Operation::PutItem, json!({ "TableName": REGISTRY, "Item": record })).expect("the store answers");
}
