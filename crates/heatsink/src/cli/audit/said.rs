//! Prints what an audit found.

use heatsink_dynamo::display::{excerpt, inert};
use heatsink_heat::audit::{Pattern, Report};
use serde_json::json;

use super::past::Past;
use crate::cli::hot_keys::percent;
use crate::cli::print;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// The longest pattern that a cell of the table shows, and a sentence, in characters.
const CELL: usize = 40;
const SENTENCE: usize = 60;

/// What is printed.
pub struct Said<'a> {
    pub table: &'a str,
    pub report: &'a Report,
    /// About how many items there are, where not all were read; 0 where that is not known.
    pub of: Option<u64>,
    /// Warns of a rule that looks for what could be computed.
    pub recipe: Option<&'a str>,
    pub files: Option<Files>,
    /// What the records tell of writes that no recorded request explains.
    pub past: Option<&'a Past>,
}

/// What was read from files.
pub struct Files {
    pub files: usize,
    /// What they hold, in words.
    pub kind: &'static str,
    /// Lines, or files, that could not be read.
    pub skipped: u64,
    /// The first of them, each with its place and the reason.
    pub faults: Vec<String>,
    /// Records of items whose time to live was over.
    pub expired: u64,
    /// Records without an image.
    pub without_images: u64,
}

impl Said<'_> {
    /// Prints it.
    pub fn print(&self, output: Output) -> Result<(), Exit> {
        match output {
            Output::Json => print::json(&self.document()),
            Output::Text => print::text(&self.text()),
        }
    }

    /// For programs.
    pub fn document(&self) -> serde_json::Value {
        let mut document = json!(self.report);
        document["table"] = json!(self.table);
        document["whole"] = json!(self.of.is_none());
        if let Some(unseen) = self.unseen() {
            document["may_be_unseen"] = json!(unseen);
        }
        if let Some(recipe) = self.recipe {
            document["recipe"] = json!(recipe);
        }
        if let Some(files) = &self.files {
            document["source"] = files.document();
        }
        if let Some(past) = self.past {
            document["past_gateways"] = past.document();
        }
        document
    }

    /// Of a sample: a pattern with at most this share of the items may not be in it, whatever the
    /// order of the items. Not known where the number of all is not.
    fn unseen(&self) -> Option<f64> {
        self.of?;
        Some(1.0 - self.report.share_read?)
    }

    fn text(&self) -> String {
        let mut text = self.body();
        text += if self.report.measured { MEASURED } else { STAMPED };
        if self.files.is_some() && self.report.shard_keys > 0 {
            text += &format!("\n{}\n", shards(self.report.shard_keys, self.table));
        }
        if let Some(past) = self.past {
            text += &past.text();
        }
        match self.recipe {
            Some(recipe) => text + &format!("\nwarning: {recipe}\n"),
            None => text,
        }
    }

    /// What was found, without what holds for all reports of its kind.
    pub fn body(&self) -> String {
        let Said { table, report, .. } = self;
        let index = report.traffic.as_ref().and_then(|traffic| traffic.index.as_deref());
        let index = index.map_or_else(String::new, |index| format!(", index {}", inert(index)));
        let mut text = format!("table {}{index}: {}{}\n", inert(table), self.read(), self.part());
        if let Some(files) = &self.files {
            text += &files.text();
        }
        text += "\n";
        text += &match report.traffic {
            None => self.drawn(),
            Some(_) => self.drawn_traffic(),
        };
        text += "\n";
        for pattern in &report.patterns {
            let verdict = &pattern.verdict;
            let name = excerpt(&pattern.pattern, SENTENCE);
            text += &format!("{name}: {}, because {}.\n", verdict.action.words(), inert(&verdict.reason));
            for line in verdict.rule.iter().flat_map(|rule| rule.lines()) {
                text += &format!("    {line}\n");
            }
        }
        text
    }

    fn drawn(&self) -> String {
        self.drawn_with(["largest, bytes", "busiest, units/s"], |pattern| {
            [
                pattern.largest.bytes.to_string(),
                peak(pattern).map_or_else(|| "unknown".to_owned(), |peak| format!("{peak:.1}")),
            ]
        })
    }

    fn drawn_traffic(&self) -> String {
        self.drawn_with(["write units/s", "read units/s", "throttled"], |pattern| {
            let asked = pattern.busiest.as_ref().and_then(|key| key.asked.as_ref());
            [
                format!("{:.1}", peak(pattern).unwrap_or(0.0)),
                format!("{:.1}", asked.map_or(0.0, |asked| asked.peak_read_units)),
                percent(asked.map_or(0.0, |asked| asked.throttled_share)),
            ]
        })
    }

    /// A table of the patterns, with these figures between what each table says of them.
    fn drawn_with<const N: usize>(
        &self,
        titles: [&str; N],
        figures: impl Fn(&Pattern) -> [String; N],
    ) -> String {
        let head = ["keys like", "keys", self.things()].into_iter().chain(titles).chain(["what to do"]);
        let mut cells = screen::table(head);
        for pattern in &self.report.patterns {
            let counts =
                [excerpt(&pattern.pattern, CELL), pattern.keys.to_string(), pattern.items.to_string()];
            let action = [pattern.verdict.action.words().to_owned()];
            cells.add_row(counts.into_iter().chain(figures(pattern)).chain(action));
        }
        // All but the first and the last are numbers.
        let numbers: Vec<usize> = (1..N + 3).collect();
        screen::drawn(cells, &numbers)
    }

    fn things(&self) -> &'static str {
        match (&self.report.traffic, self.report.measured) {
            (Some(_), _) => "requests",
            (None, true) => "writes",
            (None, false) => "items",
        }
    }

    fn read(&self) -> String {
        if let Some(traffic) = &self.report.traffic {
            let count = match self.report.items {
                1 => "1 request".to_owned(),
                items => format!("{items} requests"),
            };
            let mut read = format!(
                "{count} within {} s, {} throttled",
                self.report.seconds.unwrap_or(0),
                percent(traffic.throttled_share)
            );
            if traffic.without_key_share > 0.0 {
                read += &format!(
                    ", {} more of no one key, or of one that is not known",
                    percent(traffic.without_key_share)
                );
            }
            return read;
        }
        let mut read = format!("{} {} read", self.report.items, self.things());
        if let Some(files) = &self.files {
            let count = if files.files == 1 { "1 file".to_owned() } else { format!("{} files", files.files) };
            read += &format!(" from {count} ({})", files.kind);
        }
        if let (true, Some(seconds)) = (self.report.measured, self.report.seconds) {
            read += &format!(", written within {seconds} s");
        }
        read
    }

    fn part(&self) -> String {
        let Some(of) = self.of else { return String::new() };
        let about = if of > 0 { format!(" of about {of}") } else { String::new() };
        let unseen = match self.unseen() {
            Some(unseen) => {
                format!("a pattern with up to {:.1} % of the items may not be in it", unseen * 100.0)
            }
            None => "keys that were not read are not in it".to_owned(),
        };
        format!("{about}: rates and sizes are at least what is shown, and {unseen}")
    }
}

/// Write units a second of the busiest key.
fn peak(pattern: &Pattern) -> Option<f64> {
    pattern.busiest.as_ref()?.peak_units
}

/// What physical keys of shards mean.
fn shards(keys: u64, table: &str) -> String {
    let table = inert(table);
    let (keys, end) = if keys == 1 { ("1 key".to_owned(), "ends") } else { (format!("{keys} keys"), "end") };
    format!(
        "{keys} {end} like those of shards (`#~3`), so these are physical keys of a sharded table. Whether each item lies where its layout says is what \
         `heatsink verify {table}` tells: one that does not was written past Heatsink."
    )
}

/// Ends a report on items.
const STAMPED: &str = "\nRates are those of items that are still there, by the times in their sort keys. Overwrites, updates, deletes and reads leave no trace.\n";
/// Ends a report on stream records.
const MEASURED: &str = "\nRates are measured, by the times of stream records. Writes that were throttled or changed nothing have none, nor have reads; keys that were not written \
                        in this time are not in it.\n";

impl Files {
    /// For programs.
    pub fn document(&self) -> serde_json::Value {
        json!({
            "files": self.files, "kind": self.kind, "skipped": self.skipped, "faults": self.faults, "expired": self.expired,
            "without_images": self.without_images,
        })
    }

    /// What is to be said of them.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if self.skipped > 0 {
            let what = if self.skipped == 1 {
                "1 line or file was".to_owned()
            } else {
                format!("{} lines or files were", self.skipped)
            };
            text += &format!("{what} skipped, because they could not be read:\n");
            for fault in &self.faults {
                text += &format!("    {}\n", inert(fault));
            }
            let more = self.skipped.saturating_sub(u64::try_from(self.faults.len()).unwrap_or(u64::MAX));
            if more > 0 {
                text += &format!("    and {more} more\n");
            }
        }
        if self.expired > 0 {
            text += &format!(
                "{} records of items whose time to live was over are left out: they take no write units\n",
                self.expired
            );
        }
        if self.without_images > 0 {
            text += &format!(
                "{} records have no image: each counts as one unit, and may have taken more\n",
                self.without_images
            );
        }
        text
    }
}
