//! Which of many rules can name a table and a key, without looking at all of them.
//!
//! A glob matches only what begins with the text before its first wildcard, and covers only globs that begin with it. So rules are
//! held by that text; of the few whose text fits, the globs themselves decide.

use std::collections::{BTreeSet, HashMap};

use super::Rule;

/// Values by texts, found again for whatever begins with those.
#[derive(Clone, Debug)]
pub(super) struct ByPrefix<V> {
    held: HashMap<Vec<u8>, V>,
    /// How long the texts are.
    lengths: BTreeSet<usize>,
}

impl<V> Default for ByPrefix<V> {
    fn default() -> Self {
        ByPrefix { held: HashMap::new(), lengths: BTreeSet::new() }
    }
}

impl<V: Default> ByPrefix<V> {
    /// The value of a text.
    pub fn at(&mut self, prefix: &[u8]) -> &mut V {
        self.lengths.insert(prefix.len());
        self.held.entry(prefix.to_vec()).or_default()
    }

    /// The values of all texts that `whole` begins with, itself included. Costs a look-up for each length that a text has.
    pub fn along(&self, whole: &[u8]) -> impl Iterator<Item = &V> {
        self.lengths.range(..=whole.len()).filter_map(|length| self.held.get(whole.get(..*length)?))
    }
}

/// Rules by their tables, and by their keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Finder(ByPrefix<ByPrefix<Vec<usize>>>);

impl Finder {
    /// Takes in the rule of that place in the file.
    pub fn add(&mut self, rule: &Rule, at: usize) {
        self.0.at(rule.table.literal_prefix()).at(rule.keys.literal_prefix()).push(at);
    }

    /// The rules that can name a table, in order.
    pub fn of_table(&self, table: &[u8]) -> Vec<usize> {
        in_order(self.0.along(table).flat_map(|keys| keys.held.values()).flatten())
    }

    /// The rules that can name a key of a table, in order.
    pub fn named(&self, table: &[u8], key: &[u8]) -> Vec<usize> {
        in_order(self.0.along(table).flat_map(|keys| keys.along(key)).flatten())
    }

    /// The rules that can leave nothing to this one, in order.
    pub fn before(&self, rule: &Rule) -> Vec<usize> {
        self.named(rule.table.literal_prefix(), rule.keys.literal_prefix())
    }
}

fn in_order<'a>(found: impl Iterator<Item = &'a usize>) -> Vec<usize> {
    let mut found: Vec<usize> = found.copied().collect();
    found.sort_unstable();
    found
}
