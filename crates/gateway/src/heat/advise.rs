//! Advice on the hottest keys, for people: a sentence for each, and the command that helps.
//!
//! Not here: what would help (`heatsink_heat::advice`), acting on it (`heatsink-workers`).

use heatsink_env::MonotonicInstant;
use heatsink_heat::KeyLoad;
use heatsink_heat::advice::{Action, diagnose};
use heatsink_heat::policy::Partitions;
use serde_json::{Value as Json, json};

use super::counting::Heat;
use super::layouts::{Layouts, shards_of};
use crate::placed::PlacedTables;

/// The most keys that are looked at.
const KEYS: usize = 20;

/// Advice on each key that was hot in the last two windows and that something can be done about,
/// the highest load first. `placed`: the partitions of tables, where the store tells them.
pub(super) fn advice(
    heat: &Heat,
    now: MonotonicInstant,
    layouts: &Layouts,
    placed: &mut PlacedTables<'_>,
) -> Vec<Json> {
    let mut told = Vec::new();
    let shards = |load: &KeyLoad| shards_of(&load.table, &load.key, layouts).unwrap_or(1);
    let hot = heat.recent().hot(shards);
    for load in hot.into_iter().take(KEYS) {
        let Some(keys) = heat.tables.get(&load.table, now) else { continue };
        let local = keys.indexes.iter().any(|index| index.local);
        let mut seen = load.observed(shards(&load), local);
        seen.sort_key = keys.sort.is_some();
        seen.partitions =
            placed.table(&load.table).and_then(|partitions| u32::try_from(partitions.count()).ok());
        let diagnosis = diagnose(&seen);
        if diagnosis.action == Action::Leave {
            continue;
        }
        let key = String::from_utf8_lossy(&load.key);
        told.push(json!({
            "table": load.table, "key": key, "sentence": format!("Key {key:?} of table {}: {}.", load.table, diagnosis.sentence),
            "diagnosis": diagnosis, "command": diagnosis.shards().and_then(|shards| command(&load, shards)),
        }));
    }
    told
}

/// The command for a shell; `None` for a key that is no text, or that a terminal would not show as
/// it is.
fn command(load: &KeyLoad, shards: u16) -> Option<String> {
    let key = std::str::from_utf8(&load.key).ok()?;
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
    let quoted = key.replace('\'', r"'\''");
    key.chars()
        .all(plain)
        .then(|| format!("heatsink reshard start {} '{quoted}' --shards {shards}", load.table))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_or_is_not_given() {
        let of = |key: &str| {
            let load = KeyLoad { table: "T".to_owned(), key: key.as_bytes().to_vec(), ..KeyLoad::default() };
            command(&load, 4)
        };
        assert_eq!(of("game_x").as_deref(), Some("heatsink reshard start T 'game_x' --shards 4"));
        assert_eq!(
            of("it's; $(x) `y`").as_deref(),
            Some(r"heatsink reshard start T 'it'\''s; $(x) `y`' --shards 4")
        );
        for hostile in ["a\nb", "a\u{1b}[31m", "a\u{202e}b", "a\u{0}"] {
            assert_eq!(of(hostile), None);
        }
    }
}
