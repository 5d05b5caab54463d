//! Rules: which keys of which tables the operator wants spread, and how.
//!
//! A rule says what the operator wants; the registry says how stored data is laid out. This module reads rules, checks them, displays them, and
//! computes the layouts that a given table would have.

mod display;
mod fault;
mod fence;
mod file;
mod find;
mod fits;
mod hash;
mod index;
mod read;

use heatsink_dynamo::TableSchema;
use heatsink_fence::Bounds;
pub use heatsink_layout::Glob;
use heatsink_layout::{KeyLayout, Layout, PhysicalKeys, Reads, Strategy, TableLayouts};

use crate::registry::REGISTRY;
use display::{Keys, Tables};
use find::{ByGlob, Finder, Sought};
use fits::Unfit;

pub use file::{MAX_SHARDS, json_schema};
pub use heatsink_config_diagnostics::Fault as RulesError;

/// The rules of one gateway, checked. For every key of a table the first rule that matches holds.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// Which of them can name a table and a key.
    finder: Finder,
    fence: FenceSettings,
}

/// How the gateways of a store agree on changes of layouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceSettings {
    /// The name of the registry's table.
    pub registry: String,
    /// How long things may take.
    pub bounds: Bounds,
}

impl Default for FenceSettings {
    fn default() -> Self {
        FenceSettings { registry: REGISTRY.to_owned(), bounds: Bounds::DEFAULT }
    }
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
    /// What becomes of clients' keys that are written like physical ones.
    pub physical_keys: PhysicalKeys,
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
pub enum DesiredLayout {
    /// No rule applies. `skipped` says of each glob rule that names the table why it does not fit it.
    Unmentioned {
        /// Reasons, one per rule left aside.
        skipped: Vec<String>,
    },
    /// Rules apply, and all of them leave its keys whole.
    Unsharded,
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
        let mut finder = Finder::default();
        let breaks: Vec<usize> =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        for (at, raw) in raw.rule.into_iter().enumerate() {
            // A rule's own span reaches from its [[rule]] heading, so its end may lie in front of its fields.
            let heading = raw.span().start..raw.span().start;
            let fault = |span, problem: String| RulesError::at(file, text, span, problem);
            let rule = read::rule(at + 1, raw, &fault)?;
            let rule = Rule { line: 1 + breaks.partition_point(|at| *at < heading.start), ..rule };
            let mut before = finder.before(&rule).into_iter().filter_map(|at| rules.get(at));
            if let Some(earlier) = before.find(|earlier| earlier.leaves_nothing_to(&rule)) {
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
            finder.add(&rule, at);
            rules.push(rule);
        }
        let fault = |span, problem: String| RulesError::at(file, text, span, problem);
        let fence = fence::settings(raw.fence, &fault)?;
        Ok(Rules { rules, finder, fence })
    }

    /// The rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The same file without its rules: how the gateways agree, and nothing to agree on.
    #[must_use]
    pub fn without_rules(self) -> Self {
        Rules { fence: self.fence, ..Rules::default() }
    }

    /// How the gateways agree on changes.
    pub fn fence(&self) -> &FenceSettings {
        &self.fence
    }

    /// How reads of a logical key are gathered.
    pub fn reads(&self, schema: &TableSchema, key: &[u8]) -> Reads {
        let applies = |rule: &&Rule| {
            rule.index.is_none()
                && rule.table.matches(schema.name.as_bytes())
                && rule.keys.matches(key)
                && rule.fits(schema).is_ok()
        };
        let named = self.finder.named(schema.name.as_bytes(), key);
        let mut rules = named.into_iter().filter_map(|at| self.rules.get(at));
        rules.find(applies).map_or_else(Reads::default, |rule| rule.reads)
    }

    /// The rules that name a table, by their numbers; with the reason where a rule does not fit it.
    pub fn naming(&self, schema: &TableSchema) -> impl Iterator<Item = (usize, Result<(), String>)> {
        let named =
            self.finder.of_table(schema.name.as_bytes()).into_iter().filter_map(|at| self.rules.get(at));
        let named = named.filter(|rule| rule.table.matches(schema.name.as_bytes()));
        named.map(|rule| (rule.number, rule.fits(schema).map_err(|unfit| unfit.reason().to_owned())))
    }

    /// What becomes of clients' keys that are written like physical ones, for each layout that a table has on record.
    pub fn physical_keys(&self, table: &str, recorded: &TableLayouts) -> Vec<PhysicalKeys> {
        let named = self.finder.of_table(table.as_bytes());
        let of = |one: &KeyLayout| {
            let mut rules = named.iter().filter_map(|at| self.rules.get(*at));
            let same = |rule: &&Rule| {
                rule.index.is_none() && rule.keys == *one.keys() && rule.table.matches(table.as_bytes())
            };
            rules.find(same).map_or_else(PhysicalKeys::default, |rule| rule.physical_keys)
        };
        recorded.iter().map(of).collect()
    }

    /// What the rules say of a table that is not on record.
    pub fn desired_layout(&self, schema: &TableSchema) -> DesiredLayout {
        self.desired_layout_with(schema, None, &mut Vec::new())
    }

    /// What the rules say of a table that is on record, and warnings. What was recorded while its indexes were others goes on to
    /// hold: an index that a rule names may be gone by now, and one may stand in the way that was not there.
    pub fn desired_layout_recorded(
        &self,
        schema: &TableSchema,
        recorded: &TableLayouts,
    ) -> (DesiredLayout, Vec<String>) {
        let mut warnings = Vec::new();
        let desired = self.desired_layout_with(schema, Some(recorded), &mut warnings);
        (desired, warnings)
    }

    fn desired_layout_with(
        &self,
        schema: &TableSchema,
        recorded: Option<&TableLayouts>,
        warnings: &mut Vec<String>,
    ) -> DesiredLayout {
        let mut chosen = Chosen::default();
        let mut skipped = Vec::new();
        let mut applied = false;
        for at in self.finder.of_table(schema.name.as_bytes()) {
            let Some(rule) = self.rules.get(at).filter(|rule| rule.table.matches(schema.name.as_bytes()))
            else {
                continue;
            };
            let says = |what: &str, reason: &str| {
                format!("rule {} (line {}) {what} table {}: {reason}", rule.number, rule.line, schema.name)
            };
            let layout = match rule.fits(schema) {
                Ok(()) => match index::of(rule, schema) {
                    None => Some(KeyLayout::new(rule.keys.clone(), rule.layout())),
                    Some(index) => Some(KeyLayout::of_index(index, rule.keys.clone(), rule.layout())),
                },
                Err(unfit) => match (&unfit, recorded.map(|recorded| rule.held(recorded))) {
                    (Unfit::Indexes(reason), Some(Some(held))) => {
                        let why = format!("{reason}. What is on record goes on to hold");
                        warnings.push(says("could not be put on record any more for", &why));
                        Some(held)
                    }
                    (Unfit::Indexes(reason), Some(None)) if rule.index.is_some() => {
                        warnings.push(says("is left aside for", reason));
                        None
                    }
                    _ if rule.table.is_exact() => {
                        return DesiredLayout::Impossible(says("cannot hold for", unfit.reason()));
                    }
                    _ => {
                        skipped.push(format!(
                            "rule {} (line {}) leaves table {} alone: {}",
                            rule.number,
                            rule.line,
                            schema.name,
                            unfit.reason()
                        ));
                        None
                    }
                },
            };
            let Some(layout) = layout else { continue };
            applied = true;
            chosen.add(layout);
        }
        let mut layouts = chosen.layouts;
        // The table's own first: what is on record does not depend on how the two are mixed.
        layouts.sort_by_key(|one| one.index().is_some());
        // Keys that nothing names stay whole, so a last rule that leaves keys whole says nothing.
        let own = layouts.iter().take_while(|one| one.index().is_none());
        let own: Vec<bool> = own.map(|one| one.layout().strategy == Strategy::None).collect();
        let silent = own.iter().rev().take_while(|whole| **whole).count();
        layouts.drain(own.len() - silent..own.len());
        if let Some(reason) = clash(&layouts, &schema.name) {
            return DesiredLayout::Impossible(reason);
        }
        match (layouts.is_empty(), applied) {
            (false, _) => DesiredLayout::Sharded(TableLayouts::new(layouts)),
            (true, true) => DesiredLayout::Unsharded,
            (true, false) => DesiredLayout::Unmentioned { skipped },
        }
    }
}

/// The layouts of a table so far: what an earlier one takes whole is not repeated.
#[derive(Default)]
struct Chosen {
    layouts: Vec<KeyLayout>,
    /// By their keys.
    found: ByGlob<Vec<usize>>,
}

impl Chosen {
    fn add(&mut self, layout: KeyLayout) {
        let covers = |at: &usize| {
            self.layouts.get(*at).is_some_and(|earlier| {
                earlier.attribute() == layout.attribute() && earlier.keys().covers(layout.keys())
            })
        };
        if !self.found.of(&Sought::covered(layout.keys())).flatten().any(covers) {
            self.found.take(layout.keys()).push(self.layouts.len());
            self.layouts.push(layout);
        }
    }
}

/// Why layouts cannot be those of one table.
fn clash(layouts: &[KeyLayout], table: &str) -> Option<String> {
    let by_hand = |one: &KeyLayout| one.layout().template().is_some();
    let own =
        |one: &KeyLayout| !by_hand(one) && one.index().is_none() && one.layout().strategy != Strategy::None;
    if layouts.iter().any(by_hand) && layouts.iter().any(own) {
        return Some(format!(
            "the rules cannot hold for table {table}: some shard by a template and some by Heatsink's own suffixes, and the keys of the \
             one could be read as the other's. Give all of them templates, such as template = \"{{pk}}#{{shard}}\", or none"
        ));
    }
    if layouts.iter().any(|one| one.layout().counted().is_some())
        && let Some(index) = layouts.iter().find_map(KeyLayout::index)
    {
        return Some(format!(
            "the rules cannot hold for table {table}: some of its keys hold counters, and the keys of index {} are spread. Keep counters in \
             a table of their own",
            index.name
        ));
    }
    None
}

impl Rule {
    /// The layout it gives to a key that it matches.
    pub fn layout(&self) -> Layout {
        match &self.spread {
            Spread::Whole => Layout::none(),
            Spread::Sharded { layout, .. } => layout.clone(),
        }
    }

    /// This rule's layout for a table whose record has one for the same index, or for the same counters. Whether the two are equal is
    /// for the comparison of rules and record to say.
    fn held(&self, recorded: &TableLayouts) -> Option<KeyLayout> {
        let same = |one: &&KeyLayout| match (&self.index, one.index()) {
            (Some(name), Some(index)) => *name == index.name,
            (None, None) => one.layout().counted().is_some() && *one.keys() == self.keys,
            _ => false,
        };
        Some(match recorded.iter().find(same)?.index() {
            Some(index) => KeyLayout::of_index(index.clone(), self.keys.clone(), self.layout()),
            None => KeyLayout::new(self.keys.clone(), self.layout()),
        })
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
