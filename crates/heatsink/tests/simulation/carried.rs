//! Keys that gateways move as a group, as in production: an intent is written for each, and the
//! gateways' runners carry them out; some a command, which may be killed.

use std::sync::Arc;
use std::time::Duration;

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Request, ReshardIntent, WantedLayout};
use heatsink_control::{KeyRecord, REGISTRY, Rules};
use heatsink_env::Env;
use heatsink_store::Store;
use heatsink_workers::{Here, ReshardReport, TableContext, WorkerError};

use crate::TABLE;
use crate::network::PAST;
use crate::reshard::Phases;
use crate::world::World;

/// One run of `heatsink reshard start --here` for a key, within its own process.
pub async fn here(
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    rules: Rules,
    (key, wanted): (&'static str, WantedLayout),
    phases: Arc<Phases>,
) -> Result<ReshardReport, WorkerError> {
    let here = Here::new(Arc::clone(&store), Arc::clone(&env), &rules, "simulated", false);
    let context = TableContext::read(store, Arc::clone(&env), &rules, TABLE, false).await?;
    let subject = (key.as_bytes(), context.key_type()).into();
    let before = context.registry().intent_for(context.id(), subject).await?;
    if let Some(open) = before.as_ref().filter(|before| before.is_open())
        && (open.carrier.is_none() || !here.is_left(open).await?)
    {
        return Err(WorkerError::Busy("A gateway carries it out".to_owned()));
    }
    let layout = context.in_full(key.as_bytes(), &wanted);
    let (by, asked) = ("simulated".to_owned(), env.unix_millis());
    let request = Request { layout, rate: 100_000, streams_confirmed: false, by, asked };
    here.carry(before.as_ref(), ((context.id(), TABLE), subject), request, phases).await
}

impl World {
    /// Asks for a layout of several keys, bypassing the weather. Returns of how many it was asked now.
    pub async fn ask_for(&self, rules: &str, keys: &[&str], wanted: &WantedLayout) -> usize {
        let rules = Rules::read("rules", rules).expect("the rules are valid");
        let context = TableContext::read(self.network.link(PAST), self.env(), &rules, TABLE, false).await;
        let context = context.expect("the table is there");
        let mut count = 0;
        for (nth, key) in (0..).zip(keys) {
            let request = Request {
                layout: context.in_full(key.as_bytes(), wanted),
                rate: 100_000,
                streams_confirmed: false,
                by: "simulated".to_owned(),
                // In the order of the list: the clock stands still.
                asked: self.env().unix_millis() + nth,
            };
            let subject = (key.as_bytes(), context.key_type()).into();
            let asked = context.registry().ask((context.id(), TABLE), subject, request).await;
            let asked = asked.expect("nothing befalls the store");
            self.log.line(format!("{key} is asked for: {}", asked.is_some()));
            count += usize::from(asked.is_some());
        }
        count
    }

    fn registry(&self) -> Registry {
        Registry::new(self.network.link(PAST), self.env(), REGISTRY)
    }

    /// Whether the table has a record.
    pub async fn is_on_record(&self) -> bool {
        !self.registry().named(TABLE).await.expect("nothing befalls the store").is_empty()
    }

    /// The intents on record.
    pub async fn intents(&self) -> Vec<ReshardIntent> {
        self.registry().intents(true).await.expect("nothing befalls the store").known
    }

    /// The records of the table's keys.
    pub async fn key_records(&self) -> Vec<KeyRecord> {
        let registry = self.registry();
        let described = registry.describe(TABLE).await.expect("nothing befalls the store");
        let id = described.expect("the table is there").schema.id;
        registry.key_records(&id).await.expect("nothing befalls the store")
    }

    /// Waits until no intent of these keys is open; for so long at most. Whether it came to that.
    pub async fn until_carried(&self, keys: &[&str], longest: Duration) -> bool {
        let begun = self.clock.now();
        loop {
            let intents = self.intents().await;
            let is_open =
                |one: &ReshardIntent| one.is_open() && keys.iter().any(|key| key.as_bytes() == one.key);
            if !intents.iter().any(is_open) {
                return true;
            }
            if self.clock.now().since(begun) > longest {
                let left = intents.iter().filter(|one| is_open(one));
                left.for_each(|one| self.log.line(format!("still open: {one:?}")));
                return false;
            }
            self.clock.sleep(Duration::from_millis(500)).await;
        }
    }

    /// Whatever is on its way by the records, somebody asks for.
    pub async fn nothing_is_left(&self) {
        let intents = self.intents().await;
        let is_asked = |key: &[u8]| intents.iter().any(|one| one.is_open() && one.key == key);
        for record in self.key_records().await {
            if (record.moves.is_some() || !record.settled) && !is_asked(&record.key) {
                self.book.fault(format!("nobody goes on with a key that moves: {record:?}"));
            }
        }
    }

    /// Each of these keys has so many shards, and nothing of it is under way.
    pub async fn all_have(&self, keys: &[&str], shards: u16) {
        let records = self.key_records().await;
        for key in keys {
            let record = records.iter().find(|record| record.key == key.as_bytes());
            let is = record.map_or(1, |record| record.layout.shards);
            let moves = record.is_some_and(|record| record.moves.is_some() || !record.settled);
            if is != shards || moves {
                self.book.fault(format!("{key} has {is} shards and not {shards}, under way: {moves}"));
            }
        }
    }
}
