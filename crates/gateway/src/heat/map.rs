//! The history of the heat as JSON. It is written as it is: a value for each number would take many
//! times the memory of the text.

use std::collections::BTreeMap;

use heatsink_heat::history::{Burned, Map, MapRow, MapShard};
use serde::{Serialize, Serializer};

/// Parts of a unit that are told apart, and of a request.
const UNITS: f64 = 10.0;
const REQUESTS: f64 = 1_000.0;

/// The most bytes of rows that are told.
const MOST: usize = 4 * 1024 * 1024;

#[derive(Serialize)]
struct ShownRow<'a> {
    table: Option<&'a str>,
    index: Option<&'a str>,
    kind: &'static str,
    key: BTreeMap<&'static str, &'a str>,
    units: Rounded<'a>,
    throttled: Rounded<'a>,
    shards: &'a [(usize, u16)],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    measured: Vec<ShownShard<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    burned: Option<ShownBurned>,
}

/// When requests for a key were last refused, in milliseconds since 1970.
#[derive(Serialize)]
pub(super) struct ShownBurned {
    from_ms: u64,
    to_ms: u64,
}

impl ShownBurned {
    pub(super) fn of(burned: Burned) -> Self {
        ShownBurned { from_ms: burned.from, to_ms: burned.to }
    }
}

#[derive(Serialize)]
struct ShownShard<'a> {
    units: Rounded<'a>,
    throttled: Rounded<'a>,
}

/// Rates, to so many parts of one: no picture shows more, and a map is several times shorter.
struct Rounded<'a>(&'a [f64], f64);

impl Serialize for Rounded<'_> {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number that is not negative"
    )]
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(untagged)]
        enum Rate {
            Whole(u64),
            Broken(f64),
        }
        serializer.collect_seq(self.0.iter().map(|rate| {
            let rate = (rate * self.1).round() / self.1;
            if rate.fract() == 0.0 && rate >= 0.0 { Rate::Whole(rate as u64) } else { Rate::Broken(rate) }
        }))
    }
}

/// A map as JSON: its hottest rows, up to [`MOST`] bytes.
pub(super) fn written(map: &Map) -> String {
    let Map { from, step, columns, rows } = map;
    let mut text = format!(r#"{{"from_ms":{from},"step_ms":{step},"columns":{columns},"rows":["#);
    for (at, row) in rows.iter().enumerate() {
        // Names are text and rates are finite or null, so nothing in it cannot be written.
        let row = serde_json::to_string(&shown(row)).unwrap_or_default();
        if text.len() + row.len() > MOST {
            break;
        }
        text.push_str(if at == 0 { "" } else { "," });
        text.push_str(&row);
    }
    text + "]}"
}

fn shown(row: &MapRow) -> ShownRow<'_> {
    let MapRow { name, units, throttled, shards, measured, burned } = row;
    ShownRow {
        table: name.part.table.as_deref(),
        index: name.part.index.as_deref(),
        kind: name.part.kind.name(),
        key: BTreeMap::from([(name.key.kind.name(), name.key.text.as_str())]),
        units: Rounded(units, UNITS),
        throttled: Rounded(throttled, REQUESTS),
        shards,
        measured: measured.iter().map(ShownShard::of).collect(),
        burned: burned.map(ShownBurned::of),
    }
}

impl<'a> ShownShard<'a> {
    fn of(shard: &'a MapShard) -> Self {
        ShownShard { units: Rounded(&shard.units, UNITS), throttled: Rounded(&shard.throttled, REQUESTS) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heatsink_dynamo::KeyType;
    use heatsink_heat::detect::{Kind, PartName, ShownKey};
    use heatsink_heat::history::RowName;

    use super::*;

    #[test]
    fn it_is_short_and_shows_shards_where_they_are_measured() {
        let row = |key: &str, measured| {
            let part = PartName { table: Some(Arc::from("games")), index: None, kind: Kind::Write };
            let key = ShownKey { kind: KeyType::S, text: key.to_owned() };
            let (units, throttled) = (vec![0.0, 12.34, 900.0], vec![0.0, 0.0, 0.0004]);
            MapRow {
                name: RowName { part, key },
                units,
                throttled,
                shards: vec![(1, 2)],
                measured,
                burned: None,
            }
        };
        let measured = vec![MapShard { units: vec![0.0, 5.0, 1.25], throttled: Vec::new() }];
        let map = Map {
            from: 5,
            step: 1_000,
            columns: 3,
            rows: vec![row("a", Vec::new()), row("\u{1b}\"", measured)],
        };
        let same = r#""units":[0,12.3,900],"throttled":[0,0,0],"shards":[[1,2]]"#;
        let long: Vec<MapRow> = (0..9).map(|_| row(&"\u{1}".repeat(100_000), Vec::new())).collect();
        let told = written(&Map { rows: long, ..map.clone() });
        let rows =
            serde_json::from_str::<serde_json::Value>(&told).unwrap()["rows"].as_array().unwrap().len();
        assert!(rows == 6 && told.len() <= MOST, "{rows} rows in {} bytes", told.len());
        assert_eq!(
            written(&map),
            format!(
                r#"{{"from_ms":5,"step_ms":1000,"columns":3,"rows":[{{"table":"games","index":null,"kind":"write","key":{{"S":"a"}},{same}}},{{"table":"games","index":null,"kind":"write","key":{{"S":"\u001b\""}},{same},"measured":[{{"units":[0,5,1.3],"throttled":[]}}]}}]}}"#
            )
        );
    }
}
