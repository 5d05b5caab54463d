//! Which intents a gateway takes: a plain function of what is on record, of what the gateway has
//! seen of it, and of what it carries out already.
//!
//! Keys of a table move beside each other, and beside one value of an index. One gateway carries them
//! all out, while it lives: so their steps become known together. Where a gateway of an older build is
//! registered, one of a table goes at a time. All in the order in which they were asked for. An intent that somebody carries out changes all the time; one that
//! does not change has nobody. Every gateway tells that by its own clock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use heatsink_env::MonotonicInstant;

use super::pace::Pace;

/// The most keys of a table that one gateway moves at once.
const KEYS: usize = 100;

/// What an intent is for: the id of a table, and a key of it or a value of an index.
pub(super) type Place = (String, Option<String>, Vec<u8>);

pub(super) fn place(intent: &ReshardIntent) -> Place {
    (intent.table_id.clone(), intent.index.clone(), intent.key.clone())
}

/// Since when each intent has been as it is.
#[derive(Default)]
pub(super) struct Watch(HashMap<Place, (u64, MonotonicInstant)>);

/// What a gateway carries out, and whether that waits: it is paused, or something hinders it.
pub(super) type Running = BTreeMap<Place, bool>;

/// What a gateway should do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chosen {
    /// Carry these out, those of a table together.
    pub take: Vec<Vec<ReshardIntent>>,
    /// These ended some time ago: remove them.
    pub remove: Vec<ReshardIntent>,
}

/// What a gateway looks at when it chooses.
pub(super) struct Look<'a> {
    /// When the list was read.
    pub now: MonotonicInstant,
    pub list: &'a [ReshardIntent],
    pub running: &'a Running,
    pub pace: &'a Pace,
    /// Whether what is asked for of a table goes beside each other.
    pub together: bool,
}

/// Whether a table has several intents, so that it matters whether its keys move together.
pub(super) fn any_table_has_several(list: &[ReshardIntent]) -> bool {
    let mut seen = BTreeSet::new();
    list.iter().filter(|intent| intent.is_open()).any(|intent| !seen.insert(&intent.table_id))
}

impl Watch {
    /// Takes a list, and chooses.
    pub fn listed(&mut self, look: &Look<'_>) -> Chosen {
        let Look { now, list, running, pace, .. } = *look;
        let mut seen = HashMap::with_capacity(list.len());
        for intent in list {
            let place = place(intent);
            let before = self.0.get(&place).filter(|(version, _)| *version == intent.version);
            let since = before.map_or(now, |(_, since)| *since);
            seen.insert(place, (intent.version, since));
        }
        self.0 = seen;
        let quiet = |intent: &ReshardIntent| {
            self.0.get(&place(intent)).map_or(Duration::ZERO, |(_, since)| now.since(*since))
        };
        let mut chosen = Chosen::default();
        let mut tables: BTreeMap<&str, Vec<&ReshardIntent>> = BTreeMap::new();
        for intent in list {
            match &intent.ended {
                None => tables.entry(&intent.table_id).or_default().push(intent),
                // What stopped stays until somebody has seen to it.
                Some(ended) if ended.how != EndedAs::Stopped && quiet(intent) >= pace.kept => {
                    chosen.remove.push(intent.clone());
                }
                Some(_) => {}
            }
        }
        let carried: BTreeSet<&str> = running.keys().map(|(table, ..)| table.as_str()).collect();
        let active = running.iter().filter(|(_, waits)| !**waits).map(|((table, ..), _)| table);
        let mut active = active.collect::<BTreeSet<_>>().len();
        let mut next: Vec<Vec<&ReshardIntent>> =
            tables.values().map(|intents| next_of_table(intents, &quiet, look)).collect();
        next.retain(|some| !some.is_empty());
        next.sort_by_key(|some| some.first().map(|intent| (intent.request.asked, place(intent))));
        for some in next {
            // What joins others of its table takes no place of its own.
            let joins = some.first().is_some_and(|intent| carried.contains(intent.table_id.as_str()));
            if joins || active < pace.at_once {
                active += usize::from(!joins);
                chosen.take.push(some.into_iter().cloned().collect());
            }
        }
        chosen
    }
}

/// The intents of a table to carry out now.
fn next_of_table<'a>(
    intents: &[&'a ReshardIntent],
    quiet: &impl Fn(&ReshardIntent) -> Duration,
    look: &Look<'_>,
) -> Vec<&'a ReshardIntent> {
    let Look { running, pace, together, .. } = *look;
    let is_own = |one: &ReshardIntent| running.contains_key(&place(one));
    let is_carried = |one: &ReshardIntent| one.carrier.is_some() && quiet(one) < pace.taken_over;
    let own = intents.iter().filter(|one| is_own(one)).count();
    if intents.iter().any(|one| is_carried(one) && !is_own(one)) || own > 0 && !together {
        return Vec::new();
    }
    let mut waiting: Vec<&ReshardIntent> = intents.iter().copied().filter(|one| !is_own(one)).collect();
    // A paused key that is on its way goes on to where it may rest; and no other one can go before
    // it.
    waiting.retain(|one| one.begun || one.cancelled || !one.paused);
    waiting.sort_by_key(|one| (!one.begun, one.request.asked, place(one)));
    let goes_beside = |one: &ReshardIntent, other: &ReshardIntent| {
        together && (one.index.is_none() || other.index.is_none())
    };
    let mut taken: Vec<&ReshardIntent> = Vec::new();
    for one in waiting {
        // What cannot go beside each other goes in its turn, and first what has begun.
        let goes_with = |other: &&ReshardIntent| {
            place(other) == place(one) || goes_beside(one, other) || one.begun && !is_own(other)
        };
        let mut begun = intents.iter().filter(|other| other.begun || is_own(other));
        if own + taken.len() >= KEYS {
            break;
        }
        if !begun.all(goes_with) || !taken.iter().all(|other| goes_beside(one, other)) {
            continue;
        }
        let hindered = one.carrier.is_none() && one.progress.hindered.is_some();
        if !hindered || quiet(one) >= pace.tried_again {
            taken.push(one);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use heatsink_control::reshard_intent::{Carrier, Ended, Progress, Request};
    use heatsink_dynamo::KeyType;

    use super::*;

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant(seconds * 1_000_000_000)
    }

    fn intent(table: &str, key: &str, asked: u64) -> ReshardIntent {
        let request =
            Request { layout: 4.into(), rate: 800, streams_confirmed: false, by: String::new(), asked };
        ReshardIntent {
            table_id: table.to_owned(),
            table: table.to_owned(),
            index: None,
            key: key.into(),
            key_type: KeyType::S,
            request,
            paused: false,
            cancelled: false,
            begun: false,
            carrier: None,
            progress: Progress::default(),
            ended: None,
            version: 1,
        }
    }

    fn carried(one: ReshardIntent) -> ReshardIntent {
        let carrier = Carrier { run: 1, gateway: "g".to_owned(), name: "g".to_owned() };
        ReshardIntent { carrier: Some(carrier), begun: true, ..one }
    }

    fn keys(chosen: &Chosen) -> Vec<Vec<&str>> {
        chosen
            .take
            .iter()
            .map(|some| some.iter().map(|one| std::str::from_utf8(&one.key).unwrap()).collect())
            .collect()
    }

    /// What is chosen of a list at a time, where keys of a table move beside each other or do not.
    fn look(
        watch: &mut Watch,
        seconds: u64,
        list: &[ReshardIntent],
        running: &Running,
        together: bool,
    ) -> Chosen {
        let (now, pace) = (at(seconds), &Pace::DEFAULT);
        watch.listed(&Look { now, list, running, pace, together })
    }

    fn fresh(list: &[ReshardIntent], running: &Running, together: bool) -> Chosen {
        look(&mut Watch::default(), 0, list, running, together)
    }

    const NOTHING: Running = Running::new();

    #[test]
    fn keys_of_a_table_are_taken_together_in_the_order_asked() {
        let list = [intent("t", "late", 9), intent("t", "early", 2), intent("u", "other", 5)];
        assert_eq!(keys(&fresh(&list, &NOTHING, true)), [vec!["early", "late"], vec!["other"]]);
        assert_eq!(keys(&fresh(&list, &NOTHING, false)), [["early"], ["other"]], "beside an older build");
        // A key that is asked for later joins those of its table.
        let running: Running = [(place(&list[1]), false)].into();
        assert_eq!(keys(&fresh(&list, &running, true)), [["other"], ["late"]]);
        assert_eq!(keys(&fresh(&list, &running, false)), [["other"]]);
        let many: Vec<_> = (0..120).map(|at| intent("t", &format!("{at:03}"), at)).collect();
        assert_eq!(fresh(&many, &NOTHING, true).take[0].len(), KEYS);
    }

    #[test]
    fn who_waits_takes_no_place_of_four() {
        let list: Vec<_> = ["a", "b", "c", "d", "e"].map(|table| intent(table, "k", 1)).into();
        assert_eq!(fresh(&list, &NOTHING, true).take.len(), 4);
        let running = |waits: bool| list[..4].iter().map(|one| (place(one), waits)).collect::<Running>();
        assert!(fresh(&list, &running(false), true).take.is_empty());
        assert_eq!(fresh(&list, &running(true), true).take.len(), 1, "all four are hindered or paused");
    }

    #[test]
    fn a_table_that_another_gateway_carries_is_left_to_it_while_it_lives() {
        let mut list = [carried(intent("t", "a", 1)), intent("t", "b", 0)];
        let mut watch = Watch::default();
        let mut look = |seconds, list: &[ReshardIntent]| look(&mut watch, seconds, list, &NOTHING, true);
        assert!(look(0, &list).take.is_empty());
        assert!(look(3, &list).take.is_empty());
        list[0].version += 1;
        assert!(look(6, &list).take.is_empty());
        // The key that is on its way goes first.
        assert_eq!(keys(&look(11, &list)), [["a", "b"]]);
    }

    #[test]
    fn one_value_of_an_index_goes_beside_keys_and_others_in_their_turn() {
        let value = |name: &str, asked| {
            let value = ReshardIntent { index: Some("i".to_owned()), ..intent("t", name, asked) };
            (value.clone(), ReshardIntent { begun: true, ..value })
        };
        let ((v, _), (w, begun)) = (value("v", 5), value("w", 6));
        let list = [intent("t", "a", 1), v.clone(), intent("t", "b", 5), w, intent("t", "c", 9)];
        assert_eq!(keys(&fresh(&list, &NOTHING, true)), [["a", "b", "v", "c"]]);
        assert_eq!(keys(&fresh(&list, &NOTHING, false)), [["a"]], "beside an older build");
        let running: Running = [(place(&list[0]), false), (place(&v), false)].into();
        assert_eq!(keys(&fresh(&list, &running, true)), [["b", "c"]]);
        let list = [v, begun, list[0].clone()];
        assert_eq!(keys(&fresh(&list, &NOTHING, true)), [["w", "a"]], "it has begun");
    }

    #[test]
    fn a_paused_key_waits_only_before_it_has_begun() {
        let paused = ReshardIntent { paused: true, ..intent("t", "a", 1) };
        let begun = ReshardIntent { begun: true, ..paused.clone() };
        let cancelled = ReshardIntent { cancelled: true, ..paused.clone() };
        let other = intent("t", "b", 2);
        for (one, together, alone) in
            [(paused, vec!["b"], "b"), (begun, vec!["a", "b"], "a"), (cancelled, vec!["a", "b"], "a")]
        {
            let list = [one, other.clone()];
            assert_eq!(keys(&fresh(&list, &NOTHING, true)), [together]);
            assert_eq!(keys(&fresh(&list, &NOTHING, false)), [[alone]]);
        }
    }

    #[test]
    fn what_is_hindered_is_tried_again_later_and_holds_up_no_other_key() {
        let mut hindered = intent("t", "a", 1);
        hindered.progress.hindered = Some("frozen".to_owned());
        let begun = ReshardIntent { begun: true, ..hindered.clone() };
        let (mut watch, other) = (Watch::default(), intent("t", "b", 2));
        let list = [hindered, other.clone()];
        assert_eq!(keys(&look(&mut watch, 0, &list, &NOTHING, true)), [["b"]]);
        assert_eq!(keys(&look(&mut watch, 60, &list, &NOTHING, true)), [["a", "b"]]);
        let list = [begun, other];
        assert_eq!(keys(&fresh(&list, &NOTHING, true)), [["b"]]);
        assert!(fresh(&list, &NOTHING, false).take.is_empty(), "beside an older build");
    }

    #[test]
    fn what_has_ended_is_removed_after_a_while_and_what_stopped_is_kept() {
        let ended = |key: &str, how| {
            let ended = Some(Ended { how, text: String::new(), at: 0 });
            ReshardIntent { ended, ..intent("t", key, 1) }
        };
        let list = [ended("a", EndedAs::Moved), ended("b", EndedAs::Stopped), ended("c", EndedAs::Cancelled)];
        let mut watch = Watch::default();
        assert_eq!(look(&mut watch, 0, &list, &NOTHING, true), Chosen::default());
        let chosen = look(&mut watch, 3_600, &list, &NOTHING, true);
        let removed: Vec<_> = chosen.remove.iter().map(|one| &*one.key).collect();
        assert_eq!((removed, chosen.take.len()), (vec![&b"a"[..], b"c"], 0));
    }
}
