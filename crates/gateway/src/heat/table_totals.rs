//! What was asked of each table and index since the gateway began, as metrics.
//!
//! They are added up once a window from what is counted anyway, so no request does more for them.
//! Where requests are drawn they are estimates.
//!
//! Not here: counting itself (`heatsink_heat::detect`), what each request became
//! (`crate::metrics`).

use std::collections::HashMap;

use heatsink_heat::detect::{PartHeat, PartName};
use metrics::{Counter, counter};

/// The most parts (reads and writes of a table or an index) with metrics of their own; further ones
/// are added up without names. Each label costs the scraper memory.
const NAMED: usize = 200;

/// The totals of one gateway.
#[derive(Default)]
pub(super) struct TableTotals {
    named: HashMap<PartName, Totals>,
    others: Option<Totals>,
}

struct Totals {
    units: (f64, Counter),
    requests: (f64, Counter),
    throttled: (f64, Counter),
}

impl TableTotals {
    /// Adds a window that took so many milliseconds.
    #[allow(clippy::cast_precision_loss, reason = "milliseconds")]
    pub(super) fn add(&mut self, window: u64, parts: &[PartHeat]) {
        let seconds = window as f64 / 1_000.0;
        for part in parts {
            let room = self.named.len() < NAMED && part.name.table.is_some();
            let totals = match self.named.get_mut(&part.name) {
                Some(totals) => totals,
                None if room => {
                    self.named.entry(part.name.clone()).or_insert_with(|| Totals::of(Some(&part.name)))
                }
                None => self.others.get_or_insert_with(|| Totals::of(None)),
            };
            add(&mut totals.units, part.units_per_s * seconds);
            add(&mut totals.requests, part.requests_per_s * seconds);
            add(&mut totals.throttled, part.throttled_per_s * seconds);
        }
    }
}

impl Totals {
    fn of(name: Option<&PartName>) -> Self {
        let text =
            |text: Option<&std::sync::Arc<str>>| text.map_or_else(String::new, |text| text.to_string());
        let table = text(name.and_then(|name| name.table.as_ref()));
        let index = text(name.and_then(|name| name.index.as_ref()));
        let kind = name.map_or("", |name| name.kind.name());
        let of = |metric: &'static str| {
            (0.0, counter!(metric, "table" => table.clone(), "index" => index.clone(), "kind" => kind))
        };
        Totals {
            units: of("heatsink_table_units_total"),
            requests: of("heatsink_table_requests_total"),
            throttled: of("heatsink_table_throttled_total"),
        }
    }
}

/// A counter holds whole numbers: what is less than one waits for the next window.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "neither negative nor beyond 2^53"
)]
fn add((sum, counter): &mut (f64, Counter), more: f64) {
    *sum += more;
    counter.absolute(*sum as u64);
}
