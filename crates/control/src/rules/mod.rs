//! Rules: which keys of which tables the operator wants spread, and how.
//!
//! A rule says what the operator wants; the registry says how stored data is laid out. This module
//! reads rules, checks them, displays them, and computes the layouts that a given table would have.

mod automatic;
mod client;
mod client_section;
mod display;
mod fault;
mod fence;
mod file;
mod find;
mod fits;
mod hash;
mod index;
mod limits;
mod numbers;
mod read;
mod rule;
mod shared_calls;
mod split_at;
mod webhook;

use std::sync::Arc;

use heatsink_dynamo::TableSchema;
pub use heatsink_layout::Glob;
use heatsink_layout::{KeyLayout, PhysicalKeys, Reads, Strategy, TableLayouts};

use crate::memory::{Expectation, Memory};
use display::{Keys, Tables};
use find::{ByGlob, Finder, Sought};
use fits::Unfit;
pub use fits::can_count;
pub use index::attribute_to_spread;
pub use limits::ClientLimits;
pub use numbers::MAX_SHARDS;
pub use read::MAX_COUNTER_SHARDS;
pub use rule::{Rule, SharedCalls, Spread};
pub use split_at::split_point;
pub use webhook::WebhookSettings;

pub use automatic::{Automatic, Mode};
pub use client::{ClientSettings, RightsSettings, Secret, SecretSource};
pub use fence::FenceSettings;
pub use file::json_schema;
pub use heatsink_config_diagnostics::Fault as RulesError;

/// The checked rules of one gateway. For every key of a table the first matching rule holds.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// An index of the rules by table and key.
    finder: Finder,
    fence: FenceSettings,
    automatic: Vec<Automatic>,
    clients: Vec<ClientSettings>,
    limits: ClientLimits,
    webhook: Option<WebhookSettings>,
    /// Whether any rule lets calls become one.
    shares_calls: bool,
}

/// The layout that the rules demand for one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesiredLayout {
    /// No rule applies. `skipped` has the reason of each glob rule that names the table but cannot
    /// hold for it.
    Unmentioned {
        /// The reasons, one per skipped rule.
        skipped: Vec<String>,
    },
    /// Rules apply, and all of them leave its keys unsharded.
    Unsharded,
    /// The rules demand these layouts.
    Sharded(TableLayouts),
    /// A rule that names exactly this table cannot hold for it: the reason.
    Impossible(String),
}

impl Rules {
    /// Reads a rules file. `file` is its name, for messages.
    ///
    /// # Errors
    /// The first error found: not TOML, a field that is unknown, missing or of the wrong kind, a
    /// value out of bounds, or a rule that can never match because of an earlier one.
    pub fn read(file: &str, text: &str) -> Result<Self, RulesError> {
        let raw: file::File = toml::from_str(text).map_err(|error| RulesError::read(file, text, &error))?;
        let mut rules: Vec<Rule> = Vec::with_capacity(raw.rule.len());
        let mut finder = Finder::default();
        let breaks: Vec<usize> =
            text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at).collect();
        let line_of = |start: usize| 1 + breaks.partition_point(|at| *at < start);
        for (at, raw) in raw.rule.into_iter().enumerate() {
            // A rule's span reaches from its [[rule]] heading, so its end may precede its fields.
            let heading = raw.span().start..raw.span().start;
            let fault = |span, problem: String| RulesError::at(file, text, span, problem);
            let rule = read::rule(at + 1, raw, &fault)?;
            let rule = Rule { line: line_of(heading.start), ..rule };
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
        let automatic =
            raw.automatic.into_iter().zip(1..).map(|(raw, number)| automatic::automatic(number, raw, &fault));
        let automatic = automatic.collect::<Result<_, _>>()?;
        let mut clients: Vec<ClientSettings> = Vec::with_capacity(raw.client.len());
        for (raw, number) in raw.client.into_iter().zip(1..) {
            let client = client_section::client(number, file, raw, &line_of, &fault)?;
            if let Some(clash) = clients.iter().find_map(|other| client.clash(other)) {
                return Err(clash);
            }
            clients.push(client);
        }
        let limits = limits::limits(raw.limits, &fault)?;
        let webhook = webhook::webhook(file, raw.webhook, &fault)?;
        let shares_calls = rules.iter().any(|rule| !rule.shared_calls.is_none());
        Ok(Rules { rules, finder, fence, automatic, clients, limits, webhook, shares_calls })
    }

    /// The rules, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The same rules, of a process that has that memory.
    #[must_use]
    pub fn remembering(mut self, memory: Option<Arc<dyn Memory>>) -> Self {
        self.fence.expectation =
            Arc::new(Expectation { memory, ..Expectation::clone(&self.fence.expectation) });
        self
    }

    /// The same file without its rules: only the fence settings.
    #[must_use]
    pub fn without_rules(self) -> Self {
        Rules { fence: self.fence, ..Rules::default() }
    }

    /// How the gateways agree on layout changes.
    pub fn fence(&self) -> &FenceSettings {
        &self.fence
    }

    /// How many clients a gateway serves at once, where the file says so.
    pub fn limits(&self) -> ClientLimits {
        self.limits
    }

    /// Who is told what is done about hot keys.
    pub fn webhook(&self) -> Option<&WebhookSettings> {
        self.webhook.as_ref()
    }

    /// Whether any key may get shards, or a proposal, without being asked for.
    pub fn acts_on_heat(&self) -> bool {
        self.automatic.iter().any(|one| one.mode != Mode::Observe)
    }

    /// Whether any key may get shards without being asked for.
    pub fn reshards_by_itself(&self) -> bool {
        self.automatic.iter().any(|one| one.mode == Mode::Auto)
    }

    /// The `[[client]]` sections, in order.
    pub fn clients(&self) -> &[ClientSettings] {
        &self.clients
    }

    /// The `[[automatic]]` sections, in order.
    pub fn automatics(&self) -> impl Iterator<Item = &Automatic> {
        self.automatic.iter()
    }

    /// What may become of a key that is hot, without being asked for.
    pub fn automatic(&self, table: &str, key: &[u8]) -> Option<&Automatic> {
        let matches = |one: &&Automatic| one.table.matches(table.as_bytes()) && one.keys.matches(key);
        self.automatic.iter().find(matches)
    }

    /// How reads of a logical key are gathered.
    pub fn reads(&self, schema: &TableSchema, key: &[u8]) -> Reads {
        self.of_key(schema, key).map_or_else(Reads::default, |rule| rule.reads)
    }

    /// Whether any rule lets calls become one.
    pub fn shares_calls(&self) -> bool {
        self.shares_calls
    }

    /// The rule that holds for a logical key of the table itself.
    pub fn of_key(&self, schema: &TableSchema, key: &[u8]) -> Option<&Rule> {
        let applies = |rule: &&Rule| {
            rule.index.is_none()
                && rule.table.matches(schema.name.as_bytes())
                && rule.keys.matches(key)
                && rule.fits(schema).is_ok()
        };
        let named = self.finder.named(schema.name.as_bytes(), key);
        named.into_iter().filter_map(|at| self.rules.get(at)).find(applies)
    }

    /// What an operator has to know who lets writes of a table with a stream become one.
    pub(crate) fn of_stream(&self, schema: &TableSchema) -> Vec<String> {
        let named = self.finder.of_table(schema.name.as_bytes());
        let rules = named.into_iter().filter_map(|at| self.rules.get(at));
        let combines = |rule: &&Rule| {
            rule.shared_calls.combine
                && rule.table.matches(schema.name.as_bytes())
                && rule.fits(schema).is_ok()
        };
        let warning = |rule: &Rule| {
            let Rule { number, line, shared_calls, .. } = rule;
            let what = match shared_calls.combine_streams {
                true => "it shows one record for all writes that go as one",
                false => {
                    "its writes are not combined. With combine_streams = true they are, and it shows one record for all that go as one"
                }
            };
            format!(
                "rule {number} (line {line}) has combine = true, and table {} has a stream: {what}",
                schema.name
            )
        };
        rules.filter(combines).map(warning).collect()
    }

    /// The rules that name a table, by their numbers; with the reason if a rule cannot hold for it.
    pub fn naming(&self, schema: &TableSchema) -> impl Iterator<Item = (usize, Result<(), String>)> {
        let named =
            self.finder.of_table(schema.name.as_bytes()).into_iter().filter_map(|at| self.rules.get(at));
        let named = named.filter(|rule| rule.table.matches(schema.name.as_bytes()));
        named.map(|rule| (rule.number, rule.fits(schema).map_err(|unfit| unfit.reason().to_owned())))
    }

    /// What becomes of client keys that look like physical keys, for each recorded layout of a
    /// table. Where no rule says so they are refused in a table that was adopted: it was sharded by
    /// hand, and code that still does so would find nothing, in silence.
    pub fn physical_keys(&self, table: &str, recorded: &TableLayouts, adopted: bool) -> Vec<PhysicalKeys> {
        let unsaid = if adopted { PhysicalKeys::Refuse } else { PhysicalKeys::Accept };
        let named = self.finder.of_table(table.as_bytes());
        let of = |one: &KeyLayout| {
            let mut rules = named.iter().filter_map(|at| self.rules.get(*at));
            let same = |rule: &&Rule| {
                rule.index.is_none() && rule.keys == *one.keys() && rule.table.matches(table.as_bytes())
            };
            rules.find(same).and_then(|rule| rule.physical_keys).unwrap_or(unsaid)
        };
        recorded.iter().map(of).collect()
    }

    /// The layout that the rules demand for a table without a record.
    pub fn desired_layout(&self, schema: &TableSchema) -> DesiredLayout {
        self.desired_layout_with(schema, None, &mut Vec::new())
    }

    /// The layout that the rules demand for a recorded table, and warnings. A layout that was
    /// recorded under other indexes keeps holding: an index that a rule names may be gone by now,
    /// and a new one may forbid the rule.
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
        // The table's own layouts first: the record does not depend on the order in which rules mix
        // the two.
        layouts.sort_by_key(|one| one.index().is_some());
        // Keys that no rule names stay unsharded, so a last rule that leaves keys unsharded has no
        // effect.
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

/// The layouts of a table so far. Keys that an earlier rule takes completely are not repeated.
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

/// Why these layouts cannot belong to one table.
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
    None
}
