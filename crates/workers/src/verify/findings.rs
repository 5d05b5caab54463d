//! The result of a verification: a count for each class, and the first findings of each class with
//! advice.

use serde::Serialize;
use serde_json::Value as Json;

/// The number of findings of one class that are listed.
const LISTED: u64 = 20;

/// What is wrong with an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// It is misplaced, and its expected key is free: requests for its key do not find it.
    Misplaced,
    /// It is misplaced, and an equal item is at its expected key.
    DoubledEqual,
    /// It is misplaced, and a different item is at its expected key.
    DoubledDifferent,
    /// Its key, or an attribute, has a form that the record never writes.
    Foreign,
    /// A counter fragment without a base fragment.
    OrphanedPart,
    /// An index key has another form than the record says: Queries of the index do not find the
    /// item.
    IndexKey,
    /// The directory does not list its bucket: Queries do not read it.
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

    /// The meaning of the class, after a number of items.
    pub const fn meaning(self) -> &'static str {
        match self {
            Class::Misplaced => "misplaced: requests do not find them, and their place is free",
            Class::DoubledEqual => "doubled: an equal item is at their place",
            Class::DoubledDifferent => "doubled: a different item is at their place",
            Class::Foreign => "foreign: in a form that the record never writes",
            Class::OrphanedPart => "parts of a counter without its base fragment",
            Class::IndexKey => "with an index key in another form: Queries of the index do not find them",
            Class::UnlistedBucket => {
                "in a bucket that the directory does not list: Queries do not look there"
            }
        }
    }

    /// Advice.
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

    /// Whether a repair fixes it.
    pub const fn is_repairable(self) -> bool {
        matches!(self, Class::Misplaced | Class::DoubledEqual | Class::IndexKey | Class::UnlistedBucket)
    }

    fn at(self) -> usize {
        Class::ALL.iter().position(|class| *class == self).unwrap_or(0)
    }
}

/// One item that differs from the record.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What is wrong.
    pub class: Class,
    /// The item's primary key, as it is stored.
    pub item: Json,
    /// The primary key under which requests look for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Json>,
    /// Details.
    pub detail: String,
}

/// The findings of a verification.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Findings {
    /// The table.
    pub table: String,
    /// The logical key that was verified; `None` for all keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The recorded layouts, as text.
    pub layouts: String,
    /// When reading began, and when it ended: milliseconds since 1970-01-01T00:00:00Z. Writes in
    /// between may or may not be included.
    pub began: u64,
    /// See `began`.
    pub ended: u64,
    /// Items that were read, without counter fragments.
    pub items: u64,
    /// Counter fragments that were read.
    pub parts: u64,
    /// Items and fragments that are where the record puts them, in the recorded form.
    pub in_order: u64,
    /// Of those, items of keys that move which are still in their old shards. Requests look there,
    /// too.
    #[serde(skip_serializing_if = "is_zero")]
    pub on_the_way: u64,
    /// Old copies of items that have moved, which are yet to be deleted. They are no items.
    #[serde(skip_serializing_if = "is_zero")]
    pub old_copies: u64,
    /// The number of items of each class.
    pub counts: Counts,
    /// The first twenty of each class.
    pub findings: Vec<Finding>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// The number of items of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([u64; 7]);

impl Counts {
    /// The number of items of one class.
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
        // A class serializes to a string, so it can be the name of a JSON member.
        serializer.collect_map(Class::ALL.iter().map(|class| (class, self.of(*class))))
    }
}

impl Findings {
    /// The number of items that differ from the record.
    pub fn wrong(&self) -> u64 {
        Class::ALL.iter().map(|class| self.counts.of(*class)).sum()
    }

    /// The number of those that a repair fixes.
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

/// The result of a repair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Repaired {
    /// Items that were moved to their place.
    pub moved: u64,
    /// Items that were deleted because an equal item is at their expected key.
    pub deleted: u64,
    /// Index keys that were rewritten.
    pub rewritten: u64,
    /// Buckets that were entered in the directory.
    pub entered: u64,
    /// Items that were left because clients changed them meanwhile.
    pub left: u64,
}

impl Repaired {
    /// The number of writes.
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
