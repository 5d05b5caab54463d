//! The partition key that a Query names, found without parsing the whole of its condition: `key =
//! :value`, either way round, is the only way to name it.

use heatsink_dynamo::json;

/// The raw value of the partition key of a Query; `None` where the condition names none.
pub(super) fn partition<'a>(
    condition: &str,
    names: Option<&'a [u8]>,
    values: Option<&'a [u8]>,
    attribute: &str,
) -> Option<&'a [u8]> {
    let named = |word: &str| match word.starts_with('#') {
        false => word == attribute,
        true => {
            member(names, word).and_then(|name| json::string(name).ok()).is_some_and(|name| name == attribute)
        }
    };
    let mut before = None;
    let mut equals = false;
    for word in words(condition) {
        if word == "=" {
            equals = true;
            continue;
        }
        if equals && let Some(left) = before {
            let of = |name: &str, value: &str| {
                (value.starts_with(':') && named(name)).then(|| member(values, value)).flatten()
            };
            if let Some(found) = of(left, word).or_else(|| of(word, left)) {
                return Some(found);
            }
        }
        equals = false;
        before = Some(word);
    }
    None
}

fn member<'a>(object: Option<&'a [u8]>, name: &str) -> Option<&'a [u8]> {
    json::member(object?, name).ok().flatten()
}

/// Names, placeholders and operators. Parentheses and blanks part them.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
        let operator = |c: char| matches!(c, '=' | '<' | '>');
        let first = rest.chars().next()?;
        let end = if operator(first) {
            rest.find(|c: char| !operator(c))
        } else {
            rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',') || operator(c))
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_partition_key_is_found_however_it_is_written() {
        let names = br##"{"#p":"pk","#s":"sk"}"##;
        let values = br#"{":g":{"S":"game"},":s":{"S":"5"}}"#;
        let find = |text: &str| partition(text, Some(names), Some(values), "pk");
        for text in [
            "pk = :g",
            "pk=:g",
            "(#p = :g) AND begins_with(sk, :s)",
            "sk > :s and :g=#p",
            "#s = :s AND #p = :g",
            "sk BETWEEN :s AND :s AND (pk= :g)",
        ] {
            assert_eq!(find(text), Some(&br#"{"S":"game"}"#[..]), "{text}");
        }
        for text in ["", "sk = :s", "pk > :g", "pk = :none", "pk <= :g", "= :g", "pk ="] {
            assert_eq!(find(text), None, "{text}");
        }
    }
}
