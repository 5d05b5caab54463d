//! `heatsink.toml` as it is written: its fields, their types, their positions. `mod.rs` says what
//! the rules mean.
//!
//! Read with `toml` and serde. `toml_edit` was considered: it keeps comments for writing back,
//! which nothing here does.

use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::automatic;
use super::client_section;
use super::fence::Section;
use super::limits;
use super::numbers::{PartNumber, Shards};
use super::split_at::SplitPoint;
use super::webhook;

/// The rules of a gateway: which keys of which tables are spread, and how.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "heatsink.toml")]
pub(crate) struct File {
    /// The rules, in order: for every key the first that matches holds.
    #[serde(default)]
    #[schemars(with = "Vec<Rule>")]
    pub rule: Vec<Spanned<Rule>>,
    /// Which keys may get shards without being asked for.
    #[serde(default)]
    #[schemars(with = "Vec<automatic::Section>")]
    pub automatic: Vec<Spanned<automatic::Section>>,
    /// Who may send requests. Without any, everyone who reaches the address.
    #[serde(default)]
    #[schemars(with = "Vec<client_section::Section>")]
    pub client: Vec<Spanned<client_section::Section>>,
    /// How the gateways of a store agree on changes of layouts.
    #[schemars(with = "Option<Section>")]
    pub fence: Option<Spanned<Section>>,
    /// How many clients a gateway serves at once. May be changed while it serves.
    #[schemars(with = "Option<limits::Section>")]
    pub limits: Option<Spanned<limits::Section>>,
    /// Who is told what is done about hot keys. May be changed while a gateway serves.
    #[schemars(with = "Option<webhook::Section>")]
    pub webhook: Option<Spanned<webhook::Section>>,
}

/// One rule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rule {
    /// The tables it is for: a name, or a glob in which * is any run of characters and ? is one
    /// character.
    #[schemars(with = "String", length(min = 1))]
    pub table: Spanned<String>,
    /// The logical partition keys it is for, as a glob. Binary keys are matched as raw bytes.
    /// Default: "*".
    #[schemars(with = "Option<String>")]
    pub keys: Option<Spanned<String>>,
    /// A global index: the rule is for its partition key instead of the table's, which is spread by
    /// a hash of the item's primary key. `keys` are then the logical values of that attribute. With
    /// "calculated" only.
    #[schemars(with = "Option<String>")]
    pub index: Option<Spanned<String>>,
    /// "calculated": an item's shard is a hash of its sort key. "random": the same, of the whole
    /// sort key. "bucket": an item lies in the hour, day, week or month of its sort key, within it
    /// as calculated. "range": its shard is the range that its sort key lies in. "counter": numbers that are added to are kept as parts in all shards and
    /// summed when they are read. "template": as the table was sharded by hand. "none": the keys
    /// stay whole.
    pub strategy: StrategyName,
    /// The numbers that are summed: top-level attributes outside all keys. For "counter" only,
    /// which needs it.
    #[schemars(with = "Option<Vec<String>>", length(min = 1))]
    pub attributes: Option<Spanned<Vec<String>>>,
    /// What is hashed: "sort_key" (the default), or one part of a string sort key.
    #[schemars(with = "Option<By>")]
    pub by: Option<Spanned<By>>,
    /// Where one range of the sort key ends and the next one begins, ascending: 1 to 63 sort keys,
    /// of the type that the table's has. For "range" only, which needs it.
    #[schemars(with = "Option<Vec<SplitPoint>>", length(min = 1, max = 63))]
    pub split_at: Option<Spanned<Vec<SplitPoint>>>,
    /// How many physical keys each logical key is spread over; in each bucket, where there are
    /// buckets. Needed but for "none", "range" and "bucket".
    #[schemars(with = "Option<Shards>")]
    pub shards: Option<Spanned<Shards>>,
    /// "shard" (the default): a Query shows each shard as it was when it was read. "strong": it
    /// shows all shards as they were at one moment, for twice the reads. Not recorded: it can be
    /// changed at any time.
    #[schemars(with = "Option<ConsistencyName>")]
    pub consistency: Option<Spanned<ConsistencyName>>,
    /// How long a bucket is, in UTC. For "bucket", and for templates with {bucket}.
    #[schemars(with = "Option<BucketName>")]
    pub bucket: Option<Spanned<BucketName>>,
    /// Where the time stands in the sort key. By default a string begins with it, in ISO-8601, and
    /// a number is in seconds.
    #[schemars(with = "Option<TimePlace>")]
    pub time: Option<Spanned<TimePlace>>,
    /// How physical keys are written: {pk}, and before or behind it {shard} (from 0), {shard+1}
    /// (from 1), {shard:02} (at least two digits), {bucket}, {bucket:%Y%m%d}, and separators.
    #[schemars(with = "Option<String>")]
    pub template: Option<Spanned<String>>,
    /// How the shard is computed from what is hashed; "random" where the code that writes draws it.
    /// For "template" only.
    #[schemars(with = "Option<HashName>")]
    pub hash: Option<Spanned<HashName>>,
    /// Of "md5", "sha1" or "sha256": how many hexadecimal digits from the start of the digest are
    /// taken as a number, or from its end where negative; two digits are a byte. Default: all.
    #[schemars(with = "Option<HexDigits>")]
    pub hex_digits: Option<Spanned<HexDigits>>,
    /// What becomes of a client's key that is written like a physical one, such as `game_x#2` of
    /// code that still shards `game_x` by hand. "accept" (the default of tables that were created
    /// so): it is a logical key of its own. "refuse" (the default of adopted tables): it is
    /// refused. "as_shard": it is the shard that it names. For "template" only. Not recorded: it
    /// can be changed at any time.
    #[schemars(with = "Option<PhysicalKeysName>")]
    pub physical_keys: Option<Spanned<PhysicalKeysName>>,
    /// What becomes of a Query when a shard cannot be read: "fail" (the default), or "partial",
    /// which answers with the other shards and says so in the header x-heatsink-partial.
    #[schemars(with = "Option<OnShardError>")]
    pub on_shard_error: Option<Spanned<OnShardError>>,
    /// Whether writes of an item that come while one of it is under way at this gateway go as one
    /// when it returns. Default: false. Not recorded: it can be changed at any time.
    #[schemars(with = "Option<bool>")]
    pub combine: Option<Spanned<bool>>,
    /// Whether they do also in a table with a stream, which then shows fewer records. Default:
    /// false.
    #[schemars(with = "Option<bool>")]
    pub combine_streams: Option<Spanned<bool>>,
    /// Whether eventually consistent reads that are identical become one while it is under way at
    /// this gateway. Default: false. Not recorded: it can be changed at any time.
    #[schemars(with = "Option<bool>")]
    pub coalesce: Option<Spanned<bool>>,
    /// For so many milliseconds the answer to an eventually consistent read is given again, unless
    /// its key is written to through this gateway; and identical reads become one. Default: not at
    /// all. Not recorded: it can be changed at any time.
    #[schemars(with = "Option<u16>", range(min = 1, max = 10_000))]
    pub cache_max_age_ms: Option<Spanned<u16>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConsistencyName {
    Shard,
    Strong,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StrategyName {
    None,
    Calculated,
    Random,
    Range,
    Bucket,
    Counter,
    Template,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum BucketName {
    Hour,
    Day,
    Week,
    Month,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HashName {
    Jump,
    Md5,
    Sha1,
    Sha256,
    Crc32,
    Fnv1a32,
    Fnv1a64,
    Java,
    JavaAbs,
    JavaMask,
    JavaObjects,
    Modulo,
    Random,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PhysicalKeysName {
    Accept,
    Refuse,
    AsShard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OnShardError {
    Fail,
    Partial,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EpochName {
    Seconds,
    Milliseconds,
}

/// Where the time stands in a sort key.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimePlace {
    /// What stands before the time in a string sort key, such as "ALERT#".
    pub prefix: Option<String>,
    /// The unit of a numeric sort key, which counts from 1970.
    pub epoch: Option<EpochName>,
}

/// What decides an item's shard.
#[derive(Debug, JsonSchema)]
#[serde(untagged)]
pub(crate) enum By {
    /// The whole sort key.
    SortKey(SortKey),
    /// One part of a string sort key.
    Part(Part),
}

#[derive(Debug, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SortKey {
    SortKey,
}

/// One part of a string sort key, split at a separator. A sort key without that part counts as a
/// whole.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Part {
    /// The sort key's attribute name.
    #[schemars(with = "String", length(min = 1))]
    pub attribute: Spanned<String>,
    /// What parts are separated by.
    #[schemars(with = "String", length(min = 1))]
    pub separator: Spanned<String>,
    /// Which part, counted from 0.
    pub part: PartNumber,
}

/// How many hexadecimal digits of a digest are taken.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
pub(crate) struct HexDigits(#[schemars(range(min = -64, max = 64))] pub i8);

/// By hand, because serde's error for an untagged enum names neither the field nor what was
/// expected.
impl<'de> Deserialize<'de> for By {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ByVisitor;

        impl<'de> Visitor<'de> for ByVisitor {
            type Value = By;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("\"sort_key\" or { attribute = \"…\", separator = \"…\", part = 0 }")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<By, E> {
                match text {
                    "sort_key" => Ok(By::SortKey(SortKey::SortKey)),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<By, M::Error> {
                Part::deserialize(MapAccessDeserializer::new(map)).map(By::Part)
            }
        }

        from.deserialize_any(ByVisitor)
    }
}

/// The published JSON schema of `heatsink.toml`, for editors and checkers.
pub fn json_schema() -> String {
    let schema = schemars::schema_for!(File);
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
