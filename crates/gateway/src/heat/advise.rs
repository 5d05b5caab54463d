//! Advice on the hottest keys, for people: a sentence for each, and the command that helps.
//!
//! Not here: what would help (`heatsink_heat::advice`), acting on it (`heatsink-workers`).

use heatsink_env::MonotonicInstant;
use heatsink_heat::KeyLoad;
use heatsink_heat::advice::{Action, Diagnosis, Spread, diagnose};
use heatsink_heat::policy::Partitions;
use serde_json::{Value as Json, json};

use super::counting::Heat;
use super::layouts::{Layouts, in_ranges, shards_of};
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
        seen.in_ranges = in_ranges(&load.table, &load.key, layouts);
        seen.partitions =
            placed.table(&load.table).and_then(|partitions| u32::try_from(partitions.count()).ok());
        let diagnosis = diagnose(&seen);
        if diagnosis.action == Action::Leave {
            continue;
        }
        let key = String::from_utf8_lossy(&load.key);
        let mut one = json!({
            "table": load.table, "key": key, "sentence": format!("Key {key:?} of table {}: {}.", load.table, diagnosis.sentence),
            "diagnosis": diagnosis, "command": command(&load, &diagnosis),
        });
        if let Some(rule) = rule(&load, &diagnosis, seen.shards) {
            one["toml"] = json!(rule);
        }
        told.push(one);
    }
    told
}

/// The command for a shell; `None` where another layout does not help, for a key that is no text,
/// and for one that a terminal would not show as it is.
fn command(load: &KeyLoad, diagnosis: &Diagnosis) -> Option<String> {
    let shards = diagnosis.shards()?;
    let quoted = text(load)?.replace('\'', r"'\''");
    let strategy = if diagnosis.strategy == Some(Spread::Range) { " --strategy range" } else { "" };
    Some(format!("heatsink reshard start {} '{quoted}'{strategy} --shards {shards}", load.table))
}

/// The rule of a whole key by which calls for it become one, where that helps. It stands before
/// others of the key.
fn rule(load: &KeyLoad, diagnosis: &Diagnosis, shards: u16) -> Option<String> {
    let (setting, key) = (diagnosis.setting.filter(|_| shards <= 1)?, text(load)?);
    // A glob would match other keys.
    let plain = !key.contains(['*', '?']);
    plain.then(|| {
        format!("[[rule]]\ntable = {:?}\nkeys = {key:?}\nstrategy = \"none\"\n{setting}", load.table)
    })
}

/// A key that a terminal shows as it is.
fn text(load: &KeyLoad) -> Option<&str> {
    let key = std::str::from_utf8(&load.key).ok()?;
    let plain = |c: char| c.is_ascii_graphic() || c == ' ' || c.is_alphanumeric();
    key.chars().all(plain).then_some(key)
}

#[cfg(test)]
mod tests {
    use heatsink_heat::advice::Observed;

    use super::*;

    fn load(key: &str) -> KeyLoad {
        KeyLoad { table: "T".to_owned(), key: key.as_bytes().to_vec(), ..KeyLoad::default() }
    }

    /// Scores of a leaderboard, whose sort keys only grow.
    fn scores() -> Observed {
        Observed {
            writes: 3_000.0,
            peak_writes: 3_000.0,
            queries: 20.0,
            reads: 80.0,
            page: 100,
            growing: 1.0,
            throttled: 0.6,
            item_bytes: 300,
            shards: 1,
            sort_key: true,
            divides: true,
            partitions: Some(60),
            ..Observed::default()
        }
    }

    #[test]
    fn a_command_can_be_pasted_or_is_not_given() {
        let diagnosis = diagnose(&scores());
        let shards = diagnosis.shards().unwrap();
        let of = |key: &str| command(&load(key), &diagnosis);
        assert_eq!(of("game_x"), Some(format!("heatsink reshard start T 'game_x' --shards {shards}")));
        assert_eq!(
            of("it's; $(x) `y`"),
            Some(format!(r"heatsink reshard start T 'it'\''s; $(x) `y`' --shards {shards}"))
        );
        for hostile in ["a\nb", "a\u{1b}[31m", "a\u{202e}b", "a\u{0}"] {
            assert_eq!(of(hostile), None);
        }
        let ranges = diagnose(&Observed { growing: 0.0, ..scores() });
        let of_ranges = format!("heatsink reshard start T 'game_x' --strategy range --shards {shards}");
        assert_eq!(command(&load("game_x"), &ranges), Some(of_ranges));
    }

    #[test]
    fn what_another_layout_does_not_help_gets_a_rule_that_can_be_pasted() {
        let one_item = diagnose(&Observed { one_item: 1.0, ..scores() });
        let toml = rule(&load("a \"b\""), &one_item, 1).unwrap();
        assert!(toml.ends_with("\ncombine = true"), "{toml}");
        assert!(heatsink_control::Rules::read("f", &toml).unwrap().shares_calls());
        let page =
            diagnose(&Observed { writes: 1.0, peak_writes: 1.0, reads: 4_000.0, same_page: 0.9, ..scores() });
        assert!(rule(&load("a"), &page, 1).unwrap().ends_with("\ncache_max_age_ms = 100"));
        assert_eq!(rule(&load("a"), &page, 4), None, "its rule has other lines");
        assert_eq!((rule(&load("a*"), &page, 1), command(&load("a"), &page)), (None, None));
    }
}
