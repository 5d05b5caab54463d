//! What a server tells, as it is shown: hot keys, reshards, gateways.
//!
//! Not here: when it is asked (`ask`), what is on the screen (`draw`).

use serde::Deserialize;

use crate::cli::hot_keys::{Heat, rate};
use crate::cli::inert;

/// One answer, or why there is none.
#[derive(Debug)]
pub enum Told {
    Heat(Result<Heat, String>),
    Reshards(Result<Reshards, String>),
    Gateways(Result<Gateways, String>),
}

/// The reshards that were asked for, the newest first.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Reshards {
    reshards: Vec<Reshard>,
    /// Where the list goes on.
    next: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Reshard {
    table: String,
    key: String,
    shards: u16,
    phase: Option<String>,
    #[serde(default)]
    moved: u64,
    to_move: Option<u64>,
    #[serde(default)]
    per_second: u64,
    #[serde(default)]
    paused: bool,
    #[serde(default)]
    cancelled: bool,
    hindered: Option<String>,
    ended: Option<serde_json::Value>,
}

/// The gateways that are registered.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Gateways {
    gateways: Vec<Gateway>,
}

#[derive(Clone, Debug, Deserialize)]
struct Gateway {
    name: String,
    #[serde(default)]
    behind: bool,
}

impl Reshards {
    /// A line for each that has not ended.
    pub fn under_way(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.reshards.iter().filter(|one| one.ended.is_none()).map(Reshard::line).collect();
        if self.next.is_some() {
            lines.push("and others: `heatsink reshard status` lists them".to_owned());
        }
        lines
    }
}

impl Reshard {
    fn line(&self) -> String {
        let mut line = format!(
            "{} of {} to {}",
            inert::shortened(&inert::visible(&self.key), 40),
            inert::visible(&self.table),
            heatsink_layout::shards(self.shards)
        );
        match &self.phase {
            Some(phase) => line += &format!("; {}", inert::visible(phase)),
            None => line += "; waits for a gateway",
        }
        match self.to_move {
            Some(all) if self.moved < all => {
                line +=
                    &format!(", {} of {} items, {}/s", count(self.moved), count(all), count(self.per_second))
            }
            // What was counted is done: it walks once more, until a walk finds nothing.
            Some(_) => line += &format!(", {} items, looks for what is left", count(self.moved)),
            None if self.moved > 0 => line += &format!(", {} items", count(self.moved)),
            None => {}
        }
        for (said, holds) in [("paused", self.paused), ("being cancelled", self.cancelled)] {
            if holds {
                line += &format!("; {said}");
            }
        }
        if let Some(why) = &self.hindered {
            line += &format!("; {}", inert::visible(why));
        }
        line
    }
}

fn count(items: u64) -> String {
    rate(items as f64)
}

impl Gateways {
    /// How many there are, and which; `None` where none is registered.
    pub fn line(&self) -> Option<String> {
        let name = |one: &Gateway| {
            let behind = if one.behind { " (behind)" } else { "" };
            format!("{}{behind}", inert::shortened(&inert::visible(&one.name), 60))
        };
        let names: Vec<String> = self.gateways.iter().map(name).collect();
        (!names.is_empty()).then(|| format!("{} registered: {}", names.len(), names.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_move_whose_count_is_reached_looks_for_what_is_left() {
        let line = |moved: u64| {
            let one = json!({ "table": "T", "key": "game_x", "shards": 1, "phase": "MOVE", "moved": moved, "to_move": 1709, "per_second": 320 });
            serde_json::from_value::<Reshard>(one).unwrap().line()
        };
        assert_eq!(line(340), "game_x of T to 1 shard; MOVE, 340 of 1,709 items, 320/s");
        assert_eq!(line(1_709), "game_x of T to 1 shard; MOVE, 1,709 items, looks for what is left");
    }
}
