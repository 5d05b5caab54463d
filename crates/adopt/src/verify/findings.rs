//! What a verification finds: counts, and the first findings of each class with what to do.

use serde::Serialize;
use serde_json::Value as Json;

/// How many findings of one class are listed.
const LISTED: u64 = 20;

/// What is wrong with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It lies elsewhere, and its place is free: requests for its key do not find it.
    Misplaced,
    /// It lies elsewhere, and an equal item lies at its place.
    DoubledEqual,
    /// It lies elsewhere, and another item with its key lies at its place.
    DoubledDifferent,
    /// Its key, or an attribute, is in a form that nothing on record writes.
    Foreign,
    /// A part of a counter whose base fragment is gone.
    OrphanedPart,
    /// It holds the key of an index in another form than the record says: Queries of the index do not find it.
    IndexKey,
    /// Its bucket is not in the directory: Queries do not look there.
    UnlistedBucket,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 7] = [
        Class::Misplaced,
        Class::DoubledEqual,
        Class::DoubledDifferent,
        Class::Foreign,
        Class::OrphanedPart,
        Class::IndexKey,
        Class::UnlistedBucket,
    ];

    /// What it means, after a number of items.
    pub const fn words(self) -> &'static str {
        match self {
            Class::Misplaced => "misplaced: requests do not find them, and their place is free",
            Class::DoubledEqual => "doubled: an equal item lies at their place",
            Class::DoubledDifferent => "doubled: a different item lies at their place",
            Class::Foreign => "foreign: in a form that the record never writes",
            Class::OrphanedPart => "parts of a counter without its base fragment",
            Class::IndexKey => "with an index key in another form: Queries of the index do not find them",
            Class::UnlistedBucket => {
                "in a bucket that the directory does not list: Queries do not look there"
            }
        }
    }

    /// What to do.
    pub const fn advice(self) -> &'static str {
        match self {
            Class::Misplaced => "--repair --yes moves each to its place",
            Class::DoubledEqual => "--repair --yes deletes the one that is not at its place",
            Class::DoubledDifferent => {
                "read both at the store itself, not through Heatsink, keep what is right, and delete the one that is not at its place. Repair never \
                 touches them"
            }
            Class::Foreign => {
                "a write bypassed Heatsink. Find out what the item is for, put it again through Heatsink, and delete this one at the store \
                 itself. Repair never touches them"
            }
            Class::OrphanedPart => {
                "the counter was deleted by a request that bypassed Heatsink, or its deletion was cut short: delete it again through Heatsink, or put it again. Repair never \
                 touches them"
            }
            Class::IndexKey => "--repair --yes writes the form that the record says",
            Class::UnlistedBucket => "--repair --yes enters the bucket in the directory",
        }
    }

    /// Whether a repair mends it.
    pub const fn is_repairable(self) -> bool {
        matches!(self, Class::Misplaced | Class::DoubledEqual | Class::IndexKey | Class::UnlistedBucket)
    }

    fn at(self) -> usize {
        Class::ALL.iter().position(|class| *class == self).unwrap_or(0)
    }
}

/// One item that is not as the record says.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub class: Class,
    /// The item's primary key, as it is stored.
    pub item: Json,
    /// The primary key under which requests look for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Json>,
    /// What was seen.
    pub detail: String,
}

/// What was found in a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// The table.
    pub table: String,
    /// The logical key that was looked at; `None` for all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The layouts on record, in words.
    pub layouts: String,
    /// When reading began, and when it ended: milliseconds since 1970-01-01T00:00:00Z. What was written in between may or may not be in it.
    pub began: u64,
    /// See `began`.
    pub ended: u64,
    /// Items that were read. Parts of counters are not counted.
    pub items: u64,
    /// Parts of counters that were read.
    pub parts: u64,
    /// Items and parts that lie where the record says and are in its form.
    pub in_order: u64,
    /// How many items there are of each class.
    pub counts: Counts,
    /// The first twenty of each class.
    pub findings: Vec<Finding>,
}

/// How many items there are of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; 7]);

impl Counts {
    /// How many there are of one class.
    pub fn of(&self, class: Class) -> u64 {
        self.0.get(class.at()).copied().unwrap_or(0)
    }

    fn add(&mut self, class: Class) {
        if let Some(count) = self.0.get_mut(class.at()) {
            *count += 1;
        }
    }
}

impl Serialize for Counts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // A class is a text in JSON, so it can be a member's name.
        serializer.collect_map(Class::ALL.iter().map(|class| (class, self.of(*class))))
    }
}

impl Findings {
    /// How many items are not as the record says.
    pub fn wrong(&self) -> u64 {
        Class::ALL.iter().map(|class| self.counts.of(*class)).sum()
    }

    /// How many of them a repair mends.
    pub fn repairable(&self) -> u64 {
        Class::ALL.iter().filter(|class| class.is_repairable()).map(|class| self.counts.of(*class)).sum()
    }

    pub(super) fn list(&mut self, finding: Finding) {
        self.counts.add(finding.class);
        if self.counts.of(finding.class) <= LISTED {
            self.findings.push(finding);
        }
    }
}

/// What a repair did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Repaired {
    /// Items that were moved to their place.
    pub moved: u64,
    /// Items that were deleted because an equal one lies at their place.
    pub deleted: u64,
    /// Index keys that were rewritten.
    pub rewritten: u64,
    /// Buckets that were entered in the directory.
    pub entered: u64,
    /// Items that clients changed meanwhile, so that they were left.
    pub left: u64,
}

impl Repaired {
    /// How many things were written.
    pub fn wrote(&self) -> u64 {
        self.moved + self.deleted + self.rewritten + self.entered
    }

    pub(super) fn add(&mut self, more: Repaired) {
        self.moved += more.moved;
        self.deleted += more.deleted;
        self.rewritten += more.rewritten;
        self.entered += more.entered;
        self.left += more.left;
    }
}
