//! The differential test with several clients at once, each at a gateway of its own, all before one
//! store.
//!
//! Gateways' requests arrive at the store late, in an order that the seed decides, and the store
//! carries out one after another. So each write has a moment, that of its last physical write, and
//! the unsharded store is given the same writes in the order of their moments: every answer must be
//! equal, and so must what both stores hold in the end. A read of one request must be what an
//! unsharded store answers at some moment between its beginning and its end. A Query or Scan over
//! shards is no snapshot (docs/reference/compatibility.md), but every row that was there throughout
//! must be in it once and in its place, and every row in it must have been there at some moment.
//!
//! One thread, whose tasks take turns as the seed says: a failure replays with its seed.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::executor::LocalPool;
use futures::future::BoxFuture;
use futures::task::LocalSpawnExt;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::compare::{self, Answer};
use crate::generate::{self, Step};
use crate::judge::Judge;
use crate::late::Late;
use crate::shrink::Case;
use crate::world::{self, World};
use crate::{counters, physical};

const GATEWAYS: usize = 4;

/// Counts what the store is asked for, and remembers when its gateway last wrote an item.
struct Watched {
    store: Arc<dyn Store>,
    clock: Arc<AtomicUsize>,
    written: Mutex<Option<usize>>,
}

impl Store for Watched {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            let now = self.clock.fetch_add(1, Ordering::Relaxed);
            let text = String::from_utf8_lossy(&body).into_owned();
            if writes(operation.name(), &text) && !text.contains(heatsink_layout::DIRECTORY) {
                *self.written.lock().expect("no panic") = Some(now);
            }
            self.store.call(operation, body).await
        }
        .boxed()
    }
}

fn writes(operation: &str, body: &str) -> bool {
    match operation {
        "ExecuteStatement" => !body.contains("SELECT"),
        _ => ["PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems"]
            .contains(&operation),
    }
}

/// What became of a step. Times count the store's requests.
struct Done {
    step: Step,
    begin: usize,
    end: usize,
    /// The last physical write.
    written: Option<usize>,
    answer: Answer,
}

/// Requests for several clients at once: single-item and set operations, and reads that show whole
/// items.
fn steps(rng: &mut Rng, case: &Case, count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    while steps.len() < count {
        let mut more = generate::steps(rng, &case.tables, count);
        if counters::has(&case.rules) {
            counters::count(rng, &mut more);
            counters::write_one(&mut more);
        }
        steps.extend(more.into_iter().filter(usable));
    }
    steps.truncate(count);
    steps
}

fn usable(step: &Step) -> bool {
    let whole = |step: &Step| {
        let part = ["ProjectionExpression", "AttributesToGet", "Select"];
        part.iter().all(|member| step.body.get(member).is_none())
    };
    match step.operation.as_str() {
        "Query" | "Scan" => whole(step),
        "ExecuteStatement" => {
            let text = step.body["Statement"].as_str().unwrap_or_default();
            !text.starts_with("SELECT") || text.starts_with("SELECT * ")
        }
        "GetItem" | "BatchGetItem" | "TransactGetItems" => true,
        name => writes(name, ""),
    }
}

/// Runs the case's steps, dealt to the gateways; the first thing that no unsharded store would have
/// answered.
fn run(case: &Case, seed: u64, tally: &mut Counts) -> Option<String> {
    let world = World::new(case.judge, &case.tables, &case.rules);
    let clock = Arc::new(AtomicUsize::new(0));
    let mut pool = LocalPool::new();
    let done = Rc::new(RefCell::new(Vec::new()));
    for gateway in 0..GATEWAYS {
        let watched =
            Arc::new(Watched { store: world.raw.clone(), clock: clock.clone(), written: Mutex::default() });
        let late = Late::new(watched.clone(), seed.wrapping_mul(31).wrapping_add(gateway as u64));
        let own = World::before(world.raw.clone(), Arc::new(late), &case.rules);
        let steps: Vec<Step> = case.steps.iter().skip(gateway).step_by(GATEWAYS).cloned().collect();
        let (clock, done) = (clock.clone(), done.clone());
        let client = async move {
            for step in steps {
                let begin = clock.load(Ordering::Relaxed);
                *watched.written.lock().expect("no panic") = None;
                let answer = compare::run_beside_others(&own.service, &step).await;
                let end = clock.load(Ordering::Relaxed);
                let written = *watched.written.lock().expect("no panic");
                done.borrow_mut().push(Done { step, begin, end, written, answer });
            }
        };
        pool.spawner().spawn_local(client).expect("the pool takes tasks");
    }
    pool.run();
    let done = done.take();
    History::new(case, done).check(tally).or_else(|| {
        let plain = tally.plain.take()?;
        // A gateway knows a table's layouts once it was asked for the table.
        for table in &case.tables {
            let scan = Step { operation: "Scan".to_owned(), body: json!({"TableName": table.name}) };
            compare::run(&world.service, &scan);
        }
        physical::misplaced(case, &*plain, &world)
    })
}

/// What a run met.
#[derive(Default)]
struct Counts {
    writes: usize,
    reads: usize,
    /// Reads beside which something was written.
    overlapped: usize,
    /// Refused by design, or given up after conflicts.
    skipped: usize,
    /// The unsharded store at the end of a case whose writes were all compared.
    plain: Option<Arc<dyn Store>>,
}

/// All steps of a case, to be held against one unsharded store.
struct History<'a> {
    case: &'a Case,
    /// In the order of their moments.
    writes: Vec<Done>,
    reads: Vec<Done>,
}

impl<'a> History<'a> {
    fn new(case: &'a Case, done: Vec<Done>) -> History<'a> {
        let (mut writes, reads): (Vec<Done>, Vec<Done>) =
            done.into_iter().partition(|done| writes(&done.step.operation, &done.step.body.to_string()));
        // A write that never reached the store was refused for what it says, at any moment.
        writes.sort_by_key(|done| done.written.unwrap_or(done.end));
        History { case, writes, reads }
    }

    fn check(&self, tally: &mut Counts) -> Option<String> {
        let plain = world::unsharded(self.case.judge, &self.case.tables);
        // How many writes had come when each moment came.
        let version =
            |time: usize| self.writes.partition_point(|write| write.written.unwrap_or(write.end) < time);
        let mut seen: Vec<Vec<Answer>> = self.reads.iter().map(|_| Vec::new()).collect();
        for now in 0..=self.writes.len() {
            for (read, seen) in self.reads.iter().zip(&mut seen) {
                if (version(read.begin)..=version(read.end)).contains(&now) {
                    seen.push(compare::run(&*plain, &read.step));
                }
            }
            let Some(write) = self.writes.get(now) else { continue };
            if given_up(&write.step, &write.answer) {
                tally.skipped += 1;
                continue;
            }
            tally.writes += 1;
            let left = compare::run(&*plain, &write.step);
            if let Some(what) = compare::difference(self.case, &write.step, &left, &write.answer) {
                return Some(format!("{} {}\n{what}", write.step.operation, write.step.body));
            }
        }
        tally.plain = Some(plain);
        self.reads.iter().zip(seen).find_map(|(read, seen)| {
            if given_up(&read.step, &read.answer) {
                tally.skipped += 1;
                return None;
            }
            tally.reads += 1;
            tally.overlapped += usize::from(seen.len() > 1);
            let what = self.impossible(read, &seen)?;
            Some(format!("{} {}\n{what}", read.step.operation, read.step.body))
        })
    }

    /// Why no moment of `seen` explains what was read.
    fn impossible(&self, read: &Done, seen: &[Answer]) -> Option<String> {
        let differences: Vec<String> = seen
            .iter()
            .map_while(|seen| compare::difference(self.case, &read.step, seen, &read.answer))
            .collect();
        if differences.len() < seen.len() {
            return None;
        }
        let gathered = ["Query", "Scan", "ExecuteStatement"].contains(&read.step.operation.as_str());
        if !gathered || seen.len() == 1 || read.answer.error.is_some() {
            return Some(format!("like no moment of {}: {}", seen.len(), differences.join("\n")));
        }
        let texts = |answer: &Answer| -> Vec<String> {
            compare::rows(answer).into_iter().map(Json::to_string).collect()
        };
        let got = texts(&read.answer);
        let moments: Vec<BTreeSet<String>> =
            seen.iter().map(|seen| texts(seen).into_iter().collect()).collect();
        let throughout = |row: &&String| moments.iter().all(|moment| moment.contains(*row));
        let (first, kept): (Vec<String>, Vec<&String>) =
            (texts(&seen[0]), got.iter().filter(throughout).collect());
        let mut expected: Vec<&String> = first.iter().filter(throughout).collect();
        let mut kept = kept;
        if !ordered(&read.step) {
            expected.sort_unstable();
            kept.sort_unstable();
        }
        if expected != kept {
            return Some(format!(
                "rows that were there throughout\n  unsharded {expected:?}\n  sharded   {kept:?}"
            ));
        }
        // The rows of a counter are added up as they are read, one shard after the other.
        if counters::has(&self.case.rules) {
            return None;
        }
        got.iter()
            .find(|row| moments.iter().all(|moment| !moment.contains(*row)))
            .map(|row| format!("a row that was never there: {row}"))
    }
}

/// Whether rows have one order only.
fn ordered(step: &Step) -> bool {
    let text = step.body["Statement"].as_str().unwrap_or_default();
    step.operation == "Query" && step.body.get("IndexName").is_none()
        || step.operation == "ExecuteStatement" && !text.ends_with("-- sets")
}

/// Whether the answer says that nothing was done, which an unsharded store would not have said: by
/// design, or after too many conflicts.
fn given_up(step: &Step, answer: &Answer) -> bool {
    compare::refused_by_design(step, answer).is_some()
        || answer.error.as_ref().is_some_and(|(code, _, _)| code == "TransactionConflictException")
}

#[test]
fn gateways_at_once_answer_as_one_unsharded_table() {
    let first = crate::setting("HEATSINK_SEED", 1);
    let in_case = 100;
    let cases = crate::setting("HEATSINK_STEPS", 100_000).div_ceil(20 * in_case);
    let mut tally = Counts::default();
    for seed in first..first + cases {
        let mut rng = Rng::with_seed(seed);
        let rules = world::draw(&mut rng, Judge::Engine);
        let tables = counters::tables(&rules);
        let mut case = Case { rules, tables, steps: Vec::new(), large: false, judge: Judge::Engine };
        case.steps = steps(&mut rng, &case, in_case as usize);
        if let Some(what) = run(&case, seed, &mut tally) {
            panic!(
                "seed {seed}, rules {}\n{what}\nreplay: HEATSINK_SEED={seed} HEATSINK_STEPS=1 cargo test -p heatsink --test differential gateways_at_once",
                case.rules
            );
        }
    }
    let Counts { writes, reads, overlapped, skipped, .. } = tally;
    println!(
        "{cases} cases: {writes} writes and {reads} reads, {overlapped} of them beside writes; {skipped} refused by design"
    );
    assert!(overlapped * 4 > reads && reads > 0, "hardly anything happened at once");
}
