//! Finds the partition of a key, an item or a key condition.

use std::borrow::Cow;

use heatsink_dynamo::{AttributeDefinition, KeyValue, json};
use heatsink_physics::{KeyPosition, KeyRange, SortKey, position};

use super::catalogue::Key;

/// The place of an item or of a primary key in a table or index; `None` if it lacks the key (an
/// index then has no entry for it) or if the key is not well formed (the store refuses it).
pub(super) fn item(item: &[u8], key: &Key) -> Option<KeyPosition> {
    let mut sort = key.sort.iter();
    if !sort.all(|attribute| value(item, attribute).is_some()) {
        return None;
    }
    point(item, key)
}

/// The place of a `Key` in its table. [`KeyRange::Unknown`] if it is not well formed: the store
/// refuses it.
pub(super) fn primary_key(raw: Option<&[u8]>, key: &Key) -> KeyRange {
    raw.and_then(|raw| point(raw, key)).map_or(KeyRange::Unknown, KeyRange::At)
}

/// The item collection of the partition key in an object. [`KeyRange::Unknown`] if it is not well
/// formed: the store refuses it.
pub(super) fn collection(object: &[u8], key: &Key) -> KeyRange {
    let found = hashed(&key.partition, |attribute| value(object, attribute));
    found.map_or(KeyRange::Unknown, KeyRange::collection)
}

/// Of several sort attributes of an index, the first decides.
fn point(item: &[u8], key: &Key) -> Option<KeyPosition> {
    let position = hashed(&key.partition, |attribute| value(item, attribute))?;
    let sort = match key.sort.first() {
        Some(attribute) => sort_key(value(item, attribute)?, attribute)?,
        None => SortKey::MIN,
    };
    Some(KeyPosition::new(position, sort))
}

fn sort_key(raw: &[u8], attribute: &AttributeDefinition) -> Option<SortKey> {
    Some(match KeyValue::read(raw, attribute).ok()? {
        KeyValue::S(text) => SortKey::bytes(text.as_bytes()),
        KeyValue::B(bytes) => SortKey::bytes(&bytes),
        KeyValue::N(number) => SortKey::number(number.to_string().parse().ok()?),
    })
}

/// The whole primary key in a form that is equal for equal keys.
pub(super) fn identity(item: &[u8], key: &Key) -> Option<Vec<u8>> {
    let mut identity = Vec::new();
    for attribute in key.partition.iter().chain(&key.sort) {
        part(&mut identity, &read(value(item, attribute)?, attribute)?);
    }
    Some(identity)
}

/// The place that a `Query` reads: the item collection of the values its key condition sets the
/// partition key equal to. [`KeyRange::Unknown`] if the condition does not do so: the store refuses
/// it.
pub(super) fn query(body: &[u8], key: &Key) -> KeyRange {
    let names =
        ["KeyConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues", "KeyConditions"];
    let Ok([expression, names, values, conditions]) = json::attributes_of(body, names) else {
        return KeyRange::Unknown;
    };
    let found = if let (Some(expression), Some(values)) = (expression, values) {
        let Ok(expression) = json::string(expression) else { return KeyRange::Unknown };
        let equal = equalities(&expression);
        hashed(&key.partition, |attribute| {
            let (_, placeholder) = equal.iter().find(|(name, _)| resolves(name, names, &attribute.name))?;
            json::member(values, placeholder).ok()?
        })
    } else {
        hashed(&key.partition, |attribute| {
            let condition = json::member(conditions?, &attribute.name).ok()??;
            json::elements(json::member(condition, "AttributeValueList").ok()??).ok()?.first().copied()
        })
    };
    found.map_or(KeyRange::Unknown, KeyRange::collection)
}

/// All `name = :value` of a key condition. In a valid one (comparisons joined by `AND`) the
/// partition key stands in exactly one; nothing more of the grammar matters here.
fn equalities(expression: &str) -> Vec<(&str, &str)> {
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '#' | ':' | '-' | '.');
    let mut tokens = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if word(first) {
            rest.find(|c| !word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("<=") || rest.starts_with(">=") {
            2
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(length);
        tokens.push(token);
        rest = tail.trim_start();
    }
    let triples = tokens.windows(3).filter(|three| three[1] == "=");
    triples
        .map(|three| if three[0].starts_with(':') { (three[2], three[0]) } else { (three[0], three[2]) })
        .collect()
}

fn resolves(name: &str, names: Option<&[u8]>, attribute: &str) -> bool {
    if !name.starts_with('#') {
        return name == attribute;
    }
    let meant = names.and_then(|names| json::member(names, name).ok().flatten());
    meant.is_some_and(|meant| json::string(meant).is_ok_and(|meant| meant == attribute))
}

fn value<'a>(item: &'a [u8], attribute: &AttributeDefinition) -> Option<&'a [u8]> {
    json::member(item, &attribute.name).ok().flatten()
}

fn hashed<'a>(
    partition: &[AttributeDefinition],
    value: impl Fn(&AttributeDefinition) -> Option<&'a [u8]>,
) -> Option<u64> {
    if let [attribute] = partition {
        return Some(position(&read(value(attribute)?, attribute)?));
    }
    // Several partition attributes of an index are hashed together (AWS, "Global secondary
    // indexes").
    let mut together = Vec::new();
    for attribute in partition {
        part(&mut together, &read(value(attribute)?, attribute)?);
    }
    Some(position(&together))
}

fn read<'a>(raw: &'a [u8], attribute: &AttributeDefinition) -> Option<Cow<'a, [u8]>> {
    KeyValue::read(raw, attribute).ok().map(|value| match value {
        KeyValue::S(Cow::Borrowed(text)) => Cow::Borrowed(text.as_bytes()),
        other => Cow::Owned(other.canonical_bytes().into_owned()),
    })
}

fn part(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::KeyType;

    use super::*;

    fn key(partition: &[&str], sort: &[&str]) -> Key {
        let definitions = |names: &[&str]| {
            names
                .iter()
                .map(|name| AttributeDefinition { name: (*name).into(), key_type: KeyType::S })
                .collect()
        };
        Key { partition: definitions(partition), sort: definitions(sort) }
    }

    fn at(text: &str) -> KeyRange {
        KeyRange::collection(position(text.as_bytes()))
    }

    #[test]
    fn a_key_condition_names_its_partition() {
        let values = r#""ExpressionAttributeValues":{":p":{"S":"game"},":s":{"S":"x"}}"#;
        let names = r##""ExpressionAttributeNames":{"#p":"pk","#s":"sk"}"##;
        for condition in [
            "pk = :p",
            "#p=:p",
            ":p = pk",
            "(#p = :p) AND #s BETWEEN :s AND :s",
            "sk = :s and pk = :p",
            "#s >= :s AND (pk = :p)",
            "begins_with(sk, :s) AND pk=:p",
        ] {
            let body = format!(r#"{{"KeyConditionExpression":"{condition}",{values},{names}}}"#);
            assert_eq!(query(body.as_bytes(), &key(&["pk"], &["sk"])), at("game"), "{condition}");
        }
        let legacy =
            br#"{"KeyConditions":{"pk":{"AttributeValueList":[{"S":"game"}],"ComparisonOperator":"EQ"}}}"#;
        assert_eq!(query(legacy, &key(&["pk"], &["sk"])), at("game"));
        let none = format!(r#"{{"KeyConditionExpression":"sk = :s",{values}}}"#);
        assert_eq!(query(none.as_bytes(), &key(&["pk"], &["sk"])), KeyRange::Unknown);
    }

    #[test]
    fn an_index_entry_needs_its_whole_key() {
        let key = key(&["game", "region"], &["score"]);
        let found = item(br#"{"game":{"S":"a"},"region":{"S":"b"},"score":{"S":"1"}}"#, &key);
        let other = item(br#"{"game":{"S":"ab"},"region":{"S":""},"score":{"S":"1"}}"#, &key);
        assert!(found.is_some() && other.is_some() && found != other);
        assert_eq!(item(br#"{"game":{"S":"a"},"region":{"S":"b"}}"#, &key), None);
        let body = br#"{"KeyConditionExpression":"game = :g AND region = :r",
            "ExpressionAttributeValues":{":g":{"S":"a"},":r":{"S":"b"}}}"#;
        let found = found.unwrap();
        assert_eq!(query(body, &key), KeyRange::collection(found.position));
        assert_eq!(found.sort, SortKey::bytes(b"1"));
    }
}
