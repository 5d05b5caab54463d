//! One page of Query or Scan, taken apart: its items, where it ends, what it cost.
//!
//! Reads the store's pages, and those that a plan beneath makes of them. Not here: what the items
//! mean.

use heatsink_dynamo::Error;
use heatsink_dynamo::json::{self, Malformed, Picked};

use crate::capacity::Capacity;

/// What a page holds at most, in bytes of items that were looked at (AWS, "Constraints").
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// A page. Of every item the `N` attributes are at hand that the reader named.
#[derive(Debug)]
pub(crate) struct Page<'a, const N: usize> {
    pub(crate) items: Vec<Picked<'a, N>>,
    /// The raw `LastEvaluatedKey`.
    pub(crate) last: Option<&'a [u8]>,
    scanned: Option<usize>,
    capacity: Option<&'a [u8]>,
}

impl<'a, const N: usize> Page<'a, N> {
    /// Takes a page apart. One without `Items` has none.
    ///
    /// # Errors
    /// The body is not one JSON object, or its `Items` are no list of objects.
    pub(crate) fn read(body: &'a [u8], names: [&str; N]) -> Result<Self, Malformed> {
        let page = json::page(body, "Items", names)?;
        let member = |name: &str| {
            let found = page.members.iter().rev().find(|(found, _)| found == name);
            found.map(|(_, value)| *value).filter(|value| *value != b"null")
        };
        Ok(Page {
            last: member("LastEvaluatedKey"),
            scanned: member("ScannedCount")
                .and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<usize>().ok()),
            capacity: member("ConsumedCapacity"),
            items: page.items.unwrap_or_default(),
        })
    }

    /// The page of a store that was shown a filter which holds nothing back.
    ///
    /// # Errors
    /// `InternalServerError` where it has held items back all the same: the page would lack them.
    pub(crate) fn whole(self) -> Result<Self, Error> {
        // A store may count the item that did not fit into the page (the embedded engine does).
        let expected = self.items.len()..=self.items.len() + usize::from(self.last.is_some());
        match self.scanned {
            Some(scanned) if !expected.contains(&scanned) => Err(Error::internal(
                "The store held back items of a read whose filter is evaluated by Heatsink",
            )),
            _ => Ok(self),
        }
    }

    /// What the page cost, where the store says it.
    pub(crate) fn capacity(&self) -> Option<Capacity> {
        serde_json::from_slice(self.capacity?).ok()
    }
}
