//! Finds the rules that can match a table and a key, without testing all rules.
//!
//! A glob matches only names that begin with the text before its first wildcard, end with the text
//! after its last one, and contain the texts between; and it covers only globs that do. So each
//! rule is indexed by one of these texts, the one that the fewest other rules share. The globs
//! themselves are tested only for rules whose text fits.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};

use heatsink_layout::Glob;

use super::rule::Rule;

/// The position of a glob's text in the names that it matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Start,
    End,
    Anywhere,
}

/// The search: a name, or what globs that cover a glob must match.
pub(super) struct Sought<'a> {
    start: &'a [u8],
    end: &'a [u8],
    texts: Vec<&'a [u8]>,
}

impl<'a> Sought<'a> {
    /// A table's name, or a key.
    pub fn name(name: &'a [u8]) -> Self {
        Sought { start: name, end: name, texts: vec![name] }
    }

    /// What a glob has in common with every glob that covers it.
    pub fn covered(glob: &'a Glob) -> Self {
        let texts: Vec<&[u8]> = glob.literals().collect();
        let of = |text: Option<&&'a [u8]>| text.copied().unwrap_or_default();
        Sought { start: of(texts.first()), end: of(texts.last()), texts }
    }
}

/// Values by texts in the same position.
#[derive(Clone, Debug)]
struct ByText<V> {
    at: At,
    /// With the number of values of each text.
    held: HashMap<Vec<u8>, (usize, V)>,
    /// The lengths of the texts.
    lengths: BTreeSet<usize>,
}

impl<V: Default> ByText<V> {
    fn new(at: At) -> Self {
        ByText { at, held: HashMap::new(), lengths: BTreeSet::new() }
    }

    fn taken(&self, text: &[u8]) -> usize {
        self.held.get(text).map_or(0, |(taken, _)| *taken)
    }

    fn take(&mut self, text: &[u8]) -> &mut V {
        self.lengths.insert(text.len());
        let (taken, value) = self.held.entry(text.to_vec()).or_default();
        *taken += 1;
        value
    }

    /// The values of all texts that occur in that position of the name; some of them twice. Costs
    /// one look-up per text length, and for texts in any position one per length and start.
    fn of(&self, sought: &Sought<'_>) -> Vec<&V> {
        let mut found = Vec::new();
        let mut look = |text: &[u8]| found.extend(self.held.get(text).map(|(_, value)| value));
        for &length in &self.lengths {
            match self.at {
                At::Start => sought.start.get(..length).into_iter().for_each(&mut look),
                At::End => {
                    let from = sought.end.len().checked_sub(length);
                    from.and_then(|from| sought.end.get(from..)).into_iter().for_each(&mut look);
                }
                At::Anywhere if length == 0 => look(b""),
                At::Anywhere => sought.texts.iter().flat_map(|text| text.windows(length)).for_each(&mut look),
            }
        }
        found
    }
}

/// Values by globs, found for every name that those can match or cover.
#[derive(Clone, Debug)]
pub(super) struct ByGlob<V>([ByText<V>; 3]);

impl<V: Default> Default for ByGlob<V> {
    fn default() -> Self {
        ByGlob([At::Start, At::End, At::Anywhere].map(ByText::new))
    }
}

impl<V: Default> ByGlob<V> {
    /// Chooses one of a glob's texts as its index: the one that the fewest other globs use, or of
    /// several such the longest.
    pub fn take(&mut self, glob: &Glob) -> &mut V {
        let Sought { start, end, texts } = Sought::covered(glob);
        let longest = texts.into_iter().max_by_key(|text| text.len()).unwrap_or_default();
        let ByGlob([starts, ends, anywhere]) = self;
        let rank = |held: &ByText<V>, text: &[u8]| (held.taken(text), Reverse(text.len()));
        let (first, second, third) = (rank(starts, start), rank(ends, end), rank(anywhere, longest));
        if first <= second && first <= third {
            starts.take(start)
        } else if second <= third {
            ends.take(end)
        } else {
            anywhere.take(longest)
        }
    }

    /// The values that can match or cover the name; some of them twice.
    pub fn of(&self, sought: &Sought<'_>) -> impl Iterator<Item = &V> {
        self.0.iter().flat_map(|held| held.of(sought))
    }

    /// All values.
    fn all(&self) -> impl Iterator<Item = &V> {
        self.0.iter().flat_map(|held| held.held.values().map(|(_, value)| value))
    }
}

/// Rules by their tables, and by their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Finder(ByGlob<ByGlob<Vec<usize>>>);

impl Finder {
    /// Adds the rule at that position of the file.
    pub fn add(&mut self, rule: &Rule, at: usize) {
        self.0.take(&rule.table).take(&rule.keys).push(at);
    }

    /// The rules that can name a table, in order.
    pub fn of_table(&self, table: &[u8]) -> Vec<usize> {
        in_order(self.0.of(&Sought::name(table)).flat_map(ByGlob::all).flatten())
    }

    /// The rules that can name a key of a table, in order.
    pub fn named(&self, table: &[u8], key: &[u8]) -> Vec<usize> {
        self.both(&Sought::name(table), &Sought::name(key))
    }

    /// The rules that can leave nothing to this one, in order.
    pub fn before(&self, rule: &Rule) -> Vec<usize> {
        self.both(&Sought::covered(&rule.table), &Sought::covered(&rule.keys))
    }

    fn both(&self, table: &Sought<'_>, key: &Sought<'_>) -> Vec<usize> {
        in_order(self.0.of(table).flat_map(|keys| keys.of(key)).flatten())
    }
}

fn in_order<'a>(found: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    let mut found: Vec<usize> = found.copied().collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Rules;
    use super::*;

    fn rules(count: usize, table: &str, keys: &str) -> Rules {
        let mut text = String::new();
        for at in 0..count {
            let of = |pattern: &str| pattern.replace("{}", &format!("{at:05}"));
            text += &format!(
                "[[rule]]\ntable = \"{}\"\nkeys = \"{}\"\nstrategy = \"calculated\"\nshards = 2\n",
                of(table),
                of(keys)
            );
        }
        Rules::read("rules", &text).unwrap()
    }

    #[test]
    fn of_many_rules_few_are_compared_wherever_their_wildcards_stand() {
        const COUNT: usize = 2_000;
        for (table, keys) in [
            ("game-{}", "*"),
            ("team-{}-*", "*"),
            ("*-{}", "*"),
            ("*-{}-*", "*"),
            ("?-{}-?", "*"),
            ("team-*-{}", "*"),
            ("team-*-{}-*-log", "*"),
            ("*", "*#{}"),
            ("*", "user-*-{}-*"),
            ("*-{}", "*-{}"),
        ] {
            let rules = rules(COUNT, table, keys);
            let compared: usize = rules.iter().map(|rule| rules.finder.before(rule).len()).sum();
            // Each finds itself, and a few rules whose texts it contains by chance.
            assert!(compared < 4 * COUNT, "{table} {keys}: {compared} comparisons of {COUNT} rules");
            let layouts = rules.iter().map(|rule| {
                let name = rule.table.text().replace(['*', '?'], "x");
                rules.finder.named(name.as_bytes(), rule.keys.text().replace('*', "x").as_bytes()).len()
            });
            let named: usize = layouts.sum();
            assert!(named < 4 * COUNT, "{table} {keys}: {named} rules looked at for {COUNT} keys");
        }
    }

    proptest! {
        #[test]
        fn none_is_missed(globs in prop::collection::vec("[ab*?]{0,4}", 1..12), sought in "[ab*?]{0,5}", name in "[ab]{0,5}") {
            let globs: Vec<Glob> = globs.iter().map(|glob| Glob::new(glob)).collect();
            let mut held: ByGlob<Vec<usize>> = ByGlob::default();
            for (at, glob) in globs.iter().enumerate() {
                held.take(glob).push(at);
            }
            let sought = Glob::new(&sought);
            let covering: Vec<&usize> = held.of(&Sought::covered(&sought)).flatten().collect();
            let matching: Vec<&usize> = held.of(&Sought::name(name.as_bytes())).flatten().collect();
            for (at, glob) in globs.iter().enumerate() {
                prop_assert!(!glob.covers(&sought) || covering.contains(&&at), "{glob:?} covers {sought:?}");
                prop_assert!(!glob.matches(name.as_bytes()) || matching.contains(&&at), "{glob:?} matches {name}");
            }
        }
    }
}
