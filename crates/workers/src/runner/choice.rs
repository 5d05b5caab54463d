//! Which intents a gateway takes: a plain function of what is on record, of what the gateway has
//! seen of it, and of what it carries out already.
//!
//! One key of a table moves at a time, or one value of an index, in the order in which they were
//! asked for. An intent that somebody carries out changes all the time; one that does not change
//! has nobody. Every gateway tells that by its own clock.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use heatsink_env::MonotonicInstant;

use super::pace::Pace;

/// What an intent is for: the id of a table, and a key of it or a value of an index.
pub(super) type Place = (String, Option<String>, Vec<u8>);

pub(super) fn place(intent: &ReshardIntent) -> Place {
    (intent.table_id.clone(), intent.index.clone(), intent.key.clone())
}

/// Since when each intent has been as it is.
#[derive(Default)]
pub(super) struct Watch(HashMap<Place, (u64, MonotonicInstant)>);

/// What a gateway carries out, and whether it is paused.
pub(super) type Running = BTreeMap<Place, bool>;

/// What a gateway should do.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Chosen {
    /// Carry these out.
    pub take: Vec<ReshardIntent>,
    /// These ended some time ago: remove them.
    pub remove: Vec<ReshardIntent>,
}

impl Watch {
    /// Takes a list that was read at `now`, and chooses.
    pub fn listed(
        &mut self,
        now: MonotonicInstant,
        list: &[ReshardIntent],
        running: &Running,
        pace: &Pace,
    ) -> Chosen {
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
        let mut active = running.values().filter(|paused| !**paused).count();
        let mut first: Vec<&ReshardIntent> = tables
            .iter()
            .filter(|(id, _)| !running.keys().any(|(table, ..)| table == *id))
            .filter_map(|(_, intents)| next_of_table(intents, &quiet, pace))
            .collect();
        first.sort_by_key(|intent| (intent.request.asked, place(intent)));
        for intent in first {
            if active < pace.at_once {
                active += 1;
                chosen.take.push(intent.clone());
            }
        }
        chosen
    }
}

/// The intent of a table to carry out now.
fn next_of_table<'a>(
    intents: &[&'a ReshardIntent],
    quiet: &impl Fn(&ReshardIntent) -> Duration,
    pace: &Pace,
) -> Option<&'a ReshardIntent> {
    if intents.iter().any(|one| one.carrier.is_some() && quiet(one) < pace.taken_over) {
        return None;
    }
    let mut waiting: Vec<&ReshardIntent> = intents.to_vec();
    // A paused key that is on its way goes on to where it may rest; and no other one can go before
    // it.
    waiting.retain(|one| one.begun || one.cancelled || !one.paused);
    waiting.sort_by_key(|one| (!one.begun, one.request.asked, place(one)));
    let may_wait = |one: &ReshardIntent| !one.begun && one.progress.hindered.is_some();
    for one in waiting {
        let hindered = one.carrier.is_none() && one.progress.hindered.is_some();
        if !hindered || quiet(one) >= pace.tried_again {
            return Some(one);
        }
        if !may_wait(one) {
            return None;
        }
    }
    None
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

    fn keys(chosen: &Chosen) -> Vec<&str> {
        chosen.take.iter().map(|one| std::str::from_utf8(&one.key).unwrap()).collect()
    }

    #[test]
    fn one_of_each_table_in_the_order_asked() {
        let list = [intent("t", "late", 9), intent("t", "early", 2), intent("u", "other", 5)];
        let mut watch = Watch::default();
        assert_eq!(keys(&watch.listed(at(0), &list, &Running::new(), &Pace::DEFAULT)), ["early", "other"]);
        let one = Pace { at_once: 1, ..Pace::DEFAULT };
        assert_eq!(keys(&watch.listed(at(0), &list, &Running::new(), &one)), ["early"]);
        let running: Running = [(place(&list[1]), false)].into();
        assert_eq!(keys(&watch.listed(at(0), &list, &running, &Pace::DEFAULT)), ["other"]);
    }

    #[test]
    fn what_another_gateway_carries_out_is_taken_over_when_it_no_longer_changes() {
        let mut list = [carried(intent("t", "a", 1)), intent("t", "b", 0)];
        let mut watch = Watch::default();
        let mut look = |seconds, list: &[ReshardIntent]| {
            watch.listed(at(seconds), list, &Running::new(), &Pace::DEFAULT)
        };
        assert!(look(0, &list).take.is_empty());
        assert!(look(3, &list).take.is_empty());
        list[0].version += 1;
        assert!(look(6, &list).take.is_empty());
        // The key that is on its way goes first.
        assert_eq!(keys(&look(11, &list)), ["a"]);
    }

    #[test]
    fn a_paused_key_lets_others_go_first_only_before_it_has_begun() {
        let paused = ReshardIntent { paused: true, ..intent("t", "a", 1) };
        let begun = ReshardIntent { begun: true, ..paused.clone() };
        let cancelled = ReshardIntent { cancelled: true, ..paused.clone() };
        let other = intent("t", "b", 2);
        for (one, chosen) in [(paused, "b"), (begun, "a"), (cancelled, "a")] {
            let list = [one, other.clone()];
            assert_eq!(
                keys(&Watch::default().listed(at(0), &list, &Running::new(), &Pace::DEFAULT)),
                [chosen]
            );
        }
    }

    #[test]
    fn what_is_hindered_is_tried_again_later() {
        let mut hindered = intent("t", "a", 1);
        hindered.progress.hindered = Some("frozen".to_owned());
        let begun = ReshardIntent { begun: true, ..hindered.clone() };
        let (mut watch, other) = (Watch::default(), intent("t", "b", 2));
        let list = [hindered, other.clone()];
        assert_eq!(keys(&watch.listed(at(0), &list, &Running::new(), &Pace::DEFAULT)), ["b"]);
        assert_eq!(keys(&watch.listed(at(60), &list, &Running::new(), &Pace::DEFAULT)), ["a"]);
        let list = [begun, other];
        assert!(Watch::default().listed(at(0), &list, &Running::new(), &Pace::DEFAULT).take.is_empty());
    }

    #[test]
    fn what_has_ended_is_removed_after_a_while_and_what_stopped_is_kept() {
        let ended = |key: &str, how| {
            let ended = Some(Ended { how, text: String::new(), at: 0 });
            ReshardIntent { ended, ..intent("t", key, 1) }
        };
        let list = [ended("a", EndedAs::Moved), ended("b", EndedAs::Stopped), ended("c", EndedAs::Cancelled)];
        let mut watch = Watch::default();
        assert_eq!(watch.listed(at(0), &list, &Running::new(), &Pace::DEFAULT), Chosen::default());
        let chosen = watch.listed(at(3_600), &list, &Running::new(), &Pace::DEFAULT);
        let removed: Vec<_> = chosen.remove.iter().map(|one| &*one.key).collect();
        assert_eq!((removed, chosen.take.len()), (vec![&b"a"[..], b"c"], 0));
    }
}
