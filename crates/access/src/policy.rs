//! Reads an IAM policy: the part of its language that can be kept here. Everything else is refused
//! by name; nothing is ignored but `Sid` and `Id`, which have no meaning.
//!
//! Source: "IAM JSON policy element reference", IAM User Guide; "Using IAM policy conditions for
//! fine-grained access control", DynamoDB Developer Guide.

use heatsink_layout::Glob;
use serde_json::Value as Json;

use crate::actions;
use crate::asked::strict;
use crate::globs::matching;
use crate::rights::{Condition, On, Pattern, Resources, Rights, Statement};

/// The versions of the language.
const VERSIONS: [&str; 2] = ["2012-10-17", "2008-10-17"];

/// Conditions on lists hold if all values asked for are like one of theirs.
const OF_LISTS: &str = "ForAllValues:";

/// The rights that a policy gives at a gateway of `region`.
///
/// # Errors
/// What cannot be kept, and where it stands.
pub(crate) fn read(text: &[u8], region: &str) -> Result<Rights, String> {
    let policy = strict::read(text)
        .ok_or("it is no JSON, or an object in it has a member twice: expected an IAM policy")?;
    let members = policy.as_object().ok_or("expected an object with Version and Statement")?;
    for (name, value) in members {
        match name.as_str() {
            "Version" if VERSIONS.iter().any(|version| value == version) => {}
            "Version" => return Err("Version: expected \"2012-10-17\"".to_owned()),
            "Statement" | "Id" => {}
            other => return Err(format!("{other}: there is no such element")),
        }
    }
    let statements = match members.get("Statement") {
        Some(Json::Array(list)) => list.iter().collect(),
        Some(one @ Json::Object(_)) => vec![one],
        _ => return Err("Statement: expected a statement or a list of them".to_owned()),
    };
    if statements.is_empty() {
        return Err("Statement: there is none, so nothing would be allowed".to_owned());
    }
    let mut account = None;
    let read = |(one, number): (&Json, usize)| {
        statement(one, region, &mut account).map_err(|problem| format!("statement {number}: {problem}"))
    };
    Ok(Rights { statements: statements.into_iter().zip(1..).map(read).collect::<Result<_, _>>()? })
}

fn statement(json: &Json, region: &str, account: &mut Option<String>) -> Result<Statement, String> {
    let members = json.as_object().ok_or("expected an object")?;
    for name in members.keys() {
        match name.as_str() {
            "Sid" | "Effect" | "Action" | "Resource" | "Condition" => {}
            "NotAction" | "NotResource" | "Principal" | "NotPrincipal" => {
                return Err(format!("{name} is not kept here; say Action and Resource"));
            }
            other => return Err(format!("{other}: there is no such element")),
        }
    }
    let allows = match members.get("Effect").and_then(Json::as_str) {
        Some("Allow") => true,
        Some("Deny") => false,
        _ => return Err("Effect: expected \"Allow\" or \"Deny\"".to_owned()),
    };
    let mut named = Vec::new();
    for text in texts(members.get("Action")).ok_or("Action: expected an action or a list of them")? {
        named.extend(action(text)?);
    }
    let mut resources = Vec::new();
    for text in texts(members.get("Resource")).ok_or("Resource: expected an ARN, \"*\", or a list of them")? {
        resources.extend(
            resource(text, region, account).map_err(|problem| format!("Resource {text}: {problem}"))?,
        );
    }
    let mut conditions = Vec::new();
    match members.get("Condition") {
        None => {}
        Some(Json::Object(operators)) => {
            for (operator, keys) in operators {
                let keys =
                    keys.as_object().ok_or_else(|| format!("Condition {operator}: expected an object"))?;
                for (key, values) in keys {
                    conditions.push(condition(operator, key, values)?);
                }
            }
        }
        Some(_) => return Err("Condition: expected an object".to_owned()),
    }
    Ok(Statement { allows, actions: named, resources, conditions })
}

/// A text or a list of texts.
fn texts(json: Option<&Json>) -> Option<Vec<&str>> {
    match json? {
        Json::String(text) => Some(vec![text]),
        Json::Array(list) if !list.is_empty() => list.iter().map(Json::as_str).collect(),
        _ => None,
    }
}

fn action(text: &str) -> Result<Vec<&'static str>, String> {
    if text == "*" {
        return Ok(actions::all().collect());
    }
    let name = text.split_once(':').filter(|(service, _)| service.eq_ignore_ascii_case("dynamodb"));
    let found = name.map(|(_, name)| matching(name)).unwrap_or_default();
    match found.is_empty() {
        true => Err(format!("Action {text}: DynamoDB has no such action")),
        false => Ok(found),
    }
}

/// What an ARN is about; nothing for one of another region.
fn resource(text: &str, region: &str, account: &mut Option<String>) -> Result<Option<Resources>, String> {
    if text == "*" {
        return Ok(Some(Resources::Everything));
    }
    if text.contains("${") {
        return Err("variables are not filled in here".to_owned());
    }
    let parts: Vec<&str> = text.splitn(6, ':').collect();
    let &["arn", partition, service, of, owner, path] = parts.as_slice() else {
        return Err("expected an ARN such as arn:aws:dynamodb:eu-west-1:123456789012:table/Orders".to_owned());
    };
    let is_like = |glob: &str, text: &str| Glob::new(glob).matches(text.as_bytes());
    if partition.is_empty() || !is_like(service, "dynamodb") {
        return Err("expected an ARN of DynamoDB".to_owned());
    }
    // This gateway stands for one account, whose number it need not know.
    let is_named = !owner.contains(['*', '?']) && !owner.is_empty();
    if is_named && account.get_or_insert_with(|| owner.to_owned()) != owner {
        return Err("it is of another account than those before it; a gateway stands for one".to_owned());
    }
    Ok(is_like(of, region).then(|| Resources::Paths(Glob::new(path))))
}

fn condition(operator: &str, key: &str, values: &Json) -> Result<Condition, String> {
    let place = format!("Condition {operator}, {key}");
    let on = match key.to_ascii_lowercase().as_str() {
        "dynamodb:leadingkeys" => On::Keys,
        "dynamodb:attributes" => On::Attributes,
        "dynamodb:select" => On::Select,
        "dynamodb:returnvalues" => On::Returned,
        _ => {
            return Err(format!(
                "{place}: there is no such condition key here; there are dynamodb:LeadingKeys, dynamodb:Attributes, dynamodb:Select, dynamodb:ReturnValues"
            ));
        }
    };
    let (plain, of_lists) = match operator.strip_prefix(OF_LISTS) {
        Some(plain) => (plain, true),
        None => (operator, false),
    };
    let (plain, if_exists) = match plain.strip_suffix("IfExists") {
        Some(plain) => (plain, true),
        None => (plain, false),
    };
    let is_like = match plain {
        "StringEquals" => false,
        "StringLike" => true,
        _ => {
            return Err(format!(
                "{place}: there is no such operator here; there are StringEquals and StringLike, with ForAllValues: for keys and attributes"
            ));
        }
    };
    if matches!(on, On::Keys | On::Attributes) && !of_lists {
        return Err(format!("{place}: a request can have several; say {OF_LISTS}{operator}"));
    }
    let values = texts(Some(values)).ok_or_else(|| format!("{place}: expected a text or a list of texts"))?;
    if let Some(variable) = values.iter().find(|value| value.contains("${")) {
        return Err(format!("{place}: {variable}: variables are not filled in here"));
    }
    let pattern = |text: &&str| match is_like {
        true => Pattern::Like(Glob::new(text)),
        false => Pattern::Is(text.as_bytes().to_vec()),
    };
    Ok(Condition { on, patterns: values.iter().map(pattern).collect(), if_absent: of_lists || if_exists })
}
