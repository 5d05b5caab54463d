//! Whether an update only adds to numbers, so that a counter would take it: it goes to any fragment
//! of the item, whatever the others hold.
//!
//! Not here: what a counter is (`heatsink_layout`), what of it is refused (`route`).

use heatsink_dynamo::json;

/// Whether an UpdateItem only adds to numbers, without a condition, and asks for no value back.
pub(super) fn only_adds(body: &[u8]) -> bool {
    let names = ["UpdateExpression", "ConditionExpression", "ReturnValues", "Expected", "AttributeUpdates"];
    let Ok([Some(update), None, values, None, None]) = json::attributes_of(body, names) else { return false };
    let wants_none = values.is_none_or(|values| json::string(values).is_ok_and(|text| text == "NONE"));
    wants_none && json::string(update).is_ok_and(|text| is_add(&text))
}

/// Whether an expression has the clause ADD and no other. Names of attributes that are words of
/// the language have to be given as `#name`, so a bare one begins a clause.
fn is_add(expression: &str) -> bool {
    let mut words = expression.split_ascii_whitespace();
    let clause = |word: &str| ["set", "remove", "delete", "add"].contains(&&*word.to_ascii_lowercase());
    words.next().is_some_and(|first| first.eq_ignore_ascii_case("add")) && !words.any(clause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_counter_takes_is_told_from_what_it_does_not() {
        let of = |members: &str| only_adds(format!("{{\"TableName\":\"t\",{members}}}").as_bytes());
        assert!(of(r#""UpdateExpression":"ADD votes :n""#));
        assert!(of(r#""UpdateExpression":" add #v :n, w :m","ReturnValues":"NONE""#));
        for other in [
            r#""UpdateExpression":"SET votes = votes + :n""#,
            r#""UpdateExpression":"ADD votes :n SET seen = :t""#,
            r#""UpdateExpression":"ADD votes :n","ConditionExpression":"votes < :m""#,
            r#""UpdateExpression":"ADD votes :n","ReturnValues":"UPDATED_NEW""#,
            r#""AttributeUpdates":{"votes":{"Action":"ADD","Value":{"N":"1"}}}"#,
            r#""UpdateExpression":7"#,
        ] {
            assert!(!of(other), "{other}");
        }
    }
}
