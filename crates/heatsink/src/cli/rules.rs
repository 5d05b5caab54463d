//! The rules of a command: the file that `--rules` names, else `heatsink.toml` in the working
//! directory.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heatsink_control::{Memory, Rules};

use super::known_tables::KnownTables;
use crate::exit::{Exit, in_words};

/// The file that is taken where `--rules` names none.
const DEFAULT: &str = "heatsink.toml";

/// The file that is taken where none is named.
pub fn default_file() -> PathBuf {
    PathBuf::from(DEFAULT)
}

/// Rules, and where they were found.
#[derive(Default)]
pub struct Found {
    /// The rules; none where there is no file.
    pub rules: Rules,
    /// The file as an absolute path; `None` where there is none.
    pub file: Option<PathBuf>,
}

/// The rules of a command that goes on without any. A file that is there and cannot be read is an
/// error.
pub fn find(named: Option<&Path>) -> Result<Found, Exit> {
    let found = found(named)?;
    let memory: Arc<dyn Memory> = Arc::new(KnownTables::beside_rules(found.file.as_deref()));
    Ok(Found { rules: found.rules.remembering(Some(memory)), ..found })
}

fn found(named: Option<&Path>) -> Result<Found, Exit> {
    match named {
        Some(file) => read(file).map_err(|error| unreadable(file, &error))?,
        None => match read(Path::new(DEFAULT)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Found::default()),
            found => found.map_err(|error| unreadable(Path::new(DEFAULT), &error))?,
        },
    }
}

/// The rules of a command that needs them.
pub fn need(named: Option<&Path>) -> Result<Found, Exit> {
    let found = find(named)?;
    if found.file.is_none() {
        let folder = std::env::current_dir().map(|folder| format!(" ({})", folder.display()));
        return Err(Exit::usage(format!(
            "there is no {DEFAULT} in the working directory{}; name the rules with --rules FILE",
            folder.unwrap_or_default()
        )));
    }
    Ok(found)
}

/// The outer error is the system's, the inner one of the rules.
fn read(file: &Path) -> std::io::Result<Result<Found, Exit>> {
    let text = std::fs::read_to_string(file)?;
    let rules = Rules::read(&file.display().to_string(), &text);
    Ok(match rules {
        Ok(rules) => Ok(Found { rules, file: Some(std::path::absolute(file)?) }),
        Err(fault) => Err(Exit::usage(fault.to_string())),
    })
}

fn unreadable(file: &Path, error: &std::io::Error) -> Exit {
    Exit::usage(format!("cannot read the rules in {}: {}", file.display(), in_words(error)))
}
