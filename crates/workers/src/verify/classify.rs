//! Classifies the items of a page: by the record alone where that is enough, otherwise by a
//! strongly consistent read of the expected key.
//!
//! Not here: what is written (`repair`).

use std::collections::HashSet;
use std::sync::Arc;

use futures::{StreamExt, TryStreamExt, stream};
use heatsink_control::UnreadKeys;
use heatsink_control::registry::Registry;
use heatsink_dynamo::Operation;
use heatsink_layout::{Bucket, DIRECTORY, InForce, Moving, Phase, Strategy, Table, directory_key};
use serde_json::{Value as Json, json};

use super::error::VerifyError;
use super::findings::{Class, Finding, Findings};
use crate::items::item::{Attributes, ItemContext, same};
use crate::items::item_location::ItemLocation;
use crate::items::item_move;

/// The number of items that are read or written concurrently.
pub(super) const AT_ONCE: usize = 8;

/// The most keys of one BatchGetItem.
const BATCH: usize = 100;

/// A finding, with what a repair needs.
pub(super) struct Found {
    pub finding: Finding,
    /// The whole item if it is misplaced or doubled, otherwise the attributes that were read.
    pub item: Attributes,
    pub action: RepairAction,
}

/// The repair of an item.
pub(super) enum RepairAction {
    Nothing,
    /// Move it to this physical key.
    Move(Vec<u8>),
    /// Delete it, because an equal item exists under this physical key.
    Delete(Vec<u8>),
    /// Rewrite this attribute.
    Rewrite(String),
    /// Enter this bucket of its logical key in the directory.
    Enter(Bucket),
}

/// Classifies pages of one table.
pub(super) struct Classifier<'a> {
    pub registry: &'a Registry,
    context: &'a ItemContext,
    /// The physical key whose bucket was looked up last, and whether the directory lists it. Items
    /// of one key follow each other.
    bucket: Option<(Vec<u8>, bool)>,
}

impl<'a> Classifier<'a> {
    pub fn new(registry: &'a Registry, context: &'a ItemContext) -> Self {
        Classifier { registry, context, bucket: None }
    }

    /// The findings of a page. Items in order are counted.
    pub async fn page(
        &mut self,
        page: &[Attributes],
        counted: &mut Findings,
    ) -> Result<Vec<Found>, VerifyError> {
        let (mut wrong, mut elsewhere, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for item in page {
            let key = self.context.key(item)?;
            // `moving` counts it.
            if on_its_way(&self.context.table, self.context.table.logical(&key)).is_some() {
                continue;
            }
            let location = self.context.locate(&key, item)?;
            let before = wrong.len();
            match location {
                ItemLocation::CounterFragment(base) => {
                    counted.parts += 1;
                    parts.push((item, base));
                    continue;
                }
                ItemLocation::Foreign(why) => {
                    wrong.push(self.found(Class::Foreign, item, None, why, RepairAction::Nothing))
                }
                ItemLocation::Misplaced(place) => {
                    counted.items += 1;
                    elsewhere.push((item, place));
                    continue;
                }
                ItemLocation::Expected => {
                    wrong.extend(self.index_keys(item)?);
                    wrong.extend(self.unlisted(&key, item).await?);
                }
            }
            counted.items += 1;
            counted.in_order += u64::from(wrong.len() == before);
        }
        let whole_parts = parts.len();
        let orphans = self.orphans(parts).await?;
        counted.in_order += u64::try_from(whole_parts - orphans.len()).unwrap_or(0);
        wrong.extend(orphans);
        wrong.extend(self.misplaced(elsewhere).await?);
        Ok(wrong)
    }

    pub(super) fn found(
        &self,
        class: Class,
        item: &Attributes,
        place: Option<&[u8]>,
        detail: String,
        action: RepairAction,
    ) -> Found {
        let place = place.map(|key| Json::Object(self.context.primary_key(&self.context.rekeyed(item, key))));
        let finding = Finding { class, item: Json::Object(self.context.primary_key(item)), place, detail };
        Found { finding, item: item.clone(), action }
    }

    /// The spread attributes of an item that are not in the recorded form. Where there are several,
    /// each is right.
    pub(super) fn index_keys(&self, item: &Attributes) -> Result<Vec<Found>, VerifyError> {
        let mut wrong = Vec::new();
        for index_value in self.context.index_values(item)? {
            let turning = index_value.key.is_migrating();
            if index_value.is_known() {
                continue;
            }
            let name = &index_value.key.attribute().name;
            let stored = index_value.text(&index_value.stored);
            let shards = index_value.key.shards(index_value.key.logical(&index_value.stored));
            let shard = index_value.key.decode(&index_value.stored).shard;
            wrong.push(match &index_value.new {
                Ok(new) if shard < shards => {
                    let new = index_value.text(new);
                    let detail = format!("its {name} is {stored:?}, and by the record {new:?}");
                    let action =
                        if turning { RepairAction::Nothing } else { RepairAction::Rewrite(name.clone()) };
                    self.found(Class::IndexKey, item, None, detail, action)
                }
                Ok(_) => {
                    let detail = format!(
                        "its {name} is {stored:?}, and by the record there is no shard {shard} of it"
                    );
                    self.found(Class::Foreign, item, None, detail, RepairAction::Nothing)
                }
                Err(why) => self.found(
                    Class::Foreign,
                    item,
                    None,
                    format!("its {name}: {why}"),
                    RepairAction::Nothing,
                ),
            });
        }
        Ok(wrong)
    }

    /// An item in a bucket that the directory does not list. Other writers may begin buckets of
    /// templates, which Queries search for.
    async fn unlisted(&mut self, key: &[u8], item: &Attributes) -> Result<Option<Found>, VerifyError> {
        let table = &self.context.table;
        let (logical, slot) = table.decode(key);
        let Some(bucket) = slot.and_then(|slot| slot.bucket) else { return Ok(None) };
        let is_listed_at_all = |strategy: &Strategy| matches!(strategy, Strategy::Bucket { .. });
        if !table.layout_of(logical).is_some_and(|layout| is_listed_at_all(&layout.strategy)) {
            return Ok(None);
        }
        let listed = match &self.bucket {
            Some((known, listed)) if known == key => *listed,
            _ => {
                let row = json!({ "pk": { "S": directory_key(table, logical) }, "sk": { "S": bucket.to_string() } });
                let body = json!({ "TableName": DIRECTORY, "Key": row, "ConsistentRead": true });
                let listed =
                    self.registry.call_patiently(Operation::GetItem, body).await?.get("Item").is_some();
                self.bucket = Some((key.to_vec(), listed));
                listed
            }
        };
        Ok((!listed).then(|| {
            let detail = format!("the directory does not list the bucket {bucket}");
            self.found(Class::UnlistedBucket, item, None, detail, RepairAction::Enter(bucket))
        }))
    }

    /// Counter fragments whose base fragment does not exist.
    async fn orphans(&self, parts: Vec<(&Attributes, Vec<u8>)>) -> Result<Vec<Found>, VerifyError> {
        let based: Vec<(String, &Attributes, Vec<u8>)> = parts
            .into_iter()
            .map(|(part, base)| {
                let key =
                    self.context.primary_key(&self.context.rekeyed(&self.context.primary_key(part), &base));
                (Json::Object(key).to_string(), part, base)
            })
            .collect();
        let there = self.all_there(based.iter().map(|(key, ..)| key.clone())).await?;
        let orphans = based.iter().filter(|(key, ..)| !there.contains(key));
        Ok(orphans
            .map(|(_, part, base)| {
                let detail = "its base fragment does not exist".to_owned();
                self.found(Class::OrphanedPart, part, Some(base), detail, RepairAction::Nothing)
            })
            .collect())
    }

    /// Returns which of these primary keys, as JSON, have an item.
    pub(super) async fn all_there(
        &self,
        keys: impl Iterator<Item = String>,
    ) -> Result<HashSet<String>, VerifyError> {
        let mut asked: Vec<String> = keys.collect();
        asked.sort_unstable();
        asked.dedup();
        let mut there = HashSet::new();
        for keys in asked.chunks(BATCH) {
            there.extend(self.there(keys).await?);
        }
        Ok(there)
    }

    async fn there(&self, keys: &[String]) -> Result<HashSet<String>, VerifyError> {
        let read = |key: &String| serde_json::from_str::<Json>(key).unwrap_or_default();
        let mut left: Json = keys.iter().map(read).collect();
        let mut there = HashSet::new();
        let mut unread = UnreadKeys::default();
        loop {
            unread.pause(self.registry, &format!("keys of table {}", self.context.table.name)).await?;
            let names: Vec<&str> = self.context.table.key.names().collect();
            let placeholders: Vec<String> = (0..names.len()).map(|at| format!("#k{at}")).collect();
            let named: serde_json::Map<String, Json> =
                placeholders.iter().cloned().zip(names.iter().map(|name| json!(name))).collect();
            let request = json!({
                "Keys": left, "ConsistentRead": true, "ProjectionExpression": placeholders.join(", "),
                "ExpressionAttributeNames": named,
            });
            let table = &self.context.table.name;
            let body = json!({ "RequestItems": { table.as_str(): request } });
            let mut answer = self.registry.call_patiently(Operation::BatchGetItem, body).await?;
            let items = answer["Responses"][table.as_str()].as_array().into_iter().flatten();
            there.extend(
                items
                    .filter_map(Json::as_object)
                    .map(|item| Json::Object(self.context.primary_key(item)).to_string()),
            );
            left = answer["UnprocessedKeys"][table.as_str()]["Keys"].take();
            if left.as_array().is_none_or(Vec::is_empty) {
                return Ok(there);
            }
        }
    }

    /// Compares misplaced items with the items at their expected keys.
    pub(super) async fn misplaced(
        &self,
        elsewhere: Vec<(&Attributes, Vec<u8>)>,
    ) -> Result<Vec<Found>, VerifyError> {
        let asked = elsewhere.into_iter().map(|(item, place)| async move {
            // The whole item in its current state: a client may have written meanwhile.
            let Some(item) = item_move::get(self.registry, self.context, item).await? else {
                return Ok(None);
            };
            let copy = self.context.rekeyed(&item, &place);
            let shown = self.context.text(&place);
            Ok::<_, VerifyError>(Some(match item_move::get(self.registry, self.context, &copy).await? {
                None => {
                    let detail = format!("requests look for it under {shown:?}, where no item exists");
                    self.found(
                        Class::Misplaced,
                        &item,
                        Some(&place),
                        detail,
                        RepairAction::Move(place.clone()),
                    )
                }
                Some(there) if same(&there, &copy) => {
                    let detail = format!("an equal item exists under {shown:?}");
                    self.found(
                        Class::DoubledEqual,
                        &item,
                        Some(&place),
                        detail,
                        RepairAction::Delete(place.clone()),
                    )
                }
                Some(there) => {
                    let detail = format!(
                        "the item at its place, under {shown:?}, differs in {}",
                        differing(&there, &copy)
                    );
                    self.found(Class::DoubledDifferent, &item, Some(&place), detail, RepairAction::Nothing)
                }
            }))
        });
        let found: Vec<Option<Found>> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }
}

/// The names of the attributes in which two items differ.
fn differing(a: &Attributes, b: &Attributes) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in a.keys().chain(b.keys()) {
        let one = |item: &Attributes| -> Attributes {
            item.get(name).map(|value| (name.clone(), value.clone())).into_iter().collect()
        };
        if !same(&one(a), &one(b)) && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// The move of a logical key, if its items may lie in two places.
pub(super) fn on_its_way(table: &Table, logical: &[u8]) -> Option<Arc<Moving>> {
    match table.in_force(logical)? {
        InForce::Moving(moving) if moving.phase >= Phase::Check => Some(moving),
        _ => None,
    }
}
