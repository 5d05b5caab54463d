//! What is told from what, and what is refused.

use proptest::prelude::*;

use super::*;

fn named(partition: &str, sort: Option<&str>) -> Records {
    Records::new(Some(KeyNames { partition: partition.to_owned(), sort: sort.map(str::to_owned) }))
}

fn read(records: &mut Records, value: &str) -> Result<u64, Unreadable> {
    records.read(value.as_bytes(), &mut Audit::default())
}

const ITEM: &str = r#"{"pk":{"S":"a"},"sk":{"N":"1782151200"},"x":{"B":"AAEC"}}"#;

fn record(event: &str, time: &str, images: &str) -> String {
    format!(
        r#"{{"eventID":"1","eventName":"{event}","eventSourceARN":"arn:aws:dynamodb:us-east-1:1:table/Games/stream/2026","dynamodb":{{"ApproximateCreationDateTime":{time},"Keys":{{"sk":{{"N":"7"}},"pk":{{"S":"a"}}}}{images}}}}}"#
    )
}

#[test]
fn what_a_value_is_is_told_from_what_is_in_it() {
    let page = format!("{{\"Count\":2,\"Items\":[{ITEM},{ITEM}]}}");
    let batch = format!(
        "{{\"Records\":[{},{}]}}",
        record("INSERT", "1.7821512E9", ""),
        record("REMOVE", "1782151200", "")
    );
    for (value, kind, count) in [
        (ITEM.to_owned(), Kind::Items, 1),
        (format!("{{\"Item\":{ITEM}}}"), Kind::Export, 1),
        // Attributes that are named like what is around items.
        (r#"{"Item":{"S":"x"},"pk":{"S":"a"},"sk":{"N":"1"}}"#.to_owned(), Kind::Items, 1),
        (
            r#"{"Items":{"L":[]},"Records":{"S":"x"},"pk":{"S":"a"},"sk":{"N":"1"},"dynamodb":{"S":"x"}}"#
                .to_owned(),
            Kind::Items,
            1,
        ),
        (r#"{"Item":{"S":{"S":"x"},"pk":{"S":"a"},"sk":{"N":"1"}}}"#.to_owned(), Kind::Export, 1),
        (page, Kind::Items, 2),
        (record("MODIFY", "1782151200123", ""), Kind::Stream, 1),
        (batch, Kind::Stream, 2),
        (r#"{"Items":[],"Count":0}"#.to_owned(), Kind::Items, 0),
    ] {
        let mut records = named("pk", Some("sk"));
        assert_eq!(read(&mut records, &value), Ok(count), "{value}");
        assert_eq!(records.first(), (count > 0).then_some(kind), "{value}");
    }
}

#[test]
fn what_cannot_be_counted_is_refused_with_the_reason() {
    let large = format!(r#"{{"pk":{{"S":"a"}},"sk":{{"N":"1"}},"x":{{"S":"{}"}}}}"#, "y".repeat(MAX_ITEM));
    for (value, expected) in [
        ("{\"pk\":{\"S\":\"a", "not one whole JSON value"),
        ("{\"pk\":{\"S\":\"a\"}} {}", "not one whole JSON value"),
        ("[1]", "not one whole JSON value"),
        ("{\"pk\":1}", "neither an item in DynamoDB JSON nor a stream record"),
        ("{\"pk\":{\"S\":\"a\"}}", "no key attribute sk"),
        ("{\"sk\":{\"S\":\"a\"}}", "no key attribute pk"),
        ("{\"pk\":{\"BOOL\":true},\"sk\":{\"S\":\"a\"}}", "no key attribute pk"),
        (&large, "more than DynamoDB takes"),
        (r#"{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{},"NewImage":{}}"#, "incremental export"),
        ("$ion_1_0 {Item:{}}", "Amazon Ion"),
        (&record("INSERT", "\"yesterday\"", ""), "does not say when"),
        (&record("INSERT", "1782151200", r#","NewImage":{"x":1}"#), "neither an item"),
    ] {
        let mut records = named("pk", Some("sk"));
        let refused = read(&mut records, value).unwrap_err().to_string();
        assert!(refused.contains(expected), "{value:.80}: {refused}");
        assert_eq!(read(&mut records, ITEM), Ok(1));
    }
    assert_eq!(
        Records::default().read(b"{\"\xFF\":{\"S\":\"a\"}}", &mut Audit::default()),
        Err(Unreadable::NotJson)
    );
}

#[test]
fn kinds_are_not_mixed() {
    let export = format!("{{\"Item\":{ITEM}}}");
    let record = record("INSERT", "1782151200", "");
    let mut records = named("pk", Some("sk"));
    assert_eq!(read(&mut records, &export), Ok(1));
    for value in [ITEM, &record] {
        let refused = read(&mut records, value).unwrap_err().to_string();
        assert!(refused.ends_with("among items of an export to S3"), "{refused}");
    }
    // Another file may hold items of another form, and no records.
    records.next_file();
    assert_eq!(read(&mut records, ITEM), Ok(1));
    records.next_file();
    assert!(matches!(read(&mut records, &record), Err(Unreadable::Mixed { .. })));
}

#[test]
fn names_of_the_key_are_asked_for_where_they_are_needed() {
    let needed = |value: &str| read(&mut Records::default(), value).unwrap_err();
    assert_eq!(
        needed(ITEM),
        Unreadable::NamesNeeded { names: ["pk", "sk", "x"].map(str::to_owned).to_vec() }
    );
    let two = record("INSERT", "1782151200", "");
    assert_eq!(needed(&two), Unreadable::NamesNeeded { names: ["sk", "pk"].map(str::to_owned).to_vec() });
    // With the partition key the other one is the sort key; a single one is the partition key.
    let mut records = named("pk", None);
    assert_eq!(read(&mut records, &two), Ok(1));
    assert_eq!(records.keys.as_ref().unwrap().sort.as_deref(), Some("sk"));
    assert_eq!(records.table(), Some("Games"));
    let one = two.replace(r#""sk":{"N":"7"},"#, "");
    assert_eq!(read(&mut Records::default(), &one), Ok(1));
}

#[test]
fn writes_cost_what_the_larger_image_costs_and_expired_items_nothing() {
    let (mut records, mut audit) = (named("pk", Some("sk")), Audit::default());
    let image = |bytes: usize| format!(r#"{{"x":{{"S":"{}"}}}}"#, "y".repeat(bytes - 1));
    let both = format!(r#","OldImage":{},"NewImage":{}"#, image(2_500), image(100));
    let mut add = |value: &str| records.read(value.as_bytes(), &mut audit).unwrap();
    assert_eq!(add(&record("MODIFY", "1782151200", &both)), 1);
    assert_eq!(add(&record("INSERT", "1782151200000000", &format!(r#","NewImage":{}"#, image(1_024)))), 1);
    assert_eq!(add(&record("REMOVE", "\"2026-06-22T18:00:00+00:00\"", "")), 1);
    let expired = record("REMOVE", "1782151200", "").replacen(
        '{',
        r#"{"userIdentity":{"principalId":"dynamodb.amazonaws.com","type":"Service"},"#,
        1,
    );
    assert_eq!(add(&expired), 0);
    assert_eq!((records.expired(), records.without_images()), (1, 1));
    let report = audit.report("T");
    assert_eq!((report.items, report.seconds, report.measured), (3, Some(1), true));
    let busiest = report.patterns[0].busiest.as_ref().unwrap();
    assert_eq!(busiest.peak_units, Some(3.0 + 1.0 + 1.0));
}

proptest! {
    /// Values come from outside: whatever they hold, they are counted or refused.
    #[test]
    fn any_value_is_counted_or_refused(parts in prop::collection::vec(prop::sample::select(&[
        "{", "}", "[", "]", ",", ":", "\"", "\"Item\":", "\"Items\":", "\"Records\":", "\"pk\":", "{\"S\":\"a\"}", "\"dynamodb\":", "\"eventName\":\"INSERT\"",
        "\"Keys\":", "\"sk\":{\"N\":\"1\"}", "1", "null", "\\", "\u{0}",
    ][..]), 0..24)) {
        let value = parts.concat();
        let _ = read(&mut named("pk", Some("sk")), &value);
        let _ = read(&mut Records::default(), &value);
    }
}
