//! Keeps the heat accounting supplied with the keys of tables, and its history: tasks beside the
//! requests.
//!
//! Not here: what a history holds (`heatsink_heat::history`).

use std::time::Duration;

use futures::future::join;
use heatsink_heat::detect::{PartName, ShownKey, WINDOW};
use heatsink_store::Store;

use super::counting::{Heat, Window, millis};
use super::layouts::{self, layouts_of};
use super::table_totals::TableTotals;
use super::tables;
use super::view::HeatView;

impl HeatView<'_> {
    /// Asks the store for the keys of tables that requests name, and keeps the history. It does not
    /// end.
    pub(crate) async fn keep(&self, store: &dyn Store) {
        join(keep_tables(self.heat, store), self.keep_history()).await;
    }

    /// Takes each window as it ends.
    async fn keep_history(&self) {
        let HeatView { heat, control, env, .. } = *self;
        let mut totals = TableTotals::default();
        let mut taken = heat.lock().detector.number();
        loop {
            // Twice a window, so that none ends unseen.
            env.sleep(Duration::from_millis(WINDOW / 2)).await;
            let number = {
                let detector = &mut heat.lock().detector;
                detector.advance(millis(env.now()));
                detector.number()
            };
            if number != taken {
                taken = number;
                let Window { millis: window, parts, .. } = heat.last(env.now());
                totals.add(window, &parts);
                let layouts = layouts_of(control, env.unix_millis(), &parts).await;
                let shards =
                    |part: &PartName, key: &ShownKey| layouts::shards(key, part, &layouts).unwrap_or(1);
                heat.history().add(env.unix_millis(), window, &parts, shards);
                heat.measure_shards(&parts, &layouts);
            }
        }
    }
}

async fn keep_tables(heat: &Heat, store: &dyn Store) {
    loop {
        heat.tables.asked().await;
        for name in heat.tables.to_describe() {
            let described = tables::describe(store, &name).await;
            heat.tables.learn(name, described, &mut heat.lock().detector);
        }
    }
}
