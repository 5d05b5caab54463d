//! The legacy parameters, from before expressions: random requests that have them, and what a store
//! makes of them.

use heatsink_dynamo::Operation;
use serde_json::{Map, Value as Json, json};

use super::Requests;

/// The same request in expressions.
pub fn modern(body: &Json) -> Json {
    let Json::Object(mut members) = body.clone() else { panic!("{body}") };
    let (mut names, mut values) = (Map::new(), Map::new());
    let joined = match members.remove("ConditionalOperator") {
        Some(or) if or == "OR" => " OR ",
        _ => " AND ",
    };
    for (legacy, expression) in [
        ("KeyConditions", "KeyConditionExpression"),
        ("QueryFilter", "FilterExpression"),
        ("ScanFilter", "FilterExpression"),
        ("Expected", "ConditionExpression"),
    ] {
        let Some(Json::Object(conditions)) = members.remove(legacy) else { continue };
        let tests = conditions.iter().map(|(name, condition)| test(name, condition, &mut names, &mut values));
        let tests: Vec<String> = tests.collect();
        let joined = if legacy == "KeyConditions" { " AND " } else { joined };
        members.insert(expression.to_owned(), tests.join(joined).into());
    }
    if let Some(Json::Array(shown)) = members.remove("AttributesToGet") {
        let paths: Vec<String> = shown.iter().map(|name| named(name.as_str().unwrap(), &mut names)).collect();
        members.insert("ProjectionExpression".to_owned(), paths.join(", ").into());
    }
    if let Some(Json::Object(updates)) = members.remove("AttributeUpdates") {
        let mut clauses: [Vec<String>; 3] = Default::default();
        for (name, update) in &updates {
            let path = named(name, &mut names);
            match update["Action"].as_str().unwrap_or("PUT") {
                "PUT" => clauses[0].push(format!("{path} = {}", bound(&update["Value"], &mut values))),
                "ADD" => clauses[1].push(format!("{path} {}", bound(&update["Value"], &mut values))),
                "DELETE" => clauses[2].push(path),
                other => panic!("{other}"),
            }
        }
        let clause = |(word, parts): (&str, &Vec<String>)| format!("{word} {}", parts.join(", "));
        let words = ["SET", "ADD", "REMOVE"].into_iter().zip(&clauses).filter(|(_, parts)| !parts.is_empty());
        members.insert("UpdateExpression".to_owned(), words.map(clause).collect::<Vec<_>>().join(" ").into());
    }
    for (member, added) in [("ExpressionAttributeNames", names), ("ExpressionAttributeValues", values)] {
        if !added.is_empty() {
            members.insert(member.to_owned(), added.into());
        }
    }
    members.into()
}

fn named(name: &str, names: &mut Map<String, Json>) -> String {
    let short = format!("#l{name}");
    names.insert(short.clone(), name.into());
    short
}

fn bound(value: &Json, values: &mut Map<String, Json>) -> String {
    let short = format!(":l{}", values.len());
    values.insert(short.clone(), value.clone());
    short
}

fn test(
    name: &str,
    condition: &Json,
    names: &mut Map<String, Json>,
    values: &mut Map<String, Json>,
) -> String {
    let path = named(name, names);
    if condition["Exists"] == false {
        return format!("attribute_not_exists({path})");
    }
    if let Some(value) = condition.get("Value") {
        return format!("{path} = {}", bound(value, values));
    }
    let list = condition["AttributeValueList"].as_array().cloned().unwrap_or_default();
    let bound: Vec<String> = list.iter().map(|value| bound(value, values)).collect();
    let operator = condition["ComparisonOperator"].as_str().unwrap();
    match (operator, &bound[..]) {
        ("NULL", []) => format!("attribute_not_exists({path})"),
        ("NOT_NULL", []) => format!("attribute_exists({path})"),
        ("BETWEEN", [low, high]) => format!("{path} BETWEEN {low} AND {high}"),
        ("IN", any) => format!("{path} IN ({})", any.join(", ")),
        ("BEGINS_WITH", [prefix]) => format!("begins_with({path}, {prefix})"),
        ("CONTAINS", [part]) => format!("contains({path}, {part})"),
        ("NOT_CONTAINS", [part]) => format!("NOT contains({path}, {part})"),
        (operator, [value]) => {
            let signs = [("EQ", "="), ("NE", "<>"), ("LT", "<"), ("LE", "<="), ("GT", ">"), ("GE", ">=")];
            let (_, sign) = signs.into_iter().find(|(name, _)| *name == operator).unwrap();
            format!("{path} {sign} {value}")
        }
        _ => panic!("{condition}"),
    }
}

impl Requests {
    /// A comparison with one of these values.
    fn comparison(&mut self, of: &[&str], sort: bool) -> Json {
        let operators = [
            "EQ",
            "LT",
            "LE",
            "GT",
            "GE",
            "BETWEEN",
            "BEGINS_WITH",
            "NE",
            "IN",
            "CONTAINS",
            "NOT_CONTAINS",
            "NULL",
            "NOT_NULL",
        ];
        let operator = self.one(if sort { &operators[..7] } else { &operators });
        let mut values = [self.one(of), self.one(of)];
        values.sort_unstable();
        let count = match operator {
            "NULL" | "NOT_NULL" => 0,
            "BETWEEN" => 2,
            "IN" => self.rng.usize(1..=2),
            _ => 1,
        };
        let values: Vec<Json> = values.iter().take(count).map(|value| json!({ "S": value })).collect();
        let mut condition = json!({ "ComparisonOperator": operator });
        if count > 0 {
            condition["AttributeValueList"] = values.into();
        }
        condition
    }

    /// Comparisons of attributes, keys among them if `keyed`.
    fn comparisons(&mut self, body: &mut Json, member: &str, keyed: bool) {
        let mut comparisons = json!({});
        if self.rng.bool() {
            comparisons["v"] = self.comparison(&["x", "y"], false);
        }
        if keyed && self.rng.bool() {
            comparisons["pk"] = self.comparison(self.keys, false);
        }
        if self.rng.u8(..3) == 0 {
            comparisons["team"] = self.comparison(&["red", "blue"], false);
        }
        let count = comparisons.as_object().unwrap().len();
        if count > 0 {
            body[member] = comparisons;
        }
        if count > 1 && self.rng.bool() {
            body["ConditionalOperator"] = self.one(&["AND", "OR"]).into();
        }
    }

    /// A request on one item.
    pub fn legacy_point(&mut self) -> (Operation, Json) {
        let (operation, mut body) = self.point();
        for name in [
            "ConditionExpression",
            "UpdateExpression",
            "ProjectionExpression",
            "ExpressionAttributeNames",
            "ExpressionAttributeValues",
            "ReturnValuesOnConditionCheckFailure",
        ] {
            body.as_object_mut().unwrap().remove(name);
        }
        if operation == Operation::GetItem {
            body["AttributesToGet"] = json!(["v", "sk"]);
            return (operation, body);
        }
        if operation == Operation::UpdateItem {
            let mut updates = json!({ "v": { "Action": "PUT", "Value": { "S": "z" } } });
            match self.rng.u8(..4) {
                0 => updates["n"] = json!({ "Action": "ADD", "Value": { "N": "2" } }),
                1 => updates["m"] = json!({ "Action": "DELETE" }),
                2 => updates["team"] = json!({ "Value": { "S": "red" } }),
                _ => {}
            }
            body["AttributeUpdates"] = updates;
        }
        match self.rng.u8(..4) {
            0 => body["Expected"] = json!({ "v": { "Value": { "S": "x" } } }),
            1 => body["Expected"] = json!({ "pk": { "Exists": false } }),
            2 => self.comparisons(&mut body, "Expected", true),
            _ => {}
        }
        (operation, body)
    }

    /// A Query or a Scan.
    pub fn legacy_pages(&mut self) -> (Operation, Json) {
        let mut body = json!({ "TableName": "Tab" });
        let operation = if self.rng.bool() { Operation::Query } else { Operation::Scan };
        if operation == Operation::Query {
            let mut conditions =
                json!({ "pk": { "ComparisonOperator": "EQ", "AttributeValueList": [{ "S": self.pk() }] } });
            if self.rng.bool() {
                conditions["sk"] =
                    self.comparison(&["2025-01-01", "2025-01-02T00", "2025-01-07", "none"], true);
            }
            body["KeyConditions"] = conditions;
            self.comparisons(&mut body, "QueryFilter", false);
        } else {
            self.comparisons(&mut body, "ScanFilter", true);
        }
        if self.rng.u8(..3) == 0 {
            body["AttributesToGet"] = json!(["v", "pk", "n"]);
        }
        if self.rng.bool() {
            body["Limit"] = self.rng.usize(1..6).into();
        }
        (operation, body)
    }
}
