//! What readers of a table's stream in other languages (`clients/logical`) are tested against:
//! physical keys, and what the codec reads them as. `HEATSINK_BLESS=1` writes the file anew.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, its helper functions included"
)]

mod forms;
mod keys;
mod records;
mod templates;
mod texts;

use std::path::Path;

#[test]
fn the_table_of_vectors_is_what_the_codec_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/logical/vectors.jsonl");
    let rows = [keys::rows(), templates::rows(), records::rows()].into_iter().flatten();
    let mut lines: Vec<String> = rows.map(|row| row.to_string()).collect();
    let mut seen = std::collections::HashSet::new();
    lines.retain(|line| seen.insert(line.clone()));
    let expected = lines.join("\n") + "\n";
    if std::env::var_os("HEATSINK_BLESS").is_some() {
        std::fs::write(&path, &expected).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    let line = published.lines().zip(expected.lines()).position(|(is, should)| is != should);
    assert!(
        published == expected,
        "clients/logical/vectors.jsonl is stale (first at line {:?}); write it anew: HEATSINK_BLESS=1 cargo test -p heatsink-layout --test layout logical_vectors",
        line.map(|line| line + 1)
    );
}
