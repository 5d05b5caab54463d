//! The registry's form of a layout: what was written once must be read for ever.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, its helper functions included"
)]

use heatsink_layout::{By, Epoch, Granularity, Hash, Layout, Strategy, TableLayouts, Template, Time};

#[test]
fn golden() {
    let layout = |strategy, shards, hash| Layout { strategy, shards, hash, version: 1 };
    let time = Time { granularity: Granularity::Day, prefix: "A#".into(), epoch: Epoch::Milliseconds };
    let by = || By::SortKey;
    for (layout, text) in [
        (
            layout(Strategy::calculated(by()), 4, Hash::JumpXxh3),
            r#"{"strategy":{"Calculated":{"by":"SortKey"}},"shards":4,"hash":"JumpXxh3","version":1}"#,
        ),
        (
            layout(Strategy::calculated(by()), 3, Hash::JumpXxh3).with_slots(&[0, 9, 2]).unwrap(),
            r#"{"strategy":{"Calculated":{"by":"SortKey","slots":[0,9,2]}},"shards":3,"hash":"JumpXxh3","version":1}"#,
        ),
        (
            layout(Strategy::calculated(By::Part { separator: "#".into(), part: 1 }), 4, Hash::JumpXxh3),
            r##"{"strategy":{"Calculated":{"by":{"Part":{"separator":"#","part":1}}}},"shards":4,"hash":"JumpXxh3","version":1}"##,
        ),
        (
            layout(Strategy::Bucket { time: time.clone(), by: by(), earlier: Vec::new() }, 2, Hash::JumpXxh3),
            r##"{"strategy":{"Bucket":{"time":{"granularity":"Day","prefix":"A#","epoch":"Milliseconds"},"by":"SortKey"}},"shards":2,"hash":"JumpXxh3","version":1}"##,
        ),
        (
            layout(
                Strategy::Template {
                    template: Template::read("{pk}#{bucket}#{shard}").unwrap(),
                    by: by(),
                    time: Some(time),
                },
                10,
                Hash::Md5,
            ),
            r##"{"strategy":{"Template":{"template":"{pk}#{bucket}#{shard}","by":"SortKey","time":{"granularity":"Day","prefix":"A#","epoch":"Milliseconds"}}},"shards":10,"hash":"Md5","version":1}"##,
        ),
    ] {
        assert_eq!(serde_json::to_string(&layout).unwrap(), text);
        assert_eq!(serde_json::from_str::<Layout>(text).unwrap(), layout);
    }
    for hash in [Hash::Sha256, Hash::Fnv1a32, Hash::Fnv1a64, Hash::Modulo, Hash::Random] {
        assert_eq!(serde_json::to_string(&hash).unwrap(), format!("\"{hash:?}\""));
    }
    let bad = r#"[{"keys":"*","layout":{"strategy":{"Template":{"template":"{pk}{shard}","by":"SortKey","time":null}},"shards":4,"hash":"Md5","version":1}}]"#;
    assert!(serde_json::from_str::<TableLayouts>(bad).is_err());
}
