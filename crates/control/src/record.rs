//! One record of the registry: how one table's data is laid out, and whether it is being adopted.
//! Not here: records of single keys (`key_record`).

use heatsink_dynamo::{Error, TableSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use heatsink_layout::{Changing, MigrationPhase, TableLayouts, TablePhase, ValueLayout};

use crate::counted::counted;
use crate::seal;
use crate::tally::Tally;
use crate::touched::Touched;

/// The sort key of a table's record.
pub(crate) const SORT: &str = "table";

/// The record form that this version writes. It also reads the previous form, which only an
/// exclusive gateway may meet: gateways of the previous form do not follow the fence, and do not
/// read records of this form. A record of any other form is refused. A new variant of a strategy, a
/// hash or a state may keep the form: a version that does not have it says that another version
/// wrote the record.
pub(crate) const FORM: u64 = 2;
const OLD_FORM: u64 = 1;
/// The form of a record beside which there are records of single keys: older builds would not look
/// for them.
pub(crate) const FORM_WITH_KEYS: u64 = 3;
/// The form of a record of a single key that is a counter, or becomes one: older builds would show
/// a part of its numbers.
pub(crate) const FORM_OF_COUNTER: u64 = 4;
/// The form of a record of a single key with buckets: older builds would give each bucket the same
/// number of shards.
pub(crate) const FORM_OF_BUCKETS: u64 = 6;
/// The form of a record of a single key that [stands by its hash](crate::registry_key): older
/// builds would take the hash for the key.
pub(crate) const FORM_OF_LONG_KEY: u64 = 7;
/// The form of a record of a single key whose shards have [slots by
/// name](heatsink_layout::Layout::slots): older builds would read other physical keys.
pub(crate) const FORM_OF_SLOTS: u64 = 8;
/// The form of a record that lays out keys which are numbers, and of a record of such a key: older
/// builds would read the whole key alone.
pub(crate) const FORM_OF_NUMBERS: u64 = 9;
/// The form of a record of a single key that is a counter and gets fewer fragments: older builds
/// would go on adding to those that it loses.
pub(crate) const FORM_OF_NARROWING: u64 = 10;
/// The form of a record that has layouts of single values of index keys: older builds would take
/// their shards for values of clients.
const FORM_WITH_VALUES: u64 = 5;

/// How one table's data is laid out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The store's id of the table.
    pub id: String,
    /// The table's name, for people; the id decides.
    pub name: String,
    /// The layouts of its keys.
    pub layouts: TableLayouts,
    /// Whether it can be used.
    pub state: State,
    /// Counts the record's changes; each is conditional on the one before.
    pub version: u64,
    /// When it was first written: milliseconds since 1970-01-01T00:00:00Z.
    pub created: u64,
    /// When it was last written.
    pub changed: ChangedAt,
    /// When the table was created, by the store's clock, if the store says. It orders tables of one
    /// name.
    pub made: Option<u64>,
    /// Whether the table may have held items before it was laid out so: then cursors of that time
    /// may still be in use. Records of older builds, without this field, count as `true`.
    pub adopted: bool,
    /// The version that this record had when a record of a single key was last written or taken
    /// off; 0 where no key has one.
    pub keys: u64,
    /// The version that this record had when records of keys were last taken off; 0 where
    /// none were, and in records of older builds.
    pub forgotten: u64,
    /// Which keys have records. `None` where none has, and in records that older builds have
    /// written since.
    pub tally: Option<Tally>,
    /// Where the last writes of records of keys lie.
    pub touched: Touched,
    /// The layouts of single values of index keys.
    pub values: Vec<ValueLayout>,
    /// Whether it lays out partition keys that are numbers.
    pub numbers: bool,
}

/// When a record was last written, by its writer's wall clock: milliseconds since
/// 1970-01-01T00:00:00Z; 0 in records of older builds. Two records that differ in nothing else say
/// the same, and are equal.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangedAt(pub u64);

impl PartialEq for ChangedAt {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for ChangedAt {}

/// The state of a recorded table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum State {
    /// The table was empty at first sight. No request may write to it until every gateway knows,
    /// and a second look finds it empty.
    Pending,
    /// The table is about to be deleted through Heatsink: no gateway sends requests to it any more.
    Deleting {
        /// The gateway that deletes it.
        by: String,
    },
    /// The table was deleted through Heatsink. A description that still shows it is out of date.
    Gone,
    /// Every item is under the key that the layout assigns.
    Active,
    /// Items are being moved to the keys that the layout assigns. Nobody else may read or write.
    Adopting(AdoptionCheckpoint),
    /// Items are being moved back to their logical keys. Nobody else may read or write.
    Returning(AdoptionCheckpoint),
    /// Keys of indexes are being given other layouts, while clients use the table. Stored as
    /// `TURNING`.
    #[serde(rename = "TURNING")]
    MigratingIndexKeys(IndexKeyMigration),
    /// All keys of the table are given other layouts, while clients use it.
    ChangingKeys(TableChange),
}

/// The change of the layouts of a table's own keys. Until the table has turned, those on record
/// hold for keys without a record of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableChange {
    /// How far it has come.
    pub phase: TablePhase,
    /// Which change it is: random. What was entered for another one counts for nothing.
    pub run: u64,
    /// The layouts that the table's own keys get; from TURN on those that they had.
    pub other: TableLayouts,
}

impl TableChange {
    /// The layouts that the table's own keys had, and those that they get. `recorded`: those on
    /// record.
    pub fn from_and_to<'a>(&'a self, recorded: &'a TableLayouts) -> (&'a TableLayouts, &'a TableLayouts) {
        if self.phase.has_turned() { (&self.other, recorded) } else { (recorded, &self.other) }
    }

    /// What gateways have to know of it.
    pub fn changing(&self, schema: &TableSchema, recorded: &TableLayouts) -> Changing {
        let (from, to) = self.from_and_to(recorded);
        Changing::new(self.phase, self.run, schema, from, to)
    }
}

/// The migration of index keys between the layouts on record and others, or plain values. Every
/// gateway reads both forms meanwhile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IndexKeyMigration {
    /// The attributes.
    pub attributes: Vec<String>,
    /// Towards the layouts on record; otherwise to those of `before`. Stored as `spreads`.
    #[serde(rename = "spreads")]
    pub forward: bool,
    /// Whether gateways write the new form, and items are being rewritten.
    pub writes_new: bool,
    /// Whether any value may be stored as the layouts on record have it, and those of `before` have
    /// not.
    pub touched: bool,
    /// How many items the table held at the start, for progress.
    pub items: u64,
    /// The run that rewrites: random, so that a run notices when another has taken over.
    pub run: u64,
    /// The layouts that the attributes had before. Of those without, values were plain. Builds that
    /// know plain values alone refuse a record with this field.
    #[serde(default, skip_serializing_if = "TableLayouts::is_empty")]
    pub before: TableLayouts,
}

impl IndexKeyMigration {
    /// What gateways have to know of it, with the layouts on record.
    pub fn phase(&self, recorded: &TableLayouts) -> MigrationPhase {
        let recorded = recorded.only(&self.attributes);
        let (from, to) =
            if self.forward { (self.before.clone(), recorded) } else { (recorded, self.before.clone()) };
        MigrationPhase { attributes: self.attributes.clone(), from, to, writes_new: self.writes_new }
    }
}

/// Where an interrupted adoption goes on, and the item count and checksum that it must find at its
/// end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdoptionCheckpoint {
    /// The current pass: it moves the keys that end in this many reserved suffixes. See `adopt`.
    pub depth: usize,
    /// The most reserved suffixes that a logical key of the table ends in.
    pub deepest: usize,
    /// How many items the table held before.
    pub items: u64,
    /// Their checksum, over logical keys, in hexadecimal; their order does not matter. Empty until
    /// they are [counted](Self::is_counted).
    pub checksum: String,
    /// The run that moves: random, so that a run notices when another has taken over.
    pub run: u64,
}

impl AdoptionCheckpoint {
    /// Whether the items were counted, and may be moved. Not before every gateway has acknowledged
    /// that the table is being adopted: until then clients write.
    pub fn is_counted(&self) -> bool {
        !self.checksum.is_empty()
    }
}

/// Every layout has shards. Rules name no slots: only single keys have some.
fn are_of_rules(layouts: &TableLayouts) -> bool {
    layouts.iter().all(|one| one.layout().shards > 0 && one.layout().slots().is_empty())
}

impl Record {
    /// Whether another record of the table says the same of all but records of single keys.
    pub fn says_as(&self, other: &Record) -> bool {
        let but_keys =
            |record: &Record| Record { version: 0, keys: 0, forgotten: 0, tally: None, ..record.clone() };
        but_keys(self) == but_keys(other)
    }

    /// The record as an item of the registry.
    pub(crate) fn item(&self) -> Json {
        let mut item = json!({
            "pk": { "S": self.id },
            "sk": { "S": SORT },
            "form": { "N": self.form().to_string() },
            "name": { "S": self.name },
            "layouts": { "S": json!(self.layouts).to_string() },
            "state": { "S": json!(self.state).to_string() },
            "version": { "N": self.version.to_string() },
            "created": { "N": self.created.to_string() },
            "changed": { "N": self.changed.0.to_string() },
            "adopted": { "BOOL": self.adopted },
        });
        if let Some(made) = self.made {
            item["made"] = json!({ "N": made.to_string() });
        }
        if self.form() != FORM && (self.form() != FORM_OF_NUMBERS || self.keys > 0) {
            item["keys"] = json!({ "N": self.keys.to_string() });
        }
        if self.forgotten > 0 {
            item["forgotten"] = json!({ "N": self.forgotten.to_string() });
        }
        if let Some(tally) = self.tally.filter(|_| self.form() != FORM) {
            item["key_count"] = json!({ "N": tally.count.to_string() });
            if let Some(sum) = tally.text() {
                item["key_sum"] = json!({ "S": sum });
            }
        }
        if let Some(touched) = self.touched.text().filter(|_| self.keys > 0) {
            item["touched"] = json!({ "S": touched });
        }
        if !self.values.is_empty() {
            item["values"] = json!({ "S": json!(self.values).to_string() });
        }
        seal::sealed(item)
    }

    /// Which keys have records, as far as it says: at least one, where it says that there are some.
    pub(crate) fn tally(&self) -> Tally {
        match (self.keys, self.tally) {
            (0, _) => Tally::NONE,
            (_, Some(tally)) => tally,
            (_, None) => Tally { count: 1, sum: None },
        }
    }

    fn form(&self) -> u64 {
        if self.numbers {
            return FORM_OF_NUMBERS;
        }
        match (self.values.is_empty(), self.keys) {
            (false, _) => FORM_WITH_VALUES,
            (true, 0) => FORM,
            (true, _) => FORM_WITH_KEYS,
        }
    }

    /// Whether it says nothing of how anything is stored.
    pub fn is_empty(&self) -> bool {
        self.layouts.is_empty() && self.keys == 0 && self.values.is_empty()
    }

    /// Reads an item of the registry.
    pub(crate) fn read(item: &Json) -> Result<Self, Error> {
        let text = |name: &str| item[name]["S"].as_str();
        let number = |name: &str| counted(item, name);
        let id = text("pk").unwrap_or_default();
        if !matches!(
            number("form"),
            Some(FORM | OLD_FORM | FORM_WITH_KEYS | FORM_WITH_VALUES | FORM_OF_NUMBERS)
        ) {
            return Err(Error::internal(format!(
                "The registry's record of table {} ({id}) has a form that this version of Heatsink does not know; it was written by another version",
                text("name").unwrap_or("?"),
            )));
        }
        let known = |name: &str| text(name).is_some_and(|text| serde_json::from_str::<Json>(text).is_ok());
        // The form says whether keys are on record. To take lost numbers for "none" would read a
        // moved key where it no longer is.
        let keys = match (number("form"), number("keys")) {
            (Some(FORM_WITH_VALUES), keys) => keys,
            (Some(FORM_WITH_KEYS), keys) => keys.filter(|keys| *keys > 0),
            // Its seal is checked below, so nothing of it is lost.
            (Some(FORM_OF_NUMBERS), keys) => Some(keys.unwrap_or(0)),
            (_, keys) => Some(keys.unwrap_or(0)).filter(|keys| *keys == 0),
        };
        let has_values = number("form") == Some(FORM_WITH_VALUES);
        let numbers = number("form") == Some(FORM_OF_NUMBERS);
        let values = || match text("values") {
            Some(text) if has_values || numbers => serde_json::from_str(text).ok(),
            None if !has_values => Some(Vec::new()),
            _ => None,
        };
        let read = || {
            Some(Record {
                id: id.to_owned(),
                name: text("name")?.to_owned(),
                layouts: serde_json::from_str(text("layouts")?).ok().filter(are_of_rules)?,
                state: serde_json::from_str(text("state")?).ok()?,
                version: number("version")?,
                created: number("created")?,
                changed: ChangedAt(number("changed").unwrap_or_default()),
                made: number("made"),
                adopted: item["adopted"]["BOOL"].as_bool().unwrap_or(true),
                keys: keys?,
                forgotten: number("forgotten").unwrap_or_default(),
                tally: number("key_count").and_then(|count| Tally::read(count, text("key_sum"))),
                touched: Touched::read(text("touched")),
                values: values()?,
                numbers,
            })
        };
        read().filter(|_| !seal::is_broken(item)).ok_or_else(|| {
            let table = text("name").unwrap_or("?");
            // Its members are JSON and mean nothing here: a newer version's strategy, hash or
            // state.
            Error::internal(if !seal::is_broken(item) && known("layouts") && known("state") && number("version").is_some() && keys.is_some() && (!has_values || known("values")) {
                format!(
                    "The registry's record of table {table} ({id}) says something that this version of Heatsink does not know; it was written by \
                     another version"
                )
            } else {
                format!("The registry's record of table id {id} is damaged")
            })
        })
    }
}
