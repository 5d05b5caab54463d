//! Rules: what the operator asks for. Which keys of which tables are spread, and how.
//!
//! A rule is a wish; the registry says how stored data is really laid out. Here a wish is read, checked for sense, put into
//! words, and turned into the layouts that a given table would have.

mod file;
mod index;
mod read;

use std::fmt;

use heatsink_dynamo::{KeyType, TableSchema};
pub use heatsink_layout::Glob;
use heatsink_layout::{By, Consistency, KeyLayout, Layout, Reads, Strategy, TableLayouts};

pub use file::{MAX_SHARDS, json_schema};
pub use heatsink_fault::Fault as RulesError;

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
    /// The global index whose partition key it is for; `None` for the table's own.
    pub index: Option<String>,
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
    /// Its items are spread.
    Sharded {
        /// How.
        layout: Layout,
        /// The attribute whose part decides the shard, which must be the sort key.
        part_of: Option<String>,
    },
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
            let rule = read::rule(at + 1, raw, &fault)?;
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
            rule.index.is_none()
                && rule.table.matches(schema.name.as_bytes())
                && rule.keys.matches(key)
                && rule.fits(schema).is_ok()
        };
        self.rules.iter().find(applies).map_or_else(Reads::default, |rule| rule.reads)
    }

    /// The rules that name a table, by their numbers; with the reason where a rule does not fit it.
    pub fn naming(&self, schema: &TableSchema) -> impl Iterator<Item = (usize, Result<(), String>)> {
        let named = self.rules.iter().filter(|rule| rule.table.matches(schema.name.as_bytes()));
        named.map(|rule| (rule.number, rule.fits(schema)))
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
            let layout = match index::of(rule, schema) {
                None => KeyLayout::new(rule.keys.clone(), rule.layout()),
                Some(index) => KeyLayout::of_index(index, rule.keys.clone(), rule.layout()),
            };
            let same = |earlier: &&KeyLayout| earlier.attribute() == layout.attribute();
            if !layouts.iter().filter(same).any(|earlier| earlier.keys().covers(&rule.keys)) {
                layouts.push(layout);
            }
        }
        // The table's own first: what is on record does not depend on how the two are mixed.
        layouts.sort_by_key(|one| one.index().is_some());
        // Keys that nothing names stay whole, so a last rule that leaves keys whole says nothing.
        let own = layouts.iter().take_while(|one| one.index().is_none());
        let own: Vec<bool> = own.map(|one| one.layout().strategy == Strategy::None).collect();
        let silent = own.iter().rev().take_while(|whole| **whole).count();
        layouts.drain(own.len() - silent..own.len());
        let by_hand = |one: &KeyLayout| one.layout().template().is_some();
        let own = |one: &KeyLayout| {
            !by_hand(one) && one.index().is_none() && one.layout().strategy != Strategy::None
        };
        if layouts.iter().any(by_hand) && layouts.iter().any(own) {
            return Wish::Impossible(format!(
                "the rules cannot hold for table {}: some shard by a template and some by Heatsink's own suffixes, and the keys of the \
                 one could be read as the other's. Give all of them templates, such as template = \"{{pk}}#{{shard}}\", or none",
                schema.name
            ));
        }
        if layouts.iter().any(|one| one.layout().counted().is_some())
            && let Some(index) = layouts.iter().find_map(KeyLayout::index)
        {
            return Wish::Impossible(format!(
                "the rules cannot hold for table {}: some of its keys hold counters, and the keys of index {} are spread. Keep counters in \
                 a table of their own",
                schema.name, index.name
            ));
        }
        match (layouts.is_empty(), applied) {
            (false, _) => Wish::Sharded(TableLayouts::new(layouts)),
            (true, true) => Wish::Whole,
            (true, false) => Wish::Unmentioned { skipped },
        }
    }
}

impl Rule {
    /// The layout it gives to a key that it matches.
    pub fn layout(&self) -> Layout {
        match &self.spread {
            Spread::Whole => Layout::none(),
            Spread::Sharded { layout, .. } => layout.clone(),
        }
    }

    /// Whether the rule can hold for a table, or why not.
    fn fits(&self, schema: &TableSchema) -> Result<(), String> {
        let Spread::Sharded { layout, part_of } = &self.spread else { return Ok(()) };
        if let Some(index) = &self.index {
            return index::fits(index, schema);
        }
        let partition = &schema.key.partition;
        if partition.key_type == KeyType::N {
            return Err(format!(
                "its partition key {} is a number, and a number has no room for a shard",
                partition.name
            ));
        }
        if let Some(attributes) = layout.counted() {
            return counter_fits(attributes, schema);
        }
        let Some(sort) = &schema.key.sort else {
            return Err("it has no sort key, so every key holds one item and there is nothing to spread; a table with a sort key can \
                        hold that item's parts as several items"
                .to_owned());
        };
        if let Some(attribute) = part_of {
            if *attribute != sort.name {
                return Err(format!(
                    "`by` names the attribute {attribute}, but the table's sort key is {}; an attribute outside the primary key \
                     cannot decide: a request by primary key could not be routed. Where other code took the shard from it, strategy = \"template\" with \
                     hash = \"random\" finds items in any shard",
                    sort.name
                ));
            }
            if sort.key_type != KeyType::S {
                return Err(format!(
                    "`by` takes a part of the sort key {}, which is not a string",
                    sort.name
                ));
            }
        }
        if let Some(name) = layout.attribute().filter(|name| schema.key.has(name)) {
            return Err(format!(
                "`by` declares {name} immutable, but it is a key attribute: by = \"sort_key\" takes the sort key"
            ));
        }
        if let Some(time) = layout.time() {
            if sort.key_type == KeyType::B {
                return Err(format!(
                    "the bucket comes from the time in the sort key, and {} is binary",
                    sort.name
                ));
            }
            if sort.key_type == KeyType::N && !time.prefix.is_empty() {
                return Err(format!("`time.prefix` is for string sort keys, and {} is a number", sort.name));
            }
        }
        Ok(())
    }

    /// Whether every key that `later` matches is taken by this rule already. A glob passes over tables that it does not fit, so
    /// it takes them for sure only where it fits whatever `later` fits.
    fn leaves_nothing_to(&self, later: &Rule) -> bool {
        let fits_alike = match (&self.spread, &later.spread) {
            (Spread::Whole, _) => true,
            (Spread::Sharded { layout, part_of: None }, Spread::Sharded { layout: theirs, .. })
                if layout.time().is_none()
                    && layout.attribute().is_none()
                    && layout.counted().is_none()
                    && theirs.counted().is_none() =>
            {
                true
            }
            (
                Spread::Sharded { layout: mine, part_of: a },
                Spread::Sharded { layout: theirs, part_of: b },
            ) => {
                let like = |layout: &Layout| {
                    let counted = layout.counted().map(<[String]>::to_vec);
                    (layout.time().cloned(), layout.attribute().map(str::to_owned), counted)
                };
                self.table.is_exact() || a == b && like(mine) == like(theirs)
            }
            _ => self.table.is_exact(),
        };
        self.index == later.index
            && fits_alike
            && self.table.covers(&later.table)
            && self.keys.covers(&later.keys)
    }
}

/// Whether a table can have counters of those attributes, or why not.
fn counter_fits(attributes: &[String], schema: &TableSchema) -> Result<(), String> {
    if let Some(name) = attributes.iter().find(|name| schema.key.has(name)) {
        return Err(format!("{name} is a key attribute, and a key cannot be added to"));
    }
    let single = schema.indexes.iter().map(|index| (&index.name, index.key.names().collect()));
    let composite = schema.composite_indexes.iter().map(|index| (&index.name, index.names().collect()));
    for (index, key) in single.chain(composite) {
        let key: Vec<&str> = key;
        if let Some(name) = attributes.iter().find(|name| key.contains(&name.as_str())) {
            return Err(format!(
                "{name} is a key of the index {index}, which would hold the parts of each counter and not their sum; leave {name} out of \
                 `attributes`, or drop the index"
            ));
        }
        if key.iter().all(|name| schema.key.has(name)) {
            return Err(format!(
                "the index {index} is made of the table's own key attributes, so it would hold every counter once for each shard; drop \
                 the index, or give it a key that only whole items have"
            ));
        }
    }
    Ok(())
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
        let Spread::Sharded { layout, part_of } = &self.spread else { return f.write_str("not spread") };
        if let Some(index) = &self.index {
            return write!(
                f,
                "as values of the partition key of index {index}: spread over {} by a hash of the primary key",
                layout.shards
            );
        }
        match (&layout.strategy, part_of) {
            (Strategy::Calculated { by: By::Part { separator, part } }, Some(attribute)) => write!(
                f,
                "spread over {} by a hash of part {part} of the sort key {attribute}, split at {separator:?}",
                layout.shards
            ),
            (Strategy::Calculated { .. }, _) => {
                write!(f, "spread over {} by a hash of the sort key", layout.shards)
            }
            _ => write!(f, "{layout}"),
        }?;
        // Never in silence: an open Query knows only the buckets that the directory does.
        if layout.template().is_some() && layout.time().is_some() {
            f.write_str(
                "; buckets that other writers begin are seen only by Queries whose range spans at most 8 of them, until Heatsink writes to them",
            )?;
        }
        if self.reads.consistency == Consistency::Strong {
            f.write_str(", seen as they were at one moment")?;
        }
        if self.reads.partial {
            f.write_str("; a Query is answered without shards that cannot be read")?;
        }
        Ok(())
    }
}
