//! Prints what an audit of recorded traffic found: a report for each table and index, and what the
//! recording does not show.

use heatsink_heat::audit::Report;
use heatsink_heat::audit::traffic::{Place, Recording};
use serde_json::json;

use super::said::{Files, Said};
use crate::cli::print;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// What is printed.
pub struct SaidTraffic<'a> {
    pub reports: Vec<(&'a Place, Report)>,
    pub recording: Recording,
    pub files: Files,
}

impl SaidTraffic<'_> {
    /// Prints it.
    pub fn print(&self, output: Output) -> Result<(), Exit> {
        match output {
            Output::Json => print::json(&self.document()),
            Output::Text => print::text(&self.text()),
        }
    }

    fn said(&self) -> impl Iterator<Item = Said<'_>> {
        self.reports.iter().map(|(place, report)| Said {
            table: &place.table,
            report,
            of: None,
            recipe: None,
            files: None,
            past: None,
        })
    }

    fn document(&self) -> serde_json::Value {
        let tables: Vec<serde_json::Value> = self.said().map(|said| said.document()).collect();
        let mut source = self.files.document();
        source["recording"] = json!(self.recording);
        json!({ "source": source, "tables": tables, "not_seen": self.not_seen() })
    }

    fn text(&self) -> String {
        let mut text = self.files.text();
        for said in self.said() {
            text += &said.body();
            text += "\n";
        }
        let unseen: String = self.not_seen().iter().map(|what| format!("  - {what}\n")).collect();
        text + &screen::wrapped(&format!("Not seen:\n{unseen}"), screen::columns())
    }

    fn not_seen(&self) -> Vec<String> {
        let Recording { dropped, limited, hashed, weight, .. } = self.recording;
        let mut unseen = vec![
            "what did not go through the gateways that recorded it, and what other keys a partition holds".to_owned(),
            "how many shards a key has already: the units are those of the whole key".to_owned(),
            "how much is stored under a key, the sizes of items in updates and deletes (each counts as one unit), and whether a key is a string, a number or binary (shown in \
             base64): rules are for strings"
                .to_owned(),
        ];
        if weight > 1 {
            unseen.push(format!(
                "requests that were not drawn: some of those recorded stand for up to {weight}. A rate is that of the second, the minute or the hour in which enough were recorded"
            ));
        }
        if hashed {
            unseen.push("the names of keys: they are hashes with a secret that is not kept".to_owned());
        }
        if dropped > 0 {
            unseen.push(format!(
                "{dropped} items or pages that were left out, because the file was written too slowly"
            ));
        }
        if limited > 0 {
            unseen.push("what came after the file was full (--record-limit)".to_owned());
        }
        if self.files.skipped > 0 {
            unseen.push("what could not be read, and was skipped".to_owned());
        }
        unseen
    }
}
