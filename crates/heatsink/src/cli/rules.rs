//! The rules of a command: the file that `--rules` names, else `heatsink.toml` in the working
//! directory.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use heatsink_access::secret_file::{self, Text, Unfit};
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
    find_by(named, secret_file::read_any_once)
}

/// The same for a server, which reads them again.
pub fn find_again(named: Option<&Path>) -> Result<Found, Exit> {
    find_by(named, secret_file::read_any)
}

fn find_by(named: Option<&Path>, reading: fn(&Path) -> Result<Text, Unfit>) -> Result<Found, Exit> {
    let found = found(named, reading)?;
    let memory: Arc<dyn Memory> = Arc::new(KnownTables::beside_rules(found.file.as_deref()));
    Ok(Found { rules: found.rules.remembering(Some(memory)), ..found })
}

fn found(named: Option<&Path>, reading: fn(&Path) -> Result<Text, Unfit>) -> Result<Found, Exit> {
    let file = named.unwrap_or(Path::new(DEFAULT));
    match reading(file) {
        Ok(text) => read(file, &text),
        Err(Unfit::Unreadable(error)) if named.is_none() && error.kind() == ErrorKind::NotFound => {
            Ok(Found::default())
        }
        Err(unfit) => Err(unreadable(file, &unfit)),
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

fn read(file: &Path, text: &Text) -> Result<Found, Exit> {
    let name = file.display().to_string();
    let rules = Rules::read(&name, &text.text).map_err(|fault| Exit::usage(fault.to_string()))?;
    // Whoever can change who the clients are can be each of them.
    if !rules.clients().is_empty() && text.is_changeable() {
        let unfit = Unfit::Changeable(text.mode);
        return Err(Exit::usage(format!("{name}: it names clients, and {unfit}")));
    }
    let path = std::path::absolute(file).map_err(|error| unreadable(file, &Unfit::Unreadable(error)))?;
    Ok(Found { rules, file: Some(path) })
}

fn unreadable(file: &Path, unfit: &Unfit) -> Exit {
    let why = match unfit {
        Unfit::Unreadable(error) => in_words(error),
        unfit => unfit.to_string(),
    };
    Exit::usage(format!("cannot read the rules in {}: {why}", file.display()))
}
