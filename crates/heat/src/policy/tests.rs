//! Loads that flap, keys that burn together, and the reason of each key that is left alone.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use heatsink_dynamo::KeyValue;
use heatsink_layout::SplitPoints;

use crate::advice::Finding;
use crate::detect::Drawn;
use crate::{Refused, SlotLoad};

const SETTINGS: Settings = Settings { patience: Duration::ZERO, ..Settings::DEFAULT };

fn at(seconds: u64) -> MonotonicInstant {
    MonotonicInstant(0) + Duration::from_secs(seconds)
}

/// What is known of the keys: all alike, but for the slots that decisions gave them.
struct Known {
    of_all: KeyFacts,
    slots: HashMap<Vec<u8>, Vec<u16>>,
}

impl Known {
    fn with(settings: Settings) -> Self {
        Known { of_all: KeyFacts::whole(settings), slots: HashMap::new() }
    }

    fn carry_out(&mut self, decision: &Decision) {
        let slots = match &decision.change {
            Change::Shards { slots: Some(slots), .. } => slots.clone(),
            change => (0..change.shards()).collect(),
        };
        self.slots.insert(decision.name.key.clone(), slots);
    }
}

impl Facts for Known {
    fn key(&self, load: &KeyLoad) -> KeyFacts {
        let slots = self.slots.get(&load.key).unwrap_or(&self.of_all.slots).clone();
        KeyFacts { slots, names_slots: load.index.is_none(), ..self.of_all.clone() }
    }
}

/// So many write units a second on a key, of which its partitions take 1,000 each.
fn load(key: u8, writes: f64, shards: usize) -> KeyLoad {
    let refused =
        writes * (1.0 - 1_000.0 * f64::from(u16::try_from(shards).unwrap()) / writes.max(1.0)).max(0.0);
    KeyLoad {
        table: "t".to_owned(),
        key: vec![key],
        writes,
        requests: writes,
        throttled: refused,
        writes_refused: by_partition(writes, refused),
        growing: 1.0,
        item_bytes: 300,
        page: 100,
        ..KeyLoad::default()
    }
}

/// So many requests, of which their partition refuses some.
fn by_partition(requests: f64, refused: f64) -> Refused {
    Refused { requests, throttled: refused, by_partition: refused, ..Refused::default() }
}

/// The same, refused with that share.
fn refused(key: u8, writes: f64, share: f64) -> KeyLoad {
    let refused = writes * share;
    KeyLoad { throttled: refused, writes_refused: by_partition(writes, refused), ..load(key, writes, 1) }
}

/// The changes that a load second by second leads to, each carried out at once.
fn run(settings: Settings, seconds: u64, writes: impl Fn(u64) -> f64) -> Vec<(u64, u16)> {
    let (mut policy, mut known, mut changes) = (Policy::default(), Known::with(settings), Vec::new());
    for second in 0..seconds {
        let shards = known.slots.get([1].as_slice()).map_or(1, Vec::len);
        for decision in policy.look(at(second), &[load(1, writes(second), shards)], &known).decisions {
            changes.push((second, decision.change.shards()));
            known.carry_out(&decision);
        }
    }
    changes
}

/// What follows from loads that stay, once they have lasted long enough.
fn looked(known: &Known, loads: &[KeyLoad]) -> Looked {
    let mut policy = Policy::default();
    (0..3).map(|second| policy.look(at(second), loads, known)).last().unwrap()
}

/// The reasons of the keys that are left alone; nothing is decided.
fn reasons(known: &Known, loads: &[KeyLoad]) -> Vec<Reason> {
    let looked = looked(known, loads);
    assert!(looked.decisions.is_empty(), "{:?}", looked.decisions);
    looked.left_alone.iter().map(|one| one.reason).collect()
}

/// A key in ranges from "d" and from "m" on, whose last one burns and is written to at these sort
/// keys.
fn range_that_burns(written: &[&str], growing: f64) -> (Known, KeyLoad) {
    let points = ["d", "m"].map(|text| KeyValue::S(text.into())).to_vec();
    let of_all = KeyFacts {
        slots: vec![0, 1, 2],
        split_points: Some(SplitPoints::new(points).unwrap()),
        ..KeyFacts::whole(SETTINGS)
    };
    let slot =
        |slot, units: f64, throttled| SlotLoad { slot, units, requests: units, throttled, counted: units };
    let load = KeyLoad {
        slots: vec![slot(0, 100.0, 0.0), slot(1, 100.0, 0.0), slot(2, 2_000.0, 1_000.0)],
        written: written.iter().map(|text| format!("{{\"S\":\"{text}\"}}")).collect(),
        growing,
        ..refused(1, 2_200.0, 0.45)
    };
    (Known { of_all, slots: HashMap::new() }, load)
}

#[test]
fn a_range_that_burns_is_split_where_its_writes_divide() {
    let written: Vec<String> =
        (0..30).map(|at| format!("{}{at:02}", if at < 6 { "b" } else { "n" })).collect();
    let written: Vec<&str> = written.iter().map(String::as_str).collect();
    let (known, load) = range_that_burns(&written, 0.1);
    let looked = looked(&known, &[load]);
    let [decision] = &*looked.decisions else { panic!("{looked:?}") };
    let Change::Ranges { split_at, slots } = &decision.change else { panic!("{decision:?}") };
    // 2,000 units are three times three quarters of a partition; of so few sort keys the three would
    // be uneven.
    assert_eq!(split_at.to_string(), "\"d\", \"m\", \"n12\", \"n18\", \"n24\"");
    assert_eq!(slots, &[0, 1, 2, 3, 4, 5], "only what lies above a new point moves");
    assert!(decision.sentence.contains("6 ranges"), "{}", decision.sentence);
}

#[test]
fn a_range_is_left_alone_whose_split_would_not_help() {
    let reasons = |written: &[&str], growing| {
        let (known, load) = range_that_burns(written, growing);
        reasons(&known, &[load])
    };
    let spread: Vec<String> = (0..20).map(|at| format!("n{at:02}")).collect();
    let spread: Vec<&str> = spread.iter().map(String::as_str).collect();
    assert_eq!(reasons(&spread, 1.0), [Reason::GrowingSortKeys]);
    assert_eq!(reasons(&spread[..2], 0.1), [Reason::UnknownSortKeys]);
    assert_eq!(reasons(&["x"; 20], 0.1), [Reason::OneItem]);
}

#[test]
fn a_hot_key_gets_shards_once() {
    assert_eq!(run(SETTINGS, 600, |_| 5_000.0), [(2, 7)]);
}

#[test]
fn a_load_that_flaps_causes_one_change_until_it_stays_away() {
    let flapping = |second: u64| if (second / 30).is_multiple_of(2) { 5_000.0 } else { 10.0 };
    assert_eq!(run(SETTINGS, 3_600, flapping).len(), 1);
    let cold = Settings { cold_for: Duration::from_secs(3_600), ..SETTINGS };
    let changes = run(cold, 2 * 3_600, |second| if second < 600 { flapping(second) } else { 10.0 });
    assert_eq!((changes.len(), changes[1].1), (2, 1));
    assert!((3_600..=4_300).contains(&changes[1].0), "{changes:?}");
}

#[test]
fn what_dynamodb_heals_is_waited_for() {
    let known = Known::with(Settings::DEFAULT);
    let loads = [KeyLoad { growing: 0.0, ..load(1, 5_000.0, 1) }];
    assert_eq!(reasons(&known, &loads), [Reason::Patience]);
    let mut policy = Policy::default();
    let first = (0..1_000).find(|second| !policy.look(at(*second), &loads, &known).decisions.is_empty());
    assert_eq!(first, Some(902));
}

#[test]
fn all_keys_that_burn_are_decided_in_one_look() {
    let known = Known::with(Settings { units_per_hour: 1e9, ..SETTINGS });
    let ten: Vec<KeyLoad> = (0..10).map(|key| load(key, 1_100.0, 1)).collect();
    assert_eq!(looked(&known, &ten).decisions.len(), 10);
    let many: Vec<KeyLoad> = (0..120).map(|key| load(key, 1_100.0, 1)).collect();
    let looked = looked(&known, &many);
    assert_eq!((looked.decisions.len(), looked.left_alone.len()), (100, 20));
    assert!(looked.left_alone.iter().all(|one| one.reason == Reason::NextChange));
}

#[test]
fn a_key_that_cannot_be_changed_keeps_no_other_from_it_and_rests() {
    let (mut policy, known) = (Policy::default(), Known::with(SETTINGS));
    let loads = [load(0, 5_000.0, 1), load(1, 5_000.0, 1)];
    let mut decided = Vec::new();
    for second in 0..700 {
        let looked = policy.look(at(second), &loads, &known);
        for decision in &looked.decisions {
            decided.push((second, decision.name.key[0]));
            policy.refused(at(second), decision, "it has a key of the reserved form");
        }
        if second == 5 {
            assert_eq!(looked.left_alone[0].reason, Reason::Rests);
            assert!(
                looked.left_alone[0].sentence.ends_with("a while ago: it has a key of the reserved form")
            );
            assert_eq!(looked.left_alone[0].since, at(2), "it burns anew since the decision");
        }
    }
    assert_eq!(decided, [(2, 0), (2, 1), (602, 0), (602, 1)]);
}

#[test]
fn what_is_proposed_is_not_proposed_again_and_costs_nothing() {
    let known = Known::with(Settings { units_per_hour: 10_000.0, ..SETTINGS });
    let mut policy = Policy::default();
    let loads = [load(0, 1_500.0, 1), load(1, 1_400.0, 1)];
    let proposed = (0..10).map(|second| {
        let looked = policy.look(at(second), &loads, &known);
        looked.decisions.iter().for_each(|decision| policy.proposed(at(second), decision));
        (looked.decisions.len(), looked.left_alone.last().map(|one| one.reason))
    });
    let proposed: Vec<_> = proposed.collect();
    // The first takes half of the units, which are given back before the second one is looked at.
    assert_eq!(proposed.iter().map(|(count, _)| count).sum::<usize>(), 2);
    assert_eq!(proposed[9].1, Some(Reason::Proposed));
}

#[test]
fn a_budget_is_kept_and_one_that_is_too_small_is_named() {
    let items = |items, units_per_hour| Known {
        of_all: KeyFacts { items: Some(items), ..KeyFacts::whole(Settings { units_per_hour, ..SETTINGS }) },
        slots: HashMap::new(),
    };
    let two = [load(0, 1_500.0, 1), load(1, 1_400.0, 1)];
    // Half of 20,000 items move, at ten units each.
    let looked = looked(&items(20_000, 150_000.0), &two);
    assert_eq!(looked.decisions.iter().map(|one| one.name.key[0]).collect::<Vec<_>>(), [0]);
    assert_eq!(looked.left_alone[0].reason, Reason::BudgetUsedUp);
    assert_eq!(reasons(&items(20_000, 90_000.0), &two), [Reason::BudgetTooSmall; 2]);
    assert_eq!(reasons(&items(1_000_000_000, 1e12), &two), [Reason::DoesNotPay; 2]);
}

#[test]
fn two_keys_of_one_partition_are_parted_and_a_small_one_is_left() {
    let known = Known::with(SETTINGS);
    let parted = looked(&known, &[refused(0, 720.0, 0.286), refused(1, 680.0, 0.286)]);
    assert_eq!(parted.decisions.len(), 1);
    assert_eq!(parted.decisions[0].change, Change::Shards { shards: 1, slots: Some(vec![1]) });
    assert_eq!(parted.decisions[0].finding, Finding::SharedPartition);
    assert_eq!(parted.left_alone[0].reason, Reason::AnotherKey);
    let filled = looked(&known, &[refused(0, 1_500.0, 0.35), refused(1, 60.0, 0.35)]);
    assert_eq!(filled.decisions.len(), 1);
    assert_eq!(
        (filled.left_alone[0].finding, filled.left_alone[0].reason),
        (Finding::Neighbour, Reason::AnotherKey)
    );
}

#[test]
fn a_shard_that_burns_alone_takes_another_slot() {
    let mut known = Known::with(SETTINGS);
    known.slots.insert(vec![1], vec![0, 1, 5, 3]);
    let slot = |slot, throttled| SlotLoad { slot, units: 600.0, requests: 600.0, throttled, counted: 0.0 };
    let slots = vec![slot(0, 0.0), slot(1, 150.0), slot(5, 0.0), slot(3, 0.0)];
    let looked = looked(&known, &[KeyLoad { slots, ..refused(1, 2_400.0, 0.0625) }]);
    let decision = &looked.decisions[0];
    assert_eq!(decision.change, Change::Shards { shards: 4, slots: Some(vec![0, 2, 5, 3]) });
    assert_eq!(decision.finding, Finding::CrowdedShard);
}

#[test]
fn what_is_left_alone_says_who_makes_the_heat() {
    let clients = serde_json::from_str(r#"[{"client":"team1","units":1600.0}]"#).unwrap();
    let numeric = KeyLoad { is_number: true, clients, ..load(1, 2_000.0, 1) };
    let looked = looked(&Known::with(SETTINGS), &[numeric]);
    let most = &looked.left_alone[0].clients[0];
    assert_eq!((&*most.client, most.share_percent.round()), ("team1", 80.0));
}

#[test]
fn what_cannot_be_helped_has_its_reason() {
    let known = Known::with(SETTINGS);
    let of = |load: KeyLoad| reasons(&known, &[load]);
    assert_eq!(of(KeyLoad { is_number: true, ..load(1, 2_000.0, 1) }), [Reason::NumericKey]);
    assert_eq!(of(KeyLoad { is_cut: true, ..load(1, 2_000.0, 1) }), [Reason::CutKey]);
    assert_eq!(of(KeyLoad { one_item: 1.0, ..load(1, 2_000.0, 1) }), [Reason::OneItem]);
    assert_eq!(of(KeyLoad { one_item: 1.0, added: 1.0, ..load(1, 2_000.0, 1) }), [Reason::CountersOff]);
    assert_eq!(of(KeyLoad { index: Some("i".to_owned()), ..load(1, 2_000.0, 1) }), [Reason::IndexValuesOff]);
    let mut by_index = load(1, 300.0, 1);
    (by_index.throttled, by_index.writes_refused.throttled, by_index.writes_refused.by_index) =
        (90.0, 90.0, 90.0);
    assert_eq!(of(by_index), [Reason::IndexValue]);
    let mut limit = load(1, 300.0, 1);
    (limit.throttled, limit.writes_refused.throttled) = (90.0, 90.0);
    assert_eq!(of(limit), [Reason::Limit]);
    let repeated = KeyLoad {
        throttled: 2_000.0,
        writes: 0.0,
        reads: 5_000.0,
        same_page: 1.0,
        writes_refused: Refused::default(),
        ..load(1, 5_000.0, 1)
    };
    assert_eq!(of(repeated.clone()), [Reason::RepeatedPage]);
    // A split of DynamoDB does not help one page, so nobody waits for it.
    let patient = Known::with(Settings::DEFAULT);
    let unsorted = KeyLoad { growing: 0.0, ..repeated };
    assert_eq!(reasons(&patient, &[unsorted]), [Reason::RepeatedPage]);
    for barred in [Reason::NoSection, Reason::Stream, Reason::Moving, Reason::NoRegistry] {
        let known = Known {
            of_all: KeyFacts { barred: Some(barred), ..known.of_all.clone() },
            slots: HashMap::new(),
        };
        assert_eq!(reasons(&known, &[load(1, 2_000.0, 1)]), [barred]);
    }
    let most = Known::with(Settings { most: 1, ..SETTINGS });
    assert_eq!(reasons(&most, &[load(1, 2_000.0, 1)]), [Reason::MostShards]);
}

#[test]
fn index_values_and_counters_are_changed_where_that_is_allowed() {
    let known = Known::with(Settings { index_values: true, counters: true, ..SETTINGS });
    let value = KeyLoad { index: Some("i".to_owned()), ..load(1, 2_000.0, 1) };
    let counter = KeyLoad { one_item: 1.0, added: 1.0, ..load(2, 2_000.0, 1) };
    let looked = looked(&known, &[value, counter]);
    let changes: Vec<&Change> = looked.decisions.iter().map(|one| &one.change).collect();
    assert_eq!(changes, [&Change::IndexValue { shards: 3 }, &Change::Counter { shards: 3 }]);
}

#[test]
fn members_of_batches_are_judged_without_a_reason() {
    let known = Known::with(SETTINGS);
    let silent = |mut load: KeyLoad| {
        load.writes_refused.by_partition = 0.0;
        load
    };
    assert_eq!(looked(&known, &[silent(load(1, 2_000.0, 1))]).decisions.len(), 1);
    // It was counted too low, and the table's other keys are not refused.
    let cool = load(2, 400.0, 1);
    assert_eq!(looked(&known, &[silent(refused(1, 100.0, 0.5)), cool]).decisions.len(), 1);
    let all_refused = [silent(refused(1, 300.0, 0.3)), silent(refused(2, 300.0, 0.3))];
    assert_eq!(reasons(&known, &all_refused), [Reason::Limit; 2]);
}

#[test]
fn what_drawing_may_have_added_is_not_acted_on() {
    let (mut policy, known) = (Policy::default(), Known::with(SETTINGS));
    // Three draws that stand for 400 each, one of them refused.
    let drawn = Drawn { units: 1_200.0, variance: 1_200.0 * 400.0, one: 400.0 };
    let chance = KeyLoad { writes_drawn: drawn, ..refused(1, 1_200.0, 1.0 / 3.0) };
    for second in 0..20 {
        let load = if second % 4 == 0 { chance.clone() } else { load(1, 100.0, 1) };
        let looked = policy.look(at(second), &[load], &known);
        assert!(
            looked.decisions.is_empty()
                && looked.left_alone.iter().all(|one| one.reason == Reason::NotYetCertain)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the load does: shards stay within the rule's bounds, a key changes at most eight
    /// times in ten minutes, and loses shards only after it was cold for the whole time.
    #[test]
    fn changes_are_bounded(
        loads in proptest::collection::vec(0.0..9_000.0f64, 1..40), fewest in 1..5u16, more in 0..40u16,
    ) {
        let settings = Settings { fewest, most: fewest + more, cold_for: Duration::from_secs(300), ..SETTINGS };
        let at = |second: u64| loads.get(usize::try_from(second / 37).unwrap_or(0) % loads.len()).copied().unwrap_or(0.0);
        let changes = run(settings, 3_000, at);
        prop_assert!(changes.iter().all(|(_, shards)| (fewest..=fewest + more).contains(shards)));
        prop_assert!(changes.windows(9).all(|nine| nine[8].0 - nine[0].0 >= 600));
        for pair in changes.windows(2).filter(|pair| pair[1].1 < pair[0].1) {
            prop_assert!(pair[1].0 - pair[0].0 >= 300, "{:?}", changes);
        }
    }
}

#[test]
fn what_the_limit_of_a_table_refuses_is_no_partitions() {
    let known = Known::with(SETTINGS);
    // Two in five are refused by the table's capacity, one in fifty by a partition.
    let mut limited = load(1, 900.0, 1);
    limited.throttled = 378.0;
    limited.writes_refused =
        Refused { throttled: 378.0, by_partition: 18.0, by_limit: 360.0, ..by_partition(900.0, 0.0) };
    assert_eq!(reasons(&known, &[limited.clone()]), [Reason::Limit]);
    // Where its partition refuses more than the limit does, another place helps.
    limited.writes_refused =
        Refused { throttled: 378.0, by_partition: 360.0, by_limit: 18.0, ..by_partition(900.0, 0.0) };
    assert!(!looked(&known, &[limited]).decisions.is_empty());
}

#[test]
fn a_key_is_not_mended_before_its_shards_are_measured() {
    let known = Known {
        of_all: KeyFacts { slots: vec![0, 1, 2], ..Known::with(SETTINGS).of_all },
        slots: HashMap::new(),
    };
    // One of three shards burns; which one is told by what was measured of each.
    let key = refused(1, 1_800.0, 0.1);
    let slot = |slot, throttled| SlotLoad { slot, units: 600.0, requests: 600.0, throttled, counted: 600.0 };
    let measured = KeyLoad { slots: vec![slot(0, 0.0), slot(1, 180.0), slot(2, 0.0)], ..key.clone() };
    assert_eq!(reasons(&known, &[key]), [Reason::NotYetCertain]);
    let looked = looked(&known, &[measured]);
    let [decision] = &*looked.decisions else { panic!("{looked:?}") };
    let slots = Change::Shards { shards: 3, slots: Some(vec![0, 3, 2]) };
    assert_eq!(decision.change, slots, "{}", decision.sentence);
}
