//! The scanner on good and bad JSON; arbitrary bytes never make it panic.

use proptest::prelude::*;
use serde_json::Value as Json;

use super::*;

#[test]
fn members_stay_as_they_were_written() {
    let body = br#" { "a" : {"S": "x\u0041"}, "b":[1, 2 ], "a": 3, "" : {} } "#;
    let found = members(body).unwrap();
    assert_eq!(found[0].1, br#"{"S": "x\u0041"}"#);
    assert!(matches!(found[0].0, Cow::Borrowed("a")));
    assert_eq!(member(body, "a").unwrap(), Some(&b"3"[..]));
    assert_eq!(member(body, "").unwrap(), Some(&b"{}"[..]));
    assert_eq!(member(body, "c").unwrap(), None);
    assert_eq!(elements(found[1].1).unwrap(), [&b"1"[..], b"2"]);
    assert_eq!(string(br#""x\u0041""#).unwrap(), "xA");
    assert_eq!(member(b"[1]", "a"), Err(Malformed));
    assert_eq!(member(br#"{"\u0061":1}"#, "a").unwrap(), Some(&b"1"[..]));
}

#[test]
fn the_only_member_is_found_where_it_is_alone() {
    let found = |object: &'static str| {
        only_member(object.as_bytes(), "S")
            .map(|value| value.map(|value| String::from_utf8_lossy(value).into_owned()))
    };
    for alone in [r#"{"S":"a"}"#, r#" { "S" : "a" } "#, r#"{"\u0053":"a"}"#] {
        assert_eq!(found(alone), Ok(Some("\"a\"".to_owned())), "{alone}");
    }
    for other in ["{}", r#"{"N":"a"}"#, r#"{"S":"a","S":"b"}"#, r#"{"S":"a","N":1}"#, r#"{"N":1,"S":"a"}"#] {
        assert_eq!(found(other), Ok(None), "{other}");
    }
    for bad in ["", "[1]", r#"{"S"}"#, r#"{"S":"a""#, r#"{"S":"a"}}"#, r#"{"S":"a",}"#, r#"{"\x":"a"}"#] {
        assert_eq!(found(bad), Err(Malformed), "{bad}");
    }
}

#[test]
fn an_array_of_items_is_read_in_one_pass() {
    let page = br#"[{"pk":{"S":"a"},"x":[{}]}, {"sk":{"N":"1"},"pk":{"S":"b"}},{}]"#;
    let found = attributes_of_each(page, ["pk", "sk"]).unwrap();
    assert_eq!(found[0].raw, br#"{"pk":{"S":"a"},"x":[{}]}"#);
    assert_eq!(found[1].members, [Some(&br#"{"S":"b"}"#[..]), Some(&br#"{"N":"1"}"#[..])]);
    assert_eq!(found[2].members, [None, None]);
    assert_eq!(attributes_of_each(b"[1]", ["a"]), Err(Malformed));
}

#[test]
fn a_page_is_read_with_the_members_around_it() {
    let body = br#"{"Count":2, "Items" : [{"pk":1},{"x":{"pk":2}}], "LastEvaluatedKey":{"pk":3}}"#;
    let found = page(body, "Items", ["pk"]).unwrap();
    assert_eq!(
        found.members,
        [("Count".into(), &b"2"[..]), ("LastEvaluatedKey".into(), &br#"{"pk":3}"#[..])]
    );
    let items = found.items.unwrap();
    assert_eq!((items[0].members, items[1].members), ([Some(&b"1"[..])], [None]));
    assert_eq!(items[1].raw, br#"{"x":{"pk":2}}"#);
    assert_eq!(page(b"{}", "Items", ["pk"]).unwrap().items, None);
    for bad in [
        &b"{\"Items\":{}}"[..],
        b"{\"Items\":[1]}",
        b"{\"Items\":[{}]",
        b"{\"Items\":[{}]]",
        b"{\"Items\":[{}}",
    ] {
        assert_eq!(page(bad, "Items", ["pk"]), Err(Malformed));
    }
}

#[test]
fn strings_of_every_length_end_where_they_end() {
    for length in 0..80 {
        for tail in ["", "\\\"", "\\\\", "\\n\\\""] {
            let text = format!("\"{}{tail}{}\"", "x".repeat(length), "y".repeat(length % 11));
            assert_eq!(trim(text.as_bytes()), Ok(text.as_bytes()));
            assert_eq!(trim(&text.as_bytes()[..text.len() - 1]), Err(Malformed), "{text}");
            assert_eq!(elements(format!("[{text},1]").as_bytes()).unwrap()[0], text.as_bytes());
        }
    }
}

#[test]
fn what_is_not_json_is_malformed() {
    for bad in [
        "",
        "{",
        "[",
        "{]",
        "[}",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "[1,]",
        "[tru]",
        "[nul]",
        "[\"a]",
        "{a:1}",
        "{\"a\":1}x",
        "[]]",
        "[{\"a\":[}]]",
        "[--1]",
        "[,]",
        "{,}",
        "[\"\\",
        "[+1]",
    ] {
        let text = bad.as_bytes();
        assert_eq!((members(text).err(), elements(text).err()), (Some(Malformed), Some(Malformed)), "{bad}");
        assert_eq!(trim(text), Err(Malformed), "{bad}");
    }
    assert_eq!(string(b"\"a\nb\""), Err(Malformed));
    assert_eq!(string(b"\"\xff\""), Err(Malformed));
}

#[test]
fn deep_nesting_is_refused_and_does_not_overflow() {
    let deep = |levels: usize| ["[".repeat(levels), "]".repeat(levels)].concat().into_bytes();
    assert!(trim(&deep(128)).is_ok());
    assert_eq!(trim(&deep(129)), Err(Malformed));
    assert_eq!(trim(&deep(1_000_000)), Err(Malformed));
}

#[test]
fn a_splice_keeps_all_other_bytes() {
    let body = br#"{ "TableName":"t", "Item" : {"a" : 1}, "x": [ 1 ]}"#;
    let out = splice_members(body, &[("Item", Some(b"{}")), ("x", None), ("new", Some(b"true"))]).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), r#"{"TableName":"t","Item":{},"new":true}"#);
    assert_eq!(splice_members(b"{}", &[("x", None)]).unwrap(), b"{}");
    assert_eq!(splice_members(br#"{"a":1,"a":2}"#, &[("a", Some(b"3"))]).unwrap(), br#"{"a":3}"#);
}

fn any_json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<i32>().prop_map(|n| Json::from(f64::from(n) / 8.0)),
        any::<String>().prop_map(Json::from),
    ];
    leaf.prop_recursive(5, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Json::from),
            prop::collection::btree_map(any::<String>(), inner, 0..5)
                .prop_map(|map| Json::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn agrees_with_serde_json(json in any_json(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_vec_pretty(&json).unwrap() } else { serde_json::to_vec(&json).unwrap() };
        prop_assert!(trim(&text).is_ok());
        match &json {
            Json::Object(map) => {
                let found = members(&text).unwrap();
                prop_assert_eq!(found.len(), map.len());
                for (name, raw) in found {
                    prop_assert_eq!(&map[name.as_ref()], &serde_json::from_slice::<Json>(raw).unwrap());
                    prop_assert_eq!(member(&text, &name).unwrap(), Some(raw));
                }
            }
            Json::Array(list) => {
                let found: Vec<Json> = elements(&text).unwrap().into_iter().map(|raw| serde_json::from_slice(raw).unwrap()).collect();
                prop_assert_eq!(&found, list);
            }
            _ => {}
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\ 1a-tnul\xff".to_vec()), 0..40)) {
        let well_formed = serde_json::from_slice::<Json>(&bytes).is_ok();
        prop_assert!(!well_formed || trim(&bytes).is_ok());
        let _ = (members(&bytes), elements(&bytes), string(&bytes), attributes_of_each(&bytes, ["a"]), page(&bytes, "", ["a"]), names_under(&bytes, ""), lists_under(&bytes, "", 2), splice_members(&bytes, &[("a", None)]));
    }

    #[test]
    fn strings_read_back(text in any::<String>()) {
        let mut out = Vec::new();
        write_string(&mut out, &text);
        prop_assert_eq!(&string(&out).unwrap(), &text);
        prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
    }
}

#[test]
fn an_array_with_more_elements_than_asked_for_is_not_read_on() {
    let few = |array: &'static str, most| few_elements(array.as_bytes(), most);
    assert_eq!(few("[1, 2]", 2), Ok(Some(vec![&b"1"[..], b"2"])));
    assert_eq!(few("[1, 2, 3", 2), Ok(None));
    assert_eq!(few("[]", 0), Ok(Some(vec![])));
    assert_eq!(few("[1, 2", 2), Err(Malformed));
    assert_eq!(few("{}", 2), Err(Malformed));
}

#[test]
fn what_is_under_a_member_is_read_in_one_pass() {
    let body = br#" {"a":1,"of" : {"x":[{"b":2}, 3],"y":[]}, "of":null,"of":{"x":[4]}} "#;
    assert_eq!(names_under(body, "of"), Ok(vec!["x".into(), "y".into(), "x".into()]));
    let lists = |most| {
        let lists = lists_under(body, "of", most)?;
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        Ok(lists
            .into_iter()
            .map(|(name, list)| (name.into_owned(), list.into_iter().map(text).collect()))
            .collect())
    };
    let of = |names: &[(&str, &[&str])]| -> Result<Vec<(String, Vec<String>)>, Malformed> {
        let list = |list: &[&str]| list.iter().map(|one| (*one).to_owned()).collect();
        Ok(names.iter().map(|(name, elements)| ((*name).to_owned(), list(elements))).collect())
    };
    assert_eq!(lists(1), of(&[("x", &[r#"{"b":2}"#])]));
    assert_eq!(lists(2), of(&[("x", &[r#"{"b":2}"#, "3"])]));
    // It is no object there.
    assert_eq!(lists(3), Err(Malformed));
    assert_eq!(lists_under(br#"{"of":{"x":[1]},"b":[]}"#, "of", 9).unwrap(), [("x".into(), vec![&b"1"[..]])]);
    assert_eq!(lists_under(br#"{"b":[]}"#, "of", 9), Ok(vec![]));
    for bad in ["", "[]", r#"{"of":[]}"#, r#"{"of":{"x":[}"#, r#"{"of":{"x":[1]}"#, r#"{"of":{"x":[1]}}}"#] {
        assert_eq!(names_under(bad.as_bytes(), "of"), Err(Malformed), "{bad}");
        assert_eq!(lists_under(bad.as_bytes(), "of", 9), Err(Malformed), "{bad}");
    }
}
