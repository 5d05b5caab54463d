//! Verifies a key that is on its way to another layout, from CHECK on: an item lies in its old
//! slot, in its new one, or in both, and counts once.
//!
//! The old slots are read first, then the new ones: items only go from old to new, so none that is
//! there all the time is missed. An item that was seen in its old slot is remembered by a hash of
//! its key, 8 bytes, and does not count again.
//!
//! Not here: the phases before that, in which items lie where the old layout puts them.

use std::collections::HashSet;

use heatsink_layout::{Layout, Moving, Slot, Slots};
use serde_json::Value as Json;

use super::classify::{Classifier, Found, RepairAction};
use super::error::VerifyError;
use super::findings::{Class, Findings};
use super::pages::Pages;
use crate::items::item::{Attributes, ItemContext, Scalar};
use crate::progress::Progress;

/// One key on its way.
pub(super) struct KeyOnItsWay<'a> {
    pub context: &'a ItemContext,
    pub classifier: &'a Classifier<'a>,
    pub logical: &'a [u8],
    pub moving: &'a Moving,
    pub rate: Option<u64>,
}

/// Which of the two layouts is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pass {
    Old,
    New,
}

/// What an item of a page is.
enum Is<'a> {
    /// In its old slot. Its new key.
    Old(&'a Attributes, Vec<u8>),
    /// Where it ends.
    New(&'a Attributes),
    /// In a slot that neither layout gives it. Its new key.
    Astray(&'a Attributes, Vec<u8>),
    /// The other pass counts it.
    Other,
}

impl KeyOnItsWay<'_> {
    /// Counts the key's items, and lists what is wrong.
    pub async fn look(&self, findings: &mut Findings, progress: &dyn Progress) -> Result<(), VerifyError> {
        let mut seen = HashSet::new();
        for (pass, layout) in [(Pass::Old, &self.moving.from), (Pass::New, &self.moving.to)] {
            for number in layout.slot_numbers() {
                let physical = self.physical(layout, number)?;
                let mut pages =
                    Pages::reading(self.classifier.registry, self.context, Some(vec![physical]), self.rate);
                while let Some(page) = pages.next().await? {
                    for found in self.page(pass, number, &page, &mut seen, findings).await? {
                        findings.list(found.finding);
                    }
                    progress.passed(u64::try_from(page.len()).unwrap_or(0));
                }
            }
        }
        Ok(())
    }

    fn physical(&self, layout: &Layout, number: u16) -> Result<Vec<u8>, VerifyError> {
        let physical = self.context.table.physical(self.logical, layout, Slot::shard(number));
        physical.map_err(|unplaced| VerifyError::Stopped(unplaced.to_string()))
    }

    async fn page(
        &self,
        pass: Pass,
        number: u16,
        page: &[Attributes],
        seen: &mut HashSet<u64>,
        findings: &mut Findings,
    ) -> Result<Vec<Found>, VerifyError> {
        let (mut wrong, mut old, mut astray) = (Vec::new(), Vec::new(), Vec::new());
        for item in page {
            match self.is(pass, number, item)? {
                Ok(Is::Other) => {}
                Ok(Is::New(item)) if seen.contains(&self.context.identity(item, self.logical)) => {}
                Ok(Is::New(item)) => {
                    let index_keys = self.classifier.index_keys(item)?;
                    findings.items += 1;
                    findings.in_order += u64::from(index_keys.is_empty());
                    wrong.extend(index_keys);
                }
                Ok(Is::Old(item, place)) => old.push((item, place)),
                Ok(Is::Astray(item, place)) => {
                    findings.items += 1;
                    astray.push((item, place));
                }
                Err(why) => {
                    let found = self.classifier.found(Class::Foreign, item, None, why, RepairAction::Nothing);
                    wrong.push(found);
                }
            }
        }
        wrong.extend(self.classifier.misplaced(astray).await?);
        let new_key = |item: &Attributes, place: &[u8]| {
            Json::Object(self.context.primary_key(&self.context.rekeyed(item, place))).to_string()
        };
        let there = self.classifier.all_there(old.iter().map(|(item, place)| new_key(item, place))).await?;
        for (item, place) in old {
            if there.contains(&new_key(item, &place)) {
                findings.old_copies += 1;
                continue;
            }
            let index_keys = self.classifier.index_keys(item)?;
            findings.items += 1;
            findings.on_the_way += 1;
            findings.in_order += u64::from(index_keys.is_empty());
            wrong.extend(index_keys);
            seen.insert(self.context.identity(item, self.logical));
        }
        Ok(wrong)
    }

    /// What an item in the slot of that number is; otherwise why it can be nothing.
    fn is<'i>(
        &self,
        pass: Pass,
        number: u16,
        item: &'i Attributes,
    ) -> Result<Result<Is<'i>, String>, VerifyError> {
        let sort = self.context.sort(item)?;
        let sort = sort.as_ref().map(Scalar::key);
        let slots = self.moving.to.slot_of(sort).and_then(|to| {
            let moves = self.moving.slots(sort)?;
            Ok(moves.unwrap_or(Slots { from: to, to }))
        });
        let Slots { from, to } = match slots {
            Ok(slots) => slots,
            Err(unplaced) => return Ok(Err(unplaced.to_string())),
        };
        // Both passes read the slots that both layouts have.
        let first = self.moving.from.shard_in(number).is_some();
        let to_key = || self.physical(&self.moving.to, to.shard);
        Ok(Ok(match pass {
            Pass::New if to.shard == number => Is::New(item),
            Pass::Old if to.shard == number => Is::Other,
            Pass::Old if from.shard == number => Is::Old(item, to_key()?),
            Pass::Old => Is::Astray(item, to_key()?),
            Pass::New if first => Is::Other,
            Pass::New => Is::Astray(item, to_key()?),
        }))
    }
}
