//! The report at the end of a watch: which keys were hot, what would help, and what could not be
//! seen.
//!
//! Not here: what was seen (`seen`), what helps (`heatsink_heat::advice`).

use serde_json::{Value as Json, json};

use super::seen::{Seen, SeenKey};
use crate::cli::hot_keys::{percent, rate};
use crate::cli::inert;
use crate::screen;

/// Keys of the table.
const ROWS: usize = 20;
/// Keys of the document.
const MOST: usize = 200;
/// Columns of a key's text.
const KEY: usize = 30;
/// Columns of a table's name.
const PLACE: usize = 24;

/// What is reported.
pub struct Report<'a> {
    pub seen: &'a Seen,
    /// The endpoint, for commands.
    pub upstream: &'a str,
}

/// Advice on one key, to paste.
struct Remedy {
    sentence: String,
    command: Option<String>,
    toml: Option<String>,
}

impl Report<'_> {
    /// For people.
    pub fn text(&self) -> String {
        let seen = self.seen;
        let keys = seen.keys();
        let mut said = format!(
            "Watched for {} s: about {} requests, {} throttled, {}.\n",
            seen.time().as_secs(),
            rate(seen.requests()),
            percent(seen.throttled()),
            tables(seen.tables().len()),
        );
        said += &diagnosis(&keys);
        let mut text = screen::wrapped(&said, screen::columns()) + "\n";
        if !keys.is_empty() {
            text += &table(&keys);
        }
        let remedies = self.remedies(&keys);
        for remedy in &remedies {
            text += "\n";
            text += &screen::wrapped(&format!("{}\n", remedy.sentence), screen::columns());
            for paste in [&remedy.command, &remedy.toml].into_iter().flatten() {
                text.extend(paste.lines().flat_map(|line| ["\n  ", line]));
                text += "\n";
            }
        }
        if remedies.iter().any(|remedy| remedy.command.is_some()) {
            text += &screen::wrapped(&format!("\n{}\n", self.how()), screen::columns());
        }
        let unseen: String = self.not_seen().iter().map(|what| format!("  - {what}\n")).collect();
        text + &screen::wrapped(&format!("\nNot seen:\n{unseen}"), screen::columns())
    }

    /// For programs.
    pub fn json(&self) -> Json {
        let seen = self.seen;
        let keys = seen.keys();
        let seconds = seen.time().as_secs_f64();
        let key = |key: &&SeenKey| {
            let id = &key.peak.id;
            json!({
                "table": id.table, "index": id.index, "kind": id.kind, "key": id.key, "peak_units_per_s": key.peak.units,
                "error_units_per_s": key.peak.error, "mean_units_per_s": if seconds > 0.0 { key.units / seconds } else { 0.0 },
                "peak_partition_share": key.peak.filled(), "throttled_share": key.throttled(), "hot_seconds": key.hot.as_secs_f64(),
                "signs": key.peak.signs,
            })
        };
        let remedies = self.remedies(&keys);
        let remedy =
            |one: &Remedy| json!({ "sentence": one.sentence, "command": one.command, "toml": one.toml });
        let mut next_steps = Vec::new();
        if remedies.iter().any(|remedy| remedy.command.is_some()) {
            next_steps.push(self.serve());
            next_steps.extend(remedies.iter().filter_map(|remedy| remedy.command.clone()));
        }
        json!({
            "event": "report", "seconds": seconds, "requests": seen.requests(), "throttled_share": seen.throttled(), "tables": seen.tables(),
            "diagnosis": diagnosis(&keys).trim_end(), "keys": keys.iter().take(MOST).map(key).collect::<Vec<_>>(),
            "advice": remedies.iter().map(remedy).collect::<Vec<_>>(), "not_seen": self.not_seen(), "next_steps": next_steps,
        })
    }

    /// What would help, once for each key: its reads and writes have one advice.
    fn remedies(&self, keys: &[&SeenKey]) -> Vec<Remedy> {
        let mut told = Vec::new();
        let mut remedies = Vec::new();
        for advice in keys.iter().filter_map(|key| key.advice.as_ref()) {
            if told.contains(&(&advice.table, &advice.key)) {
                continue;
            }
            told.push((&advice.table, &advice.key));
            let command = advice.command().map(|command| format!("{command} --upstream {}", self.upstream));
            let toml = command.as_ref().and_then(|_| automatic(&advice.table, &advice.key));
            remedies.push(Remedy { sentence: advice.sentence(), command, toml });
        }
        remedies
    }

    fn serve(&self) -> String {
        format!("heatsink serve --upstream {}", self.upstream)
    }

    /// How the commands come to something.
    fn how(&self) -> String {
        format!(
            "To do it: send all clients of the table through Heatsink (`{}`; who goes past it does not find the items of a sharded key), then give the command. \
             Or put the section into heatsink.toml before, and it is done when the key is hot again.",
            self.serve()
        )
    }

    fn not_seen(&self) -> Vec<String> {
        let mut unseen = vec![
            "what did not go through this process: other applications, and what other keys a partition holds".to_owned(),
            "the first requests for each table, until its description was there; tables whose DescribeTable was refused (a warning says so)".to_owned(),
            "the sizes of items in updates and deletes: each counts as one unit".to_owned(),
        ];
        if self.seen.floor() > 0.0 {
            unseen.push(format!(
                "keys below {} units/s: there were more keys than counters",
                rate(self.seen.floor())
            ));
        }
        if self.seen.has_others() {
            unseen.push(
                "the keys of some tables by name: there were more tables than are counted apart".to_owned(),
            );
        }
        unseen
    }
}

fn tables(count: usize) -> String {
    match count {
        0 => "no table".to_owned(),
        1 => "1 table".to_owned(),
        many => format!("{many} tables"),
    }
}

/// The sentence above all.
fn diagnosis(keys: &[&SeenKey]) -> String {
    let hot = keys.iter().filter(|key| !key.hot.is_zero()).count();
    match (keys.first(), hot) {
        (None, _) => "No request for an item of a known table was seen, so nothing can be said.\n".to_owned(),
        (Some(first), 0) => format!(
            "No key was near a limit. The hottest took {} of what one partition gives: {} of {}.\n",
            percent(first.peak.filled()),
            inert::shortened(&first.peak.key, KEY),
            first.peak.place,
        ),
        (Some(first), hot) => format!(
            "{}: above all {} of {}, with up to {} ± {} {} units/s, {} of what {} gives, and {} of its requests throttled.\n",
            if hot == 1 { "One key was hot".to_owned() } else { format!("{hot} keys were hot") },
            inert::shortened(&first.peak.key, KEY),
            first.peak.place,
            rate(first.peak.units),
            rate(first.peak.error),
            first.peak.kind(),
            percent(first.peak.filled()),
            if first.peak.shards > Some(1) { "its partitions" } else { "one partition" },
            percent(first.throttled()),
        ),
    }
}

fn table(keys: &[&SeenKey]) -> String {
    let mut table = screen::table(["Key", "Table", "", "Peak units/s", "±", "Load", "Throttled", "Hot for"]);
    for key in keys.iter().take(ROWS) {
        table.add_row([
            inert::shortened(&key.peak.key, KEY),
            inert::shortened(&key.peak.place, PLACE),
            key.peak.kind().to_owned(),
            rate(key.peak.units),
            rate(key.peak.error),
            percent(key.peak.filled()),
            percent(key.throttled()),
            format!("{} s", key.hot.as_secs()),
        ]);
    }
    let drawn =
        screen::drawn(table, &[3, 4, 5, 6, 7]) + "Load is the share of what the key's partitions give.\n";
    match keys.len().checked_sub(ROWS) {
        Some(more @ 1..) => format!("{drawn}and {more} cooler keys\n"),
        _ => drawn,
    }
}

/// A section for heatsink.toml that lets gateways act on this key; `None` for a key that a glob
/// cannot name as it is.
fn automatic(table: &str, key: &str) -> Option<String> {
    if key.contains(['*', '?', '\u{fffd}']) || inert::visible(key) != key {
        return None;
    }
    // A JSON string of such characters is a TOML string.
    Some(format!("[[automatic]]\ntable = {}\nkeys = {}\nmode = \"auto\"", json!(table), json!(key)))
}

#[cfg(test)]
mod tests;
