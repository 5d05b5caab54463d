//! The report at the end of `watch`: what it says of hot keys, and that its section of
//! heatsink.toml is one that the rules accept.

use heatsink_control::Rules;
use heatsink_env::MonotonicInstant;

use super::*;
use crate::cli::hot_keys::Heat;

fn seen(key: &str, units: f64) -> Seen {
    let mut seen = Seen::new(MonotonicInstant(0));
    let command = format!("heatsink reshard start T '{key}' --shards 16");
    let heat = |window: u64| -> Heat {
        serde_json::from_value(json!({
        "window": window,
        "advice": [{ "table": "T", "key": key, "sentence": format!("Key {key:?} burns."), "command": command }],
        "parts": [{ "table": "T", "index": null, "kind": "write", "requests_per_s": units, "throttled_per_s": units / 2.0,
            "keys": [{ "key": { "S": key }, "units_per_s": units, "error_units_per_s": 10.0, "requests_per_s": units,
                "throttled_per_s": units / 2.0 }] }],
        }))
        .unwrap()
    };
    for second in 1..=10 {
        seen.add(MonotonicInstant(second * 1_000_000_000), &heat(second));
    }
    seen
}

#[test]
fn it_says_what_burned_and_what_to_paste() {
    let seen = seen("game_x", 4_800.0);
    let report = Report { seen: &seen, upstream: "http://127.0.0.1:9000" };
    let text = report.text();
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "Watched for 10 s: about 48,000 requests, 50 % throttled, 1 table.",
        "One key was hot: above all game_x of T, with up to 4,800 ± 10.0 write units/s",
    ] {
        assert!(words.contains(part), "no {part:?} in\n{text}");
    }
    for part in [
        "\n  heatsink reshard start T 'game_x' --shards 16 --upstream http://127.0.0.1:9000\n",
        "\n  [[automatic]]\n  table = \"T\"\n  keys = \"game_x\"\n  mode = \"auto\"\n",
        "Not seen:\n",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let json = report.json();
    assert_eq!(
        (&json["keys"][0]["hot_seconds"], &json["advice"][0]["sentence"]),
        (&json!(10.0), &json!("Key \"game_x\" burns."))
    );
    assert_eq!(json["next_steps"][0], "heatsink serve --upstream http://127.0.0.1:9000");
    let toml = json["advice"][0]["toml"].as_str().unwrap();
    assert!(Rules::read("report", toml).unwrap().automatic("T", b"game_x").is_some(), "{toml}");
}

#[test]
fn a_hostile_key_is_shown_and_not_pasted() {
    let hostile = "a\n\u{1b}[31m\u{202e}\"; rm -rf '~'";
    let seen = seen(hostile, 4_800.0);
    let text = Report { seen: &seen, upstream: "u" }.text();
    assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains("heatsink reshard"), "{text}");
    assert!(text.contains(r"a\n\u{1b}[31m\u{202e…"), "{text}");
    for (key, is_named) in
        [("a\"b", true), ("a*", false), ("a?", false), ("a\\b", false), ("a\u{7f}", false), ("é日", true)]
    {
        let toml = automatic("T", key);
        assert_eq!(toml.is_some(), is_named, "{key:?}");
        assert!(toml.is_none_or(|toml| Rules::read("report", &toml).is_ok()), "{key:?}");
    }
}

#[test]
fn silence_and_warmth_are_said_too() {
    let seen = Seen::new(MonotonicInstant(0));
    let report = Report { seen: &seen, upstream: "u" };
    assert!(report.text().contains("No request for an item"), "{}", report.text());
    assert_eq!(report.json()["next_steps"], json!([]));
    let mut seen = Seen::new(MonotonicInstant(0));
    let part = json!({ "table": "T", "index": null, "kind": "read", "keys": [{ "key": { "S": "a" }, "units_per_s": 300.0 }] });
    seen.add(MonotonicInstant(1_000_000_000), &serde_json::from_value(json!({ "parts": [part] })).unwrap());
    let text = Report { seen: &seen, upstream: "u" }.text();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("No key was near a limit. The hottest took 10 % of what one partition gives: a of T."),
        "{text}"
    );
}
