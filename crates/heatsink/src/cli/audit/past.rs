//! What is said of writes that did not come through the gateways which recorded the traffic.

use heatsink_dynamo::display::{excerpt, inert};
use heatsink_heat::audit::bypass::{APART, Bypass};
use serde_json::json;

use crate::cli::hot_keys::percent;
use crate::screen;

/// The longest key that is shown, in characters.
const CELL: usize = 60;

/// What is said of the writes of a table.
pub struct Past {
    pub table: String,
    pub bypass: Bypass,
    pub hashed: bool,
    pub skipped: u64,
    /// Other tables, where no write of this one is recorded.
    pub others: Option<Vec<String>>,
}

impl Past {
    /// For programs.
    pub fn document(&self) -> serde_json::Value {
        let mut document = json!(self.bypass);
        document["share"] = json!(self.bypass.share());
        document["limits"] = json!(self.limits());
        document
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("\n{}\n", self.sentence());
        for one in &self.bypass.keys {
            text += &format!("  {}: {} of {} writes\n", excerpt(&one.key, CELL), one.unexplained, one.writes);
        }
        if self.bypass.more_keys > 0 {
            text += &format!("  and {} more keys\n", self.bypass.more_keys);
        }
        let limits: String = self.limits().iter().map(|what| format!("  - {what}\n")).collect();
        text += &format!("What this rests on:\n{limits}");
        screen::wrapped(&text, screen::columns())
    }

    fn sentence(&self) -> String {
        let Bypass { writes, unexplained, at_least, .. } = self.bypass;
        let table = inert(&self.table);
        if writes == 0 {
            return format!(
                "No record is of the time that the recordings have in common, less {APART} s at both ends: nothing can be said of writes of table {table} past the gateways."
            );
        }
        if unexplained == 0 {
            return format!(
                "The recorded requests explain all {writes} writes of table {table} in their time."
            );
        }
        let least = if at_least { "at least " } else { "" };
        let end = if self.bypass.keys.is_empty() { "." } else { ":" };
        format!(
            "{least}{} of the writes of table {table} ({unexplained} of {writes}) did not come through the gateways that recorded the traffic. What is written past Heatsink is \
             not found where a key has shards; `heatsink verify {table}` finds such items{end}",
            percent(self.bypass.share())
        )
    }

    fn limits(&self) -> Vec<String> {
        let Bypass { outside, moved, at_least, without_key, dropped, .. } = self.bypass;
        let mut limits = vec![
            "A gateway whose recording is not given counts as past the gateways. So does a request whose answer was lost, a replica of a global table, `heatsink adopt` and `verify --repair` \
             at work, and a table whose shards have names by a template."
                .to_owned(),
            format!(
                "A record and its request may be {APART} s apart; clocks that differ by more make writes look as if nobody had asked for them. Requests that changed nothing may hide as many \
                 writes of the same item."
            ),
        ];
        if let Some(others) = &self.others {
            let mut others: Vec<String> = others.iter().map(|other| inert(other).to_string()).collect();
            others.sort();
            let there = if others.is_empty() { "no other".to_owned() } else { others.join(", ") };
            limits.push(format!(
                "No write of table {} is recorded. The tables with recorded writes: {there}.",
                inert(&self.table)
            ));
        }
        if at_least {
            limits.push(if self.hashed {
                "Keys are hashes, so writes are compared by their number alone, and no key is named.".to_owned()
            } else {
                "Not every request is recorded: writes are compared by their number for each key, and what chance may explain (three standard deviations) is left out.".to_owned()
            });
        }
        for (count, what) in [
            (outside, "Records of other times than the recordings, which are left out"),
            (moved, "Records of items that Heatsink moved from one shard to another, which need no request"),
            (
                without_key,
                "Recorded writes (PartiQL) that do not say of which key they are, each of which may explain one",
            ),
            (
                dropped,
                "Accesses that were left out of the recordings, because their file was written too slowly, each of which may explain one",
            ),
            (
                self.skipped,
                "Lines or files of the recordings that were skipped, because they could not be read",
            ),
        ] {
            if count > 0 {
                limits.push(format!("{what}: {count}."));
            }
        }
        limits
    }
}
