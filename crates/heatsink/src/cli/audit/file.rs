//! Audits files: exports, items in DynamoDB JSON, stream records, the latter beside recorded
//! traffic, too.
//!
//! Not here: what a value means (`heatsink_heat::audit::records`), where a value ends
//! (`heatsink_heat::audit::framing`).

use heatsink_dynamo::TableSchema;
use heatsink_heat::audit::Audit;
use heatsink_heat::audit::records::{KeyNames, Kind, Records, Unreadable};

use super::args::{Args, MOST};
use super::beside::Beside;
use super::export;
use super::reading::{Reading, Refused, Taker, Wanted};
use super::said::{Files, Said};
use super::source::is_stdin;
use crate::exit::{Exit, in_words};

/// The name in proposed rules where none is known.
const UNNAMED: &str = "TABLE";

/// Runs it.
pub fn run(args: &Args) -> Result<(), Exit> {
    let (named, keys) = keys(args)?;
    let mut exported = None;
    let mut files = Vec::new();
    for path in &args.file {
        if is_stdin(path) || !path.is_dir() {
            files.push(Wanted::named(path));
            continue;
        }
        let export = export::read(path)?;
        exported = exported.or(export.table);
        files.extend(export.files.into_iter().map(Wanted::listed));
    }
    let beside = if args.trace.is_empty() { None } else { Some(Beside::read(args)?) };
    let records = Records::new(keys);
    let records = if beside.is_some() { records.keeping_writes() } else { records };
    let taker = Counted { records, audit: Audit::default() };
    let most = args.items.unwrap_or(MOST);
    let (reading, sample) = Reading::read(taker, &files, args.skip_bad, most, args.output)?;
    said(reading, args, named.or(exported), files.len(), sample, beside.as_ref())
}

/// Items and records that are counted.
struct Counted {
    records: Records,
    audit: Audit,
}

impl Taker for Counted {
    fn begin(&mut self) {
        self.records.next_file();
    }

    fn take(&mut self, value: &[u8]) -> Result<u64, Refused> {
        self.records.read(value, &mut self.audit).map_err(|why| match why {
            Unreadable::NamesNeeded { names } => Refused::All(format!(
                "the names of the table's key are not known. Give --key PK[,SK], or --schema FILE with what `aws dynamodb \
                 describe-table` says. Attributes there: {}",
                names.join(", ")
            )),
            Unreadable::Recording => Refused::All(why.to_string()),
            why => Refused::Value(why.to_string()),
        })
    }

    fn end(&mut self) -> Option<&'static str> {
        None
    }
}

/// The table's name and the names of its key, as the arguments give them.
fn keys(args: &Args) -> Result<(Option<String>, Option<KeyNames>), Exit> {
    let name = args.table.clone();
    if let Some(path) = &args.schema {
        let wrong = |why: String| Exit::usage(format!("--schema {}: {why}", path.display()));
        let text = std::fs::read(path).map_err(|error| wrong(in_words(&error)))?;
        let other = || wrong("this is no description of a table, nor a CreateTable request".to_owned());
        let mut described: serde_json::Value = serde_json::from_slice(&text).map_err(|_| other())?;
        let mut table = match described.get_mut("Table") {
            Some(table) => table.take(),
            None => described,
        };
        // A time, as the command line writes it, is text; the key is all that is needed.
        if let Some(members) = table.as_object_mut() {
            members.remove("CreationDateTime");
        }
        let schema = TableSchema::from_create(table.to_string().as_bytes()).map_err(|_| other())?;
        let keys = KeyNames {
            partition: schema.key.partition.name.clone(),
            sort: schema.key.sort.as_ref().map(|sort| sort.name.clone()),
        };
        return Ok((name.or(Some(schema.name)), Some(keys)));
    }
    let Some(key) = &args.key else { return Ok((name, None)) };
    let mut names = key.split(',').map(|name| name.trim().to_owned());
    match (names.next(), names.next(), names.next()) {
        (Some(partition), sort, None) if !partition.is_empty() && sort.as_deref() != Some("") => {
            Ok((name, Some(KeyNames { partition, sort })))
        }
        _ => Err(Exit::usage(format!("--key {key}: expected PK or PK,SK, the names of the key attributes"))),
    }
}

/// Prints the report. `sample`: not all was read, and which share it was.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "items, far below 2^52"
)]
fn said(
    reading: Reading<Counted>,
    args: &Args,
    table: Option<String>,
    files: usize,
    sample: Option<Option<f64>>,
    beside: Option<&Beside>,
) -> Result<(), Exit> {
    let Counted { records, audit } = &reading.taker;
    let table = table.or(records.table().map(str::to_owned));
    let past = match beside {
        Some(beside) => Some(beside.compare(table.as_deref(), records)?),
        None => None,
    };
    let named = past.as_ref().map(|past| past.table.clone());
    let table = table.or(named).unwrap_or_else(|| UNNAMED.to_owned());
    let of = sample.map(|share| share.map_or(0, |share| (reading.taken as f64 / share.max(1e-9)) as u64));
    let report = match of {
        Some(of) => audit.report_sample(&table, of),
        None => audit.report(&table),
    };
    let files = Files {
        files,
        kind: records.first().unwrap_or(Kind::Items).words(),
        skipped: reading.skipped,
        faults: reading.faults,
        expired: records.expired(),
        without_images: records.without_images(),
    };
    Said { table: &table, report: &report, of, recipe: None, files: Some(files), past: past.as_ref() }
        .print(args.output)
}
