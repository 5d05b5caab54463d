//! Names of keys that lie in certain partitions of a table.
//!
//! The embedded store's partitions are ranges of a hash that is known
//! ([`heatsink_physics::position`]), so a load can be made that DynamoDB would meet by chance alone.
//!
//! Not here: which keys a load has (`scene`).

use std::collections::HashSet;

use heatsink_layout::codec;
use heatsink_physics::position;

/// The partitions of a table, by the position in which each begins, in order.
pub struct Partitions {
    firsts: Vec<u64>,
}

impl Partitions {
    /// From the positions in which they begin; the first one begins at 0.
    pub fn new(mut firsts: Vec<u64>) -> Self {
        firsts.sort_unstable();
        Partitions { firsts }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.firsts.len()
    }

    /// The partition in which a shard of a key lies.
    pub fn of(&self, key: &str, shard: u16) -> usize {
        let physical = codec::encode(key.as_bytes(), shard).unwrap_or_default();
        let place = position(&physical);
        self.firsts.partition_point(|first| *first <= place).saturating_sub(1)
    }
}

/// Gives out names.
pub struct Names<'a> {
    partitions: &'a Partitions,
    given: HashSet<String>,
    /// The partitions of hot keys.
    taken: HashSet<usize>,
}

impl<'a> Names<'a> {
    /// Names for a table with these partitions.
    pub fn new(partitions: &'a Partitions) -> Self {
        Names { partitions, given: HashSet::new(), taken: HashSet::new() }
    }

    /// The partition in which a shard of a key lies.
    pub fn partition(&self, key: &str, shard: u16) -> usize {
        self.partitions.of(key, shard)
    }

    /// The first name with that beginning whose partition is as wanted.
    fn first(&mut self, prefix: &str, wanted: impl Fn(usize) -> bool) -> String {
        let names = (1..).map(|nth| format!("{prefix}_{nth:04}"));
        let mut fits = names.filter(|name| wanted(self.partitions.of(name, 0)) && !self.given.contains(name));
        // Names go on for ever, and each partition gets its share of them.
        let name = fits.next().unwrap_or_default();
        self.given.insert(name.clone());
        name
    }

    /// A hot key with a partition of its own: no key that was named before lies there.
    pub fn alone(&mut self, prefix: &str) -> String {
        let taken = self.taken.clone();
        let name = self.first(prefix, |partition| !taken.contains(&partition));
        self.taken.insert(self.partitions.of(&name, 0));
        name
    }

    /// A key in that partition.
    pub fn within(&mut self, prefix: &str, partition: usize) -> String {
        self.taken.insert(partition);
        self.first(prefix, |one| one == partition)
    }

    /// A key in a partition without a hot key.
    pub fn apart(&mut self, prefix: &str) -> String {
        let taken = self.taken.clone();
        self.first(prefix, |partition| !taken.contains(&partition))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lie_where_they_are_wanted() {
        let partitions = Partitions::new((0..60_u64).map(|nth| nth * (u64::MAX / 60)).collect());
        let mut names = Names::new(&partitions);
        let hot: Vec<String> = (0..50).map(|_| names.alone("game")).collect();
        let places: HashSet<usize> = hot.iter().map(|name| partitions.of(name, 0)).collect();
        assert_eq!(places.len(), 50);
        let beside = names.within("title", partitions.of(&hot[7], 0));
        assert_eq!(partitions.of(&beside, 0), partitions.of(&hot[7], 0));
        assert!(!places.contains(&partitions.of(&names.apart("title"), 0)));
    }
}
