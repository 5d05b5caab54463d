//! Writes the intents that a command asks for: what is asked for already, whether any gateway would
//! carry them out, and whether all know what comes of it.
//!
//! Not here: whether a key, or a value of an index, can be resharded (`ask`, `value`).

use std::time::Duration;

use futures::{StreamExt, TryStreamExt, stream};
use heatsink_control::reshard_intent::{Request, ReshardIntent, Subject, WantedLayout};
use heatsink_control::{Fencing, Gateway};
use heatsink_dynamo::display::inert;
use heatsink_dynamo::{Error, KeyType};
use heatsink_workers::Here;

use super::args::{How, Place};
use super::opened::{Access, Opened};
use super::told::{are, command_on, status_command, unread};
use crate::cli::open::not_answered;
use crate::exit::Exit;

/// How many intents are read, or written, at once.
const AT_ONCE: usize = 32;

/// How often one is written whose place changes meanwhile.
const TRIES: u32 = 3;

/// How often the list of gateways is read while none has registered.
const LOOK: Duration = Duration::from_millis(250);

/// What is wanted of a key, or of a value of an index.
pub(in crate::cli) struct Wish {
    pub index: Option<String>,
    pub key: Vec<u8>,
    pub key_type: KeyType,
    pub layout: WantedLayout,
}

impl Wish {
    pub fn subject(&self) -> Subject<'_> {
        Subject { index: self.index.as_deref(), key: &self.key, key_type: self.key_type }
    }
}

/// How many gateways would carry it out.
///
/// # Errors
/// None would: what to do.
pub(super) async fn carriers(opened: &Opened, carries: fn(&Gateway) -> bool) -> Result<usize, Exit> {
    if opened.access == Access::BesideServer {
        // Of a server that has never sharded anything there is none. It is its only gateway: there
        // are no others that would have to notice.
        let changer = opened.changer(Fencing::exclusive(opened.rules.fence()));
        changer.make_registry().await.map_err(unread)?;
        return Ok(1);
    }
    let listed = match opened.observer().gateways().await.map_err(unread)? {
        Some((_, listed)) => listed,
        None => registered(opened, carries).await?,
    };
    match (listed.iter().filter(|one| carries(one)).count(), listed.len()) {
        (0, 0) => Err(Exit::unavailable(
            "No gateway is registered at this store, so nobody would carry it out, and no layout was changed. Start one, or say --here to carry it out \
             in this process. A gateway that runs with --only-gateway is not registered: start it without that first",
        )),
        (0, others) => Err(Exit::unavailable(format!(
            "The {others} gateways that are registered at this store do not carry this out: they are of an older version. Nothing was changed. \
             Start a newer one, or say --here to carry it out in this process"
        ))),
        (some, _) => Ok(some),
    }
}

/// Refuses what gateways of older builds do not know: they would refuse every request on its table.
pub(super) async fn known_to_all(
    opened: &Opened,
    knows: fn(&Gateway) -> bool,
    what: &str,
) -> Result<(), Exit> {
    if opened.access == Access::Alone {
        return Ok(());
    }
    let older = opened.observer().gateways_without(knows).await.map_err(unread)?;
    if older.is_empty() {
        return Ok(());
    }
    Err(Exit::unavailable(format!(
        "Gateways of an older build know no {what}, and would refuse every request on the table: {}. Start newer ones in their place first. Nothing was \
         changed",
        older.join(", ")
    )))
}

/// Makes the registry of a store that has none, and waits until a gateway has noticed it: without a
/// registry no gateway is registered.
async fn registered(opened: &Opened, carries: fn(&Gateway) -> bool) -> Result<Vec<Gateway>, Exit> {
    let changer = opened.changer(Fencing::shared(opened.rules.fence(), "reshard"));
    changer.make_registry().await.map_err(unread)?;
    let patience = changer.bounds().poll * 3 + Duration::from_secs(1);
    let begun = opened.env.now();
    loop {
        let listed = changer.gateways().await.map_err(unread)?.map(|(_, listed)| listed).unwrap_or_default();
        if listed.iter().any(carries) || opened.env.now().since(begun) > patience {
            return Ok(listed);
        }
        opened.env.sleep(LOOK).await;
    }
}

/// What is on record for each wish, where this process carries it out itself.
///
/// # Errors
/// Another process carries it out already, or would; something else is asked for.
pub(super) async fn left_to(
    (opened, here): (&Opened, &Here),
    table_id: &str,
    wishes: &[Wish],
    carries: fn(&Gateway) -> bool,
    place: &Place,
) -> Result<Vec<Option<ReshardIntent>>, Exit> {
    let gateways = match opened.access {
        // On a file there is none.
        Access::Alone => None,
        _ => opened.observer().gateways().await.map_err(unread)?,
    };
    let gateways = gateways.is_some_and(|(_, listed)| listed.iter().any(carries));
    let mut left = Vec::with_capacity(wishes.len());
    for wish in wishes {
        let found = opened.registry.intent_for(table_id, wish.subject()).await.map_err(unread)?;
        if let Some(open) = found.as_ref().filter(|found| found.is_open()) {
            let waits_for_gateway = open.carrier.is_none() && gateways;
            if waits_for_gateway || !here.is_left(open).await.map_err(unread)? {
                return Err(carried_out(open, place));
            }
            // A cancel goes on first.
            if !open.cancelled {
                agrees(open.clone(), &wish.layout, place)?;
            }
        }
        left.push(found);
    }
    Ok(left)
}

fn carried_out(one: &ReshardIntent, place: &Place) -> Exit {
    let who = match &one.carrier {
        Some(carrier) if carrier.gateway.is_empty() => inert(&carrier.name),
        _ => "a gateway".into(),
    };
    Exit::usage(format!(
        "A reshard of {} of table {} is asked for, and {who} carries it out: follow it with `{}`, or take it back first with `{}`",
        one.subject().in_words(),
        one.table,
        status_command(&one.table, place),
        command_on("cancel", one, place)
    ))
}

/// Writes the intents, and gives them as they are on record.
pub(super) async fn write(
    opened: &Opened,
    (table_id, table): (&str, &str),
    wishes: &[Wish],
    how: &How,
    place: &Place,
) -> Result<Vec<ReshardIntent>, Exit> {
    let registry = &opened.registry;
    let found = wishes.iter().map(|wish| registry.intent_for(table_id, wish.subject()));
    let found: Vec<_> =
        stream::iter(found.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await.map_err(unread)?;
    let mut before: Vec<Option<ReshardIntent>> = Vec::with_capacity(wishes.len());
    for (wish, found) in wishes.iter().zip(found) {
        before.push(found.map(|found| agrees(found, &wish.layout, place)).transpose()?);
    }
    let asked = opened.env.unix_millis();
    let unwritten = |error: Error| not_answered("Not all that was asked for could be written", &error);
    let writes = wishes.iter().zip(before).enumerate().map(|(at, (wish, before))| {
        // In the order of the list, also where a clock stands still.
        let request = request(wish, how, asked + u64::try_from(at).unwrap_or(0));
        let mut intent = registry.new_intent((table_id, table), wish.subject(), request);
        async move {
            let mut before = before;
            for _ in 0..TRIES {
                if let Some(before) = before.clone().filter(ReshardIntent::is_open) {
                    return Ok(before);
                }
                if let Some(before) = &before {
                    intent.version = before.version + 1;
                }
                if registry.write_intent(before.as_ref(), &intent).await.map_err(unwritten)? {
                    return Ok(intent);
                }
                // A gateway has taken off the one that had ended, or has taken this one and the
                // answer was lost; or another command was first.
                before = registry.intent_for(table_id, wish.subject()).await.map_err(unread)?;
                if before.as_ref().is_some_and(ReshardIntent::is_open) {
                    break;
                }
            }
            let found = before;
            found.filter(|found| found.request == intent.request).ok_or_else(|| {
                Exit::failed(format!(
                    "Another command asked for something of {} at the same time: look at `heatsink reshard status{}`, and run this again",
                    intent.subject().in_words(),
                    place.words(),
                ))
                .retryable()
            })
        }
    });
    stream::iter(writes.collect::<Vec<_>>()).buffered(AT_ONCE).try_collect().await
}

/// What this command asks for, at that time.
pub(super) fn request(wish: &Wish, how: &How, asked: u64) -> Request {
    Request {
        layout: wish.layout.clone(),
        rate: how.rate,
        streams_confirmed: how.confirm_streams,
        by: user(),
        asked,
    }
}

/// Who runs this command, for people.
pub(super) fn user() -> String {
    std::env::var("USER").unwrap_or_default()
}

/// An intent on record beside which this layout can be asked for.
fn agrees(found: ReshardIntent, wanted: &WantedLayout, place: &Place) -> Result<ReshardIntent, Exit> {
    let (table, of) = (&found.table, found.subject().in_words());
    match &found.ended {
        // What stopped in the middle goes on from there.
        Some(_) => Ok(found),
        None if found.cancelled => Err(Exit::failed(format!(
            "The reshard of {of} of table {table} is being cancelled: run this again when `{}` no longer names it",
            status_command(table, place)
        ))
        .retryable()),
        None if found.request.layout == *wanted => Ok(found),
        None => Err(Exit::usage(format!(
            "{} asked for already, for {of} of table {table}: let that end, or take it back with `{}`, and run this again",
            are(&found.request.layout),
            command_on("cancel", &found, place)
        ))),
    }
}
