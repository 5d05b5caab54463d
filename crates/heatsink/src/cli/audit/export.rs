//! The directory of an export to S3: which data files there are, and what its manifest says of
//! each.
//!
//! Not here: reading the data files (`source`).

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::exit::{Exit, in_words};

const FILES: &str = "manifest-files.json";
const SUMMARY: &str = "manifest-summary.json";
/// How far below a directory the manifest is looked for: `AWSDynamoDB/ID/` lies below a copied
/// bucket.
const DEPTH: usize = 3;

/// An export.
pub struct Export {
    /// The table that was exported, where the summary says it.
    pub table: Option<String>,
    /// Its data files.
    pub files: Vec<Listed>,
}

/// A data file of the manifest.
pub struct Listed {
    /// Where it is, or should be.
    pub path: PathBuf,
    /// How many items it has.
    pub items: u64,
    /// The MD5 of the file as it lies there, in base64.
    pub md5: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    item_count: u64,
    md5_checksum: Option<String>,
    data_file_s3_key: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    table_arn: Option<String>,
    output_format: Option<String>,
    export_type: Option<String>,
}

/// Reads the manifest in a directory, or below it.
pub fn read(directory: &Path) -> Result<Export, Exit> {
    let mut found = Vec::new();
    manifests(directory, DEPTH, &mut found)?;
    let manifest = match found.as_slice() {
        [one] => one,
        [] => {
            return Err(Exit::usage(format!(
                "{}: there is no {FILES} in it. Give the directory of one export to S3, or the data files themselves",
                directory.display()
            )));
        }
        [one, other, ..] => {
            return Err(Exit::usage(format!(
                "{}: there are several exports in it, {} and {} among them. Give one of them",
                directory.display(),
                one.display(),
                other.display()
            )));
        }
    };
    let place = manifest.parent().unwrap_or(directory);
    let table = summary(&place.join(SUMMARY))?;
    let text = text(manifest)?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let files =
        lines.map(|(nth, line)| listed(place, line, || format!("{}:{}", manifest.display(), nth + 1)));
    Ok(Export { table, files: files.collect::<Result<_, _>>()? })
}

fn manifests(directory: &Path, depth: usize, found: &mut Vec<PathBuf>) -> Result<(), Exit> {
    let manifest = directory.join(FILES);
    if manifest.is_file() {
        found.push(manifest);
        return Ok(());
    }
    let unread = |error| Exit::usage(format!("cannot read {}: {}", directory.display(), in_words(&error)));
    let entries = std::fs::read_dir(directory).map_err(unread)?;
    let mut below: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    below.sort();
    if depth > 0 {
        below.iter().try_for_each(|path| manifests(path, depth - 1, found))?;
    }
    Ok(())
}

/// A data file lies in `data` beside the manifest, or beside it.
fn listed(place: &Path, line: &str, at: impl Fn() -> String) -> Result<Listed, Exit> {
    let wrong = || Exit::usage(format!("{}: this is no line of the manifest of an export", at()));
    let line: Line = serde_json::from_str(line).map_err(|_| wrong())?;
    let name = Path::new(&line.data_file_s3_key).file_name().ok_or_else(wrong)?;
    let beside = place.join(name);
    let path = if beside.is_file() { beside } else { place.join("data").join(name) };
    Ok(Listed { path, items: line.item_count, md5: line.md5_checksum })
}

/// The table's name. Exports of other forms are refused.
fn summary(path: &Path) -> Result<Option<String>, Exit> {
    if !path.is_file() {
        return Ok(None);
    }
    let wrong = |why: &str| Exit::usage(format!("{}: {why}", path.display()));
    let summary: Summary =
        serde_json::from_str(&text(path)?).map_err(|_| wrong("this is no summary of an export"))?;
    if summary.output_format.is_some_and(|format| format != "DYNAMODB_JSON") {
        return Err(wrong("the export is in Amazon Ion; export the table as DynamoDB JSON"));
    }
    if summary.export_type.is_some_and(|kind| kind == "INCREMENTAL_EXPORT") {
        return Err(wrong("the export is incremental; a full export or stream records can be read"));
    }
    Ok(summary.table_arn.and_then(|arn| arn.split('/').nth(1).map(str::to_owned)))
}

fn text(path: &Path) -> Result<String, Exit> {
    std::fs::read_to_string(path)
        .map_err(|error| Exit::usage(format!("cannot read {}: {}", path.display(), in_words(&error))))
}
