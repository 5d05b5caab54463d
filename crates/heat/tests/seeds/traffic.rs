//! The traffic of an account through the detector, and what advice says of its keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use heatsink_dynamo::KeyType;
use heatsink_dynamo::capacity::write_units;
use heatsink_heat::KeyLoad;
use heatsink_heat::advice::{Action, diagnose};
use heatsink_heat::detect::{Access, Detector, Key, Kind};

use crate::accounts::Account;

/// The keys that something can be done about, what it is, and why.
pub fn advice(account: &Account) -> Vec<(String, &'static str, String)> {
    let mut detector = Detector::new(7, 0);
    let table = Arc::from(account.table);
    let [reads, writes] = [Kind::Read, Kind::Write].map(|kind| detector.part(&table, None, kind));
    let mut read = 0;
    let mut now = 0;
    for write in &account.writes {
        if let Some((key, rate, units)) = account.reads {
            while read * 1_000 / rate <= write.at {
                let access = access(key, units * 1_000);
                if let Some(signs) = detector.count(read * 1_000 / rate, reads, &access) {
                    signs.reads(1);
                }
                read += 1;
            }
        }
        now = write.at;
        let units = write_units(0, write.bytes) * 1_000.0;
        if let Some(signs) = detector.count(now, writes, &access(&write.key, units as u64)) {
            signs.writes(write.sort.as_bytes());
            signs.item(write.bytes);
        }
    }
    detector.advance(now + 1);
    let mut loads: BTreeMap<String, KeyLoad> = BTreeMap::new();
    for part in detector.heat(50) {
        for heat in &part.keys {
            loads.entry(heat.key.text.clone()).or_default().take(part.name.kind, heat);
        }
    }
    let diagnosed = loads.into_iter().map(|(key, load)| (key, diagnose(&load.observed(1, false))));
    diagnosed
        .filter_map(|(key, diagnosis)| {
            let action = match diagnosis.action {
                Action::Leave => return None,
                Action::Wait { .. } => "wait, else shard",
                Action::Shard { .. } => "shard",
                Action::Cache => "cache",
                Action::ChangeItem => "change the item",
                Action::SeveralKeys => "several keys",
            };
            Some((key, action, diagnosis.sentence))
        })
        .collect()
}

fn access(key: &str, units: u64) -> Access<'_> {
    let key = Some(Key { kind: KeyType::S, text: key.as_bytes() });
    Access { key, units, ..Access::default() }
}
