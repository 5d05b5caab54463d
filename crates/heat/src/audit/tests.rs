//! Which keys matter: patterns, rates, verdicts, on tables like the accounts'; and that any keys
//! are taken.

use super::*;

/// `count` items of 300 bytes under `key`, `a_second` of them in each second.
fn write(audit: &mut Audit, key: &str, prefix: &str, count: u32, a_second: u32) {
    for nth in 0..count {
        let second = nth / a_second;
        let time = format!("2026-06-22T{:02}:{:02}:{:02}", second / 3_600, second / 60 % 60, second % 60);
        let sort = format!("{prefix}{time}.{nth:03}Z#x");
        audit.add(key.as_bytes(), Some(SortKey::S(&sort)), 300);
    }
}

fn verdict<'a>(report: &'a Report, pattern: &str) -> &'a Verdict {
    &report.patterns.iter().find(|one| one.pattern == pattern).unwrap().verdict
}

#[test]
fn cardinality_alone_says_nothing() {
    let mut audit = Audit::default();
    write(&mut audit, "OPS_LOG", "", 6_000, 3_000);
    write(&mut audit, "BRAND_INDEX", "BRAND#", 40, 1);
    for brand in 0..30 {
        write(&mut audit, &format!("THREAT#brand-{brand}"), "ALERT#", 20, 1);
    }
    let report = audit.report("AntiCounterfeit");
    assert_eq!((report.items, report.patterns.len()), (6_640, 3));
    let [log, threats, brands] = &report.patterns[..] else { panic!("{report:#?}") };

    assert_eq!((log.pattern.as_str(), log.keys, log.verdict.action), ("OPS_LOG", 1, Action::Shard));
    assert_eq!(log.busiest.as_ref().unwrap().peak_units, Some(3_000.0));
    assert!(log.verdict.reason.contains("Buckets of time alone would not help"), "{}", log.verdict.reason);
    let rule = log.verdict.rule.as_deref().unwrap();
    assert!(rule.contains("keys     = \"OPS_LOG\"\nstrategy = \"calculated\"\nshards   = "), "{rule}");

    assert_eq!((threats.pattern.as_str(), threats.keys), ("THREAT#brand-{n}", 30));
    assert_eq!((brands.pattern.as_str(), brands.keys), ("BRAND_INDEX", 1));
    for left in [threats, brands] {
        assert_eq!(left.verdict.action, Action::Leave);
        assert!(left.verdict.reason.contains("at most 1.0 write units in its busiest second"), "{left:?}");
    }
}

#[test]
fn a_sample_bounds_nothing_from_above_and_says_how_much_was_read() {
    let mut audit = Audit::default();
    write(&mut audit, "COLD", "", 200, 1);
    write(&mut audit, "HOT", "", 6_000, 3_000);
    for user in 0..300 {
        audit.add(format!("USER#{user}").as_bytes(), None, 300);
    }
    let whole = audit.report("T");
    assert_eq!(whole.share_read, None);
    assert!(whole.patterns.iter().all(|one| !one.verdict.reason.contains("sample")));
    let sample = audit.report_sample("T", 65_000);
    assert_eq!(sample.share_read, Some(0.1));
    for pattern in ["COLD", "USER#{n}"] {
        let left = verdict(&sample, pattern);
        assert_eq!(left.action, Action::Leave);
        assert!(!left.reason.contains("at most"), "{}", left.reason);
        assert!(
            left.reason.ends_with("with a chance of about 10 %, and those that were not may be hotter"),
            "{}",
            left.reason
        );
    }
    assert!(verdict(&sample, "COLD").reason.contains("took at least 1.0 write units"));
    assert!(verdict(&sample, "HOT").reason.ends_with("it may need more"));
    // The count is hours old and lower than what was read: no share is claimed.
    let stale = audit.report_sample("T", 6_000);
    assert_eq!(stale.share_read, None);
    assert!(verdict(&stale, "COLD").reason.ends_with("keys that were not in it may be hotter"));
}

#[test]
fn what_grows_for_years_gets_buckets_and_what_is_hot_too_gets_both() {
    let mut audit = Audit::default();
    for day in 1..=28 {
        for nth in 0..80 {
            let sort = format!("ALERT#2026-06-{day:02}T00:{:02}:{:02}Z", nth / 60, nth % 60);
            audit.add(b"SLOW", Some(SortKey::S(&sort)), 400_000);
            for _ in 0..3 {
                audit.add(b"FAST", Some(SortKey::S(&sort)), 400_000);
            }
        }
    }
    let report = audit.report("T");
    let slow = verdict(&report, "SLOW");
    assert_eq!(slow.action, Action::Bucket, "{slow:?}");
    assert!(slow.reason.contains("they lift no rate"), "{}", slow.reason);
    let rule = "strategy = \"bucket\"\nbucket   = \"month\"\ntime     = { prefix = \"ALERT#\" }\n";
    assert!(slow.rule.as_deref().unwrap().ends_with(rule), "{slow:?}");
    let fast = verdict(&report, "FAST");
    assert_eq!(fast.action, Action::Shard, "1,173 units in one second: {fast:?}");
    let rule = "bucket   = \"day\"\ntime     = { prefix = \"ALERT#\" }\nshards   = ";
    assert!(fast.rule.as_deref().unwrap().contains(rule), "{fast:?}");
}

#[test]
fn without_times_the_rate_is_not_made_up() {
    let mut audit = Audit::default();
    for nth in 0..500 {
        audit.add(b"game_x", Some(SortKey::S(&format!("{nth:010}#p{nth}"))), 100);
        audit.add(format!("VOTER#{nth}").as_bytes(), None, 100);
    }
    let report = audit.report("T");
    let game = verdict(&report, "game_x");
    assert_eq!((game.action, &game.rule), (Action::Measure, &None));
    assert!(game.reason.contains("50 % of the items"), "{}", game.reason);
    assert_eq!(verdict(&report, "VOTER#{n}").action, Action::Leave);
}

#[test]
fn numbers_as_times_and_keys_that_are_no_text() {
    let mut audit = Audit::default();
    for nth in 0..900_u64 {
        audit.add(&[0xFF, 0x00], Some(SortKey::N(&(1_718_000_000_000 + nth).to_string())), 100);
    }
    let report = audit.report("T");
    assert_eq!(report.patterns[0].verdict.action, Action::Shard);
    assert_eq!(report.patterns[0].busiest.as_ref().unwrap().peak_units, Some(900.0));
}

#[test]
fn rules_are_written_so_that_they_can_be_read() {
    let mut audit = Audit::default();
    write(&mut audit, "a\"b\\c\u{7f}\n#*", "", 900, 900);
    let rule = verdict(&audit.report("T"), "a\"b\\c\u{7f}\n#*").rule.clone().unwrap();
    assert!(rule.contains(r#"keys     = "a\"b\\c\u007F\u000A#*""#), "{rule}");
}

#[test]
fn a_table_without_items_has_no_patterns() {
    assert_eq!(Audit::default().report("T").patterns, []);
}

proptest::proptest! {
    /// Keys come from outside: whatever they hold, every item is counted once.
    #[test]
    fn any_keys_are_taken(items in proptest::collection::vec(
        (proptest::collection::vec(proptest::prelude::any::<u8>(), 0..12), "[0-9T:Z.é#-]{0,24}", 0..500_000_usize), 0..30,
    )) {
        let mut audit = Audit::default();
        for (key, sort, bytes) in &items {
            for sort in [SortKey::S(sort), SortKey::N(sort), SortKey::B(key)] {
                audit.add(key, Some(sort), *bytes);
            }
        }
        let report = audit.report("T");
        let counted: u64 = report.patterns.iter().map(|pattern| pattern.items).sum();
        proptest::prop_assert_eq!((report.items, counted), (3 * items.len() as u64, 3 * items.len() as u64));
    }
}
