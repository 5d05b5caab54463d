//! Rules: what the operator asks for. Which keys of which tables are spread, and how.
//!
//! A rule is a wish; the registry says how stored data is really laid out. Here a wish is read, checked for sense, put into
//! words, and turned into the layouts that a given table would have.

mod error;
mod file;

use std::fmt;

use heatsink_dynamo::{KeyType, TableSchema};
pub use heatsink_layout::Glob;
use heatsink_layout::{By, Consistency, Hash, KeyLayout, Layout, Reads, Strategy, TableLayouts};

pub use error::RulesError;
pub use file::{MAX_SHARDS, json_schema};

/// The rules of one gateway, checked. For every key of a table the first rule that matches holds.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its number in the file, counted from 1.
    pub number: usize,
    /// The line it starts on, counted from 1.
    pub line: usize,
    /// The tables it is for.
    pub table: Glob,
    /// The logical keys it is for.
    pub keys: Glob,
    /// What it does with them.
    pub spread: Spread,
    /// How Queries over their shards are gathered.
    pub reads: Reads,
}

/// What a rule does with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Spread {
    /// The key stays whole.
    Whole,
    /// Its items are spread over `shards` physical keys, by a hash of the sort key or of one part of it.
    Calculated {
        /// The part; `None` for the whole sort key.
        part: Option<Part>,
        /// From 1 to [`MAX_SHARDS`].
        shards: u16,
    },
}

/// One part of a string sort key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The sort key's attribute name.
    pub attribute: String,
    /// What parts are separated by; not empty.
    pub separator: String,
    /// Which part, counted from 0.
    pub part: u16,
}

/// What the rules say of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// No rule applies. `skipped` says of each glob rule that names the table why it does not fit it.
    Unmentioned {
        /// Reasons, one per rule left aside.
        skipped: Vec<String>,
    },
    /// Rules apply, and all of them leave its keys whole.
    Whole,
    /// These layouts.
    Sharded(TableLayouts),
    /// A rule that names exactly this table cannot hold for it: the reason.
    Impossible(String),
}

impl Rules {
    /// Reads a rules file. `file` is its name, for messages.
    ///
    /// # Errors
    /// The first fault found: not TOML, a field that is unknown, missing or of the wrong kind, a value out of bounds, or a rule that
    /// an earlier one leaves nothing to match.
    pub fn read(file: &str, text: &str) -> Result<Self, RulesError> {
        let raw: file::File = toml::from_str(text).map_err(|error| RulesError::read(file, text, &error))?;
        let mut rules: Vec<Rule> = Vec::with_capacity(raw.rule.len());
        for (at, raw) in raw.rule.into_iter().enumerate() {
            // A rule's own span reaches from its [[rule]] heading, so its end may lie in front of its fields.
            let heading = raw.span().start..raw.span().start;
            let fault = |span, problem: String| RulesError::at(file, text, span, problem);
            let rule = check(at + 1, raw, &fault)?;
            let line = RulesError::at(file, text, heading.clone(), "").line;
            let rule = Rule { line, ..rule };
            if let Some(earlier) = rules.iter().find(|earlier| earlier.leaves_nothing_to(&rule)) {
                let problem = format!(
                    "rule {} can never match: rule {} (line {}) comes first and already takes {} of {}; put the narrower rule first, or remove one",
                    rule.number,
                    earlier.number,
                    earlier.line,
                    Keys(&earlier.keys),
                    Tables(&earlier.table),
                );
                return Err(RulesError {
                    field: Some(format!("rule[{}]", rule.number)),
                    ..fault(heading, problem)
                });
            }
            rules.push(rule);
        }
        Ok(Rules { rules })
    }

    /// The rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// How reads of a logical key are gathered.
    pub fn reads(&self, schema: &TableSchema, key: &[u8]) -> Reads {
        let applies = |rule: &&Rule| {
            rule.table.matches(schema.name.as_bytes()) && rule.keys.matches(key) && rule.fits(schema).is_ok()
        };
        self.rules.iter().find(applies).map_or_else(Reads::default, |rule| rule.reads)
    }

    /// What the rules say of a table.
    pub fn wish(&self, schema: &TableSchema) -> Wish {
        let mut layouts: Vec<KeyLayout> = Vec::new();
        let mut skipped = Vec::new();
        let mut applied = false;
        for rule in self.rules.iter().filter(|rule| rule.table.matches(schema.name.as_bytes())) {
            if let Err(reason) = rule.fits(schema) {
                if rule.table.is_exact() {
                    return Wish::Impossible(format!(
                        "rule {} (line {}) cannot hold for table {}: {reason}",
                        rule.number, rule.line, schema.name
                    ));
                }
                skipped.push(format!(
                    "rule {} (line {}) leaves table {} alone: {reason}",
                    rule.number, rule.line, schema.name
                ));
                continue;
            }
            applied = true;
            if !layouts.iter().any(|earlier| earlier.keys().covers(&rule.keys)) {
                layouts.push(KeyLayout::new(rule.keys.clone(), rule.layout()));
            }
        }
        // Keys that nothing names stay whole, so a last rule that leaves keys whole says nothing.
        while layouts.last().is_some_and(|last| last.layout().strategy == Strategy::None) {
            layouts.pop();
        }
        match (layouts.is_empty(), applied) {
            (false, _) => Wish::Sharded(TableLayouts::new(layouts)),
            (true, true) => Wish::Whole,
            (true, false) => Wish::Unmentioned { skipped },
        }
    }
}

fn check(
    number: usize,
    raw: toml::Spanned<file::Rule>,
    fault: &dyn Fn(std::ops::Range<usize>, String) -> RulesError,
) -> Result<Rule, RulesError> {
    let heading = raw.span().start..raw.span().start;
    let raw = raw.into_inner();
    if let Some(wrong) =
        raw.table.get_ref().chars().find(|c| !(c.is_ascii_alphanumeric() || "_.-*?".contains(*c)))
    {
        let problem =
            format!("table names hold a-z, A-Z, 0-9, _ . - only, and globs * and ? besides; found {wrong:?}");
        return Err(fault(raw.table.span(), problem));
    }
    if raw.table.get_ref().is_empty() {
        return Err(fault(
            raw.table.span(),
            "expected a table's name or a glob, found an empty text".to_owned(),
        ));
    }
    if raw.keys.as_ref().is_some_and(|keys| keys.get_ref().is_empty()) {
        let span = raw.keys.as_ref().map_or(heading.clone(), toml::Spanned::span);
        return Err(fault(span, "expected a glob, found an empty text, which no key can be".to_owned()));
    }
    let consistency = match raw.consistency.as_ref().map(toml::Spanned::as_ref) {
        None | Some(file::ConsistencyName::Shard) => Consistency::Shard,
        Some(file::ConsistencyName::Strong) => Consistency::Strong,
    };
    let spread = match raw.strategy {
        file::StrategyName::None => {
            let meaningless = raw
                .by
                .as_ref()
                .map(toml::Spanned::span)
                .or(raw.shards.as_ref().map(toml::Spanned::span))
                .or(raw.consistency.as_ref().map(toml::Spanned::span));
            if let Some(span) = meaningless {
                return Err(fault(
                    span,
                    "has no meaning with strategy = \"none\", which leaves keys whole; remove it".to_owned(),
                ));
            }
            Spread::Whole
        }
        file::StrategyName::Calculated => {
            let Some(shards) = raw.shards else {
                let problem = format!(
                    "strategy = \"calculated\" needs the field `shards`: a whole number from 1 to {MAX_SHARDS}"
                );
                return Err(RulesError { field: Some(format!("rule[{number}]")), ..fault(heading, problem) });
            };
            let part = match raw.by.map(toml::Spanned::into_inner) {
                None | Some(file::By::SortKey(_)) => None,
                Some(file::By::Part(part)) => {
                    for text in [&part.attribute, &part.separator] {
                        if text.get_ref().is_empty() {
                            return Err(fault(
                                text.span(),
                                "expected at least one character, found an empty text".to_owned(),
                            ));
                        }
                    }
                    Some(Part {
                        attribute: part.attribute.into_inner(),
                        separator: part.separator.into_inner(),
                        part: part.part.0,
                    })
                }
            };
            Spread::Calculated { part, shards: shards.into_inner().0 }
        }
    };
    let keys = Glob::new(raw.keys.as_ref().map_or("*", |keys| keys.get_ref()));
    let reads = Reads { consistency };
    Ok(Rule { number, line: 0, table: Glob::new(raw.table.get_ref()), keys, spread, reads })
}

impl Rule {
    /// The layout it gives to a key that it matches.
    pub fn layout(&self) -> Layout {
        match &self.spread {
            Spread::Whole => Layout::none(),
            Spread::Calculated { part, shards } => {
                let by = match part {
                    None => By::SortKey,
                    Some(part) => {
                        By::Part { separator: part.separator.clone(), part: usize::from(part.part) }
                    }
                };
                Layout {
                    strategy: Strategy::Calculated { by },
                    shards: *shards,
                    hash: Hash::JumpXxh3,
                    version: 1,
                }
            }
        }
    }

    /// Whether the rule can hold for a table, or why not.
    fn fits(&self, schema: &TableSchema) -> Result<(), String> {
        let Spread::Calculated { part, .. } = &self.spread else { return Ok(()) };
        let partition = &schema.key.partition;
        if partition.key_type == KeyType::N {
            return Err(format!(
                "its partition key {} is a number, and a number has no room for a shard",
                partition.name
            ));
        }
        let Some(sort) = &schema.key.sort else {
            return Err(
                "it has no sort key, so every key holds one item and there is nothing to spread".to_owned()
            );
        };
        let Some(part) = part else { return Ok(()) };
        if part.attribute != sort.name {
            return Err(format!(
                "`by` names the attribute {}, but the table's sort key is {}",
                part.attribute, sort.name
            ));
        }
        if sort.key_type != KeyType::S {
            return Err(format!("`by` takes a part of the sort key {}, which is not a string", sort.name));
        }
        Ok(())
    }

    /// Whether every key that `later` matches is taken by this rule already. A glob passes over tables that it does not fit, so
    /// it takes them for sure only where it fits whatever `later` fits.
    fn leaves_nothing_to(&self, later: &Rule) -> bool {
        let fits_alike = match (&self.spread, &later.spread) {
            (Spread::Whole, _) | (Spread::Calculated { part: None, .. }, Spread::Calculated { .. }) => true,
            (Spread::Calculated { part: Some(mine), .. }, Spread::Calculated { part: Some(theirs), .. }) => {
                mine.attribute == theirs.attribute
            }
            _ => self.table.is_exact(),
        };
        fits_alike && self.table.covers(&later.table) && self.keys.covers(&later.keys)
    }
}

struct Keys<'a>(&'a Glob);
struct Tables<'a>(&'a Glob);

impl fmt::Display for Keys<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            glob if glob.is_any() => f.write_str("all keys"),
            glob if glob.is_exact() => write!(f, "the key {:?}", glob.text()),
            glob => write!(f, "the keys like {:?}", glob.text()),
        }
    }
}

impl fmt::Display for Tables<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            glob if glob.is_any() => f.write_str("every table with a sort key"),
            glob if glob.is_exact() => write!(f, "table {}", glob.text()),
            glob => write!(f, "the tables like {:?}", glob.text()),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "rule {} (line {}): {} of {}: ",
            self.number,
            self.line,
            Keys(&self.keys),
            Tables(&self.table)
        )?;
        match &self.spread {
            Spread::Whole => f.write_str("not spread")?,
            Spread::Calculated { part: None, shards } => {
                write!(f, "spread over {shards} by a hash of the sort key")?;
            }
            Spread::Calculated { part: Some(part), shards } => write!(
                f,
                "spread over {shards} by a hash of part {} of the sort key {}, split at {:?}",
                part.part, part.attribute, part.separator
            )?,
        }
        match self.reads.consistency {
            Consistency::Shard => Ok(()),
            Consistency::Strong => f.write_str(", seen as they were at one moment"),
        }
    }
}
