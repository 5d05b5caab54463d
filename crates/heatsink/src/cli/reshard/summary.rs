//! What the reshards of a table come to together, where several are asked for.
//!
//! Not here: a line for each (`status`).

use std::collections::BTreeMap;

use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use serde::Serialize;

use super::told::phase_name;

/// Several reshards of one table.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    table: String,
    reshards: usize,
    /// How many are at the same point.
    are: BTreeMap<String, usize>,
    items_moved: u64,
    /// As far as they are counted.
    items_to_move: u64,
}

/// Those of each table that has several, in the order of the tables.
pub(super) fn of(intents: &[ReshardIntent]) -> Vec<Summary> {
    let mut tables: BTreeMap<&str, Summary> = BTreeMap::new();
    for one in intents {
        let first = || Summary {
            table: one.table.clone(),
            reshards: 0,
            are: BTreeMap::new(),
            items_moved: 0,
            items_to_move: 0,
        };
        let summary = tables.entry(&one.table).or_insert_with(first);
        summary.reshards += 1;
        *summary.are.entry(is(one)).or_default() += 1;
        summary.items_moved += one.progress.moved;
        summary.items_to_move += one.progress.to_move.unwrap_or(0);
    }
    tables.into_values().filter(|summary| summary.reshards > 1).collect()
}

/// Where one is.
fn is(one: &ReshardIntent) -> String {
    let word = match (&one.ended, one.progress.phase, &one.carrier) {
        (Some(ended), ..) if ended.how == EndedAs::Moved => "done",
        (Some(ended), ..) if ended.how == EndedAs::Cancelled => "cancelled",
        (Some(_), ..) => "stopped",
        _ if one.paused => "paused",
        _ if one.progress.hindered.is_some() => "hindered",
        (None, Some(phase), _) => return phase_name(phase),
        (None, None, Some(_)) => "begins",
        (None, None, None) => "waits",
    };
    word.to_owned()
}

impl Summary {
    pub(super) fn line(&self) -> String {
        let are: Vec<String> = self.are.iter().map(|(is, count)| format!("{count} {is}")).collect();
        let Summary { table, reshards, items_moved, items_to_move, .. } = self;
        let of =
            if items_to_move > items_moved { format!(" of about {items_to_move}") } else { String::new() };
        format!("{table}, {reshards} reshards: {}; {items_moved}{of} items moved", are.join(", "))
    }
}
