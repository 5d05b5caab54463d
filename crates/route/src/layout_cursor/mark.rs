//! What the cursor of a Scan says beside the keys, in an attribute of its own: under which layouts
//! it means something, when the Scan began, and how far it has come.
//!
//! A Scan goes through the store's items in the order of physical keys. Keys on record can change
//! where they lie meanwhile; the Scan leaves out the items of those that move or have changed since
//! it began, wherever it meets them, and reads these keys by themselves at its end (`apart`). So
//! the cursor names the newest change of such a key that the Scan knew when it began, and the
//! newest that one of its pages has known: a gateway that has yet to learn of that one would show
//! what was left out. Of an item of a key that has moved before it also names the shard, since its
//! key alone says where it stands under one layout only.
//!
//! As text: `ORDER@SINCE-LATEST#SHARD!`. Each part is left out where it says nothing, `-LATEST`
//! where it is `SINCE`. `!` stands in a cursor behind an item of a key that is read by itself, `^`
//! in one before all items of such a key.

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{AttributeDefinition, Error, KeyType, Outcome};
use heatsink_layout::{Layout, Table};

use super::refused::of_another_layout;
use crate::cursor::{self, LAYOUT};
use crate::key::KeyText;
use crate::splice::Splice;

/// Where a cursor stands among the keys that are read by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Apart {
    /// Before all items of its key.
    Before,
    /// Behind the item that it names.
    Behind,
}

/// What such an attribute says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The order of the table's layouts ([`Table::scan_order`]).
    pub(crate) order: Option<String>,
    /// The newest change of a recorded key when the Scan began.
    pub(crate) since: u64,
    /// The newest that one of its pages has known.
    latest: u64,
    /// Whether that is said where it is none: keys are on record, and may soon move.
    knows_keys: bool,
    /// The shard of the cursor's item, if its key had moved before.
    pub(crate) shard: Option<u16>,
    pub(crate) apart: Option<Apart>,
}

impl Mark {
    /// That of a Scan that begins.
    pub(crate) fn begun(order: Option<String>, table: &Table) -> Self {
        let newest = table.key_layouts().newest();
        let knows_keys = !table.key_layouts().is_empty();
        Mark { order, since: table.key_layouts().begin(), latest: newest, knows_keys, ..Mark::default() }
    }

    /// Reads what a cursor says. What is no such text names an order that no table has.
    pub(crate) fn read(text: &str) -> Self {
        Mark::parsed(text).unwrap_or_else(|| Mark { order: Some(text.to_owned()), ..Mark::default() })
    }

    fn parsed(text: &str) -> Option<Self> {
        let (text, apart) = match (text.strip_suffix('!'), text.strip_suffix('^')) {
            (Some(text), _) => (text, Some(Apart::Behind)),
            (_, Some(text)) => (text, Some(Apart::Before)),
            _ => (text, None),
        };
        let (text, shard) = match text.split_once('#') {
            Some((text, shard)) => (text, Some(shard.parse().ok()?)),
            None => (text, None),
        };
        let (order, changes) = match text.split_once('@') {
            Some((order, changes)) => (order, Some(changes)),
            None => (text, None),
        };
        let knows_keys = changes.is_some();
        let (since, latest) =
            match changes.map(|changes| changes.split_once('-').unwrap_or((changes, changes))) {
                Some((since, latest)) => (since.parse().ok()?, latest.parse().ok()?),
                None => (0, 0),
            };
        let order = Some(order.to_owned()).filter(|order| !order.is_empty());
        Some(Mark { order, since, latest, knows_keys, shard, apart })
    }

    /// Whether it says that nothing had moved, and nothing else.
    pub(crate) fn is_of_before(&self) -> bool {
        *self == Mark { knows_keys: true, ..Mark::default() }
    }

    /// The mark of the next page, read under these layouts.
    ///
    /// # Errors
    /// `ValidationException` where what an earlier page has known is no longer on record;
    /// `ServiceUnavailable` where an earlier page has known a change that this gateway has yet to
    /// learn of.
    pub(crate) fn next(&self, order: Option<String>, table: &Table) -> Result<Self, Error> {
        let newest = table.key_layouts().newest();
        // This gateway knows all up to then: the key has left the record.
        let left = self.latest > newest && table.version() >= self.latest;
        if left || self.latest > 0 && table.key_layouts().has_forgotten(self.latest) {
            return Err(of_another_layout(table));
        }
        if self.latest > newest {
            return Err(Error::unavailable(
                format!(
                    "A key of table {} was given other shards while it is read, and this gateway has yet to learn of it. Nothing was read; try again",
                    table.name
                ),
                Outcome::NotDone,
            ));
        }
        let knows_keys = !table.key_layouts().is_empty();
        Ok(Mark { order, since: self.since, latest: newest, knows_keys, shard: None, apart: None })
    }

    /// The text; `None` where there is nothing to say.
    pub(crate) fn text(&self) -> Option<String> {
        let mut text = self.order.clone().unwrap_or_default();
        if self.latest > 0 || self.knows_keys {
            text.push_str(&format!("@{}", self.since));
        }
        if self.latest != self.since {
            text.push_str(&format!("-{}", self.latest));
        }
        if let Some(shard) = self.shard {
            text.push_str(&format!("#{shard}"));
        }
        text.push_str(match self.apart {
            None => "",
            Some(Apart::Before) => "^",
            Some(Apart::Behind) => "!",
        });
        Some(text).filter(|text| !text.is_empty())
    }

    /// Makes a raw cursor of the store one of the client's.
    pub(crate) fn logical(
        &self,
        table: &Table,
        last: &[u8],
        splice: &mut Splice<'_>,
    ) -> Result<(), Malformed> {
        if last == b"null" {
            return Ok(());
        }
        cursor::logical(table, last, splice)?;
        self.on(last, recorded_shard(table, last)?, splice);
        Ok(())
    }

    /// Writes the mark into a raw cursor.
    fn on(&self, cursor: &[u8], shard: Option<u16>, splice: &mut Splice<'_>) {
        if let Some(text) = (Mark { shard, ..self.clone() }).text() {
            splice.insert(cursor, 1, format!(",\"{LAYOUT}\":{{\"S\":\"{text}\"}}"));
        }
    }

    /// A raw cursor that stands among the keys which are read by themselves: at this raw key.
    /// `index`: the other attributes that cursors of this Scan have.
    pub(crate) fn apart(&self, apart: Apart, key: &[u8], index: &[AttributeDefinition]) -> Bytes {
        let mut splice = Splice::new(key);
        for attribute in index {
            // It says nothing, and is there so that the cursor has the shape of one.
            splice.insert(key, 1, format!(",{}:{}", json_name(&attribute.name), anything(attribute)));
        }
        (Mark { apart: Some(apart), ..self.clone() }).on(key, None, &mut splice);
        splice.finish(&Bytes::copy_from_slice(key))
    }
}

/// A raw value that an attribute of a key can have.
pub(crate) fn anything(attribute: &AttributeDefinition) -> &'static str {
    match attribute.key_type {
        KeyType::S => r#"{"S":"-"}"#,
        KeyType::N => r#"{"N":"0"}"#,
        KeyType::B => r#"{"B":"AA=="}"#,
    }
}

fn json_name(name: &str) -> String {
    String::from_utf8_lossy(&crate::request::quoted(name)).into_owned()
}

/// The shard of a raw physical key, if its logical key is on record and lies, or may have lain,
/// otherwise than it would without a record.
fn recorded_shard(table: &Table, key: &[u8]) -> Result<Option<u16>, Malformed> {
    if table.key_layouts().is_empty() {
        return Ok(None);
    }
    let partition = &table.key.partition;
    let Some(value) = json::member(key, &partition.name)? else { return Ok(None) };
    let Some(text) = KeyText::read(value, partition.key_type) else { return Ok(None) };
    let (logical, slot) = table.decode(&text.bytes);
    let by_rule = || table.by_rule(logical).map_or_else(Layout::none, |layout| Layout::clone(layout));
    let otherwise = table
        .key_layouts()
        .get(logical)
        .is_some_and(|recorded| recorded.since > 0 || !recorded.in_force.settled().places_as(&by_rule()));
    Ok(slot.filter(|_| otherwise).map(|slot| slot.shard))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        for text in ["0123@7", "@7", "@0", "@0-3", "0123", "table:01@3-9#12", "@5-6!", "01@5^", "@5#0"] {
            let mark = Mark::parsed(text).unwrap();
            assert_eq!(mark.text().as_deref(), Some(text), "{mark:?}");
        }
        assert_eq!(Mark::default().text(), None);
        for text in ["@x", "@1-", "01@#3", "@3#70000"] {
            assert_eq!(Mark::read(text).order.as_deref(), Some(text));
        }
    }
}
