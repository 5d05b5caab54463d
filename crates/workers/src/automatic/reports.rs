//! What all gateways see of hot keys together, by reports that they leave in the registry.
//!
//! A gateway whose report has not changed for a while is stopped or cut off; its report does not
//! count, and is removed.
//!
//! Not here: what a report says (`report`), how it is stored (`heatsink_control::heat_reports`).

use std::collections::HashMap;
use std::time::Duration;

use heatsink_control::heat_reports::HeatReport;
use heatsink_control::registry::Registry;
use heatsink_dynamo::Error;
use heatsink_env::MonotonicInstant;
use heatsink_heat::KeyLoad;
use heatsink_heat::advice::THROTTLED;
use heatsink_heat::policy::KeyName;
use serde_json::Value as Json;

use super::cached::CachedKey;
use super::report::Report;

/// A key below this many units a second at a gateway is not reported, unless it is refused.
const LEAST: f64 = 20.0;
/// A report that has not changed for so long does not count.
const STALE: Duration = Duration::from_secs(5);
/// A report that has not changed for so long is removed.
const DEAD: Duration = Duration::from_secs(60);

/// The reports, as this gateway knows them.
pub(super) struct Reports {
    own: String,
    number: u64,
    /// The number of each gateway's report, and since when it is that one.
    seen: HashMap<String, (u64, MonotonicInstant)>,
    /// Whether the last report of this gateway says that nothing is hot.
    quiet: bool,
    /// Whether the log says that keys were left out.
    left_out: bool,
}

/// What the gateways see together.
pub(super) struct Together {
    /// The loads of each key, added up.
    pub loads: Vec<KeyLoad>,
    /// What the gateway tells that decides, if it is another one.
    pub decides: Decides,
}

/// Who decides.
pub(super) enum Decides {
    ThisOne,
    Another(Option<Json>, Vec<CachedKey>),
}

impl Reports {
    pub(super) fn of(own: &str) -> Self {
        let (number, seen) = (0, HashMap::new());
        Reports { own: own.to_owned(), number, seen, quiet: true, left_out: false }
    }

    /// Tells the others what this gateway sees and, if it decides, what it has decided. Gives what
    /// all see.
    pub(super) async fn exchange(
        &mut self,
        registry: &Registry,
        mut own: Vec<KeyLoad>,
        told: (Option<Json>, Vec<CachedKey>),
    ) -> Together {
        own.retain(|one| one.writes + one.reads >= LEAST || is_refused(one));
        // Those that are refused first, then the highest loads: the end may be left out.
        own.sort_by(|a, b| {
            let units = |one: &KeyLoad| one.writes + one.reads;
            is_refused(b).cmp(&is_refused(a)).then(units(b).total_cmp(&units(a)))
        });
        // While nothing is hot here, nothing is written, and while nothing was hot before either,
        // nothing is read.
        if own.is_empty() && self.quiet {
            return Together { loads: own, decides: Decides::ThisOne };
        }
        self.quiet = own.is_empty();
        self.number += 1;
        let others = match self.tell(registry, Report::of(&own, told)).await {
            Ok(()) => registry.heat_reports().await,
            Err(error) => Err(error),
        };
        match others {
            Ok(others) => self.merge(registry, own, others).await,
            // Without a registry there is no other gateway with shards; with one that cannot be
            // reached, nothing can be asked for anyway.
            Err(error) => {
                tracing::debug!("what other gateways see cannot be read: {error}");
                Together { loads: own, decides: Decides::ThisOne }
            }
        }
    }

    async fn tell(&mut self, registry: &Registry, mut report: Report) -> Result<(), Error> {
        loop {
            let text = serde_json::to_string(&report).unwrap_or_default();
            let stored = HeatReport { gateway: self.own.clone(), number: self.number, text };
            if registry.write_heat(&stored).await? {
                break;
            }
            match report.shorter() {
                Some(shorter) => report = shorter,
                None => return Ok(()),
            }
        }
        if report.left_out > 0 && !self.left_out {
            let keys = report.left_out;
            tracing::warn!(
                keys,
                "keys are left out of what this gateway tells the others: there are too many"
            );
        }
        self.left_out = report.left_out > 0;
        Ok(())
    }

    async fn merge(&mut self, registry: &Registry, own: Vec<KeyLoad>, others: Vec<HeatReport>) -> Together {
        let now = registry.env().now();
        let mut all = Sum::default();
        own.into_iter().for_each(|load| all.add(load));
        let (mut first, mut told) = (self.own.clone(), (None, Vec::new()));
        self.seen.retain(|gateway, _| others.iter().any(|other| other.gateway == *gateway));
        for other in others.into_iter().filter(|other| other.gateway != self.own) {
            let seen = self.seen.entry(other.gateway.clone()).or_insert((other.number, now));
            if seen.0 != other.number {
                *seen = (other.number, now);
            }
            let age = now.since(seen.1);
            if age >= DEAD {
                let _ = registry.remove_heat(&other.gateway).await;
            }
            if age >= STALE {
                continue;
            }
            let report: Report = serde_json::from_str(&other.text).unwrap_or_default();
            report.loads().into_iter().for_each(|load| all.add(load));
            if other.gateway < first {
                (first, told) = (other.gateway, (report.told, report.cached));
            }
        }
        let decides = if first == self.own { Decides::ThisOne } else { Decides::Another(told.0, told.1) };
        Together { loads: all.loads, decides }
    }

    /// Takes this gateway's report away.
    pub(super) async fn leave(&self, registry: &Registry) {
        if self.number > 0 {
            let _ = registry.remove_heat(&self.own).await;
        }
    }
}

/// Whether more of the key's requests are refused than advice leaves alone.
pub(super) fn is_refused(load: &KeyLoad) -> bool {
    load.throttled > 0.0 && load.throttled >= load.requests * THROTTLED
}

/// The loads of several gateways.
#[derive(Default)]
struct Sum {
    loads: Vec<KeyLoad>,
    places: HashMap<KeyName, usize>,
}

impl Sum {
    fn add(&mut self, load: KeyLoad) {
        let place = *self.places.entry(KeyName::of(&load)).or_insert(self.loads.len());
        match self.loads.get_mut(place) {
            Some(one) => one.add(&load),
            None => self.loads.push(load),
        }
    }
}
