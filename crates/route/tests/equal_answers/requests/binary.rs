//! Requests to a table whose partition key is binary, and whose sort key is a number.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use super::DAYS;

/// The same request to a table whose partition key is binary and whose sort key is a number;
/// nothing where such a table has none.
pub fn binary(body: &Json) -> Option<Json> {
    let condition = body["KeyConditionExpression"].as_str().unwrap_or_default().to_owned();
    if condition.contains("begins_with(sk") {
        return None;
    }
    let mut body = body.clone();
    keys(&mut body, &condition);
    Some(body)
}

fn keys(json: &mut Json, condition: &str) {
    match json {
        Json::Object(members) => {
            for (name, value) in members {
                let by_sort = condition.contains("sk");
                let text = value.get("S").and_then(Json::as_str).map(str::to_owned);
                match (name.as_str(), text) {
                    ("pk" | ":cp", Some(text)) => *value = json!({ "B": STANDARD.encode(text) }),
                    (":p", Some(text)) if condition.starts_with("pk") => {
                        *value = json!({ "B": STANDARD.encode(text) })
                    }
                    ("sk", Some(text)) => *value = number_of(&text),
                    (":a" | ":b", Some(text)) if by_sort => *value = number_of(&text),
                    _ => keys(value, condition),
                }
            }
        }
        Json::Array(elements) => elements.iter_mut().for_each(|element| keys(element, condition)),
        _ => {}
    }
}

/// A number for each sort key, in their order.
fn number_of(text: &str) -> Json {
    let numbers = ["-5", "0", "1.5", "10", "12", "300"];
    let mut days = DAYS;
    days.sort_unstable();
    let place = days.iter().position(|day| *day == text).unwrap();
    json!({ "N": numbers.get(place).map_or_else(|| format!("{place}00000"), |number| (*number).to_owned()) })
}
