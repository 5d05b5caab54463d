//! The way from each process to the store and back. A request can be late, its answer can be lost,
//! a read can arrive twice, the store can throttle, and for a while it can describe a table as it
//! was before it was made or dropped.
//!
//! The store itself carries out one request at a time, at the moment when it arrives; but what one
//! BatchGetItem asks for can be read at two.

mod bodies;
mod link;
mod planned;
mod weather;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::channel::oneshot;
use futures::executor::block_on;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::MonotonicInstant;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use bodies::{
    REGISTRY, asks_for, id_of_record, is_of_registry, of_table, table_of, writes_head, writes_key_record,
};
use link::Link;
use planned::{Awaited, Planned, Requests};
use weather::{NEVER, QUICK};

pub use weather::{Fate, Lost, PAST, PATIENCE, Weather, latest};

use crate::TABLE;
use crate::clock::{Clock, ProcessEnv};
use crate::log::Log;

/// What DescribeTable answers.
type Described = Result<Bytes, Error>;

/// Answers to reads, by operation and body.
type Reads = HashMap<(&'static str, Bytes), Result<Bytes, Error>>;

pub struct Network {
    clock: Clock,
    log: Log,
    store: Embedded,
    state: Mutex<State>,
    /// Counts every event that the history knows of.
    ticks: AtomicU64,
}

struct State {
    rng: Rng,
    weather: Weather,
    planned: Vec<Planned>,
    /// How long requests wait for a connection before they are sent.
    connecting: Vec<(Requests, Duration)>,
    awaited: Vec<Awaited>,
    /// The records of keys as they are seen while a transaction is half done, and until when.
    torn: Option<(MonotonicInstant, Vec<Json>)>,
    /// When the record of a key was written last, and the head of the registry.
    key_changed: Option<MonotonicInstant>,
    published: Option<MonotonicInstant>,
    /// What reads of the tables showed since the last write, and reads of the registry.
    reads: [Reads; 2],
    /// The engine draws ids of tables by chance: the world sees the number of each instead.
    ids: Vec<String>,
    /// How each table was described before it was made or dropped, and until when.
    former: HashMap<String, Vec<(MonotonicInstant, Described)>>,
    /// When the table was dropped, in ticks.
    dropped: Vec<(u64, u64)>,
}

impl Network {
    pub fn new(clock: &Clock, log: &Log, seed: u64) -> Arc<Network> {
        let env = Arc::new(ProcessEnv::new(clock, seed));
        Arc::new(Network {
            clock: clock.clone(),
            log: log.clone(),
            store: Embedded::memory_with(env).unwrap(),
            state: Mutex::new(State {
                rng: Rng::with_seed(seed),
                weather: Weather::default(),
                planned: Vec::new(),
                connecting: Vec::new(),
                awaited: Vec::new(),
                torn: None,
                key_changed: None,
                published: None,
                reads: Default::default(),
                ids: Vec::new(),
                former: HashMap::new(),
                dropped: Vec::new(),
            }),
            ticks: AtomicU64::new(0),
        })
    }

    /// A link for a process of that name.
    pub fn link(self: &Arc<Self>, process: &str) -> Arc<dyn Store> {
        Arc::new(Link { network: Arc::clone(self), process: process.to_owned() })
    }

    /// Whether the record of a key was written in this span of time, up to now; or before, and not
    /// named in the head yet: then only gateways that have started since know of it.
    pub fn key_changed_within(&self, span: Duration) -> bool {
        let (changed, published) = {
            let state = self.state.lock().unwrap();
            (state.key_changed, state.published)
        };
        changed.is_some_and(|at| {
            self.clock.now().since(at) <= span || published.is_none_or(|published| published < at)
        })
    }

    pub fn set(&self, weather: Weather) {
        self.state.lock().unwrap().weather = weather;
    }

    /// The next so many requests of a process that hold a text meet that fate; of any process whose
    /// name begins so.
    pub fn plan(&self, process: &str, operation: Operation, text: &str, times: usize, fate: Fate) {
        let requests = Requests::of(process, operation, text);
        self.state.lock().unwrap().planned.push(Planned { requests, fate, times });
    }

    /// Waits until a process, or one whose name begins so, sends a request that holds a text, after
    /// so many others of that kind. Returns its name. With `vanishes` the request never arrives.
    pub fn sent(
        &self,
        process: &str,
        text: &str,
        before: usize,
        vanishes: bool,
    ) -> oneshot::Receiver<String> {
        let (process, text) = (process.to_owned(), text.to_owned());
        let (sent, waits) = oneshot::channel();
        self.state.lock().unwrap().awaited.push(Awaited { process, text, before, vanishes, sent });
        waits
    }

    /// Requests of a process that hold a text wait so long for a connection, planned as they are.
    pub fn connects(&self, process: &str, operation: Operation, text: &str, wait: Duration) {
        let requests = Requests::of(process, operation, text);
        self.state.lock().unwrap().connecting.push((requests, wait));
    }

    /// What was planned is forgotten.
    pub fn unplan(&self) {
        let state = &mut *self.state.lock().unwrap();
        state.planned.clear();
        state.connecting.clear();
    }

    fn connection(&self, process: &str, operation: Operation, body: &[u8]) -> Option<Duration> {
        let state = self.state.lock().unwrap();
        let fits = |requests: &Requests| requests.hold(process, operation, &String::from_utf8_lossy(body));
        state.connecting.iter().find(|(requests, _)| fits(requests)).map(|(_, wait)| *wait)
    }

    /// The next moment of the history.
    pub fn tick(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::SeqCst)
    }

    /// From when to when the table was dropped, each time.
    pub fn dropped(&self) -> Vec<(u64, u64)> {
        self.state.lock().unwrap().dropped.clone()
    }

    /// Has the store carry a request out.
    fn act(&self, operation: Operation, body: &Bytes) -> Result<Bytes, Error> {
        let call = |operation, body: &Bytes| block_on(self.store.call(operation, body.clone()));
        let changed = table_of(body)
            .filter(|_| matches!(operation, Operation::CreateTable | Operation::DeleteTable))
            .map(|table| (call(Operation::DescribeTable, &of_table(&table)), table));
        let answer = self.read_before(operation, body).unwrap_or_else(|| call(operation, body));
        let state = &mut *self.state.lock().unwrap();
        state.remember(operation, body, &answer);
        if let Some((before, table)) = changed
            && answer.is_ok()
        {
            if operation == Operation::DeleteTable && table == TABLE {
                state.dropped.push((self.tick(), self.tick()));
            }
            let before = before.map(|described| state.renumbered(Operation::DescribeTable, described));
            state.former.entry(table).or_default().push((self.clock.now(), before));
        }
        answer.map(|answer| state.renumbered(operation, answer))
    }

    /// What the store answered to the same read, if nothing was written since.
    fn read_before(&self, operation: Operation, body: &Bytes) -> Option<Result<Bytes, Error>> {
        let state = self.state.lock().unwrap();
        state.reads[usize::from(is_of_registry(body))].get(&(operation.name(), body.clone())).cloned()
    }

    fn fate(&self, process: &str, operation: Operation, body: &[u8]) -> Fate {
        let state = &mut *self.state.lock().unwrap();
        let text = String::from_utf8_lossy(body);
        let vanishes = state.is_awaited(process, &text);
        let fits =
            |planned: &&mut Planned| planned.times > 0 && planned.requests.hold(process, operation, &text);
        if let Some(planned) = state.planned.iter_mut().find(fits) {
            planned.times -= 1;
            return planned.fate;
        }
        let weather = if process == PAST { Weather::default() } else { state.weather };
        let Weather { mut late, latest, lost, throttled, twice, split, torn, .. } = weather;
        if process.starts_with(weather.punctual) {
            late = 0;
        }
        let rng = &mut state.rng;
        let mut one_in = |n: u64| n > 0 && rng.u64(0..n) == 0;
        let (late, lost, throttled, twice) = (one_in(late), one_in(lost), one_in(throttled), one_in(twice));
        let split = operation == Operation::BatchGetItem && one_in(split);
        let torn = writes_key_record(operation, body) && one_in(torn);
        let mut within = |most: Duration| Duration::from_micros(rng.u64(100..most.as_micros() as u64));
        let split = split.then(|| within(latest.max(QUICK)));
        let torn = torn.then(|| within(latest.max(QUICK)));
        let there = within(if late { latest } else { QUICK });
        Fate {
            there: if vanishes { NEVER } else { there },
            back: within(QUICK),
            twice: (twice && operation.only_reads()).then(|| within(latest.max(QUICK))),
            lost: lost.then(|| if rng.bool() { Lost::Broken } else { Lost::Silent }),
            throttled,
            split,
            torn,
            refused: None,
        }
    }

    /// What the store answers to a request of a process.
    fn answer(
        &self,
        process: &str,
        operation: Operation,
        body: &Bytes,
        throttled: bool,
    ) -> Result<Bytes, Error> {
        if throttled && operation.touches_items() {
            return Err(Error::new(Code::ProvisionedThroughputExceededException, "slow down"));
        }
        if operation == Operation::DescribeTable && process != PAST {
            let State { rng, weather, former, .. } = &mut *self.state.lock().unwrap();
            let (now, stale) = (self.clock.now(), weather.stale);
            let former = table_of(body).and_then(|table| former.get(&table));
            let young = former.into_iter().flatten().filter(|(until, _)| now.since(*until) < stale);
            let young: Vec<&Described> = young.map(|(_, described)| described).collect();
            if !young.is_empty() && rng.bool() {
                return young[rng.usize(..young.len())].clone();
            }
        }
        let answer = self.act(operation, body)?;
        if writes_key_record(operation, body) {
            self.state.lock().unwrap().key_changed = Some(self.clock.now());
        }
        if writes_head(operation, body) {
            self.state.lock().unwrap().published = Some(self.clock.now());
        }
        if process == PAST || operation != Operation::Query {
            return Ok(answer);
        }
        Ok(self.state.lock().unwrap().half_done(self.clock.now(), body, answer))
    }

    /// The records of keys as they are before a transaction writes some: until it is done, readers
    /// may see these.
    fn before(&self, body: &Bytes, until: MonotonicInstant) -> Option<(MonotonicInstant, Vec<Json>)> {
        let read = json!({
            "TableName": REGISTRY, "ConsistentRead": true, "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
            "ExpressionAttributeValues": { ":p": { "S": id_of_record(body) }, ":s": { "S": "key:" } },
        });
        let records = block_on(self.store.call(Operation::Query, Bytes::from(read.to_string())));
        let records: Json = serde_json::from_slice(&records.ok()?).ok()?;
        Some((until, records["Items"].as_array()?.clone()))
    }
}

impl State {
    /// An answer, in which the records of keys are as they were where the transaction that wrote
    /// them is seen half done.
    fn half_done(&self, now: MonotonicInstant, asked: &Bytes, answer: Bytes) -> Bytes {
        let Some((until, before)) = &self.torn else { return answer };
        if now > *until || !String::from_utf8_lossy(&answer).contains("\"key:") {
            return answer;
        }
        let mut answer: Json = serde_json::from_slice(&answer).unwrap();
        let seen = before.iter().filter(|record| asks_for(asked, record));
        answer["Items"] = seen.cloned().collect();
        Bytes::from(answer.to_string())
    }

    /// Keeps the answer to a read until something is written: gateways look at the registry again
    /// and again.
    fn remember(&mut self, operation: Operation, body: &Bytes, answer: &Result<Bytes, Error>) {
        let table = usize::from(is_of_registry(body));
        match operation {
            Operation::GetItem | Operation::BatchGetItem | Operation::Query | Operation::Scan => {
                self.reads[table].insert((operation.name(), body.clone()), answer.clone());
            }
            Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => self.reads[table].clear(),
            _ if operation.only_reads() => {}
            _ => self.reads = Default::default(),
        }
    }

    /// Tells who waits for this request. Says whether it never arrives.
    fn is_awaited(&mut self, process: &str, text: &str) -> bool {
        self.awaited.retain(|awaited| !awaited.sent.is_canceled());
        let fits = |awaited: &Awaited| process.starts_with(&awaited.process) && text.contains(&awaited.text);
        let Some(at) = self.awaited.iter().position(fits) else { return false };
        if let Some(before) = self.awaited[at].before.checked_sub(1) {
            self.awaited[at].before = before;
            return false;
        }
        let Awaited { vanishes, sent, .. } = self.awaited.remove(at);
        let _ = sent.send(process.to_owned());
        vanishes
    }

    fn renumbered(&mut self, operation: Operation, answer: Bytes) -> Bytes {
        if operation.touches_items() {
            return answer;
        }
        let mut text = String::from_utf8_lossy(&answer).into_owned();
        if let Some((_, rest)) = text.split_once("\"TableId\":\"") {
            let id = rest.split('"').next().unwrap_or_default().to_owned();
            let number = self.ids.iter().position(|known| *known == id).unwrap_or_else(|| {
                self.ids.push(id.clone());
                self.ids.len() - 1
            });
            text = text.replace(&id, &format!("table-{number}"));
            // The engine keeps real time: each table is made a second after the one before.
            if let Some((before, rest)) = text.split_once("\"CreationDateTime\":") {
                let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
                text = format!("{before}\"CreationDateTime\":{}{rest}", 1_767_225_600 + number);
            }
        }
        Bytes::from(text)
    }
}
