//! The distribution of a workload's partition keys.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Length, Rate, Whole, word_or_table};
use heatsink_config_diagnostics::Fault;

/// Partition keys: one key, or how they are drawn.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum Keys {
    /// Always this one.
    Constant(String),
    /// One of several.
    Drawn(Drawn),
}

word_or_table!(
    Keys,
    "a key, { uniform = … }, { zipf = … }, { rolling = … }, { sequential = … } or { file = … }",
    |word| (!word.is_empty()).then(|| Keys::Constant(word.to_owned())),
    Drawn,
    Keys::Drawn
);

/// How a key is drawn. Keys are named `prefix0`, `prefix1` and so on.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Drawn {
    /// Each as likely as any other.
    Uniform(Uniform),
    /// The k-th most popular in proportion to 1 / k^exponent. Which name is how popular is drawn
    /// from the seed.
    Zipf(Zipf),
    /// One key at a time, the next one after a while.
    Rolling(Rolling),
    /// A sorted load: all items of one key, then all of the next. Needs the workload's `items`.
    Sequential(Zipf),
    /// Keys from a file, one per line; `key,12` is twelve lines.
    File(File),
}

/// How many keys there can be. All are kept in memory.
pub type Count = Whole<10_000_000>;

/// Equally likely keys.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Uniform {
    /// What names start with.
    pub prefix: String,
    /// How many.
    pub keys: Count,
}

/// Keys of unequal popularity.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Zipf {
    /// What names start with.
    pub prefix: String,
    /// How many.
    pub keys: Count,
    /// The exponent. Default: 1.
    pub exponent: Option<Rate>,
}

/// A hot key that moves on.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rolling {
    /// What names start with.
    pub prefix: String,
    /// How many, then the first again.
    pub keys: Count,
    /// How long each is the one.
    pub each: Length,
}

/// Keys from a file.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Its path, from the scenario's folder.
    pub path: String,
    /// As it stands, or shuffled by the seed. From the start again at the end.
    pub order: Order,
}

/// In which order a file is walked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Line by line.
    AsIs,
    /// Shuffled by the seed.
    Shuffled,
}

/// The longest list: its items are kept in memory, four bytes each.
const MAX_ITEMS: u64 = 50_000_000;

/// Reads a file of keys.
pub(crate) fn read_list(file: &str, text: &str) -> Result<Vec<(String, u32)>, Fault> {
    let mut list = Vec::new();
    let mut items = 0_u64;
    for (nth, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
        let (key, times) = match line.rsplit_once(',') {
            None => (line, Some(1)),
            Some((key, times)) => (key, times.trim().parse::<u32>().ok().filter(|times| *times > 0)),
        };
        let fault = |problem: &str| Err(Fault::line(file, nth + 1, problem));
        let Some(times) = times else {
            return fault("expected a key, or a key, a comma and how often it comes");
        };
        if key.is_empty() {
            return fault("the key is empty");
        }
        items += u64::from(times);
        if items > MAX_ITEMS {
            return fault("more than 50 million items");
        }
        list.push((key.to_owned(), times));
    }
    if list.is_empty() {
        return Err(Fault::line(file, 1, "holds no key; expected one per line"));
    }
    Ok(list)
}
