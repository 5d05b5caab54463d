//! `heatsink reshard`: asks for other shards for keys while clients use them, follows that, and
//! says which keys are on record.
//!
//! The commands write intents to the registry, and a gateway carries them out. On a data file,
//! where there is no gateway, and with `--here` the command carries them out itself; where it is
//! killed, a gateway goes on. With `--index` all of them are about values of that index
//! ([`value`]).

mod args;
mod ask;
mod by_gateways;
mod change;
mod follow;
mod here;
mod intents;
mod keys;
mod on_record;
mod opened;
mod quoted;
mod ranges;
mod shard_form;
mod status;
mod summary;
mod told;
mod too_late;
mod unasked;
mod value;
mod value_words;
mod warnings;

use heatsink_control::reshard_intent::key_text;
use heatsink_layout::ValueLayout;
use heatsink_workers::TableContext;

pub use self::args::Args;
pub(super) use self::args::{How, Place};
use self::args::{Start, What};
pub(super) use self::by_gateways::by_gateways;
pub(super) use self::intents::Wish;
pub(super) use self::opened::{Access, Opened};
pub(super) use self::quoted::quoted;
use self::told::exit;
pub(super) use self::told::{command, command_on, stopped, unread};
pub(super) use self::value_words::start_command as start_value_command;
use crate::exit::Exit;

/// Runs it. Exit 0 when it is as asked, or asked for; 64 when it cannot be; 69 when the store did
/// not answer, or no gateway would carry it out; 1 when it stopped on the way, and what it says
/// tells how to go on.
pub fn run(args: Args) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.what {
            What::Start(start) => begin(start).await,
            What::Back(back) => self::back(back).await,
            What::Status(status) => status::list(status).await,
            What::Pause(some) => change::change(some, change::Change::Pause).await,
            What::Resume(some) => change::change(some, change::Change::Resume).await,
            What::Cancel(some) => change::change(some, change::Change::Cancel).await,
        }
    })
}

async fn begin(start: Start) -> Result<(), Exit> {
    args::shards(&start)?;
    let opened = Opened::at(&start.place).await?;
    if let Some(index) = &start.index {
        return value::begin(&opened, &start, index).await;
    }
    let wanted = args::wanted(&start)?;
    let context = opened.table(&start.table, start.how.confirm_streams).await.map_err(exit)?;
    let keys = keys::named(&opened, &context, &start).await?;
    let several = start.key.len() != 1;
    shard_form::refuse(&opened, &context, &keys.keys, !start.key.is_empty()).await?;
    let mut of_keys = Vec::with_capacity(keys.keys.len());
    for key in keys.keys {
        let full = ranges::with_ranges(&context, &key, &start, context.in_full(&key, &wanted)).await?;
        of_keys.push((key, full));
    }
    let asked = ask::Asked { wanted: of_keys, several, read: keys.read, yes: start.yes };
    ask::ask(&opened, context, asked, &start.how, &start.place).await
}

async fn back(back: args::Back) -> Result<(), Exit> {
    let opened = Opened::at(&back.place).await?;
    let context = opened.table(&back.table, back.how.confirm_streams).await.map_err(exit)?;
    let wanted: Vec<_> = match &back.key {
        Some(key) => {
            let key = keys::bytes(&context, key)?;
            let wanted = context.in_full(&key, &context.without_record(&key));
            vec![(key, wanted)]
        }
        None => {
            let elsewhere = context.elsewhere();
            keys::bounded(elsewhere.len(), &back.table)?;
            elsewhere
        }
    };
    let several = back.key.is_none();
    let values = if several { values_left(&opened, &context, &back).await? } else { None };
    ask::ask(&opened, context, ask::Asked { wanted, several, read: None, yes: true }, &back.how, &back.place)
        .await?;
    match values {
        Some(left) if back.how.dry_run => {
            tracing::warn!("{left}");
            Ok(())
        }
        Some(left) => Err(Exit::failed(left)),
        None => Ok(()),
    }
}

/// The values of indexes that keep their shards, with the command for each: `--all` is for keys.
async fn values_left(
    opened: &Opened,
    context: &TableContext,
    back: &args::Back,
) -> Result<Option<String>, Exit> {
    let record = opened.registry.read(context.id()).await.map_err(unread)?;
    let values = record.map(|record| record.values).unwrap_or_default();
    let place = back.place.words();
    let command = |one: &ValueLayout| {
        let value = key_text(&one.value, one.index.attribute.key_type);
        format!("`{}`", value_words::start_command(&back.table, &value, &one.index.name, 1, &place))
    };
    let spread = values.iter().filter(|one| one.shards > 1 || one.migration.is_some());
    let commands: Vec<String> = spread.map(command).collect();
    Ok((!commands.is_empty()).then(|| {
        format!(
            "These values of indexes of table {} keep their shards, since --all is for keys. What brings each back: {}",
            back.table,
            commands.join(", ")
        )
    }))
}
