//! The scenarios that are built into the binary.

use crate::scenario::{Fault, Loaded};

macro_rules! shipped {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../scenarios/", $name, ".toml")))),*]
    };
}

/// Names and texts.
pub const SHIPPED: &[(&str, &str)] = shipped![
    "leaderboard",
    "chat",
    "votes",
    "ops-log",
    "aws-b1",
    "aws-b2",
    "aws-b3",
    "aws-b4",
    "aws-b5",
    "stone-s1",
    "stone-s2",
    "stone-s3",
    "stone-s4",
    "stone-s5",
    "stone-s6",
    "stone-s7",
    "stone-s8",
    "stone-s9",
];

/// Keys in the order of a sorted file, and how many items each has.
const IP_RANGES: &str = include_str!("../scenarios/ip-ranges.csv");

/// Files that shipped scenarios name.
fn open(path: &str) -> std::io::Result<String> {
    if path == "ip-ranges.csv" { Ok(IP_RANGES.to_owned()) } else { Err(std::io::ErrorKind::NotFound.into()) }
}

/// The shipped scenario of that name, read; `None` if there is none.
///
/// # Errors
/// None in a released binary: all of them are read in a test.
pub fn shipped(name: &str) -> Option<Result<Loaded, Fault>> {
    let (name, text) = SHIPPED.iter().find(|(known, _)| *known == name)?;
    Some(Loaded::read(&format!("{name}.toml"), text, &mut open, false))
}
