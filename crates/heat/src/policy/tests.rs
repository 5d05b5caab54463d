//! Loads that flap, keys that wait for each other, and the bounds of what is decided.

use proptest::prelude::*;

use super::*;

const SETTINGS: Settings = Settings { patience: Duration::ZERO, ..Settings::DEFAULT };

fn at(seconds: u64) -> MonotonicInstant {
    MonotonicInstant(0) + Duration::from_secs(seconds)
}

fn load(writes: f64, shards: u16) -> Observed {
    Observed {
        writes,
        peak_writes: writes,
        throttled: (1.0 - 1_000.0 * f64::from(shards) / writes.max(1.0)).clamp(0.0, 1.0),
        growing: 1.0,
        sort_key: true,
        item_bytes: 300,
        page: 100,
        shards,
        partitions: Some(60),
        ..Observed::default()
    }
}

/// The changes that a load second by second leads to, each carried out at once.
fn run(settings: &Settings, seconds: u64, writes: impl Fn(u64) -> f64) -> Vec<(u64, u16)> {
    let (mut policy, mut shards, mut changes) = (Policy::default(), 1, Vec::new());
    for second in 0..seconds {
        if let Some(decision) =
            policy.see(at(second), "Scores", &"game_x", &load(writes(second), shards), settings)
        {
            shards = decision.shards;
            changes.push((second, shards));
        }
    }
    changes
}

#[test]
fn a_hot_key_gets_shards_once() {
    let changes = run(&SETTINGS, 600, |_| 5_000.0);
    assert!(matches!(changes[..], [(2, 6..)]), "{changes:?}");
}

#[test]
fn a_load_that_flaps_causes_one_change_until_it_stays_away() {
    let day = 86_400;
    let flapping = |second: u64| if (second / 30).is_multiple_of(2) { 5_000.0 } else { 10.0 };
    assert_eq!(run(&SETTINGS, 7_200, flapping).len(), 1);
    let changes = run(&SETTINGS, 5 * day, |second| if second < day { flapping(second) } else { 10.0 });
    assert_eq!(changes.len(), 2);
    assert_eq!(changes[1].1, 1);
    assert!((3 * day..=4 * day).contains(&changes[1].0), "{changes:?}");
}

#[test]
fn what_dynamodb_heals_is_waited_for() {
    let seen = Observed { growing: 0.0, ..load(5_000.0, 1) };
    let mut policy = Policy::default();
    let changes: Vec<u64> = (0..1_000)
        .filter(|second| policy.see(at(*second), "Scores", &0, &seen, &Settings::DEFAULT).is_some())
        .collect();
    assert_eq!(changes.first(), Some(&902));
}

#[test]
fn a_table_changes_once_a_minute() {
    let mut policy = Policy::default();
    let mut changes = Vec::new();
    for second in 0..100 {
        for key in 0..5 {
            changes
                .extend(policy.see(at(second), "Scores", &key, &load(5_000.0, 1), &SETTINGS).map(|_| second));
        }
    }
    assert_eq!(changes, [2, 62]);
}

#[test]
fn each_key_that_is_hot_is_proposed() {
    let mut policy = Policy::default();
    let (settings, mut proposed) = (SETTINGS.proposing(), Vec::new());
    for second in 0..1_300 {
        for key in 0..5 {
            let decision = policy.see(at(second), "Scores", &key, &load(5_000.0, 1), &settings);
            proposed.extend(decision.map(|_| (second, key)));
        }
    }
    let times = |key: i32| -> Vec<u64> {
        proposed.iter().filter(|(_, other)| *other == key).map(|(second, _)| *second).collect()
    };
    for key in 0..5 {
        assert_eq!(times(key), [2, 602, 1_202], "{key}");
    }
    // What is proposed changes nothing, and holds up no change.
    let changes = policy.see(at(1_300), "Scores", &7, &load(5_000.0, 1), &SETTINGS);
    assert!(changes.is_none());
    assert!(
        (1_301..1_304)
            .any(|second| policy.see(at(second), "Scores", &7, &load(5_000.0, 1), &SETTINGS).is_some())
    );
}

#[test]
fn a_key_that_cannot_be_changed_keeps_no_other_from_it() {
    let mut policy = Policy::default();
    let mut decided = Vec::new();
    for second in 0..200 {
        for key in 0..3 {
            let Some(decision) = policy.see(at(second), "Scores", &key, &load(5_000.0, 1), &SETTINGS) else {
                continue;
            };
            if key == 0 {
                policy.refused(at(second), &decision);
            }
            decided.push((second, key));
        }
    }
    assert_eq!(decided, [(2, 0), (2, 1), (62, 1), (122, 1), (182, 1)]);
}

#[test]
fn shards_are_for_the_mean_of_the_hot_windows() {
    // What is drawn comes out as 3,000 and 7,000 by turns, and the load begins within a window.
    let drawn = |second: u64| match second {
        0 => 900.0,
        second if second.is_multiple_of(2) => 3_000.0,
        _ => 7_000.0,
    };
    let changes = run(&SETTINGS, 30, drawn);
    let even = run(&SETTINGS, 30, |_| 5_000.0);
    assert_eq!((changes.len(), changes[0].1), (1, even[0].1), "{changes:?}");
}

#[test]
fn what_drawing_may_have_added_is_not_acted_on() {
    let chance = Observed { write_error: 4_500.0, throttled: 0.0, ..load(5_000.0, 1) };
    let mut policy = Policy::default();
    assert!((0..100).all(|second| policy.see(at(second), "Scores", &0, &chance, &SETTINGS).is_none()));
}

#[test]
fn a_move_that_costs_more_than_it_gains_is_left() {
    let seen = Observed { items: Some(10_000_000_000), ..load(5_000.0, 1) };
    let mut policy = Policy::default();
    assert!((0..100).all(|second| policy.see(at(second), "Scores", &0, &seen, &SETTINGS).is_none()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever the load does: shards stay within the rule's bounds, a table changes at most once a
    /// minute, and a change is followed by no change back before the key has been cold for the
    /// whole time.
    #[test]
    fn changes_are_bounded(
        loads in proptest::collection::vec(0.0..9_000.0f64, 1..40), fewest in 1..5u16, more in 0..40u16,
    ) {
        let settings = Settings { fewest, most: fewest + more, cold_for: Duration::from_secs(300), ..SETTINGS };
        let at = |second: u64| loads.get(usize::try_from(second / 37).unwrap_or(0) % loads.len()).copied().unwrap_or(0.0);
        let changes = run(&settings, 3_000, at);
        prop_assert!(changes.iter().all(|(_, shards)| (fewest..=fewest + more).contains(shards)));
        prop_assert!(changes.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 60));
        for pair in changes.windows(2).filter(|pair| pair[1].1 < pair[0].1) {
            prop_assert!(pair[1].0 - pair[0].0 >= 300, "{:?}", changes);
        }
    }
}
