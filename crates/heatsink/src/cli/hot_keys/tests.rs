//! What a server tells of hot keys: its order, its words, and that hostile names stay inert.

use serde_json::json;

use super::*;

#[test]
fn what_is_throttled_comes_before_what_is_warm() {
    let heat: Heat = serde_json::from_value(json!({
        "now_ms": 5, "window_ms": 1000, "advice": [{ "table": "t", "key": "b", "sentence": "s\n", "diagnosis": {}, "command": "c 'b'" }],
        "parts": [
            { "table": "t", "index": null, "kind": "write", "units_per_s": 5000.0, "requests_per_s": 4000.0, "throttled_per_s": 1000.0, "keys": [
                { "key": { "S": "a" }, "units_per_s": 4000.0, "requests_per_s": 4000.0, "shards": 8 },
                { "key": { "S": "b" }, "units_per_s": 900.0, "error_units_per_s": 5.0, "sampling_error_units_per_s": 7.5,
                  "requests_per_s": 900.0, "throttled_per_s": 450.0, "growing_sort_share": 0.98,
                  "clients": [{ "client": "team1", "share_percent": 83.2 }, { "client": "team2", "share_percent": 10.0 }] }] },
            { "table": "t", "index": "i", "kind": "read", "units_per_s": 2900.0, "requests_per_s": 10.0, "keys": [
                { "key": { "N": "7" }, "units_per_s": 2900.0 }] },
        ],
    }))
    .unwrap();
    let keys = heat.keys();
    let shown: Vec<_> =
        keys.iter().map(|key| (key.key.as_str(), percent(key.filled()), key.is_hot())).collect();
    assert_eq!(
        shown,
        [("b", "90 %".to_owned(), true), ("N:7", "97 %".to_owned(), true), ("a", "50 %".to_owned(), false)]
    );
    let first = &keys[0];
    assert_eq!((first.error, percent(first.throttled())), (12.5, "50 %".to_owned()));
    assert_eq!(first.signs, "mostly by team1 (83 %); 98 % of its sort keys only grow");
    assert_eq!(keys[1].signs, "", "an older server tells no clients");
    let advice = heat.advice_on(&first.id).unwrap();
    assert_eq!((advice.sentence().as_str(), advice.command()), (r"s\n", Some("c 'b'")));
    assert!(heat.advice_on(&keys[1].id).is_none());
    assert_eq!((heat.units(Kind::Write), heat.requests()), (5000.0, (4010.0, 1000.0)));
    assert!(serde_json::from_value::<Heat>(json!({})).unwrap().keys().is_empty());
}

#[test]
fn a_command_that_a_terminal_would_not_show_is_not_given() {
    let of = |command: &str| Advice {
        table: "t".to_owned(),
        key: "k".to_owned(),
        sentence: String::new(),
        command: Some(command.to_owned()),
    };
    assert_eq!(of(r"start t 'a'\''b'").command(), Some(r"start t 'a'\''b'"));
    for hostile in ["a\nb", "\u{1b}[31m", "a\u{202e}b"] {
        assert_eq!(of(hostile).command(), None, "{hostile:?}");
    }
}

#[test]
fn figures_have_three_digits_that_count() {
    for (value, shown) in [
        (0.0, "0"),
        (0.004, "0"),
        (0.5, "0.50"),
        (12.34, "12.3"),
        (99.96, "100.0"),
        (612.4, "612"),
        (5_012.0, "5,012"),
        (1_234_567.0, "1,234,567"),
        (f64::NAN, "0"),
    ] {
        assert_eq!(rate(value), shown);
    }
    assert_eq!((percent(0.0), percent(0.004), percent(0.125)), ("0 %".into(), "< 1 %".into(), "12 %".into()));
}
