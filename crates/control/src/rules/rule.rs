//! One checked rule: which keys of which tables it is for, and what becomes of them. Not here:
//! whether it can hold for a table (`fits`), reading it (`read`).

use heatsink_layout::{Glob, KeyLayout, Layout, PhysicalKeys, Reads, TableLayouts};

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number in the file, counted from 1.
    pub number: usize,
    /// The line it starts on, counted from 1.
    pub line: usize,
    /// The tables it is for.
    pub table: Glob,
    /// The global index whose partition key it is for; `None` for the table's own.
    pub index: Option<String>,
    /// The logical keys it is for.
    pub keys: Glob,
    /// The effect on those keys.
    pub spread: Spread,
    /// How Queries over their shards are gathered.
    pub reads: Reads,
    /// What becomes of client keys that look like physical keys, where the rule says so.
    pub physical_keys: Option<PhysicalKeys>,
    /// Which calls for those keys become one.
    pub shared_calls: SharedCalls,
}

/// Which calls of several requests become one. Never on record: what is stored does not depend on
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharedCalls {
    /// Whether writes of one item do.
    pub combine: bool,
    /// Whether they do in a table with a stream, too.
    pub combine_streams: bool,
    /// Whether identical reads do.
    pub coalesce: bool,
    /// For how many milliseconds an answer to one is given again.
    pub cache_max_age_ms: Option<u16>,
}

impl SharedCalls {
    /// Whether there are none.
    pub fn is_none(self) -> bool {
        self == SharedCalls::default()
    }
}

/// What a rule does with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The key stays whole.
    Whole,
    /// Its items are spread.
    Sharded {
        /// How.
        layout: Layout,
        /// The attribute whose part decides the shard, which must be the sort key.
        part_of: Option<String>,
    },
}

impl Rule {
    /// The layout of a key that it matches.
    pub fn layout(&self) -> Layout {
        match &self.spread {
            Spread::Whole => Layout::none(),
            Spread::Sharded { layout, .. } => layout.clone(),
        }
    }

    /// This rule's layout for a table whose record has one for the same index, or for the same
    /// counters. The comparison of rules and record decides whether the two are equal.
    pub(super) fn held(&self, recorded: &TableLayouts) -> Option<KeyLayout> {
        let same = |one: &&KeyLayout| match (&self.index, one.index()) {
            (Some(name), Some(index)) => *name == index.name,
            (None, None) => one.layout().counter_attributes().is_some() && *one.keys() == self.keys,
            _ => false,
        };
        Some(match recorded.iter().find(same)?.index() {
            Some(index) => KeyLayout::of_index(index.clone(), self.keys.clone(), self.layout()),
            None => KeyLayout::new(self.keys.clone(), self.layout()),
        })
    }

    /// Whether this rule already takes every key that `later` matches. A glob skips tables that it
    /// cannot hold for, so it certainly takes them only if it can hold wherever `later` can.
    pub(super) fn leaves_nothing_to(&self, later: &Rule) -> bool {
        let fits_alike = match (&self.spread, &later.spread) {
            (Spread::Whole, _) => true,
            (Spread::Sharded { layout, part_of: None }, Spread::Sharded { layout: theirs, .. })
                if layout.time().is_none()
                    && layout.counter_attributes().is_none()
                    && theirs.counter_attributes().is_none() =>
            {
                true
            }
            (
                Spread::Sharded { layout: mine, part_of: a },
                Spread::Sharded { layout: theirs, part_of: b },
            ) => {
                let like = |layout: &Layout| {
                    let counted = layout.counter_attributes().map(<[String]>::to_vec);
                    (layout.time().cloned(), counted)
                };
                self.table.is_exact() || a == b && like(mine) == like(theirs)
            }
            _ => self.table.is_exact(),
        };
        self.index == later.index
            && fits_alike
            && self.table.covers(&later.table)
            && self.keys.covers(&later.keys)
    }
}
