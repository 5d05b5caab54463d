//! Which keys of a table are laid out how: what a rule becomes, and what the registry records.
//!
//! Not here: the layouts of single keys ([`KeyLayouts`](crate::KeyLayouts)), and how physical keys
//! are written ([`Table`](crate::Table)).

use std::sync::Arc;

use heatsink_dynamo::AttributeDefinition;
use serde::{Deserialize, Serialize};

use crate::{Glob, Layout};

/// The layouts of a table, in order: for every key the first whose glob matches holds. Keys that
/// none matches stay whole.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TableLayouts(Vec<KeyLayout>);

/// The layout of the keys that a glob matches.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Recorded", into = "Recorded")]
pub struct KeyLayout {
    keys: Glob,
    layout: Arc<Layout>,
    index: Option<OfIndex>,
}

/// The index whose partition key a layout is for. On record with its attribute, so that stored
/// values stay readable whatever becomes of the index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfIndex {
    /// Its name.
    pub name: String,
    /// Its partition key.
    pub attribute: AttributeDefinition,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    keys: String,
    layout: Layout,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    index: Option<OfIndex>,
}

impl From<Recorded> for KeyLayout {
    fn from(recorded: Recorded) -> Self {
        KeyLayout { index: recorded.index, ..KeyLayout::new(Glob::new(&recorded.keys), recorded.layout) }
    }
}

impl From<KeyLayout> for Recorded {
    fn from(one: KeyLayout) -> Self {
        Recorded { keys: one.keys.text().to_owned(), layout: Layout::clone(&one.layout), index: one.index }
    }
}

impl KeyLayout {
    /// Keys that `keys` matches are laid out as `layout`.
    pub fn new(keys: Glob, layout: Layout) -> Self {
        KeyLayout { keys, layout: Arc::new(layout), index: None }
    }

    /// The keys of an index that `keys` matches are laid out as `layout`.
    pub fn of_index(index: OfIndex, keys: Glob, layout: Layout) -> Self {
        KeyLayout { index: Some(index), ..KeyLayout::new(keys, layout) }
    }

    /// The index key attribute that it is for; `None` for the table's partition key.
    pub fn attribute(&self) -> Option<&AttributeDefinition> {
        self.index.as_ref().map(|index| &index.attribute)
    }

    /// The index whose keys it is for; `None` for the table's own.
    pub fn index(&self) -> Option<&OfIndex> {
        self.index.as_ref()
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

    /// The layout of one logical key of the table; `None` where it stays whole because nothing
    /// names it.
    pub fn of(&self, key: &[u8]) -> Option<&Arc<Layout>> {
        self.0.iter().find(|one| one.index.is_none() && one.keys.matches(key)).map(KeyLayout::layout)
    }

    /// Those of the table's own keys.
    pub fn own(&self) -> TableLayouts {
        TableLayouts(self.0.iter().filter(|one| one.index.is_none()).cloned().collect())
    }

    /// The index key attributes to which `others` give other layouts than these do.
    pub fn differing(&self, others: &TableLayouts) -> Vec<String> {
        let mut attributes = others.attributes();
        attributes.retain(|name| self.of_attribute(name) != others.of_attribute(name));
        attributes
    }

    /// With the layouts that `others` give to index keys with these attributes, in place of its
    /// own.
    #[must_use]
    pub fn with_indexes(&self, attributes: &[String], others: &TableLayouts) -> TableLayouts {
        let mut layouts = self.without(attributes);
        layouts.0.extend(others.only(attributes).0);
        layouts
    }

    /// Those of index keys with these attributes.
    #[must_use]
    pub fn only(&self, attributes: &[String]) -> TableLayouts {
        let is_of =
            |one: &&KeyLayout| one.attribute().is_some_and(|attribute| attributes.contains(&attribute.name));
        TableLayouts(self.0.iter().filter(is_of).cloned().collect())
    }

    /// All but those of index keys with these attributes.
    pub fn without(&self, attributes: &[String]) -> TableLayouts {
        let stays =
            |one: &&KeyLayout| one.attribute().is_none_or(|attribute| !attributes.contains(&attribute.name));
        TableLayouts(self.0.iter().filter(stays).cloned().collect())
    }

    /// Those of the index keys with that attribute.
    pub fn of_attribute(&self, name: &str) -> Vec<&KeyLayout> {
        self.0.iter().filter(|one| one.attribute().is_some_and(|attribute| attribute.name == name)).collect()
    }

    /// The attributes of index keys, each once.
    pub fn attributes(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for attribute in self.0.iter().filter_map(KeyLayout::attribute) {
            if !names.contains(&attribute.name) {
                names.push(attribute.name.clone());
            }
        }
        names
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The layouts, in order.
    pub fn iter(&self) -> impl Iterator<Item = &KeyLayout> {
        self.0.iter()
    }
}
