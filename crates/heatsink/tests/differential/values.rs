//! Random attribute values and expressions, from pools small enough that calls meet each other's
//! items.

use fastrand::Rng;
use serde_json::{Map, Value as Json, json};

/// Partition keys, the reserved suffix forms among them.
pub const STRINGS: &[&str] = &["a", "b", "game", "game#1", "game#~1", "a#~0", "x#~3#~0", "a!"];
/// `a`, `b`, `a#~1`, `a#~0`, and two that are no text.
const BINARIES: &[&str] = &["YQ==", "Yg==", "YSN+MQ==", "YSN+MA==", "AP8=", "/w=="];
/// `10` and `1E1` are one key; so are `2.50` and `2.5`.
const NUMBERS: &[&str] =
    &["-7", "0", "1", "2.50", "2.5", "10", "1E1", "100", "-0.001", "90000", "1782090000.5", "1782093600"];

/// Partition keys that are numbers: one key in several spellings, the largest and the smallest with
/// room for a shard, others without, and what is written like a shard of another one.
const NUMBER_KEYS: &[&str] = &[
    "-7",
    "0",
    "-0",
    "1",
    "1.0",
    "2.50",
    "2.5",
    "10",
    "1E1",
    "-12.5",
    "0.000001",
    "18446744073709551615",
    "-99999999999999999999.999999",
    "0.0000001",
    "1E20",
    "-1E125",
    "12345678901234567890123456789012345678",
    LIKE_A_SHARD,
];

/// The number under which shard 99 of 2.5 lies.
pub const LIKE_A_SHARD: &str = "2.5000007095510099";

/// A value of a key attribute, of the type asked for.
pub fn key(rng: &mut Rng, kind: &str, partition: bool) -> Json {
    match (kind, partition) {
        ("S", true) => json!({"S": STRINGS[rng.usize(..STRINGS.len())]}),
        ("S", false) if rng.u32(..3) == 0 => time(rng),
        ("S", false) => json!({"S": format!("{:02}#p{}", rng.u32(..6), rng.u32(..5))}),
        ("N", true) => json!({"N": NUMBER_KEYS[rng.usize(..NUMBER_KEYS.len())]}),
        ("N", false) => json!({"N": NUMBERS[rng.usize(..NUMBERS.len())]}),
        _ => json!({"B": BINARIES[rng.usize(..BINARIES.len())]}),
    }
}

/// A sort key that begins with a time.
pub fn time(rng: &mut Rng) -> Json {
    let (day, hour) = (28 + rng.u32(..4), rng.u32(..2));
    let (month, day) = if day > 30 { (7, day - 30) } else { (6, day) };
    json!({"S": format!("2026-{month:02}-{day:02}T{hour:02}#p{}", rng.u32(..3))})
}

/// A value for an attribute that is an index key: usually of the right type, sometimes not.
pub fn index_key(rng: &mut Rng, kind: &str) -> Json {
    if rng.u32(..60) == 0 {
        return json!({"BOOL": true});
    }
    match kind {
        "S" => json!({"S": format!("t{}", rng.u32(..4))}),
        other => key(rng, other, false),
    }
}

/// Any value, a few levels deep.
pub fn any(rng: &mut Rng, depth: u32) -> Json {
    match rng.u32(..if depth == 0 { 6 } else { 9 }) {
        0 | 1 => json!({"S": format!("t{}", rng.u32(..6))}),
        2 | 3 => json!({"N": rng.i32(-3..12).to_string()}),
        4 => json!({"B": BINARIES[rng.usize(..BINARIES.len())]}),
        5 if rng.bool() => json!({"BOOL": rng.bool()}),
        5 => json!({"NULL": true}),
        6 => json!({"SS": if rng.bool() { vec!["t1", "t2"] } else { vec!["t3"] }}),
        7 => json!({"L": (0..rng.u32(..3)).map(|_| any(rng, depth - 1)).collect::<Vec<_>>()}),
        _ => {
            let mut map = Map::new();
            for name in ["k", "j"] {
                if rng.bool() {
                    map.insert(name.to_owned(), any(rng, depth - 1));
                }
            }
            json!({ "M": map })
        }
    }
}

/// Collects the placeholders of one request.
#[derive(Default)]
pub struct Placeholders {
    names: Map<String, Json>,
    values: Map<String, Json>,
}

impl Placeholders {
    /// A placeholder for an attribute name.
    pub fn name(&mut self, name: &str) -> String {
        let placeholder = format!("#{name}");
        self.names.insert(placeholder.clone(), json!(name));
        placeholder
    }

    /// A placeholder for a value; an equal value may share it.
    pub fn value(&mut self, rng: &mut Rng, value: Json) -> String {
        if rng.bool()
            && let Some((placeholder, _)) = self.values.iter().find(|(_, held)| **held == value)
        {
            return placeholder.clone();
        }
        let placeholder = format!(":v{}", self.values.len());
        self.values.insert(placeholder.clone(), value);
        placeholder
    }

    /// Puts the placeholders into the request.
    pub fn into_body(self, body: &mut Json) {
        if !self.names.is_empty() {
            body["ExpressionAttributeNames"] = Json::Object(self.names);
        }
        if !self.values.is_empty() {
            body["ExpressionAttributeValues"] = Json::Object(self.values);
        }
    }
}

/// A document path: an attribute or something inside one.
pub fn path(rng: &mut Rng, placeholders: &mut Placeholders, roots: &[&str]) -> String {
    let root = roots[rng.usize(..roots.len())];
    let root = if rng.bool() && !matches!(root, "n" | "t" | "v" | "m" | "l" | "u" | "b") {
        placeholders.name(root)
    } else {
        root.to_owned()
    };
    match rng.u32(..8) {
        0 => format!("{root}.k"),
        1 => format!("{root}[{}]", rng.u32(..2)),
        _ => root,
    }
}

/// A condition or filter.
pub fn condition(
    rng: &mut Rng,
    placeholders: &mut Placeholders,
    roots: &[&str],
    keys: &[Json],
    depth: u32,
) -> String {
    if depth > 0 && rng.u32(..3) == 0 {
        let left = condition(rng, placeholders, roots, keys, depth - 1);
        let right = condition(rng, placeholders, roots, keys, depth - 1);
        return match rng.u32(..4) {
            0 => format!("({left}) AND {right}"),
            1 => format!("{left} OR ({right})"),
            2 => format!("NOT ({left})"),
            _ => format!("NOT {left} AND NOT ({right})"),
        };
    }
    let at = path(rng, placeholders, roots);
    let operand = |rng: &mut Rng, placeholders: &mut Placeholders| {
        let value =
            if !keys.is_empty() && rng.bool() { keys[rng.usize(..keys.len())].clone() } else { any(rng, 0) };
        placeholders.value(rng, value)
    };
    match rng.u32(..11) {
        0..=3 => {
            let comparator = ["=", "<>", "<", "<=", ">", ">="][rng.usize(..6)];
            let value = operand(rng, placeholders);
            if rng.u32(..4) == 0 {
                format!("{value} {comparator} {at}")
            } else {
                format!("{at} {comparator} {value}")
            }
        }
        4 => {
            let low = rng.u32(..3);
            let (low, high) = (json!({"N": low.to_string()}), json!({"N": (low + rng.u32(..8)).to_string()}));
            let (low, high) = (placeholders.value(rng, low), placeholders.value(rng, high));
            format!("{at} BETWEEN {low} AND {high}")
        }
        5 => {
            let (first, second) = (operand(rng, placeholders), operand(rng, placeholders));
            format!("{at} IN ({first}, {second})")
        }
        6 => format!("attribute_exists({at})"),
        7 => format!("attribute_not_exists({at})"),
        8 => {
            let kind = ["S", "N", "B", "L", "M", "SS"][rng.usize(..6)];
            let kind = placeholders.value(rng, json!({ "S": kind }));
            format!("attribute_type({at}, {kind})")
        }
        9 => {
            let prefix = ["t", "a", "game", "0"][rng.usize(..4)];
            let value = if rng.bool() { json!({ "S": prefix }) } else { any(rng, 0) };
            let value = placeholders.value(rng, value);
            format!("{}({at}, {value})", if rng.bool() { "contains" } else { "begins_with" })
        }
        _ => {
            let value = json!({"N": rng.u32(..5).to_string()});
            let value = placeholders.value(rng, value);
            format!("size({at}) {} {value}", ["=", "<", ">"][rng.usize(..3)])
        }
    }
}

/// A projection over some attributes.
pub fn projection(rng: &mut Rng, placeholders: &mut Placeholders, roots: &[&str]) -> String {
    let count = rng.usize(1..4);
    let mut paths: Vec<String> = (0..count).map(|_| path(rng, placeholders, roots)).collect();
    if rng.u32(..8) > 0 {
        paths.sort_unstable();
        paths.dedup();
    }
    paths.join(", ")
}

/// An update expression over attributes that are not keys.
pub fn update(rng: &mut Rng, placeholders: &mut Placeholders, partition: &str) -> String {
    let mut set = Vec::new();
    let mut rest = Vec::new();
    let mut targets = vec!["v", "n", "t", "l", "m", "u", "b"];
    rng.shuffle(&mut targets);
    for target in targets.into_iter().take(rng.usize(1..4)) {
        let number = json!({"N": rng.i32(-2..5).to_string()});
        match (target, rng.u32(..6)) {
            ("v" | "n", 0) => rest.push(format!("ADD {target} {}", placeholders.value(rng, number))),
            ("v" | "n", 1) => set.push(format!("{target} = {target} + {}", placeholders.value(rng, number))),
            ("v" | "n", 2) => {
                let value = placeholders.value(rng, number);
                set.push(format!("{target} = if_not_exists({target}, {value}) - {value}"));
            }
            ("v", 3) => set.push(format!("v = {partition}")),
            ("l", 0..=2) => {
                let value = json!({"L": [any(rng, 0)]});
                let value = placeholders.value(rng, value);
                set.push(format!("l = list_append(if_not_exists(l, {value}), {value})"));
            }
            ("m", 0..=1) => {
                let value = any(rng, 0);
                set.push(format!("m.k = {}", placeholders.value(rng, value)));
            }
            ("u", 0..=3) => {
                let value = placeholders.value(rng, json!({"SS": ["t1"]}));
                rest.push(format!("{} u {value}", if rng.bool() { "ADD" } else { "DELETE" }));
            }
            ("t" | "b", 0..=3) => {
                let value = index_key(rng, if target == "t" { "S" } else { "B" });
                set.push(format!("{target} = {}", placeholders.value(rng, value)));
            }
            (target, 5) => rest.push(format!("REMOVE {target}")),
            (target, _) => {
                let value = if target == "n" { index_key(rng, "N") } else { any(rng, 1) };
                set.push(format!("{target} = {}", placeholders.value(rng, value)));
            }
        }
    }
    // Each clause may stand once.
    let mut clauses = Vec::new();
    if !set.is_empty() {
        clauses.push(format!("SET {}", set.join(", ")));
    }
    for keyword in ["ADD", "DELETE", "REMOVE"] {
        let actions: Vec<&str> =
            rest.iter().filter_map(|clause| clause.strip_prefix(keyword)).map(str::trim).collect();
        if !actions.is_empty() {
            clauses.push(format!("{keyword} {}", actions.join(", ")));
        }
    }
    clauses.join(" ")
}
