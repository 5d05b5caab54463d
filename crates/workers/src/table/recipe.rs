//! Detects whether shards that the rule says other writers assign at random follow from the sort
//! key by a known recipe. A rule with that recipe reads and writes each item with one request and
//! needs no search.
//!
//! Every recipe that rules can name is tried on every item, and is dropped at the first item that
//! contradicts it.

use std::collections::BTreeSet;
use std::sync::Arc;

use heatsink_layout::{By, Digest, Hash, Layout, Slot, SortKey, Strategy, Table};

/// This many different sort keys that match one recipe are no accident. Some 600 recipes are tried:
/// with two random shards, one recipe matches that many by chance in one table of two million; with
/// more shards, in fewer.
const ENOUGH: usize = 30;

/// The recipes: those of whole sort keys, and those of a part that ends at one of the usual
/// separators.
fn recipes(layout: &Layout) -> Vec<Layout> {
    let mut hashes = vec![
        Hash::Md5,
        Hash::Sha1,
        Hash::Sha256,
        Hash::Crc32,
        Hash::Fnv1a32,
        Hash::Fnv1a64,
        Hash::Java,
        Hash::JavaAbs,
        Hash::JavaMask,
        Hash::JavaObjects,
        Hash::Modulo,
        Hash::JumpXxh3,
    ];
    for digest in [Digest::Md5, Digest::Sha1, Digest::Sha256] {
        hashes.extend([8, 4, 2, 15, 16, -8, -4, -2].map(|digits| Hash::Slice { digest, digits }));
    }
    let mut bys = vec![By::SortKey];
    for separator in ["#", "_", ":", "|", "/"] {
        bys.extend((0..3).map(|part| By::Part { separator: separator.to_owned(), part }));
    }
    let Strategy::Template { template, time, .. } = &layout.strategy else { return Vec::new() };
    let of = |by: &By, hash| {
        let strategy = Strategy::Template { template: template.clone(), by: by.clone(), time: time.clone() };
        Layout { strategy, hash, ..layout.clone() }
    };
    bys.iter().flat_map(|by| hashes.iter().map(|hash| of(by, *hash)).collect::<Vec<_>>()).collect()
}

/// The recipes that still match one layout with externally assigned shards.
struct Candidates {
    layout: Arc<Layout>,
    left: Vec<Layout>,
    items: u64,
    shards: BTreeSet<u16>,
    /// The number of different sort keys that distinguish recipes.
    sorts: BTreeSet<String>,
}

/// Recipes under test.
#[derive(Default)]
pub(crate) struct Trial(Vec<Candidates>);

impl Trial {
    /// Tests the recipes on the physical key of an item, if its layout has externally assigned
    /// shards.
    pub fn see_stored(&mut self, table: &Table, key: &[u8], sort: Option<SortKey<'_>>) {
        if let (Some(slot), Some(layout)) = (table.assigned_slot(key), table.layout_of(table.logical(key))) {
            self.see(layout, sort, slot);
        }
    }

    /// Tests the recipes on one item.
    fn see(&mut self, layout: &Arc<Layout>, sort: Option<SortKey<'_>>, slot: Slot) {
        let at = self.0.iter().position(|candidates| Arc::ptr_eq(&candidates.layout, layout));
        let at = at.unwrap_or_else(|| {
            let left = recipes(layout);
            let (shards, sorts) = (BTreeSet::new(), BTreeSet::new());
            self.0.push(Candidates { layout: Arc::clone(layout), left, items: 0, shards, sorts });
            self.0.len() - 1
        });
        let Some(candidates) = self.0.get_mut(at) else { return };
        candidates.items += 1;
        candidates.shards.insert(slot.shard);
        if let (Some(sort), true) = (sort, candidates.sorts.len() < ENOUGH) {
            candidates.sorts.insert(sort.to_string());
        }
        candidates.left.retain(|recipe| recipe.slot_of(sort) == Ok(slot));
    }

    /// Advice for the operator, if a recipe matches.
    pub fn advice(&self) -> Option<String> {
        let found = |candidates: &Candidates| {
            // Where several match, as all do for sort keys without separators, the simplest is
            // first.
            let recipe = candidates.left.first()?;
            let by = match &recipe.strategy {
                Strategy::Template { by: By::Part { separator, part }, .. } => {
                    format!(", by = {{ attribute = \"…\", separator = \"{separator}\", part = {part} }}")
                }
                _ => String::new(),
            };
            let digits = match recipe.hash {
                Hash::Slice { digits, .. } => format!(", hex_digits = {digits}"),
                _ => String::new(),
            };
            (candidates.sorts.len() >= ENOUGH && candidates.shards.len() > 1).then(|| {
                format!(
                    "the rule says that other writers assign shards at random (hash = \"random\"), and each of {} items, in {} of {} shards, lies where hash = \
                     \"{}\"{digits}{by} puts it. With that hash a request for an item would look into one shard and not into {}",
                    candidates.items,
                    candidates.shards.len(),
                    candidates.layout.shards,
                    recipe.hash.name(),
                    candidates.layout.shards,
                )
            })
        };
        let found: Vec<String> = self.0.iter().filter_map(found).collect();
        (!found.is_empty()).then(|| found.join("; "))
    }
}
