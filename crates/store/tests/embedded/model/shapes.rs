//! The shapes of answers, read from a table of facts, and what an answer has of them.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use std::collections::HashMap;

/// What DynamoDB's own answers have otherwise than its model: what is 0 or empty where the model
/// wants 1, and a member that the model lacks (as recorded on AWS by the engine's authors).
const DYNAMODBS_OWN: [&str; 4] =
    ["NumberOfDecreasesToday", "UnprocessedItems", "UnprocessedKeys", "TableThroughputModeSummary"];

use serde_json::Value as Json;

/// Lines of the table by the shape's name, each without it.
pub struct Shapes {
    outputs: HashMap<&'static str, &'static str>,
    shapes: HashMap<&'static str, (&'static str, Vec<&'static str>)>,
}

impl Shapes {
    pub fn read(table: &'static str) -> Shapes {
        let (mut outputs, mut shapes) = (HashMap::new(), HashMap::new());
        for line in table.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let (kind, name) = (words.next().unwrap(), words.next().unwrap());
            if kind == "output" {
                outputs.insert(name, words.next().unwrap());
            } else {
                shapes.insert(name, (kind, words.collect()));
            }
        }
        Shapes { outputs, shapes }
    }

    /// Collects what an operation's answer has otherwise than the model.
    pub fn check_answer(&self, operation: &str, answer: &Json, faults: &mut Vec<String>) {
        match self.outputs.get(operation) {
            Some(output) => self.check(output, answer, operation, faults),
            None if *answer == serde_json::json!({}) => {}
            None => faults.push(format!("{operation} has no answer in the model")),
        }
    }

    fn check(&self, shape: &str, value: &Json, at: &str, faults: &mut Vec<String>) {
        let (kind, facts) = &self.shapes[shape];
        let length = match (*kind, value) {
            ("structure", Json::Object(members)) => {
                for (name, value) in
                    members.iter().filter(|(name, _)| !DYNAMODBS_OWN.contains(&name.as_str()))
                {
                    match facts.iter().find_map(|fact| member(fact).filter(|(known, ..)| known == name)) {
                        Some((_, shape, _)) => self.check(shape, value, &format!("{at}.{name}"), faults),
                        None => faults.push(format!("{at}: the model has no member {name} in {shape}")),
                    }
                }
                let required =
                    facts.iter().filter_map(|fact| member(fact)).filter(|(.., required)| *required);
                for (name, ..) in required.filter(|(name, ..)| !members.contains_key(*name)) {
                    faults.push(format!("{at}: {shape} lacks {name}"));
                }
                return;
            }
            ("list", Json::Array(elements)) => {
                for (nth, element) in elements.iter().enumerate() {
                    self.check(facts[0], element, &format!("{at}[{nth}]"), faults);
                }
                elements.len()
            }
            ("map", Json::Object(members)) => {
                for (name, value) in members {
                    self.check(facts[0], &Json::String(name.clone()), &format!("{at}.{name}"), faults);
                    self.check(facts[1], value, &format!("{at}.{name}"), faults);
                }
                members.len()
            }
            ("string", Json::String(text)) => {
                if let Some(why) = facts.iter().find_map(|fact| unlike(fact, text)) {
                    faults.push(format!("{at}: {text:?} of {shape} {why}"));
                }
                text.chars().count()
            }
            ("blob", Json::String(_)) | ("boolean", Json::Bool(_)) => return,
            ("double" | "timestamp", Json::Number(_)) => return,
            ("integer" | "long", Json::Number(number)) if number.is_i64() || number.is_u64() => {
                usize::try_from(number.as_i64().unwrap_or(i64::MAX)).unwrap_or_default()
            }
            _ => return faults.push(format!("{at}: {value} is no {kind} ({shape})")),
        };
        let bound = |name: &str| facts.iter().find_map(|fact| fact.strip_prefix(name)?.parse::<usize>().ok());
        if bound("min=").is_some_and(|least| length < least)
            || bound("max=").is_some_and(|most| length > most)
        {
            faults.push(format!("{at}: {value} is of {length}, {shape} says {facts:?}"));
        }
    }
}

/// A member of a structure: its name, its shape, whether it is required.
fn member(fact: &'static str) -> Option<(&'static str, &'static str, bool)> {
    let (name, shape) = fact.split_once(':')?;
    Some(match name.strip_suffix('!') {
        Some(name) => (name, shape, true),
        None => (name, shape, false),
    })
}

/// How a text is not as a fact says.
fn unlike(fact: &str, text: &str) -> Option<String> {
    if let Some(words) = fact.strip_prefix("enum=") {
        return (!words.split('|').any(|word| word == text)).then(|| format!("is none of {words}"));
    }
    let pattern = fact.strip_prefix("pattern=")?;
    let matches = match pattern {
        "[a-zA-Z0-9_.-]+" => {
            text.chars().all(|sign| sign.is_ascii_alphanumeric() || "_.-".contains(sign)) && !text.is_empty()
        }
        "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}" => {
            let parts: Vec<usize> = text.split('-').map(str::len).collect();
            parts == [8, 4, 4, 4, 12] && text.chars().all(|sign| "0123456789abcdef-".contains(sign))
        }
        other => panic!("no answer had a text of the pattern {other} before"),
    };
    (!matches).then(|| format!("does not match {pattern}"))
}
