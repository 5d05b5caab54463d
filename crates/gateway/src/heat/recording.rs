//! A recording: the accesses that the heat accounting counts, as lines of a trace, for whoever
//! writes them to a file.
//!
//! Requests only append to a buffer in memory. Where the file is written too slowly, accesses are
//! dropped and counted. Values of other attributes than keys are never recorded.
//!
//! Not here: the form of the lines (`heatsink-trace`), the file (the command line).

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heatsink_dynamo::KeyType;
use heatsink_env::{Env, MonotonicInstant};
use heatsink_heat::detect::{Kind, Outcome, PartName};
use heatsink_heat::draw::Draws;
use heatsink_trace::{Access, End, Ended, Header, Line, Table, VERSION};
use metrics::{Counter, counter};
use sha2::{Digest, Sha256};

use super::accesses::{self, Found};
use super::tables::Tables;

/// The most bytes that wait to be written.
const WAITING: usize = 4 << 20;
/// The most keys whose largest sort key is kept, where sort keys are hashed.
const GROWING_KEYS: usize = 10_000;

/// What of the traffic is recorded.
#[derive(Clone, Copy, Debug)]
pub struct RecordingOptions {
    /// Of the requests that are counted one in so many is recorded, and stands for all of them.
    pub one_in: u32,
    /// Whether keys and sort keys are recorded as hashes.
    pub hashed: bool,
    /// The secret of the hashes. It must come from a source for secrets, and is not kept.
    pub secret: [u64; 4],
}

/// A recording under way.
pub struct Recording {
    options: RecordingOptions,
    started: MonotonicInstant,
    open: AtomicBool,
    state: Mutex<State>,
    accesses: Counter,
    dropped: Counter,
}

struct State {
    lines: Vec<u8>,
    tables: HashSet<String>,
    recorded: u64,
    dropped: u64,
    draws: Draws,
    /// By the hash of a partition key: its largest sort key.
    largest: HashMap<u64, Vec<u8>>,
}

impl Recording {
    /// Begins a recording. Its metrics go to the recorder that is installed by now.
    pub fn new(options: RecordingOptions, env: &dyn Env) -> Self {
        let mut lines = Vec::new();
        Line::Trace(Header { version: VERSION, hashed: options.hashed, unix_millis: env.unix_millis() })
            .write(&mut lines);
        let state = State {
            lines,
            tables: HashSet::new(),
            recorded: 0,
            dropped: 0,
            draws: Draws::new(env.random()),
            largest: HashMap::new(),
        };
        Recording {
            options,
            started: env.now(),
            open: AtomicBool::new(true),
            state: Mutex::new(state),
            accesses: counter!("heatsink_recorded_accesses_total"),
            dropped: counter!("heatsink_recording_dropped_accesses_total"),
        }
    }

    /// The lines since the last call.
    pub fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.lock().lines)
    }

    /// Ends it: nothing more is recorded, and what waits is forgotten.
    pub fn close(&self) {
        self.open.store(false, Ordering::Relaxed);
        self.lock().lines = Vec::new();
    }

    /// Ends it: nothing more is recorded. Gives the lines since the last [`take`](Self::take), and
    /// the trace's last one.
    pub fn end(&self, because: Ended, env: &dyn Env) -> Vec<u8> {
        self.open.store(false, Ordering::Relaxed);
        let mut state = self.lock();
        let State { recorded, dropped, .. } = *state;
        let mut lines = std::mem::take(&mut state.lines);
        Line::End(End { us: self.micros(env.now()), recorded, dropped, because }).write(&mut lines);
        lines
    }

    /// Accesses that were dropped so far.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Whether the request that is counted now is recorded.
    pub(super) fn draws(&self) -> bool {
        if !self.open.load(Ordering::Relaxed) {
            return false;
        }
        if self.options.one_in <= 1 {
            return true;
        }
        self.lock().draws.below(self.options.one_in) == 0
    }

    /// Records the accesses of a request that stands for `weight` of those that are counted.
    /// `parts`: what each is of.
    pub(super) fn add(
        &self,
        now: MonotonicInstant,
        weight: u32,
        found: &[Found<'_>],
        parts: &[Option<PartName>],
        tables: &Tables,
    ) {
        let us = self.micros(now);
        let mut state = self.lock();
        // It ended while this request was read.
        if !self.open.load(Ordering::Relaxed) {
            return;
        }
        for (found, part) in found.iter().zip(parts) {
            let table = part.as_ref().and_then(|part| part.table.as_deref());
            let (Some(part), Some(table), true) = (part, table, state.lines.len() < WAITING) else {
                state.dropped += 1;
                self.dropped.increment(1);
                continue;
            };
            if !state.tables.contains(table)
                && let Some(keys) = tables.get(table, now)
            {
                state.tables.insert(table.to_owned());
                let local_index = keys.indexes.iter().any(|index| index.local);
                let line = Table { name: Cow::Borrowed(table), sort_key: keys.sort.is_some(), local_index };
                Line::Table(line).write(&mut state.lines);
            }
            let (sort, grows) = self.sort(&mut state, found);
            let (items, bytes) = found.items;
            let access = Access {
                us,
                table: Cow::Borrowed(table),
                index: part.index.as_deref().map(Cow::Borrowed),
                op: found.operation,
                key: found.key.as_ref().map(|(_, text)| self.shown(text)),
                sort,
                grows,
                page: found.page.filter(|_| part.kind == Kind::Read).map(|page| Cow::Owned(self.hash(page))),
                units: found.cost.units,
                bytes: u64::try_from(found.item.max(bytes)).unwrap_or(u64::MAX),
                items,
                strong: found.strong,
                throttled: found.outcome != Outcome::Done,
                weight: weight.saturating_mul(self.options.one_in.max(1)),
            };
            Line::Access(access).write(&mut state.lines);
            state.recorded += 1;
            self.accesses.increment(1);
        }
    }

    /// The sort key of a write, and whether it is known to be above all before it. That is only
    /// told of hashes, whose order tells nothing.
    fn sort(&self, state: &mut State, found: &Found<'_>) -> (Option<Cow<'static, str>>, bool) {
        let Some(raw) = found.sort else { return (None, false) };
        let ordered = accesses::ordered(raw);
        if !self.options.hashed {
            let text = match (accesses::key_text(raw), &ordered) {
                (Some((KeyType::N, _)), Some(bytes)) => {
                    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
                }
                (Some((_, text)), _) => text.into_owned(),
                (None, _) => return (None, false),
            };
            return (Some(Cow::Owned(text)), false);
        }
        let key = found.key.as_ref().map_or(0, |(_, text)| self.digest(text.as_bytes()));
        let grows = ordered.is_some_and(|sort| {
            if state.largest.len() >= GROWING_KEYS && !state.largest.contains_key(&key) {
                state.largest.clear();
            }
            let largest = state.largest.entry(key).or_default();
            let grows = *sort > **largest;
            if grows {
                largest.clear();
                largest.extend_from_slice(&sort);
            }
            grows
        });
        (Some(Cow::Owned(self.hash(raw))), grows)
    }

    /// A key, or its hash.
    fn shown<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.options.hashed { Cow::Owned(self.hash(text.as_bytes())) } else { Cow::Borrowed(text) }
    }

    fn hash(&self, bytes: &[u8]) -> String {
        format!("{:016x}", self.digest(bytes))
    }

    /// Whoever does not know the secret cannot try names until one fits.
    fn digest(&self, bytes: &[u8]) -> u64 {
        let mut hasher = Sha256::new();
        self.options.secret.iter().for_each(|word| hasher.update(word.to_be_bytes()));
        hasher.update(bytes);
        let digest = hasher.finalize();
        digest.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn micros(&self, now: MonotonicInstant) -> u64 {
        u64::try_from(now.since(self.started).as_micros()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
