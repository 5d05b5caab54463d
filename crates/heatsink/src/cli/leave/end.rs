//! How `leave` ends: the registry is removed, or stays and it is said what for; and when direct
//! access is right again.

use heatsink_control::{Dismantled, Fencing};
use heatsink_dynamo::display::inert;

use super::args::Args;
use super::found::Found;
use crate::cli::open::not_answered;
use crate::cli::reshard::{Access, Opened};
use crate::exit::Exit;

/// What became of the registry.
pub(super) enum End {
    /// Single tables have left.
    OfTables,
    /// There was none.
    NoRegistry,
    /// It is gone, and so are the tags of these tables.
    Removed(Vec<String>),
    /// It stays: why, and what to do.
    Stays(String),
    /// It stays, for a table that is on record again, or will be: direct access is not right.
    Sharded(String),
}

/// Removes the registry, where nothing needs it.
pub(super) async fn remove_registry(opened: &Opened, left_alone: &[String]) -> Result<End, Exit> {
    let registry = &opened.registry;
    let failed = |error| not_answered("The registry could not be removed", &error);
    if registry.describe(registry.name()).await.map_err(failed)?.is_none() {
        return Ok(End::NoRegistry);
    }
    let fence = opened.rules.fence();
    let changer = opened.changer(match opened.access {
        Access::Alone => Fencing::exclusive(fence),
        _ => Fencing::shared(fence, "leave"),
    });
    Ok(match registry.dismantle(&changer).await.map_err(failed)? {
        Dismantled::Done { untagged, .. } => End::Removed(untagged),
        Dismantled::OnRecord(tables) if tables.iter().all(|table| left_alone.contains(table)) => {
            End::Stays(format!(
                "The registry {} stays for tables that the application itself shards: {}. `heatsink adopt TABLE --back --keep-keys` takes each off and leaves its \
             items under their keys, `--back` alone brings them to their logical ones; then run this again",
                registry.name(),
                tables.join(", ")
            ))
        }
        Dismantled::OnRecord(tables) => End::Sharded(format!(
            "The registry {} stays: these tables were put on record meanwhile: {}. Run this again",
            registry.name(),
            tables.into_iter().filter(|table| !left_alone.contains(table)).collect::<Vec<_>>().join(", ")
        )),
        Dismantled::Gateways(gateways) => {
            let names = gateways.iter().map(|one| inert(&one.name).into_owned()).collect::<Vec<_>>();
            End::Stays(format!(
                "The registry {} stays, because these gateways would refuse every request without it: {}. Point the application at the store, stop them, and \
                 run this again",
                registry.name(),
                names.join(", ")
            ))
        }
        Dismantled::Lost(why) => return Err(Exit::failed(why)),
    })
}

impl End {
    pub(super) const fn is_removed(&self) -> bool {
        matches!(self, End::Removed(_))
    }

    /// Whether a table that left is in shards again, or will be.
    pub(super) const fn is_sharded(&self) -> bool {
        matches!(self, End::Sharded(_))
    }

    pub(super) fn untagged(&self) -> &[String] {
        match self {
            End::Removed(untagged) => untagged,
            _ => &[],
        }
    }

    pub(super) fn next_steps(&self) -> Vec<&str> {
        match self {
            End::Stays(why) | End::Sharded(why) => vec![why],
            _ => Vec::new(),
        }
    }

    /// Exit 1 while the registry stays.
    pub(super) fn outcome(self) -> Result<(), Exit> {
        match self {
            End::Stays(why) | End::Sharded(why) => Err(Exit::failed(why)),
            _ => Ok(()),
        }
    }
}

/// For people.
pub(super) fn words(args: &Args, found: &Found, left_alone: &[String], end: &End) -> String {
    let left = |one: &&super::found::FoundTable| !left_alone.contains(&one.of.record.name);
    let names: Vec<&str> = found.tables.iter().filter(left).map(|one| &*one.of.record.name).collect();
    let mut text = match (&*names, &args.table) {
        ([], Some(table)) => format!("table {table} is not on record: nothing of it is sharded\n"),
        ([], None) => "no table had to be brought back\n".to_owned(),
        (names, _) if end.is_sharded() => {
            format!("brought back: {}. Direct access is not right yet\n", names.join(", "))
        }
        (names, _) => format!(
            "out of Heatsink, as every gateway has acknowledged: {}. Every item is under its own key, so direct access is right from now on, through gateways and \
             past them\n",
            names.join(", ")
        ),
    };
    if !left_alone.is_empty() {
        text += &format!(
            "left as they are, because the application itself shards them: {}\n",
            left_alone.join(", ")
        );
    }
    match end {
        End::OfTables | End::Stays(_) | End::Sharded(_) => {}
        End::NoRegistry => text += &format!("there is no registry {}\n", found.registry),
        End::Removed(_) => {
            text += &format!(
                "the registry {} is removed: nothing of Heatsink is left in the store. Remove heatsink.known-tables.json beside the rules of each gateway\n",
                found.registry
            );
        }
    }
    text
}
