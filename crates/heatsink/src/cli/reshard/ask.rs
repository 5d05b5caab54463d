//! Asks for layouts of keys: checks them all, then says what would be done, carries it out here, or writes the intents.

use std::time::Duration;

use heatsink_control::reshard_intent::{EndedAs, Request, ReshardIntent, WantedLayout, key_text};
use heatsink_control::{Fencing, Gateway};
use heatsink_mover::{Plan, Report, Reshard, TableContext};
use serde_json::{Value as Json, json};

use super::args::{How, Place, words};
use super::{Access, Opened, command, exit, follow, here, say, software, status_command, unread};
use crate::exit::Exit;

/// How often the list of gateways is read while none has registered.
const LOOK: Duration = Duration::from_millis(250);

/// The keys that a command is for.
pub(super) struct Asked {
    /// Each key's bytes, and what it is to have.
    pub wanted: Vec<(Vec<u8>, WantedLayout)>,
    /// Whether the command is for any number of keys.
    pub several: bool,
    /// How many items were read to find them.
    pub read: Option<u64>,
}

/// Does what is asked for.
pub(super) async fn ask(
    opened: &Opened,
    context: TableContext,
    asked: Asked,
    how: &How,
    place: &Place,
) -> Result<(), Exit> {
    let table = context.table().name.clone();
    let text = |key: &[u8]| key_text(key, context.key_type());
    // All of them, before anything is written.
    let mut reshards = Vec::with_capacity(asked.wanted.len());
    for (key, wanted) in &asked.wanted {
        reshards.push(context.reshard(key, wanted).map_err(exit)?);
    }
    let (todo, done): (Vec<_>, Vec<_>) =
        asked.wanted.iter().zip(&reshards).partition(|(_, reshard)| !reshard.is_done());
    if how.dry_run {
        return plan(&context, &asked, &reshards, how, place).await;
    }
    let already: Vec<String> = done.iter().map(|((key, _), _)| text(key)).collect();
    if todo.is_empty() {
        return nothing_to_do(&table, &asked, &already, place);
    }
    if let Some(frozen) = opened.observer().frozen().await.map_err(unread)? {
        return Err(Exit::failed(format!("{frozen}. Nothing was changed")));
    }
    let todo: Vec<_> = todo.into_iter().map(|(wanted, reshard)| (wanted.clone(), reshard)).collect();
    if how.here && opened.access == Access::BesideServer {
        return Err(Exit::usage(
            "--here: the server itself carries out what is asked of it; leave --here out, and say --wait to see it done",
        ));
    }
    if todo.iter().any(|((_, wanted), _)| wanted.counter.is_some()) {
        know(opened, |one| one.knows_counters, "counters of single keys").await?;
    }
    if todo.iter().any(|(_, reshard)| reshard.has_buckets()) {
        know(opened, |one| one.knows_steps, "buckets with several numbers of shards").await?;
        for (_, reshard) in &todo {
            reshard.can_begin().await.map_err(exit)?;
        }
    }
    if opened.access == Access::Alone || how.here {
        not_asked_for(opened, &context, &todo, place).await?;
        let mut reports = Vec::new();
        for (wanted, _) in &todo {
            reports.extend(here::carry_out(opened, &table, wanted, how, place).await.map_err(exit)?);
        }
        return say_done(&table, &asked, &reports, &already, place);
    }
    let gateways = carriers(opened).await?;
    let mut note = String::new();
    if let [(_, reshard)] = &*todo
        && !reshard.has_items().await.map_err(exit)?
    {
        note = " The key has no items yet: only its record is written.".to_owned();
    }
    let intents = write(opened, &context, &todo, how, place).await?;
    if how.wait {
        let reports = follow::all(opened, &context, &intents, place).await?;
        return say_done(&table, &asked, &reports, &already, place);
    }
    let follow = status_command(&table, place);
    let keys: Vec<String> = intents.iter().map(ReshardIntent::key_text).collect();
    let mut next_steps = vec![follow.clone()];
    if let [one] = &*keys {
        next_steps.extend(["pause", "cancel"].map(|what| command(what, &table, one, place)));
    }
    let document = json!({
        "table": table, "asked": keys, "already": already, "gateways": gateways, "items_read": asked.read, "next_steps": next_steps,
    });
    let what = match &*intents {
        [one] => format!(
            "{} shards are asked for, for the key {:?} of table {table}",
            one.request.layout.shards,
            one.key_text()
        ),
        many => {
            format!("other shards are asked for, for {} keys of table {table}{}", many.len(), read(&asked))
        }
    };
    let who = match opened.access {
        Access::BesideServer => "The server".to_owned(),
        _ => format!("One of {gateways} gateways"),
    };
    say(place.output, &document, &format!("{what}.{note} {who} carries it out. Follow it with: {follow}"))
}

fn read(asked: &Asked) -> String {
    asked.read.map(|read| format!(" ({read} items were read to find them)")).unwrap_or_default()
}

fn nothing_to_do(table: &str, asked: &Asked, already: &[String], place: &Place) -> Result<(), Exit> {
    match (&*asked.wanted, already) {
        ([(_, wanted)], [key]) if !asked.several => {
            let document =
                json!({ "table": table, "key": key, "to": wanted.shards, "already": true, "next_steps": [] });
            say(place.output, &document, &format!("the key {key:?} has {} shards already", wanted.shards))
        }
        _ => {
            let document = json!({ "table": table, "asked": [], "already": already, "items_read": asked.read, "next_steps": [] });
            let text = format!(
                "no key of table {table} is to be moved: {} have their shards already{}",
                already.len(),
                read(asked)
            );
            say(place.output, &document, &text)
        }
    }
}

fn say_done(
    table: &str,
    asked: &Asked,
    reports: &[Report],
    already: &[String],
    place: &Place,
) -> Result<(), Exit> {
    let line = |report: &Report| match &report.step {
        Some(step) => {
            format!("the key {:?} of table {} has {} shards {step}", report.key, report.table, report.to)
        }
        None => format!(
            "the key {:?} of table {} has {} shards; it had {}. {} items were moved",
            report.key, report.table, report.to, report.from, report.moved
        ),
    };
    let text: Vec<String> = reports.iter().map(line).collect();
    let document = match reports {
        [report] if !asked.several => {
            let mut document = serde_json::to_value(report).map_err(software)?;
            document["next_steps"] = json!([]);
            document
        }
        _ => {
            json!({ "table": table, "moved": reports, "already": already, "items_read": asked.read, "next_steps": [] })
        }
    };
    say(place.output, &document, &text.join("\n"))
}

/// How many gateways would carry it out.
///
/// # Errors
/// None would: what to do.
async fn carriers(opened: &Opened) -> Result<usize, Exit> {
    if opened.access == Access::BesideServer {
        // Of a server that has never sharded anything there is none. It is its only gateway: there are no others that would have to notice.
        let changer = opened.changer(Fencing::exclusive(opened.rules.fence()));
        changer.make_registry().await.map_err(unread)?;
        return Ok(1);
    }
    let listed = match opened.observer().gateways().await.map_err(unread)? {
        Some((_, listed)) => listed,
        None => registered(opened).await?,
    };
    match (listed.iter().filter(|one| one.carries).count(), listed.len()) {
        (0, 0) => Err(Exit::unavailable(
            "No gateway is registered at this store, so nobody would carry it out, and no layout was changed. Start one, or say --here to carry it out \
             in this process. A gateway that runs with --only-gateway is not registered: start it without that first",
        )),
        (0, others) => Err(Exit::unavailable(format!(
            "The {others} gateways that are registered at this store do not carry out reshards: they are of an older version. Nothing was changed. \
             Start a newer one, or say --here to carry it out in this process"
        ))),
        (some, _) => Ok(some),
    }
}

/// Refuses what gateways of older builds do not know: they would refuse every request on its table.
async fn know(opened: &Opened, knows: fn(&Gateway) -> bool, what: &str) -> Result<(), Exit> {
    if opened.access != Access::BesideGateways {
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

/// Makes the registry of a store that has none, and waits until a gateway has noticed it: without a registry no gateway is registered.
async fn registered(opened: &Opened) -> Result<Vec<Gateway>, Exit> {
    let changer = opened.changer(Fencing::shared(opened.rules.fence(), "reshard"));
    changer.make_registry().await.map_err(unread)?;
    let patience = changer.bounds().poll * 3 + Duration::from_secs(1);
    let begun = opened.env.now();
    loop {
        let listed = changer.gateways().await.map_err(unread)?.map(|(_, listed)| listed).unwrap_or_default();
        if listed.iter().any(|one| one.carries) || opened.env.now().since(begun) > patience {
            return Ok(listed);
        }
        opened.env.sleep(LOOK).await;
    }
}

/// Refuses keys that a gateway carries out already, or would.
async fn not_asked_for(
    opened: &Opened,
    context: &TableContext,
    todo: &[((Vec<u8>, WantedLayout), &Reshard)],
    place: &Place,
) -> Result<(), Exit> {
    let intents = opened.registry.intents(true).await.map_err(unread)?.known;
    let open = |key: &[u8]| {
        intents.iter().find(|one| one.table_id == context.id() && one.key == key && one.is_open())
    };
    // On a file nobody else would.
    match todo.iter().find_map(|((key, _), _)| open(key)).filter(|_| opened.access != Access::Alone) {
        None => Ok(()),
        Some(one) => Err(Exit::usage(format!(
            "A reshard of the key {:?} of table {} is asked for, and a gateway carries it out: follow it with `{}`, or take \
             it back first with `{}`",
            one.key_text(),
            one.table,
            status_command(&one.table, place),
            command("cancel", &one.table, &one.key_text(), place)
        ))),
    }
}

/// Writes the intents, and gives them as they are on record.
async fn write(
    opened: &Opened,
    context: &TableContext,
    todo: &[((Vec<u8>, WantedLayout), &Reshard)],
    how: &How,
    place: &Place,
) -> Result<Vec<ReshardIntent>, Exit> {
    let registry = &opened.registry;
    let mut before = Vec::with_capacity(todo.len());
    for ((key, wanted), _) in todo {
        let found = registry.intent(context.id(), key, context.key_type()).await.map_err(unread)?;
        before.push(found.map(|found| agrees(found, wanted, place)).transpose()?);
    }
    let by = std::env::var("USER").unwrap_or_default();
    let asked = opened.env.unix_millis();
    let mut written = Vec::with_capacity(todo.len());
    for (((key, wanted), _), before) in todo.iter().zip(before) {
        // In the order of the list, also where a clock stands still.
        let asked = asked + u64::try_from(written.len()).unwrap_or(0);
        if let Some(before) = before.clone().filter(ReshardIntent::is_open) {
            written.push(before);
            continue;
        }
        let request = Request {
            layout: wanted.clone(),
            rate: how.rate,
            streams_confirmed: how.confirm_streams,
            by: by.clone(),
            asked,
        };
        let table = (context.id(), context.table().name.as_str());
        let mut intent = registry.new_intent(table, (key, context.key_type()), request);
        if let Some(before) = &before {
            intent.version = before.version + 1;
        }
        let done = registry.write_intent(before.as_ref(), &intent).await;
        if !done.map_err(|error| super::not_answered("The intent could not be written", &error))? {
            return Err(Exit::failed(format!(
                "Another command asked for something of the key {:?} at the same time: look at `heatsink reshard status{}`, and run this again. {} keys \
                 were asked for before it",
                intent.key_text(),
                place.words(),
                written.len()
            ))
            .retryable());
        }
        written.push(intent);
    }
    Ok(written)
}

/// An intent on record beside which this layout can be asked for.
fn agrees(found: ReshardIntent, wanted: &WantedLayout, place: &Place) -> Result<ReshardIntent, Exit> {
    let (table, key) = (&found.table, found.key_text());
    match &found.ended {
        // What stopped in the middle goes on from there.
        Some(_) => Ok(found),
        None if found.cancelled => Err(Exit::failed(format!(
            "The reshard of the key {key:?} of table {table} is being cancelled: run this again when `{}` no longer names it",
            status_command(table, place)
        ))
        .retryable()),
        None if found.request.layout == *wanted => Ok(found),
        None => Err(Exit::usage(format!(
            "{} shards are asked for already, for the key {key:?} of table {table}: let that end, or take it back with `{}`, and run this again",
            found.request.layout.shards,
            command("cancel", table, &key, place)
        ))),
    }
}

/// Says what would be done.
async fn plan(
    context: &TableContext,
    asked: &Asked,
    reshards: &[Reshard],
    how: &How,
    place: &Place,
) -> Result<(), Exit> {
    let mut plans = Vec::with_capacity(reshards.len());
    for ((key, wanted), reshard) in asked.wanted.iter().zip(reshards) {
        let mut plan = reshard.plan(how.rate).await.map_err(exit)?;
        if !reshard.is_done() {
            let key = key_text(key, context.key_type());
            plan.next_steps.push(format!("{} {}", command("start", &plan.table, &key, place), words(wanted)));
        }
        plans.push(plan);
    }
    let text: Vec<String> = plans.iter().map(in_words).collect();
    let document = match (&*plans, asked.several) {
        ([plan], false) => serde_json::to_value(plan).map_err(software)?,
        _ => {
            let sum = |of: fn(&Plan) -> u64| plans.iter().map(of).sum::<u64>();
            json!({
                "table": context.table().name, "keys": plans, "items_read": asked.read, "items": sum(|plan| plan.items),
                "to_move": sum(|plan| plan.to_move), "write_units": sum(|plan| plan.write_units),
                "dollars": plans.iter().map(|plan| plan.dollars).sum::<f64>(), "next_steps": Json::Array(Vec::new()),
            })
        }
    };
    let text = if text.is_empty() { "no key is to be moved".to_owned() } else { text.join("\n") };
    say(place.output, &document, &text)
}

fn in_words(plan: &Plan) -> String {
    let next = plan.next_steps.first().map(|next| format!("\nNext: {next}")).unwrap_or_default();
    if let Some(counter) = &plan.counter {
        return format!(
            "the key {:?} of table {} has {} shards and {} items; with {} shards ADDs to {} go to each in turn, and no item moves or waits. A read of an item \
             takes {} to {} units, setting or deleting it {} write units. Phases: {}. Point of no return: {}{next}",
            plan.key,
            plan.table,
            plan.from,
            plan.items,
            plan.to,
            counter.join(", "),
            f64::from(plan.to) / 2.0,
            plan.to,
            u32::from(plan.to) * 2,
            plan.phases.join(", "),
            plan.point_of_no_return
        );
    }
    if let Some(step) = &plan.step {
        return format!(
            "the key {:?} of table {} has {} shards in each bucket to come, and gets {} {step}. Relief comes then, and not before: the bucket of now is one \
             of those. No item moves; writes into the buckets to come wait for a moment. Phases: {}. Point of no return: {}{next}",
            plan.key,
            plan.table,
            plan.from,
            plan.to,
            plan.phases.join(", "),
            plan.point_of_no_return
        );
    }
    let expires = plan.time_to_live.as_ref().map(|attribute| {
        format!(
            ". The table has time to live: until an item has moved, puts with the attribute {attribute:?} read its old shard and bring it over first, \
             so relief may be slower, and they wait in CHECK as conditional writes do. UpdateTimeToLive is refused until the move has ended"
        )
    });
    format!(
        "the key {:?} of table {} has {} shards and {} items; for {} shards some {} of them move, some {} KB in {} s, with some {} write and {} read \
         units (${:.2} on demand). Writes of the key wait some {} ms; where a gateway was killed or does not answer, up to {} s. Phases: {}. Point of \
         no return: {}{}{next}",
        plan.key,
        plan.table,
        plan.from,
        plan.items,
        plan.to,
        plan.to_move,
        plan.bytes_to_move / 1024,
        plan.seconds,
        plan.write_units,
        plan.read_units,
        plan.dollars,
        plan.stall_millis,
        plan.longest_stall_millis / 1000,
        plan.phases.join(", "),
        plan.point_of_no_return,
        expires.unwrap_or_default()
    )
}

/// Whether an intent ended as it was meant to.
pub(super) fn is_good(how: EndedAs) -> bool {
    how == EndedAs::Moved
}
