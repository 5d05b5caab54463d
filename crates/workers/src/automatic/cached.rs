//! Keys of which one page or item is read again and again: where their section says so, gateways
//! answer them from memory for as long as it lasts. The deciding gateway names them, the others do
//! as it says. Nothing is on record: what is stored stays as it is.
//!
//! Not here: how reads are answered (`heatsink_gateway`), when a key burns (`heatsink_heat`).

use std::collections::{BTreeMap, HashMap};

use heatsink_control::{Mode, Rules};
use heatsink_env::MonotonicInstant;
use heatsink_heat::policy::{KeyName, LeftAlone, Reason};
use serde::{Deserialize, Serialize};

use super::acts::Outcome;

/// The most keys at once: so many stand in a report.
const MOST: usize = 100;

/// A key of a table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct CachedKey {
    table: String,
    /// As [`KeyName::key`].
    key: Vec<u8>,
}

/// The keys, and when each last burned.
#[derive(Debug, Default)]
pub(super) struct Cached {
    burned: BTreeMap<CachedKey, MonotonicInstant>,
}

impl Cached {
    /// Those that the deciding gateway names. If this one decides next, they stay for a while.
    pub fn of(keys: Vec<CachedKey>, now: MonotonicInstant) -> Self {
        Cached { burned: keys.into_iter().take(MOST).map(|key| (key, now)).collect() }
    }

    /// For the other gateways.
    pub fn keys(&self) -> Vec<CachedKey> {
        self.burned.keys().cloned().collect()
    }

    /// For how long answers are given again, by table and key.
    pub fn ages(&self, rules: &Rules) -> HashMap<String, HashMap<Vec<u8>, u16>> {
        let mut ages: HashMap<String, HashMap<Vec<u8>, u16>> = HashMap::new();
        for CachedKey { table, key } in self.burned.keys() {
            if let Some((age, Mode::Auto)) = allowed(rules, table, key) {
                ages.entry(table.clone()).or_default().insert(key.clone(), age);
            }
        }
        ages
    }

    /// Takes those out of the keys that are left alone which a cache helps and may help. Gives those
    /// that are new, and what is to be done. A key that does not burn any more is kept for as long
    /// as one keeps its shards: its reads are not counted while they are answered from memory.
    pub fn look(
        &mut self,
        now: MonotonicInstant,
        rules: &Rules,
        left_alone: &mut Vec<LeftAlone>,
    ) -> Vec<(LeftAlone, Outcome)> {
        self.burned.retain(|CachedKey { table, key }, burned| {
            let cold = rules.automatic(table, key).map(|section| section.cold);
            allowed(rules, table, key).is_some() && cold.is_some_and(|cold| now.since(*burned) < cold)
        });
        let mut new = Vec::new();
        left_alone.retain(|one| {
            let KeyName { table, index, key } = &one.name;
            let of_page = one.reason == Reason::RepeatedPage && index.is_none();
            let Some((age, mode)) = allowed(rules, table, key).filter(|_| of_page) else { return true };
            let name = CachedKey { table: table.clone(), key: key.clone() };
            let known = self.burned.contains_key(&name);
            if !known && self.burned.len() >= MOST {
                return true;
            }
            self.burned.insert(name, now);
            if !known {
                let outcome = if mode == Mode::Auto { Outcome::Asked } else { Outcome::Proposed };
                let sentence = format!("{}, each at most {age} ms old", seen(&one.sentence));
                tracing::info!(table, age, "reads of a key are answered from memory: {sentence}");
                new.push((LeftAlone { sentence, ..one.clone() }, outcome));
            }
            mode != Mode::Auto
        });
        new
    }
}

/// What was seen, of a sentence that says why nothing is changed.
fn seen(sentence: &str) -> String {
    let seen = sentence.split(". Nothing is changed").next().unwrap_or(sentence);
    format!("{seen}. Answers to its reads are given again")
}

/// How old an answer to a read of a key may be, and what becomes of decisions.
fn allowed(rules: &Rules, table: &str, key: &[u8]) -> Option<(u16, Mode)> {
    let section = rules.automatic(table, key)?;
    let age = section.cache_max_age_ms?;
    (section.mode != Mode::Observe).then_some((age, section.mode))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use heatsink_heat::advice::Finding;

    use super::*;

    fn rules(mode: &str) -> Rules {
        let text = format!(
            "[[automatic]]\ntable = \"T\"\nkeys = \"game_*\"\nmode = \"{mode}\"\ncold = \"1h\"\ncache_max_age_ms = 100\n"
        );
        Rules::read("f", &text).unwrap()
    }

    fn burns(key: &str, reason: Reason) -> LeftAlone {
        LeftAlone {
            name: KeyName { table: "T".to_owned(), index: None, key: key.as_bytes().to_vec() },
            since: MonotonicInstant(0),
            finding: Finding::RepeatedPage,
            reason,
            sentence: "It takes 4000 read units. Nothing is changed: why".to_owned(),
            clients: Vec::new(),
        }
    }

    #[test]
    fn a_page_that_is_read_again_and_again_is_cached_until_it_is_cold() {
        let at = |seconds| MonotonicInstant(0) + Duration::from_secs(seconds);
        let (rules, mut cached) = (rules("auto"), Cached::default());
        let mut left = vec![
            burns("game_x", Reason::RepeatedPage),
            burns("game_y", Reason::Limit),
            burns("user_x", Reason::RepeatedPage),
        ];
        let new = cached.look(at(0), &rules, &mut left);
        assert_eq!((new.len(), left.len()), (1, 2), "of another reason, and of no section that allows it");
        assert_eq!(
            new[0].0.sentence,
            "It takes 4000 read units. Answers to its reads are given again, each at most 100 ms old"
        );
        assert_eq!(cached.ages(&rules)["T"], HashMap::from([(b"game_x".to_vec(), 100)]));
        // It burns on, and then no more.
        assert_eq!(cached.look(at(1_800), &rules, &mut vec![burns("game_x", Reason::RepeatedPage)]).len(), 0);
        assert_eq!(cached.look(at(5_399), &rules, &mut Vec::new()).len(), 0);
        assert_eq!(cached.keys().len(), 1);
        cached.look(at(5_400), &rules, &mut Vec::new());
        assert_eq!((cached.keys().len(), cached.ages(&rules).len()), (0, 0));
    }

    #[test]
    fn what_is_proposed_is_said_once_and_not_done() {
        let (rules, mut cached) = (rules("propose"), Cached::default());
        for new in [1, 0] {
            let mut left = vec![burns("game_x", Reason::RepeatedPage)];
            let found = cached.look(MonotonicInstant(0), &rules, &mut left);
            assert_eq!((found.len(), left.len()), (new, 1));
            assert!(found.iter().all(|(_, outcome)| *outcome == Outcome::Proposed));
        }
        assert_eq!(cached.ages(&rules).len(), 0);
    }

    #[test]
    fn other_gateways_do_as_the_deciding_one_says() {
        let rules = rules("auto");
        let mut cached = Cached::default();
        cached.look(MonotonicInstant(0), &rules, &mut vec![burns("game_x", Reason::RepeatedPage)]);
        let text = serde_json::to_string(&cached.keys()).unwrap();
        let other = Cached::of(serde_json::from_str(&text).unwrap(), MonotonicInstant(9));
        assert_eq!(other.ages(&rules), cached.ages(&rules));
        assert_eq!(other.ages(&Rules::default()).len(), 0, "by rules that do not allow it");
    }
}
