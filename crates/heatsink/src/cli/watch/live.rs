//! The hot keys while a watch goes on: a table that is drawn again on a terminal, a line for each
//! change elsewhere.

use std::collections::HashMap;
use std::time::Duration;

use console::Term;
use serde_json::json;

use crate::cli::hot_keys::{Heat, HotKey, KeyId, Kind, percent, rate, share};
use crate::cli::{inert, key_table, print};
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// Keys of the table.
const ROWS: usize = 10;
/// Lines that the table takes besides its keys: what stands above it, its borders and its header.
const AROUND: usize = 6;
/// A key has cooled down after so many looks at which it was not hot: one that comes and goes is
/// not told each time.
const COOL: u32 = 5;
/// Columns of a key's text.
const KEY: usize = 40;
/// The most keys that are followed.
const FOLLOWED: usize = 10_000;

/// What is shown.
pub struct Live {
    output: Output,
    term: Term,
    /// How many lines of the screen are to be drawn again.
    drawn: usize,
    /// The keys that were told as hot, and at how many looks since they were not.
    hot: HashMap<KeyId, u32>,
    /// The others that were hot at the last look, and in which window: in one alone it may have
    /// been chance.
    begun: HashMap<KeyId, u64>,
}

impl Live {
    /// Nothing yet.
    pub fn new(output: Output) -> Self {
        Live { output, term: Term::stdout(), drawn: 0, hot: HashMap::new(), begun: HashMap::new() }
    }

    /// Shows the last second.
    ///
    /// # Errors
    /// Stdout cannot be written.
    pub fn show(&mut self, unix_millis: u64, watched: Duration, heat: &Heat) -> Result<(), Exit> {
        if self.output == Output::Text && self.term.is_term() {
            return self.draw(watched, heat);
        }
        for (key, is_hot) in self.changes(heat) {
            match self.output {
                Output::Json => print::json(&document(unix_millis, &key, is_hot))?,
                Output::Text => print::as_it_is(&line(unix_millis, &key, is_hot))?,
            }
        }
        Ok(())
    }

    /// Takes the table off the screen.
    pub fn clear(&mut self) {
        if self.drawn > 0 {
            // A terminal that is gone shows nothing.
            let _ = self.term.clear_last_lines(self.drawn);
            self.drawn = 0;
        }
    }

    fn draw(&mut self, watched: Duration, heat: &Heat) -> Result<(), Exit> {
        let (height, width) = self.term.size();
        let text = picture(watched, heat, usize::from(height), usize::from(width));
        self.clear();
        print::as_it_is(&text)?;
        self.drawn = text.lines().count();
        Ok(())
    }

    /// The keys that have become hot, and those that have cooled down, as they were seen last.
    fn changes(&mut self, heat: &Heat) -> Vec<(HotKey, bool)> {
        let (keys, mut changes) = (heat.keys(), Vec::new());
        let begun = std::mem::take(&mut self.begun);
        for key in keys.iter().filter(|key| key.is_hot()) {
            if let Some(cool) = self.hot.get_mut(&key.id) {
                *cool = 0;
            } else if self.hot.len() < FOLLOWED {
                let since = *begun.get(&key.id).unwrap_or(&heat.window);
                if since == heat.window {
                    self.begun.insert(key.id.clone(), since);
                } else {
                    self.hot.insert(key.id.clone(), 0);
                    changes.push((key.clone(), true));
                }
            }
        }
        let is_hot = |id: &KeyId| keys.iter().any(|key| key.is_hot() && key.id == *id);
        let mut cooled = Vec::new();
        for (id, cool) in self.hot.iter_mut().filter(|(id, _)| !is_hot(id)) {
            *cool += 1;
            if *cool >= COOL {
                cooled.push(id.clone());
            }
        }
        cooled.sort();
        for id in cooled {
            self.hot.remove(&id);
            let key = keys.iter().find(|key| key.id == id).cloned();
            changes.push((key.unwrap_or_else(|| HotKey::silent(id)), false));
        }
        changes
    }
}

/// The table, which leaves room on a screen of that size.
fn picture(watched: Duration, heat: &Heat, height: usize, width: usize) -> String {
    let (requests, throttled) = heat.requests();
    let sum = format!(
        "{} s: {} requests/s, {} throttled; {} write units/s, {} read units/s",
        watched.as_secs(),
        rate(requests),
        percent(share(throttled, requests)),
        rate(heat.units(Kind::Write)),
        rate(heat.units(Kind::Read)),
    );
    let mut text = inert::shortened(&sum, width.saturating_sub(1)) + "\n";
    let keys = heat.keys();
    let rows = height.saturating_sub(AROUND).min(ROWS);
    if keys.is_empty() || rows == 0 {
        return text;
    }
    let mut table = screen::table(key_table::HEAD);
    for key in keys.iter().take(rows) {
        table.add_row(key_table::cells(key, KEY.min(width / 3), KEY.min(width / 5)));
    }
    text += &screen::drawn(table, &key_table::NUMBERS);
    // What is wider than the screen would be wrapped, and not be found when it is drawn again.
    let fitting = |line: &str| inert::shortened(line, width) + "\n";
    text.lines().take(height.saturating_sub(1)).map(fitting).collect()
}

fn line(unix_millis: u64, key: &HotKey, is_hot: bool) -> String {
    let what = if is_hot { "is hot" } else { "has cooled down" };
    let throttled = match key.throttled() {
        share if share > 0.0 => format!(", {} throttled", percent(share)),
        _ => String::new(),
    };
    let shards = key.shards.filter(|shards| *shards > 1).map(|shards| format!(" over {shards} shards"));
    format!(
        "{} key {} of {} {what}: {} ± {} {} units/s{}, {} of what one partition gives{throttled}\n",
        clock(unix_millis),
        inert::shortened(&key.key, 120),
        key.place,
        rate(key.units),
        rate(key.error),
        key.kind(),
        shards.unwrap_or_default(),
        percent(key.filled()),
    )
}

fn document(unix_millis: u64, key: &HotKey, is_hot: bool) -> serde_json::Value {
    json!({
        "event": if is_hot { "hot" } else { "cooled" }, "at_ms": unix_millis, "table": key.id.table, "index": key.id.index, "kind": key.id.kind,
        "key": key.id.key, "units_per_s": key.units, "error_units_per_s": key.error, "throttled_share": key.throttled(),
        "partition_share": key.filled(),
    })
}

/// The time of the day, in UTC.
fn clock(unix_millis: u64) -> String {
    let seconds = unix_millis / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use console::measure_text_width;

    use super::*;

    fn heat(window: u64, units: f64, name: &str) -> Heat {
        let key = json!({ "key": { "S": name }, "units_per_s": units, "error_units_per_s": 3.0, "requests_per_s": units, "throttled_per_s": 0.0 });
        let part = json!({ "table": "Leaderboards", "index": null, "kind": "write", "units_per_s": units, "requests_per_s": units, "keys": [key] });
        serde_json::from_value(json!({ "window": window, "parts": [part] })).unwrap()
    }

    #[test]
    fn a_change_is_one_line_and_flapping_is_none() {
        let mut live = Live::new(Output::Text);
        let mut window = 0;
        let mut told = |units: f64| -> Vec<String> {
            window += 1;
            let changes = live.changes(&heat(window, units, "game\nx"));
            changes.iter().map(|(key, is_hot)| line(45_296_000, key, *is_hot)).collect()
        };
        assert!(told(800.0).is_empty() && told(10.0).is_empty() && told(800.0).is_empty());
        assert_eq!(
            told(800.0),
            [
                "12:34:56Z key game\\nx of Leaderboards is hot: 800 ± 3.00 write units/s, 80 % of what one partition gives\n"
            ]
        );
        assert!(told(900.0).is_empty() && told(10.0).is_empty() && told(950.0).is_empty());
        for _ in 1..COOL {
            assert!(told(10.0).is_empty());
        }
        let cooled = told(10.0);
        assert!(cooled.len() == 1 && cooled[0].contains("has cooled down: 10.0"), "{cooled:?}");
        assert!(told(10.0).is_empty());
    }

    #[test]
    fn the_table_stays_on_the_screen() {
        for (height, width) in [(24, 80), (10, 40), (7, 100), (4, 20), (1, 1)] {
            for name in ["game_x", "\u{1b}[2J\u{202e}evil\n", &"k".repeat(2_048)] {
                let text = picture(Duration::from_secs(7), &heat(1, 800.0, name), height, width);
                assert!(text.lines().count() < height.max(2), "{height}x{width}:\n{text}");
                for line in text.lines() {
                    assert!(measure_text_width(line) <= width, "{height}x{width}:\n{text}");
                }
                assert!(!text.contains(['\u{1b}', '\u{202e}']));
            }
        }
        assert!(picture(Duration::from_secs(7), &heat(1, 800.0, "game_x"), 24, 80).contains("game_x"));
    }
}
