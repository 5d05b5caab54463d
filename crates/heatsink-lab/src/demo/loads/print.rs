//! What a load showed, as sentences for people.
//!
//! Not here: the figures (`story`).

use super::scene::Load;
use super::story::{Key, Settings, Story};
use crate::screen;

/// Keys that have a line of their own.
const LINES: usize = 12;

fn seconds(millis: Option<u32>) -> String {
    millis.map_or_else(|| "-".to_owned(), |millis| format!("{:.1} s", f64::from(millis) / 1_000.0))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn name(load: Load) -> String {
    serde_json::to_value(load).ok().and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}

impl Story {
    /// The sentences.
    pub fn print(&self) -> String {
        let Settings { load, gateways, idle, seconds: long, slow, requests, items, partitions } =
            self.settings;
        let pace = if slow > 1 { format!("; each second took {slow}") } else { String::new() };
        let mut lines = vec![format!(
            "{}: {requests} requests/s for {items:.0} items/s, for {long} s, through {gateways} gateway(s) that were up for {idle} s; {partitions} partitions{pace}.",
            name(load)
        )];
        lines.push(self.table());
        lines.extend(self.cool());
        for change in &self.changes {
            let what = match &change.index {
                None => format!("{:?}", change.key),
                Some(index) => format!("value {:?} of {index}", change.key),
            };
            lines.push(format!(
                "decided {} for {what}: {} shards, in force {}, moved {}, {} items. {}",
                seconds(Some(change.decided_ms)),
                change.shards,
                seconds(change.in_force_ms),
                seconds(change.ended_ms),
                change.moved,
                change.by
            ));
        }
        for key in self.keys.iter().filter(|key| key.hot && key.burns()) {
            let said = key.said.as_deref().unwrap_or("nothing is said of it");
            lines.push(format!("{:?} still burns: {said}", key.name));
        }
        lines.push(match self.relief_ms {
            Some(relief) => format!(
                "All that burned is relieved {} after the first refusal; decided after {}.",
                seconds(Some(relief)),
                seconds(self.decided_ms)
            ),
            None => {
                format!("Not everything that burned is relieved; decided after {}.", seconds(self.decided_ms))
            }
        });
        let [median, worst] = self.shards_to_least.unwrap_or_default();
        lines.push(format!(
            "{} keys were made worse by over 2 points for over 5 s; {} cool keys were changed. Shards to the least that work: median \
             {median:.1}, worst {worst:.1}.",
            self.made_worse,
            self.changed_cool.len()
        ));
        let count = self.count;
        lines.push(format!(
            "Counted: {} accepted writes; {} items found. Lost {}, unexpected {}; {} writes failed or have no answer.",
            count.accepted, count.found, count.lost, count.unexpected, count.unknown
        ));
        lines.join("\n")
    }

    fn table(&self) -> String {
        let header = ["key", "units/s", "refused", "relieved", "at the end", "shards", "least"];
        let mut table = screen::table(header);
        let hot: Vec<&Key> = self.keys.iter().filter(|key| key.hot).collect();
        for key in hot.iter().take(LINES) {
            table.add_row([
                key.name.clone(),
                format!("{:.0}", key.units),
                percent(key.refused_before),
                seconds(key.relief_ms),
                percent(key.refused_at_end),
                key.shards.to_string(),
                key.least.map_or_else(|| "-".to_owned(), |least| least.to_string()),
            ]);
        }
        let mut drawn = screen::drawn(table, &[1, 2, 3, 4, 5, 6]).trim_end().to_owned();
        let more = hot.len().saturating_sub(LINES);
        if more > 0 {
            let relieved = hot.iter().skip(LINES).filter(|key| !key.burns()).count();
            drawn.push_str(&format!("\n+ {more} hot keys, {relieved} of them relieved"));
        }
        drawn
    }

    /// What the cool keys suffered.
    fn cool(&self) -> Option<String> {
        let cool = || self.keys.iter().filter(|key| !key.hot);
        let suffered = cool().filter(|key| key.refused_before > 0.0).count();
        let worst = |share: fn(&Key) -> f64| cool().map(share).fold(0.0, f64::max);
        (cool().count() > 0).then(|| {
            format!(
                "Of {} cool keys {suffered} were refused, the worst {}; {} at the end.",
                cool().count(),
                percent(worst(|key| key.refused_before)),
                percent(worst(|key| key.refused_at_end))
            )
        })
    }
}
