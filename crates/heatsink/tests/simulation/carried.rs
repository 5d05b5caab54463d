//! Keys that gateways move as a group, as in production: an intent is written for each, and the
//! gateways' runners carry them out.

use std::time::Duration;

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Request, ReshardIntent, WantedLayout};
use heatsink_control::{KeyRecord, REGISTRY, Rules};
use heatsink_env::Env;
use heatsink_workers::TableContext;

use crate::TABLE;
use crate::network::PAST;
use crate::world::World;

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
