//! The scenarios that come with the binary.

use crate::scenario::{Fault, Loaded};

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),*]
    };
}

/// Names and texts.
pub const SHIPPED: &[(&str, &str)] = shipped!["leaderboard"];

/// The shipped scenario of that name, read; `None` if there is none.
///
/// # Errors
/// None in a released binary: all of them are read in a test.
pub fn shipped(name: &str) -> Option<Result<Loaded, Fault>> {
    let (name, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
    let mut none = |_: &str| Err(std::io::ErrorKind::NotFound.into());
    Some(Loaded::read(&format!("{name}.toml"), text, &mut none, false))
}
