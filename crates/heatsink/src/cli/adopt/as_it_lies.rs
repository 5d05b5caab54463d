//! `heatsink adopt TABLE --as-it-lies` and `--records-from`: records a table whose items are
//! already where the layouts put them.

use std::sync::Arc;

use heatsink_control::{Fencing, Rules};
use heatsink_env::Env;
use heatsink_store::Store;
use heatsink_workers::{AsItLies, Layouts, Recorded};

use super::args::Args;
use super::dialogue::{ask, exit, not_begun, say};
use crate::cli::progress::Bar;
use crate::exit::Exit;

/// Runs it. Exit 0 when the table is on record; 1 when items do not lie so.
pub async fn run(args: &Args, store: Arc<dyn Store>, env: Arc<dyn Env>, rules: &Rules) -> Result<(), Exit> {
    let layouts = match args.records_from.as_deref() {
        Some(from) => Layouts::RecordedFor(from),
        None => Layouts::Of(rules),
    };
    let fencing = match args.upstream {
        Some(_) => Fencing::shared(rules.fence(), "adopt"),
        None => Fencing::exclusive(rules.fence()),
    };
    let ready = AsItLies::prepare(store, env, layouts, &args.table, fencing).await.map_err(not_begun)?;
    if !args.dry_run {
        let whose =
            ready.from().map_or_else(String::new, |id| format!(", as the record of table id {id} says"));
        ask(
            args,
            &format!(
                "About to put table {} on record{whose}: {}.\nEvery item is read and must be where the layouts put it; none is moved. Nobody else may write the \
                 table until this is done, neither through Heatsink nor bypassing it.",
                args.table,
                ready.layouts(),
            ),
        )?;
    }
    let bar = Bar::new(args.output);
    let recorded = ready.run(args.dry_run, &bar).await.map_err(exit)?;
    bar.done();
    let document = serde_json::to_value(&recorded).map_err(|error| Exit::software(error.to_string()))?;
    say(args.output, &document, &text(&recorded))
}

fn text(recorded: &Recorded) -> String {
    let Recorded { table, layouts, items, waiting, .. } = recorded;
    let mut text = match recorded.recorded {
        true => {
            format!(
                "table {table} is recorded as it is: {items} items, each where the layouts put it ({layouts})"
            )
        }
        false => format!(
            "table {table}: {items} items, each at its place; it would be put on record so: {layouts}"
        ),
    };
    if !waiting.is_empty() {
        let waiting = waiting.join(", ");
        text += &format!("\n{waiting} holds plain values: `heatsink adopt {table}` spreads them");
    }
    text
}
