//! `heatsink status [TABLE]`: everything that is sharded in a store, what brings each back, and at
//! what cost. Changes nothing.
//!
//! Not here: reshards under way (`reshard status`), what is wrong (`doctor`).

use super::leave::found::Found;
use super::leave::words;
use super::reshard::{Opened, Place};
use super::{print, runtime};
use crate::exit::Exit;
use crate::output::Output;

/// What `status` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The table [default: every table on record]
    table: Option<String>,
    #[command(flatten)]
    place: Place,
}

impl Args {
    /// How the result and errors are printed.
    pub const fn output(&self) -> Output {
        self.place.output
    }
}

/// Runs it. The items of keys and values that are listed are counted, which costs what reading them
/// does. Exit 64 where the table does not exist, or the registry is lost.
pub fn run(args: Args) -> Result<(), Exit> {
    runtime::threads()?.block_on(async {
        let opened = Opened::at(&args.place).await?;
        let found = Found::read(&opened, args.table.as_deref(), true).await?;
        let place = args.place.words();
        match args.place.output {
            Output::Json => print::json(&words::document(&found, &place)),
            Output::Text => print::text(&words::text(&found, &place)),
        }
    })
}
