//! What a JSON value of a file is (an item of an export, an item by itself, a page of a Scan, a
//! stream record), and what it tells the audit.
//!
//! A file is told by what is in it. Items and records are never counted together, because items
//! show what is there and records what was written. Not here: cutting a file into values
//! ([`framing`](super::framing)), opening files.

mod keys;
mod unreadable;

use std::borrow::Cow;

use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::size::{MAX_ITEM, scan_item};

pub use keys::KeyNames;
use keys::{KeyText, keys_of, names, names_of};
pub use unreadable::{Kind, Unreadable};

use super::bypass::{Event, Streamed};
use super::{Audit, Write, stamp};

/// Reads the values of files and adds them to an [`Audit`].
#[derive(Debug, Default)]
pub struct Records {
    keys: Option<KeyNames>,
    /// Of the first value.
    first: Option<Kind>,
    /// Of the first value of this file.
    kind: Option<Kind>,
    table: Option<String>,
    expired: u64,
    without_images: u64,
    /// The writes by physical key, where they are asked for.
    streamed: Option<Streamed>,
}

/// One item or record, read.
#[derive(Debug)]
struct Read<'a> {
    partition: Cow<'a, [u8]>,
    sort: Option<KeyText<'a>>,
    what: What,
}

#[derive(Debug)]
enum What {
    Item(usize),
    Write(Write, Event),
    /// Removed because its time to live was over: that takes no write units.
    Expired,
}

impl Records {
    /// Of a table whose key attributes have these names. Records of a table without a sort key need
    /// none.
    pub fn new(keys: Option<KeyNames>) -> Self {
        Records { keys, ..Records::default() }
    }

    /// Keeps the writes of stream records, to be held against recorded requests: some 24 bytes
    /// each.
    #[must_use]
    pub fn keeping_writes(self) -> Self {
        Records { streamed: Some(Streamed::default()), ..self }
    }

    /// The writes that were kept.
    pub fn writes(&self) -> Option<&Streamed> {
        self.streamed.as_ref()
    }

    /// A new file begins. Its items may be of another form, but records do not follow items.
    pub fn next_file(&mut self) {
        self.kind = None;
    }

    /// What the first value was.
    pub fn first(&self) -> Option<Kind> {
        self.first
    }

    /// The table that stream records name.
    pub fn table(&self) -> Option<&str> {
        self.table.as_deref()
    }

    /// Records of items whose time to live was over, which take no write units.
    pub fn expired(&self) -> u64 {
        self.expired
    }

    /// Records without an image, which are counted as one unit each.
    pub fn without_images(&self) -> u64 {
        self.without_images
    }

    /// Counts a value: how many items or records are in it. A value that is refused counts nothing.
    ///
    /// # Errors
    /// See [`Unreadable`].
    pub fn read(&mut self, value: &[u8], audit: &mut Audit) -> Result<u64, Unreadable> {
        // Strings that are passed over are not checked one by one.
        let Ok(text) = std::str::from_utf8(value) else { return Err(Unreadable::NotJson) };
        if heatsink_trace::is_trace(text) {
            return Err(Unreadable::Recording);
        }
        // What an export has, line after line, is passed over once. What is not quite so is looked
        // at below.
        let exported = value.strip_prefix(br#"{"Item":"#).and_then(|rest| rest.strip_suffix(b"}"));
        if let Some(item) = exported.filter(|item| is_item(item))
            && let Ok(read) = self.item(item)
        {
            self.is(Kind::Export)?;
            return Ok(self.add(&read, audit));
        }
        let [item, items, records, event, stream, metadata, keys] = json::attributes_of(
            value,
            ["Item", "Items", "Records", "eventName", "dynamodb", "Metadata", "Keys"],
        )
        .map_err(
            |Malformed| if value.starts_with(b"$ion") { Unreadable::Ion } else { Unreadable::NotJson },
        )?;
        let is_list = |raw: &[u8]| raw.starts_with(b"[");
        if let Some(list) = records.filter(|raw| is_list(raw)) {
            return self.list(list, audit);
        }
        if let Some(list) = items.filter(|raw| is_list(raw)) {
            return self.list(list, audit);
        }
        if let (Some(b"\"INSERT\"" | b"\"MODIFY\"" | b"\"REMOVE\""), Some(stream)) = (event, stream) {
            let read = self.record(value, event_of(event), stream)?;
            self.is(Kind::Stream)?;
            return Ok(self.add(&read, audit));
        }
        if metadata.is_some_and(|raw| holds(raw, "WriteTimestampMicros")) && keys.is_some() {
            return Err(Unreadable::Incremental);
        }
        let (kind, item) = match item.filter(|item| is_item(item)) {
            Some(item) => (Kind::Export, item),
            None => (Kind::Items, value),
        };
        let read = self.item(item)?;
        self.is(kind)?;
        Ok(self.add(&read, audit))
    }

    fn list(&mut self, list: &[u8], audit: &mut Audit) -> Result<u64, Unreadable> {
        let elements = json::elements(list).map_err(|Malformed| Unreadable::NotJson)?;
        // First all of them are read: a value that is refused counts nothing.
        let mut read = Vec::with_capacity(elements.len());
        for element in elements {
            let [event, stream] = json::attributes_of(element, ["eventName", "dynamodb"])
                .map_err(|Malformed| Unreadable::NoItem)?;
            match (event, stream) {
                (Some([b'"', ..]), Some(stream)) => {
                    read.push(self.record(element, event_of(event), stream)?);
                    self.is(Kind::Stream)?;
                }
                _ => {
                    read.push(self.item(element)?);
                    self.is(Kind::Items)?;
                }
            }
        }
        Ok(read.iter().map(|read| self.add(read, audit)).sum())
    }

    fn is(&mut self, found: Kind) -> Result<(), Unreadable> {
        let of_file = self.kind.filter(|before| *before != found);
        let of_files = self.first.filter(|before| (*before == Kind::Stream) != (found == Kind::Stream));
        if let Some(before) = of_file.or(of_files) {
            return Err(Unreadable::Mixed { found, before });
        }
        self.kind = Some(found);
        self.first = self.first.or(Some(found));
        Ok(())
    }

    fn item<'a>(&self, item: &'a [u8]) -> Result<Read<'a>, Unreadable> {
        let Some(names) = &self.keys else {
            return Err(Unreadable::NamesNeeded { names: names(item)? });
        };
        let sort = names.sort.as_deref();
        let found = scan_item(item, [names.partition.as_str(), sort.unwrap_or_default()])
            .map_err(|Malformed| Unreadable::NoItem)?;
        if found.bytes > MAX_ITEM {
            return Err(Unreadable::TooLarge(found.bytes));
        }
        let (partition, sort) = keys_of(names, found.attributes)?;
        Ok(Read { partition: partition.bytes(), sort, what: What::Item(found.bytes) })
    }

    fn record<'a>(
        &mut self,
        record: &'a [u8],
        event: Event,
        stream: &'a [u8],
    ) -> Result<Read<'a>, Unreadable> {
        let bad = |Malformed| Unreadable::NoItem;
        let [keys, new, old, time] =
            json::attributes_of(stream, ["Keys", "NewImage", "OldImage", "ApproximateCreationDateTime"])
                .map_err(bad)?;
        let [user, arn, table] =
            json::attributes_of(record, ["userIdentity", "eventSourceARN", "tableName"]).map_err(bad)?;
        let keys = keys.ok_or(Unreadable::NoItem)?;
        if self.table.is_none() {
            let text = |raw: &[u8]| json::string(raw).ok().map(Cow::into_owned);
            let of_arn = |arn: String| arn.split('/').nth(1).map(str::to_owned);
            self.table = table.and_then(text).or_else(|| arn.and_then(text).and_then(of_arn));
        }
        if self.first.is_none() {
            let there = names(keys)?;
            self.keys = Some(names_of(self.keys.take(), there)?);
        }
        let Some(names) = &self.keys else { return Err(Unreadable::NoItem) };
        let sort = names.sort.as_deref().unwrap_or_default();
        let found = json::attributes_of(keys, [names.partition.as_str(), sort]).map_err(bad)?;
        let (partition, sort) = keys_of(names, found)?;
        let partition = partition.bytes();
        if user.is_some_and(|user| holds(user, "dynamodb.amazonaws.com")) {
            return Ok(Read { partition, sort, what: What::Expired });
        }
        let second = time.and_then(second).ok_or(Unreadable::NoTime)?;
        let (before, after) = (image(old)?, image(new)?);
        let sized = before.is_some() || after.is_some();
        let write = Write { second, before: before.unwrap_or(0), after: after.unwrap_or(0), sized };
        Ok(Read { partition, sort, what: What::Write(write, event) })
    }

    fn add(&mut self, read: &Read<'_>, audit: &mut Audit) -> u64 {
        let sort = read.sort.as_ref().map(KeyText::borrowed);
        match read.what {
            What::Item(bytes) => audit.add(&read.partition, sort, bytes),
            What::Write(write, event) => {
                self.without_images += u64::from(!write.sized);
                if let Some(streamed) = &mut self.streamed {
                    streamed.add(&read.partition, sort, write.second, event);
                }
                audit.add_write(&read.partition, sort, write);
            }
            What::Expired => {
                self.expired += 1;
                return 0;
            }
        }
        1
    }
}

/// What the name of an event says.
fn event_of(name: Option<&[u8]>) -> Event {
    match name {
        Some(b"\"INSERT\"") => Event::Insert,
        Some(b"\"REMOVE\"") => Event::Remove,
        _ => Event::Modify,
    }
}

/// Whether the value of a member `Item` is an item, and not the value of an attribute of that name.
fn is_item(raw: &[u8]) -> bool {
    let value = raw.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    let Some(value) = value else { return false };
    if value.starts_with(b"}") {
        return true;
    }
    // `{"S":"a"}` is a value, `{"pk":{"S":"a"}}` an item. An attribute may be named S, but is an
    // object then.
    let Ok(Some((_, first))) = json::first_member(raw) else { return false };
    first.starts_with(b"{")
}

/// The size of an image, where there is one.
fn image(raw: Option<&[u8]>) -> Result<Option<usize>, Unreadable> {
    let Some(raw) = raw.filter(|raw| *raw != b"null") else { return Ok(None) };
    scan_item(raw, []).map(|found| Some(found.bytes)).map_err(|Malformed| Unreadable::NoItem)
}

fn holds(raw: &[u8], text: &str) -> bool {
    memchr::memmem::find(raw, text.as_bytes()).is_some()
}

/// The second of a record: a number of seconds, milliseconds or microseconds, as a function, a
/// stream or Kinesis has it, or ISO-8601 text.
#[allow(clippy::cast_possible_truncation, reason = "in range")]
fn second(raw: &[u8]) -> Option<i64> {
    if raw.starts_with(b"\"") {
        let text = json::string(raw).ok()?;
        return stamp::find(&text).filter(|stamp| stamp.window == 1).map(|stamp| stamp.second);
    }
    let number: f64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    let seconds = match number {
        0.0..1e11 => number,
        1e11..1e14 => number / 1e3,
        1e14..1e17 => number / 1e6,
        _ => return None,
    };
    Some(seconds as i64)
}

#[cfg(test)]
mod tests;
