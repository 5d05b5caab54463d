//! What all gateways see of hot keys together, by reports that they leave in the registry.
//!
//! A gateway whose report has not changed for a while is stopped or cut off; its report does not
//! count, and is removed.
//!
//! Not here: how a report is stored (`heatsink_control::heat_reports`).

use std::collections::HashMap;
use std::time::Duration;

use heatsink_control::heat_reports::HeatReport;
use heatsink_control::registry::Registry;
use heatsink_env::MonotonicInstant;
use heatsink_heat::KeyLoad;

/// Keys of one report: those with the highest loads. A key that ten gateways share and that is over
/// a ceiling is among the first of each.
const KEYS: usize = 20;
/// Keys of its own that a gateway decides for: those beyond a report too, so that keys that have
/// their shards keep no others out.
const OWN: usize = 100;
/// A key below this many units a second at a gateway is not reported.
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
}

impl Reports {
    pub(super) fn of(own: &str) -> Self {
        Reports { own: own.to_owned(), number: 0, seen: HashMap::new(), quiet: true }
    }

    /// Tells the others what this gateway sees. Gives what all see, if it is this gateway that
    /// decides.
    pub(super) async fn exchange(
        &mut self,
        registry: &Registry,
        mut own: Vec<KeyLoad>,
    ) -> Option<Vec<KeyLoad>> {
        own.retain(|one| one.writes + one.reads >= LEAST);
        own.truncate(OWN);
        // While nothing is hot here, nothing is written, and while nothing was hot before either,
        // nothing is read.
        if own.is_empty() && self.quiet {
            return Some(own);
        }
        self.quiet = own.is_empty();
        self.number += 1;
        let told = own.get(..KEYS).unwrap_or(&own);
        let text = serde_json::to_string(told).unwrap_or_default();
        let report = HeatReport { gateway: self.own.clone(), number: self.number, text };
        let told = registry.write_heat(&report).await;
        let others = match told {
            Ok(()) => registry.heat_reports().await,
            Err(error) => Err(error),
        };
        match others {
            Ok(others) => self.merge(registry, own, others).await,
            // Without a registry there is no other gateway with shards; with one that cannot be
            // reached, nothing can be asked for anyway.
            Err(error) => {
                tracing::debug!("what other gateways see cannot be read: {error}");
                Some(own)
            }
        }
    }

    async fn merge(
        &mut self,
        registry: &Registry,
        own: Vec<KeyLoad>,
        others: Vec<HeatReport>,
    ) -> Option<Vec<KeyLoad>> {
        let now = registry.env().now();
        let mut all = own;
        let mut decides = true;
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
            decides &= self.own < other.gateway;
            for heat in serde_json::from_str::<Vec<KeyLoad>>(&other.text).unwrap_or_default() {
                match all.iter_mut().find(|one| one.is_of(&heat)) {
                    Some(one) => one.add(&heat),
                    None => all.push(heat),
                }
            }
        }
        decides.then_some(all)
    }

    /// Takes this gateway's report away.
    pub(super) async fn leave(&self, registry: &Registry) {
        if self.number > 0 {
            let _ = registry.remove_heat(&self.own).await;
        }
    }
}
