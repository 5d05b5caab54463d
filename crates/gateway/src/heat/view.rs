//! The heat of one gateway, told with the layouts and the partitions of its tables.
//!
//! Not here: how each thing is written (`show`, `map`, `advise`), which requests are counted
//! (`counting`).

use heatsink_control::Control;
use heatsink_env::Env;
use heatsink_heat::detect::PartHeat;
use heatsink_heat::history::{ROWS, Span};
use heatsink_heat::{KeyLoad, TOLD_KEYS, all_loads};
use serde_json::{Value as Json, json};

use super::counting::{Heat, Window};
use super::layouts::layouts_of;
use super::{advise, map, show};
use crate::acts::Told;
use crate::blocking;
use crate::partitions::Partitions;
use crate::placed::PlacedTables;

/// The heat, and what says where its keys lie.
#[derive(Clone, Copy)]
pub(crate) struct HeatView<'a> {
    pub(crate) heat: &'a Heat,
    pub(crate) control: &'a Control,
    pub(crate) env: &'a dyn Env,
    /// Where the store tells them.
    pub(crate) partitions: Option<&'a Partitions>,
    /// What tells what is done about heat, where anything is.
    pub(crate) automatic: Option<&'a Told>,
}

impl HeatView<'_> {
    /// The keys of tables with the highest loads of the last window, the highest first.
    pub(crate) fn loads(&self) -> Vec<KeyLoad> {
        all_loads(&self.parts(TOLD_KEYS))
    }

    /// The parts of the last window, each with its hottest keys.
    pub(crate) fn parts(&self, keys: usize) -> Vec<PartHeat> {
        self.heat.parts(self.env.now(), keys)
    }

    /// What `GET /_heatsink/heat` answers: the last window, of all tables or of one.
    pub(crate) async fn shown(&self, table: Option<&str>) -> Json {
        let now = self.env.now();
        let Window { number, millis, mut parts } = self.heat.last(now);
        let layouts = layouts_of(self.control, self.env.unix_millis(), &parts).await;
        let mut placed = PlacedTables::of(self.partitions);
        let mut advice = advise::advice(self.heat, now, &layouts, &mut placed);
        advice.retain(|one| table.is_none_or(|table| one["table"] == table));
        parts.retain(|part| table.is_none() || part.name.table.as_deref() == table);
        let now = self.env.unix_millis();
        let parts = {
            let history = self.heat.history();
            show::shown(parts, &layouts, &mut placed, |name| history.burned(name, now))
        };
        let automatic = self.automatic.map(|told| of_table(told(), table));
        json!({
            "now_ms": now, "window": number, "window_ms": millis, "parts": parts, "advice": advice, "automatic": automatic,
        })
    }

    /// What `GET /_heatsink/heat/map` answers: the history over a span that ends now.
    pub(crate) fn map(&self, span: Span) -> String {
        let history = self.heat.history();
        blocking::run(history.bytes(), || {
            let shown = history.map(span, self.env.unix_millis(), ROWS);
            drop(history);
            map::written(&shown)
        })
    }
}

/// What is done about the heat of one table, or of all.
fn of_table(mut automatic: Json, table: Option<&str>) -> Json {
    let Some(table) = table else { return automatic };
    for list in ["decisions", "left_alone"] {
        if let Some(all) = automatic[list].as_array_mut() {
            all.retain(|one| one["table"] == table);
        }
    }
    automatic
}
