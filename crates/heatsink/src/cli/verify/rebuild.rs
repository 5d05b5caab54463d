//! `heatsink verify TABLE --rebuild`: puts a table back on record whose record is lost with its
//! registry; and what `verify` says of a table without a record.

use std::sync::Arc;

use heatsink_control::Fencing;
use heatsink_control::rules::FenceSettings;
use heatsink_env::Env;
use heatsink_layout::in_slots;
use heatsink_store::Store;
use heatsink_workers::{NotTold, Rebuild, Rebuilt, Told, WorkerError};

use super::args::Args;
use crate::cli::open::not_answered;
use crate::cli::print;
use crate::cli::progress::Bar;
use crate::exit::Exit;
use crate::output::Output;

/// The most keys that are listed.
const LISTED: usize = 20;

/// What reads the items of the table.
pub(super) struct Reading<'a> {
    pub args: &'a Args,
    pub store: Arc<dyn Store>,
    pub env: Arc<dyn Env>,
    pub fence: &'a FenceSettings,
    /// The most items a second.
    pub rate: Option<u64>,
}

impl Reading<'_> {
    async fn prepare(self) -> Result<Rebuild, WorkerError> {
        let Reading { args, store, env, fence, .. } = self;
        let fencing = match &args.upstream {
            Some(_) => Fencing::shared(fence, "verify"),
            None => Fencing::exclusive(fence),
        };
        Rebuild::prepare(store, env, fence, &args.table, fencing).await
    }
}

/// Runs it. Exit 0 when everything is told, and with --yes recorded; 1 when something is not told;
/// 64 when the table is on record, or is not to be recorded.
pub(super) async fn rebuild(reading: Reading<'_>) -> Result<(), Exit> {
    let Reading { args, rate, .. } = reading;
    let bar = Bar::new(args.output);
    let ready = reading.prepare().await.map_err(failed)?;
    let mut rebuilt = ready.look(rate, &bar).await.map_err(failed)?;
    bar.done();
    if rebuilt.keys.is_empty()
        && rebuilt.values.is_empty()
        && (rebuilt.not_told.is_empty() || args.as_logical_keys)
    {
        return Err(Exit::usage(format!(
            "None of the {} items of table {} shows a layout, so there is nothing to put on record. If a rule laid it out in another way than by shards of the \
             sort key: `heatsink adopt {1} --as-it-lies`. If its items are under their own keys: say `required = false` under [fence]",
            rebuilt.items, rebuilt.table
        )));
    }
    let not_told = if args.as_logical_keys { 0 } else { rebuilt.not_told.len() };
    if args.yes && not_told == 0 {
        rebuilt = ready.record(rebuilt, args.as_logical_keys).await.map_err(failed)?;
    }
    match args.output {
        Output::Json => {
            print::json(&serde_json::to_value(&rebuilt).map_err(|error| Exit::software(error.to_string()))?)?
        }
        Output::Text => print::text(&text(&rebuilt))?,
    }
    match not_told {
        0 => Ok(()),
        not_told => Err(Exit::failed(format!(
            "table {} cannot be put on record: {not_told} keys or values are written like shards and do not tell their layout. Restore the registry from a \
             backup; or, if clients wrote them, say --as-logical-keys",
            rebuilt.table
        ))),
    }
}

/// What `verify` says of a table without a record, after its items were read: that there is nothing
/// to verify, or that the record is lost.
pub(super) async fn not_recorded(reading: Reading<'_>, said: &str) -> Exit {
    let bar = Bar::new(reading.args.output);
    let rate = reading.rate;
    let looked = async { reading.prepare().await?.look(rate, &bar).await };
    let rebuilt = match looked.await {
        Ok(rebuilt) => rebuilt,
        Err(error) => return failed(error),
    };
    bar.done();
    let Rebuilt { table, items, .. } = &rebuilt;
    if rebuilt.is_whole() {
        return Exit::usage(format!(
            "{said}: none of its {items} items lies under a key that is written like a shard, every item is where its client put it, and there is nothing to verify"
        ));
    }
    let rebuild =
        format!("`heatsink verify {table} --rebuild` lists them, and says what can be put on record");
    let unsure = rebuilt.keys.is_empty() && rebuilt.values.is_empty() && rebuilt.sign.is_none();
    Exit::failed(match (&rebuilt.sign, unsure) {
        (Some(sign), _) => format!("{said}, and its record is lost. {sign}"),
        (None, false) => format!(
            "{said}, and {} keys lie in shards: its record is lost, or it is a copy of a sharded table, and requests find only a part of their items. {rebuild}",
            rebuilt.keys.len() + rebuilt.values.len()
        ),
        (None, true) => format!(
            "{said}, and {} keys are written like shards. It cannot be told whether they are shards, and its record is lost, or keys of clients. {rebuild}",
            rebuilt.not_told.len()
        ),
    })
}

fn text(rebuilt: &Rebuilt) -> String {
    let Rebuilt { table, items, keys, values, not_told, recorded, sign, .. } = rebuilt;
    let mut text = format!("table {table}: {items} items read\n");
    if let Some(sign) = sign {
        text += &format!("{sign}\n");
    }
    let told = |one: &Told| {
        let of = one.index.as_ref().map_or_else(String::new, |index| format!(" of the index {index}"));
        let or_more = if one.at_most > one.shards {
            format!(" (up to {} put each item there)", one.at_most)
        } else {
            String::new()
        };
        format!(
            "        {:?}{of}: {}{}{or_more}, {} items\n",
            one.key,
            one.split_at.as_ref().map_or_else(
                || format!("{} shards", one.shards),
                |points| format!("{} ranges, split at {points}", one.shards)
            ),
            in_slots(&one.slots),
            one.items
        )
    };
    text += &format!("{:>10} keys and values of indexes tell their shards\n", keys.len() + values.len());
    keys.iter().chain(values).take(LISTED).for_each(|one| text += &told(one));
    if !not_told.is_empty() {
        text += &format!("{:>10} are written like shards and do not\n", not_told.len());
        for NotTold { key, index, items, why } in not_told.iter().take(LISTED) {
            let of = index.as_ref().map_or_else(String::new, |index| format!(" of the index {index}"));
            text += &format!("        {key:?}{of}, {items} items: {why}\n");
        }
    }
    text += &match recorded {
        true => format!("recorded. Check it with: heatsink verify {table} …; then start the gateways\n"),
        false => format!(
            "nothing was changed; with no gateway running: heatsink verify {table} … --rebuild --yes\n"
        ),
    };
    text
}

fn failed(error: WorkerError) -> Exit {
    match error {
        WorkerError::Usage(problem) => Exit::usage(problem),
        WorkerError::Store(error) => {
            not_answered("The table was not read to its end, or not recorded", &error)
        }
        other => Exit::failed(other.to_string()),
    }
}
