//! One item out of a counter's fragments: the base fragment, with the declared numbers summed over
//! all of them.

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, Number, Value};

/// The base fragment with the sums in it. Attributes that no other fragment has keep their bytes.
///
/// # Errors
/// `ValidationException` where a sum has more than 38 digits or is out of range,
/// `InternalServerError` for fragments that cannot be read.
pub(crate) fn fold<'a>(
    counted: &[String],
    base: &Bytes,
    others: impl Iterator<Item = &'a [u8]> + Clone,
) -> Result<Bytes, Error> {
    let mut sums: Vec<(&str, Option<Vec<u8>>)> = Vec::new();
    for name in counted {
        let mut parts = Vec::new();
        for fragment in others.clone() {
            parts.extend(number(fragment, name)?);
        }
        if parts.is_empty() {
            continue;
        }
        parts.extend(number(base, name)?);
        let sum = sum(parts).map_err(|error| {
            let why = error.message.unwrap_or_default();
            Error::validation(format!(
                "The parts of the counter {name} cannot be summed: {why}. Its rows are unchanged; SET it to a number that fits"
            ))
        })?;
        sums.push((name, Some(Value::N(sum.to_string()).to_json())));
    }
    if sums.is_empty() {
        return Ok(base.clone());
    }
    let sums: Vec<(&str, Option<&[u8]>)> = sums.iter().map(|(name, sum)| (*name, sum.as_deref())).collect();
    json::splice_members(base, &sums).map(Bytes::from).map_err(|Malformed| unreadable())
}

/// The sum of numbers in any order. Parts of unlike size and sign are added largest first and
/// opposite signs together, so that no partial sum has more digits than it must.
fn sum(mut parts: Vec<Number>) -> Result<Number, Error> {
    parts.sort_unstable();
    let mut sum = Number::ZERO;
    while !parts.is_empty() {
        let next = if sum > Number::ZERO { parts.remove(0) } else { parts.pop().unwrap_or(Number::ZERO) };
        sum = sum.plus(next)?;
    }
    Ok(sum)
}

/// A fragment's part of a number; `None` if it has none.
fn number(fragment: &[u8], name: &str) -> Result<Option<Number>, Error> {
    let Some(raw) = json::member(fragment, name).map_err(|Malformed| unreadable())? else { return Ok(None) };
    let value = Value::read(raw).map_err(|_| unreadable())?;
    value.number().map(Some).ok_or_else(|| {
        Error::validation(format!(
            "The attribute {name} is declared as a counter, but the stored item holds a value of type {} there; SET it to a number",
            value.type_name()
        ))
    })
}

fn unreadable() -> Error {
    Error::internal("The store's answer holds a fragment of a counter that could not be read")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn votes(item: &Bytes) -> Option<String> {
        number(item, "votes").unwrap().map(|number| number.to_string())
    }

    fn row(votes: Option<&str>) -> Bytes {
        Bytes::from(match votes {
            Some(votes) => format!(r#"{{"pk":{{"S":"a"}},"votes":{{"N":"{votes}"}}}}"#),
            None => r#"{"pk":{"S":"a"}}"#.to_owned(),
        })
    }

    fn folded(row0: Option<&str>, others: &[Option<&str>]) -> Option<String> {
        let others: Vec<Bytes> = others.iter().map(|votes| row(*votes)).collect();
        let item = fold(&["votes".to_owned()], &row(row0), others.iter().map(|row| &**row)).unwrap();
        votes(&item)
    }

    #[test]
    fn a_number_that_only_one_fragment_has_is_shown() {
        assert_eq!(folded(None, &[None, None]), None);
        assert_eq!(folded(Some("1.50"), &[None]), Some("1.5".to_owned()));
        assert_eq!(folded(None, &[Some("-7"), None]), Some("-7".to_owned()));
        assert_eq!(folded(Some("0"), &[Some("0.1"), Some("0.2")]), Some("0.3".to_owned()));
    }

    #[test]
    fn what_is_no_number_is_not_summed_in_silence() {
        let row0 = Bytes::from_static(br#"{"pk":{"S":"a"},"votes":{"S":"many"}}"#);
        let other = row(Some("1"));
        let error = fold(&["votes".to_owned()], &row0, [&*other].into_iter()).unwrap_err();
        assert!(error.to_string().contains("type S"), "{error}");
    }

    proptest! {
        /// Any way of dealing additions to fragments gives the sum.
        #[test]
        fn the_fold_is_the_sum(adds in prop::collection::vec((-1_000_000_i64..1_000_000, 0_i16..6, 0_usize..7), 0..40)) {
            let text = |value: i64, places: i16| format!("{value}e-{places}");
            let mut rows: Vec<Option<Number>> = vec![None; 7];
            let mut total: Option<Number> = None;
            for (value, places, row) in adds {
                let number = Number::parse(&text(value, places)).unwrap();
                let add = |old: Option<Number>| Some(old.map_or(number, |old| old.plus(number).unwrap()));
                rows[row] = add(rows[row]);
                total = add(total);
            }
            let rows: Vec<Option<String>> = rows.iter().map(|row| row.map(|row| row.to_string())).collect();
            let rows: Vec<Option<&str>> = rows.iter().map(Option::as_deref).collect();
            prop_assert_eq!(folded(rows[0], &rows[1..]), total.map(|total| total.to_string()));
        }

        /// Huge parts that cancel out do not overflow on the way.
        #[test]
        fn parts_that_cancel_out_are_summed(small in -1000_i64..1000) {
            let huge = format!("9{}", "0".repeat(60));
            let (plus, minus) = (huge.clone(), format!("-{huge}"));
            prop_assert_eq!(
                folded(Some(&plus), &[Some(&small.to_string()), Some(&minus)]).is_some(), true
            );
        }
    }
}
