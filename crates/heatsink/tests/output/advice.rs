//! One recommended shard count for the same rates and risk, whoever recommends it, and the cause
//! that binds it.

use serde_json::Value as Json;

use crate::command::{TestDir, text};

fn advice(place: &TestDir, arguments: &str) -> Json {
    let arguments: Vec<&str> = arguments.split(' ').chain(["--output", "json"]).collect();
    let done = place.run(&arguments);
    assert_eq!(done.status.code(), Some(0), "{arguments:?}: {}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

/// The arguments between `heatsink ` and the end of the code in each text that says `heatsink
/// shards …` and what it recommends.
fn claims(page: &str) -> Vec<(String, String)> {
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let pieces = page.split("`heatsink shards ").skip(1);
    let claim = |piece: &str| {
        let (arguments, after) = piece.split_once('`')?;
        let number = after.strip_prefix(" recommends ")?;
        let number: String = number.chars().take_while(char::is_ascii_digit).collect();
        (!number.is_empty()).then(|| (format!("shards {arguments}"), number))
    };
    pieces.filter_map(claim).collect()
}

#[test]
fn the_pages_say_what_the_command_says() {
    let place = TestDir::new("pages");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = 0;
    for folder in [root.clone(), root.join("docs/how-to"), root.join("docs/explain")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            for (arguments, number) in claims(&std::fs::read_to_string(&path).unwrap()) {
                let said = advice(&place, &arguments);
                assert_eq!(
                    said["recommended"]["shards"].to_string(),
                    number,
                    "{arguments} in {}",
                    path.display()
                );
                found += 1;
            }
        }
    }
    assert!(found >= 3, "{found}");
}

#[test]
fn the_audit_proposes_what_shards_recommends() {
    let place = TestDir::new("audited");
    place.data();
    let report = advice(&place, "audit Board --data data.db");
    let verdict = &report["patterns"][0]["verdict"];
    let (reason, rule) = (verdict["reason"].as_str().unwrap(), verdict["rule"].as_str().unwrap());
    let (_, command) = reason.split_once("`heatsink ").unwrap();
    let (command, _) = command.split_once('`').unwrap();
    let recommended = &advice(&place, command)["recommended"]["shards"];
    assert!(reason.contains(&format!("{recommended} shards is what")), "{reason}");
    assert!(rule.ends_with(&format!("shards   = {recommended}\n")), "{rule}");
}

/// The numbers in the column `shards`, from top to bottom.
fn column(said: &str) -> Vec<u32> {
    let rows = said.lines().filter(|line| line.starts_with('│'));
    let cell = |line: &str| {
        let words: Vec<&str> = line.trim_matches('│').split_whitespace().collect();
        let at = words.iter().rposition(|word| *word == "%")?;
        words.get(at.checked_sub(4)?)?.parse().ok()
    };
    rows.filter_map(cell).collect()
}

#[test]
fn the_rows_come_in_order_each_once() {
    let place = TestDir::new("rows");
    for asked in [
        &["shards", "--writes", "5000", "--peak", "7000", "--partitions", "60"][..],
        &["shards", "--writes", "300"],
        &["shards", "--writes", "90000"],
        &["shards", "--writes", "20000", "--partitions", "4"],
    ] {
        let said = text(&place.run(asked).stdout);
        let shards = column(&said);
        assert!(!shards.is_empty() && shards.is_sorted_by(|a, b| a < b), "{shards:?} in {said}");
    }
}

#[test]
fn the_cause_that_is_named_is_the_one_that_binds() {
    let place = TestDir::new("cause");
    for (arguments, cause, says) in [
        ("shards --writes 300", "one_partition", "No sharding: one partition carries 300 writes/s"),
        (
            "shards --writes 5000 --peak 7000 --partitions 60",
            "writes",
            "28 shards would be too few: 4 of them on one partition reach its 1,000 write units/s",
        ),
        ("shards --writes 500 --reads 2000 --partitions 600", "reads", "reach its 3,000 read units/s"),
        ("shards --writes 500 --reads 20000", "every_read", "ask every shard for at least half a unit each"),
        (
            "shards --writes 20000 --partitions 4",
            "table_too_small",
            "The table's 4 partitions take 4000 write units/s together",
        ),
        ("shards --writes 2000000", "most_shards", "1,000 shards, the most that a rule may have"),
    ] {
        let found = advice(&place, arguments);
        assert_eq!(found["cause"], cause, "{arguments}");
        let said = text(&place.run(&arguments.split(' ').collect::<Vec<_>>()).stdout);
        assert!(said.contains(says), "{arguments}: {said}");
        // With one shard less it is not enough: that is what makes the cause the binding one.
        if let Some(fewer) = found["one_less"].as_object() {
            assert!(fewer["risk"].as_f64() > found["asked"]["risk"].as_f64(), "{found}");
            assert_eq!(fewer["ceiling"], found["cause"], "{found}");
        }
    }
}
