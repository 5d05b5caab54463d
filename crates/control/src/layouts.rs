//! The layouts of one table: which of its keys is laid out how. What a rule becomes and what the registry records.

use std::sync::Arc;

use heatsink_layout::Layout;
use serde::{Deserialize, Serialize};

use crate::rules::Glob;

/// The layouts of a table, in order: for every key the first whose glob matches holds. Keys that none matches stay whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableLayouts(Vec<KeyLayout>);

/// The layout of the keys that a glob matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Recorded", into = "Recorded")]
pub struct KeyLayout {
    keys: Glob,
    layout: Arc<Layout>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    keys: String,
    layout: Layout,
}

impl From<Recorded> for KeyLayout {
    fn from(recorded: Recorded) -> Self {
        KeyLayout::new(Glob::new(&recorded.keys), recorded.layout)
    }
}

impl From<KeyLayout> for Recorded {
    fn from(one: KeyLayout) -> Self {
        Recorded { keys: one.keys.text().to_owned(), layout: Layout::clone(&one.layout) }
    }
}

impl KeyLayout {
    /// Keys that `keys` matches are laid out as `layout`.
    pub fn new(keys: Glob, layout: Layout) -> Self {
        KeyLayout { keys, layout: Arc::new(layout) }
    }

    /// The keys it is for.
    pub fn keys(&self) -> &Glob {
        &self.keys
    }

    /// Their layout.
    pub fn layout(&self) -> &Arc<Layout> {
        &self.layout
    }
}

impl TableLayouts {
    /// The layouts of a table, in order.
    pub fn new(layouts: Vec<KeyLayout>) -> Self {
        TableLayouts(layouts)
    }

    /// The layout of one logical key; `None` where it stays whole because nothing names it.
    pub fn of(&self, key: &[u8]) -> Option<&Arc<Layout>> {
        self.0.iter().find(|one| one.keys.matches(key)).map(KeyLayout::layout)
    }

    /// The layouts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &KeyLayout> {
        self.0.iter()
    }
}

impl std::fmt::Display for TableLayouts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use heatsink_layout::{By, Strategy};
        for (at, one) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("; ")?;
            }
            write!(f, "keys {:?}: ", one.keys.text())?;
            match &one.layout.strategy {
                Strategy::None => f.write_str("whole")?,
                Strategy::Calculated { by: By::SortKey } => {
                    write!(f, "{} shards by sort key", one.layout.shards)?
                }
                Strategy::Calculated { by: By::Part { separator, part } } => {
                    write!(
                        f,
                        "{} shards by part {part} of the sort key split at {separator:?}",
                        one.layout.shards
                    )?;
                }
            }
        }
        Ok(())
    }
}
