//! The way from each process to the store and back. A request can be late, its answer can be lost,
//! a read can arrive twice, the store can throttle, and for a while it can describe a table as it
//! was before it was made or dropped.
//!
//! The store itself carries out one request at a time, at the moment when it arrives; but what one
//! BatchGetItem asks for can be read at two.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::executor::block_on;
use futures::future::{BoxFuture, Either, select};
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::MonotonicInstant;
use heatsink_store::embedded::Embedded;
use heatsink_store::{Permit, Store};
use serde_json::{Value as Json, json};

use crate::TABLE;
use crate::clock::{Clock, ProcessEnv};
use crate::log::Log;

/// How long a process waits for an answer, as an upstream's default is.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// How long a request takes to the store, or an answer back, on a good day: up to this.
const QUICK: Duration = Duration::from_millis(20);

/// Sends to the store directly, bypassing Heatsink, in any weather.
pub const PAST: &str = "past";

/// How bad the network and the store are. Of `n` requests one meets the mischief; 0 is never.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Requests that arrive up to [`latest`](Self::latest) late.
    pub late: u64,
    pub latest: Duration,
    /// Requests of processes whose name begins so are never late.
    pub punctual: &'static str,
    /// Answers that never come, or that a broken connection takes with it.
    pub lost: u64,
    /// Requests that the store throttles.
    pub throttled: u64,
    /// Reads that arrive twice.
    pub twice: u64,
    /// BatchGetItem requests whose items are read at two moments.
    pub split: u64,
    /// Transactions on the registry that readers see half done for a while: the record of a table,
    /// but not yet that of its key.
    pub torn: u64,
    /// For how long DescribeTable may show what was there before a table was made or dropped:
    /// nothing, or another table.
    pub stale: Duration,
    /// How long a process waits for an answer.
    pub patience: Duration,
}

impl Default for Weather {
    fn default() -> Self {
        let nothing = Duration::ZERO;
        Weather {
            late: 0,
            latest: nothing,
            punctual: PAST,
            lost: 0,
            throttled: 0,
            twice: 0,
            split: 0,
            torn: 0,
            stale: nothing,
            patience: PATIENCE,
        }
    }
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
pub struct Fate {
    pub there: Duration,
    pub back: Duration,
    /// The answer is lost; the connection breaks, or is silent.
    pub lost: Option<Lost>,
    pub throttled: bool,
    pub twice: Option<Duration>,
    /// How much later the other part of a BatchGetItem is read.
    pub split: Option<Duration>,
    /// For how long a transaction that writes a key's record is seen half done.
    pub torn: Option<Duration>,
    /// What the store says instead of doing it.
    pub refused: Option<fn() -> Error>,
}

#[derive(Clone, Copy, Debug)]
pub enum Lost {
    Broken,
    Silent,
}

impl Fate {
    /// A request that arrives so late and is answered at once.
    pub fn late(there: Duration) -> Fate {
        let back = Duration::from_millis(1);
        Fate {
            there,
            back,
            lost: None,
            throttled: false,
            twice: None,
            split: None,
            torn: None,
            refused: None,
        }
    }
}

/// Requests of a process that hold a text; of any process whose name begins so.
struct Requests {
    process: String,
    operation: Operation,
    text: String,
}

impl Requests {
    fn of(process: &str, operation: Operation, text: &str) -> Self {
        Requests { process: process.to_owned(), operation, text: text.to_owned() }
    }

    fn hold(&self, process: &str, operation: Operation, text: &str) -> bool {
        process.starts_with(&self.process) && self.operation == operation && text.contains(&self.text)
    }
}

/// What a test has planned for the next so many of these requests.
struct Planned {
    requests: Requests,
    fate: Fate,
    times: usize,
}

/// Somebody waits for the moment at which a process sends a request.
struct Awaited {
    process: String,
    text: String,
    /// How many requests that hold the text come before it.
    before: usize,
    /// It never arrives.
    vanishes: bool,
    sent: oneshot::Sender<()>,
}

/// Later than any run ends.
const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);

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
    torn: Option<(MonotonicInstant, Json)>,
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

    /// Waits until a process sends a request that holds a text, after so many others of that kind.
    /// With `vanishes` it never arrives.
    pub fn sent(&self, process: &str, text: &str, before: usize, vanishes: bool) -> oneshot::Receiver<()> {
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
        Ok(self.state.lock().unwrap().half_done(self.clock.now(), operation, answer))
    }

    /// The records of keys as they are before a transaction writes some: until it is done, readers
    /// may see these.
    fn before(&self, body: &Bytes, until: MonotonicInstant) -> Option<(MonotonicInstant, Json)> {
        let read = json!({
            "TableName": REGISTRY, "ConsistentRead": true, "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
            "ExpressionAttributeValues": { ":p": { "S": id_of_record(body) }, ":s": { "S": "key:" } },
        });
        let records = block_on(self.store.call(Operation::Query, Bytes::from(read.to_string())));
        let records: Option<Json> = records.ok().and_then(|answer| serde_json::from_slice(&answer).ok());
        records.map(|mut records| (until, records["Items"].take()))
    }
}

impl State {
    /// An answer, in which the records of keys are as they were where the transaction that wrote
    /// them is seen half done.
    fn half_done(&self, now: MonotonicInstant, operation: Operation, answer: Bytes) -> Bytes {
        let Some((until, before)) = &self.torn else { return answer };
        if now > *until
            || operation != Operation::Query
            || !String::from_utf8_lossy(&answer).contains("\"key:")
        {
            return answer;
        }
        let mut answer: Json = serde_json::from_slice(&answer).unwrap();
        answer["Items"] = before.clone();
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
        let _ = sent.send(());
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

/// The name of the registry.
const REGISTRY: &str = "heatsink.registry";

/// Whether a request on items is one on the registry.
fn is_of_registry(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).contains(REGISTRY)
}

/// Whether a request names a change in the head of the registry.
fn writes_head(operation: Operation, body: &Bytes) -> bool {
    let text = String::from_utf8_lossy(body);
    operation == Operation::PutItem && text.contains(r#""pk":{"S":"head"}"#)
}

/// Whether a request is the transaction that writes the record of a key, and with it that of its
/// table.
fn writes_key_record(operation: Operation, body: &[u8]) -> bool {
    operation == Operation::TransactWriteItems
        && String::from_utf8_lossy(body).contains("\"sk\":{\"S\":\"key:")
}

/// The id of the table whose key's record a transaction writes.
fn id_of_record(body: &Bytes) -> Json {
    let body: Json = serde_json::from_slice(body).unwrap();
    body["TransactItems"][0]["Put"]["Item"]["pk"]["S"].clone()
}

fn of_table(table: &str) -> Bytes {
    Bytes::from(json!({ "TableName": table }).to_string())
}

/// A BatchGetItem of one table in two: that of its last key, and that of the others.
fn halves(body: &Bytes) -> Option<[Bytes; 2]> {
    let body: Json = serde_json::from_slice(body).ok()?;
    let (table, asked) =
        body["RequestItems"].as_object().filter(|tables| tables.len() == 1)?.iter().next()?;
    let (last, others) = asked["Keys"].as_array()?.split_last().filter(|(_, others)| !others.is_empty())?;
    let half = |keys: &[Json]| {
        let mut half = body.clone();
        half["RequestItems"][table]["Keys"] = json!(keys);
        Bytes::from(half.to_string())
    };
    Some([half(std::slice::from_ref(last)), half(others)])
}

/// The answer to both halves.
fn joined(first: &Bytes, second: &Bytes) -> Bytes {
    let [mut first, second] = [first, second].map(|half| serde_json::from_slice::<Json>(half).unwrap());
    for (table, items) in first["Responses"].as_object_mut().unwrap() {
        let more = second["Responses"][table].as_array().cloned().unwrap_or_default();
        items.as_array_mut().unwrap().extend(more);
    }
    Bytes::from(first.to_string())
}

fn table_of(body: &[u8]) -> Option<String> {
    let body: Json = serde_json::from_slice(body).ok()?;
    body["TableName"].as_str().map(str::to_owned)
}

/// The store as one process reaches it.
struct Link {
    network: Arc<Network>,
    process: String,
}

type Answering = Arc<Mutex<Option<oneshot::Sender<Result<Bytes, Error>>>>>;

impl Link {
    /// Sends the request on its way. It arrives whatever becomes of the process.
    fn send(&self, operation: Operation, body: &Bytes, fate: Fate, answering: &Answering) {
        let (network, process) = (Arc::clone(&self.network), self.process.clone());
        let (body, answering) = (body.clone(), Arc::clone(answering));
        let halves = fate.split.and_then(|gap| Some((gap, halves(&body)?)));
        self.network.clock.after(fate.there, move || match halves {
            None => {
                let before = fate.torn.and_then(|gap| network.before(&body, network.clock.now() + gap));
                let answer = match fate.refused {
                    Some(why) => Err(why()),
                    None => network.answer(&process, operation, &body, fate.throttled),
                };
                // One that is cancelled is never half done, and the next one on these records
                // begins when the last is done.
                if answer.is_ok() && writes_key_record(operation, &body) {
                    network.state.lock().unwrap().torn = before;
                }
                network.reply(&process, operation, &body, fate, &answering, answer);
            }
            Some((gap, [first, second])) => {
                let read = network.answer(&process, operation, &first, fate.throttled);
                network.clock.clone().after(gap, move || {
                    let answer = read.and_then(|first| {
                        let second = network.answer(&process, operation, &second, false)?;
                        Ok(joined(&first, &second))
                    });
                    network.reply(&process, operation, &body, fate, &answering, answer);
                });
            }
        });
    }
}

impl Network {
    /// Sends the store's answer on its way back.
    fn reply(
        self: &Arc<Self>,
        process: &str,
        operation: Operation,
        body: &Bytes,
        fate: Fate,
        answering: &Answering,
        answer: Result<Bytes, Error>,
    ) {
        self.log.line(format!(
            "    store: {} of {process}{}: {}{} <- {}",
            operation.name(),
            if fate.there > QUICK { format!(" ({:?} late)", fate.there) } else { String::new() },
            answer.as_ref().map_or_else(|error| error.code.name().to_owned(), |_| "done".to_owned()),
            fate.lost.map_or(String::new(), |lost| format!(", answer lost ({lost:?})")),
            String::from_utf8_lossy(body),
        ));
        let answer = match fate.lost {
            Some(Lost::Silent) => return,
            Some(Lost::Broken) => Err(lost(operation)),
            None => answer,
        };
        let answering = Arc::clone(answering);
        // A transaction is answered when it is done.
        self.clock.after(fate.back + fate.torn.unwrap_or_default(), move || {
            if let Some(answering) = answering.lock().unwrap().take() {
                let _ = answering.send(answer);
            }
        });
    }
}

impl Store for Link {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            let fate = self.network.fate(&self.process, operation, &body);
            let (answering, answered) = oneshot::channel();
            let answering = Arc::new(Mutex::new(Some(answering)));
            self.send(operation, &body, fate, &answering);
            if let Some(there) = fate.twice {
                self.send(operation, &body, Fate { there, ..fate }, &answering);
            }
            let patience = self.network.state.lock().unwrap().weather.patience;
            match select(answered, self.network.clock.sleep(patience)).await {
                Either::Left((Ok(answer), _)) => answer,
                _ => Err(lost(operation)),
            }
        }
        .boxed()
    }

    fn call_if<'a>(
        &'a self,
        operation: Operation,
        body: Bytes,
        permit: &'a dyn Permit,
    ) -> BoxFuture<'a, Result<Bytes, Error>> {
        async move {
            if let Some(wait) = self.network.connection(&self.process, operation, &body) {
                self.network.clock.sleep(wait).await;
            }
            permit.check()?;
            self.call(operation, body).await
        }
        .boxed()
    }
}

/// What an upstream says when an answer is lost.
fn lost(operation: Operation) -> Error {
    let outcome = if operation.only_reads() { Outcome::NotDone } else { Outcome::Unknown };
    Error::unavailable("the answer was lost", outcome)
}
