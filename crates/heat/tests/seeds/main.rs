//! Five accounts of hot keys, generated: what the audit says of their items, of their stream
//! records and of a recording of their requests, and what advice says of their traffic. Each names
//! the hot patterns, what to do about them, and what not to shard; nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking"
)]

mod accounts;
mod traffic;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use accounts::{Account, KEYS};
use heatsink_heat::audit::framing::{Frame, Framing};
use heatsink_heat::audit::records::{KeyNames, Kind, Records};
use heatsink_heat::audit::traffic::{Place, Traffic};
use heatsink_heat::audit::{Action, Audit, Report};
use heatsink_trace::Reader;

/// The report on a file.
fn audit(account: &Account, file: &str) -> (Report, Kind) {
    let names = KeyNames { partition: KEYS[0].to_owned(), sort: Some(KEYS[1].to_owned()) };
    let (mut audit, mut records) = (Audit::default(), Records::new(Some(names)));
    let mut take = |line: u64, frame: Frame<'_>| {
        let Frame::Value(value) = frame else { panic!("{line}: {frame:?}") };
        assert_eq!(records.read(value, &mut audit), Ok(1), "{line}");
        ControlFlow::Continue(())
    };
    let mut framing = Framing::default();
    assert!(framing.push(file.as_bytes(), &mut take).is_continue());
    assert!(framing.end(&mut take).is_continue());
    let kind = records.first().unwrap();
    (audit.report(account.table), kind)
}

/// The report on a recording.
fn audit_trace(account: &Account, trace: &str) -> Report {
    let (mut reader, mut traffic) = (Reader::default(), Traffic::default());
    for line in trace.lines() {
        traffic.line(&reader.line(line).unwrap()).unwrap();
    }
    assert!(reader.end().is_some());
    traffic.report(&Place { table: account.table.to_owned(), index: None }).unwrap()
}

/// Pattern, keys, action.
fn named(report: &Report) -> Vec<(&str, u64, Action)> {
    report.patterns.iter().map(|one| (one.pattern.as_str(), one.keys, one.verdict.action)).collect()
}

/// Checks an account: by items, by records and by traffic. Of the latter two, what is not named has
/// nothing to be done about.
fn is(
    account: &Account,
    by_items: &[(&str, u64, Action)],
    by_records: &[(&str, u64, Action)],
    by_traffic: &[(&str, &str)],
) -> [Report; 2] {
    let (items, kind) = audit(account, &account.export());
    assert_eq!((kind, items.measured), (Kind::Export, false));
    assert_eq!(named(&items), by_items, "{} by its items: {items:#?}", account.table);
    let (records, kind) = audit(account, &account.stream());
    assert_eq!((kind, records.measured), (Kind::Stream, true));
    assert_eq!(records.items, account.writes.len() as u64);
    assert_eq!(named(&records), by_records, "{} by its records: {records:#?}", account.table);
    for (one_in, hashed) in [(1, false), (32, false), (1, true)] {
        recorded(account, one_in, hashed, by_traffic);
    }
    let advice = traffic::advice(account);
    let found: Vec<(&str, &str)> = advice.iter().map(|(key, action, _)| (key.as_str(), *action)).collect();
    assert_eq!(found, by_traffic, "{} by its traffic: {advice:#?}", account.table);
    [items, records]
}

/// Checks an account by a recording of one request in so many: those are named about which
/// something is to be done, and no others.
fn recorded(account: &Account, one_in: u32, hashed: bool, by_traffic: &[(&str, &str)]) {
    let report = audit_trace(account, &account.trace(one_in, hashed));
    let named: BTreeSet<(String, &str)> = report
        .patterns
        .iter()
        .filter(|one| one.verdict.action != Action::Leave)
        .map(|one| (one.largest.key.clone(), one.verdict.action.words()))
        .collect();
    let name = |key: &str| if hashed { accounts::hashed(key) } else { key.to_owned() };
    let expected: BTreeSet<(String, &str)> =
        by_traffic.iter().map(|(key, action)| (name(key), *action)).collect();
    assert_eq!(named, expected, "{} of one in {one_in}, {hashed}: {report:#?}", account.table);
    for pattern in report.patterns.iter().filter(|one| one.verdict.action != Action::Leave) {
        assert_eq!(pattern.keys, 1, "{pattern:#?}");
        let shards = matches!(pattern.verdict.action, Action::Shard | Action::Wait);
        assert_eq!(pattern.verdict.rule.is_some(), shards && !hashed, "{pattern:#?}");
    }
}

fn rule<'a>(report: &'a Report, pattern: &str) -> &'a str {
    let found = report.patterns.iter().find(|one| one.pattern == pattern).unwrap();
    found.verdict.rule.as_deref().unwrap()
}

fn reason<'a>(report: &'a Report, pattern: &str) -> &'a str {
    &report.patterns.iter().find(|one| one.pattern == pattern).unwrap().verdict.reason
}

#[test]
fn the_leaderboard() {
    let account = accounts::leaderboard();
    let [items, records] = is(
        &account,
        &[("game_x", 1, Action::Measure), ("game_t{n}", 40, Action::Leave)],
        &[("game_x", 1, Action::Shard), ("game_t{n}", 40, Action::Leave)],
        // Scores come in any order, so DynamoDB can split the key; what helps if it does not is
        // said as well.
        &[("game_x", "wait, else shard")],
    );
    assert!(reason(&items, "game_x").contains("no sort key of it tells when it was written"), "{items:#?}");
    assert!(
        rule(&records, "game_x").contains("keys     = \"game_x\"\nstrategy = \"calculated\"\nshards   = ")
    );
    assert!(reason(&records, "game_t{n}").contains("dearer and nothing faster"), "{records:#?}");
}

#[test]
fn the_chat() {
    let account = accounts::chat();
    // The others have names of the same form, and pay nothing.
    let expected = [("conv_abc123", 1, Action::Shard), ("conv_abc{n}", 60, Action::Leave)];
    let reports = is(&account, &expected, &expected, &[("conv_abc123", "shard")]);
    for report in &reports {
        let rule = rule(report, "conv_abc123");
        assert!(rule.contains("keys     = \"conv_abc123\"\nstrategy = \"calculated\"\n"), "{rule}");
        assert!(reason(report, "conv_abc123").contains("Buckets of time alone would not help"));
    }
}

#[test]
fn the_operations_log() {
    let account = accounts::ops_log();
    let expected = [
        ("OPS_LOG", 1, Action::Shard),
        ("THREAT#brand{n}", 40, Action::Leave),
        ("PRODUCT_INDEX", 1, Action::Leave),
        ("BRAND_INDEX", 1, Action::Leave),
    ];
    for report in is(&account, &expected, &expected, &[("OPS_LOG", "shard")]) {
        for left in ["PRODUCT_INDEX", "BRAND_INDEX"] {
            assert!(reason(&report, left).contains("dearer and nothing faster"), "{report:#?}");
        }
    }
}

#[test]
fn the_votes() {
    let account = accounts::votes();
    let [items, records] = is(
        &account,
        &[
            ("VOTER#{n}", 2_000, Action::Leave),
            ("CANDIDATE#A", 1, Action::Leave),
            ("CANDIDATE#B", 1, Action::Leave),
            ("CANDIDATE#C", 1, Action::Leave),
        ],
        &[
            ("CANDIDATE#A", 1, Action::ChangeItem),
            ("VOTER#{n}", 2_000, Action::Leave),
            ("CANDIDATE#B", 1, Action::Leave),
            ("CANDIDATE#C", 1, Action::Leave),
        ],
        &[("CANDIDATE#A", "change the item")],
    );
    for reason in [reason(&items, "CANDIDATE#A"), reason(&records, "CANDIDATE#A")] {
        assert!(reason.contains("shards spread items, not one item"), "{reason}");
        assert!(reason.contains("`strategy = \"counter\"`"), "{reason}");
    }
}

#[test]
fn the_patterns_of_write_sharding() {
    let account = accounts::patterns();
    let [items, records] = is(
        &account,
        &[
            ("user-12345", 1, Action::Shard),
            ("tenant-456#{time}", 1, Action::Shard),
            ("ACTIVE", 1, Action::Measure),
            ("user-{n}#{n}", 10, Action::Leave),
            ("user-{n}", 200, Action::Leave),
            ("tenant-{n}#{time}", 50, Action::Leave),
            ("CLOSED", 1, Action::Leave),
            ("leaderboard#game-{n}", 1, Action::Leave),
        ],
        &[
            ("user-12345", 1, Action::Shard),
            ("tenant-456#{time}", 1, Action::Shard),
            ("ACTIVE", 1, Action::Shard),
            ("leaderboard#game-{n}", 1, Action::ChangeItem),
            ("user-{n}#{n}", 10, Action::Leave),
            ("user-{n}", 200, Action::Leave),
            ("tenant-{n}#{time}", 50, Action::Leave),
            ("CLOSED", 1, Action::Leave),
        ],
        &[
            ("ACTIVE", "wait, else shard"),
            ("leaderboard#game-1", "change the item"),
            ("tenant-456#2026-06-22", "shard"),
            ("user-12345", "shard"),
        ],
    );
    for report in [&items, &records] {
        // A day's key is hot today, another one tomorrow: the rule is for all days of this tenant,
        // and for no other tenant.
        assert!(rule(report, "tenant-456#{time}").contains("keys     = \"tenant-456#*\"\n"), "{report:#?}");
        assert!(rule(report, "user-12345").contains("keys     = \"user-12345\"\n"), "{report:#?}");
    }
}
