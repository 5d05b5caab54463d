//! The table once, for pipes and scripts.

use serde_json::{Value as Json, json};

use super::ask::Asked;
use super::told::{Gateways, Reshards};
use crate::cli::hot_keys::{Heat, HotKey};
use crate::cli::{inert, key_table, print};
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// Columns of a key's text.
const KEY: usize = 30;
/// Columns of a table's name.
const PLACE: usize = 24;

/// Prints what the server tells.
///
/// # Errors
/// Exit 69 when there is no server or it measures no heat.
pub fn run(asked: &Asked, output: Output) -> Result<(), Exit> {
    if output == Output::Json {
        let heat: Json = asked.read("heat")?;
        let or_null = |path: &str| asked.read::<Json>(path).unwrap_or_default();
        return print::json(
            &json!({ "heat": heat, "reshards": or_null("reshards")["reshards"], "gateways": or_null("gateways")["gateways"] }),
        );
    }
    let heat: Heat = asked.read("heat")?;
    let mut text = table(&heat);
    let keys = heat.keys();
    let seen = |key: &HotKey| Some(key.signs.clone()).filter(|signs| key.is_hot() && !signs.is_empty());
    let burned = |key: &HotKey| Some(key.burned?.told(heat.now_ms));
    for told in [&HotKey::shards_told as &dyn Fn(&HotKey) -> Option<String>, &burned, &seen] {
        for key in &keys {
            let of = inert::shortened(&key.key, KEY);
            let place = inert::shortened(&key.place, PLACE);
            text.extend(told(key).map(|told| format!("\n{of}, {}s of {place}: {told}\n", key.kind())));
        }
    }
    for advice in &heat.advice {
        text += &format!("\n{}\n", advice.sentence());
        text.extend(advice.command().into_iter().flat_map(|command| ["  ", command, "\n"]));
    }
    if let Some(automatic) = &heat.automatic {
        text += &format!("\nAutomatic: {}\n", automatic.state());
        let lines = automatic.left_alone(heat.now_ms).into_iter().chain(automatic.decisions(heat.now_ms));
        lines.for_each(|line| text += &format!("  {line}\n"));
    }
    // What of the registry cannot be read is left out: the heat is there.
    let reshards: Reshards = asked.read("reshards").unwrap_or_default();
    for (at, line) in reshards.under_way().iter().enumerate() {
        text += if at == 0 { "\nReshards under way:\n" } else { "" };
        text += &format!("  {line}\n");
    }
    let gateways: Gateways = asked.read("gateways").unwrap_or_default();
    if let Some(line) = gateways.line() {
        text += &format!("\nGateways: {line}\n");
    }
    print::text(&text)
}

fn table(heat: &Heat) -> String {
    let keys = heat.keys();
    if keys.is_empty() {
        return "No key was asked for in the last second.\n".to_owned();
    }
    let mut table = screen::table(key_table::HEAD.into_iter().chain(["Shards"]));
    for key in &keys {
        let shards = key.shards.map_or_else(|| "–".to_owned(), |shards| shards.to_string());
        table.add_row(key_table::cells(key, KEY, PLACE).into_iter().chain([shards]));
    }
    screen::drawn(table, &[&key_table::NUMBERS[..], &[key_table::HEAD.len()]].concat())
}
