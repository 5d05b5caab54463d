//! The lines of a trace. Members that have their usual value are left out.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// The version of the form that this build writes, and the newest that it reads.
pub const VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line<'a> {
    /// The first one.
    Trace(Header),
    /// What is known of a table, before the first access to it.
    Table(Table<'a>),
    /// One item, page or statement of a request.
    Access(Access<'a>),
    /// The last one.
    End(End),
}

impl Line<'_> {
    /// Appends the line and its end.
    pub fn write(&self, out: &mut Vec<u8>) {
        let before = out.len();
        match serde_json::to_writer(&mut *out, self) {
            Ok(()) => out.push(b'\n'),
            // Strings and numbers are always written; half a line would spoil the rest.
            Err(_) => out.truncate(before),
        }
    }
}

/// What a trace is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// The version of the form.
    pub version: u32,
    /// Whether keys and sort keys are hashes with a secret that is not kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub hashed: bool,
    /// When it began: milliseconds since 1970-01-01T00:00:00Z.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unix_millis: u64,
}

impl Header {
    /// A moment of the trace, so many microseconds after its begin, in microseconds since
    /// 1970-01-01T00:00:00Z.
    pub fn micros(&self, us: u64) -> u64 {
        self.unix_millis.saturating_mul(1_000).saturating_add(us)
    }

    /// The second since 1970-01-01T00:00:00Z of that moment.
    pub fn second(&self, us: u64) -> i64 {
        i64::try_from(self.micros(us) / 1_000_000).unwrap_or(i64::MAX)
    }
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// Whether it has a sort key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sort_key: bool,
    /// Whether it has a local index.
    #[serde(default, skip_serializing_if = "is_default")]
    pub local_index: bool,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Writes a whole item.
    Put,
    /// Writes an item by its key: updates, deletes, checks.
    Update,
    /// Reads an item by its key.
    Get,
    /// Reads a page of one key.
    Query,
    /// Reads a page of the table or index.
    Scan,
}

/// One item, page or statement of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Access<'a> {
    /// Microseconds since the start, when it was answered.
    pub us: u64,
    /// The table.
    pub table: Cow<'a, str>,
    /// The global index that is read, or that a write reaches.
    #[serde(default, skip_serializing_if = "is_default")]
    pub index: Option<Cow<'a, str>>,
    /// What it does.
    pub op: Operation,
    /// The partition key, or its hash; none of a Scan, and where it is not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub key: Option<Cow<'a, str>>,
    /// The sort key of a write in the order of sort keys (numbers as sixteen hexadecimal digits),
    /// or its hash.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sort: Option<Cow<'a, str>>,
    /// Of a hashed sort key: it is above all of its partition key before it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub grows: bool,
    /// What tells a read from others of its key: equal ones ask for the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub page: Option<Cow<'a, str>>,
    /// Thousandths of the capacity units that it takes.
    pub units: u64,
    /// Bytes of the item, or of the page; 0 where they are not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bytes: u64,
    /// Items that a page is made of; 0 where they are not known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub items: u32,
    /// Whether it is a strongly consistent read.
    #[serde(default, skip_serializing_if = "is_default")]
    pub strong: bool,
    /// Whether it was throttled.
    #[serde(default, skip_serializing_if = "is_default")]
    pub throttled: bool,
    /// How many accesses it stands for: n where one request in n is recorded.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
}

/// How a trace ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// Microseconds since the start.
    pub us: u64,
    /// Accesses that are recorded.
    pub recorded: u64,
    /// Accesses that were drawn and left out, because the file was written too slowly.
    pub dropped: u64,
    /// Why it ends.
    pub because: Ended,
}

/// Why a trace ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The gateway stopped.
    Stopped,
    /// The file was as large as it may become.
    Limit,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
const fn is_one(weight: &u32) -> bool {
    *weight == 1
}
