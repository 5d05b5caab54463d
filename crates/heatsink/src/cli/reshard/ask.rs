//! Asks for layouts of keys: checks them all, then says what would be done, carries it out here, or
//! writes the intents.

use heatsink_control::reshard_intent::{ReshardIntent, Subject, WantedLayout, key_text};
use heatsink_dynamo::KeyType;
use heatsink_layout::{in_slots, shards};
use heatsink_workers::{Plan, Reshard, ReshardReport, TableContext, WorkerError};
use serde_json::{Value as Json, json};

use super::args::{How, Place, words};
use super::intents::{self, Wish};
use super::opened::{Access, Opened};
use super::told::{are, command, exit, say, software, status_command, stopped, unread};
use super::{follow, here, warnings};
use crate::exit::Exit;

/// The keys that a command is for.
pub(super) struct Asked {
    /// Each key's bytes, and what it is to have.
    pub wanted: Vec<(Vec<u8>, WantedLayout)>,
    /// Whether the command is for any number of keys.
    pub several: bool,
    /// How many items were read to find them.
    pub read: Option<u64>,
    /// Whether the operator has said that everything that uses the table goes through gateways.
    pub yes: bool,
}

/// Does what is asked for.
pub(super) async fn ask(
    opened: &Opened,
    context: TableContext,
    mut asked: Asked,
    how: &How,
    place: &Place,
) -> Result<(), Exit> {
    let table = context.table().name.clone();
    let text = |key: &[u8]| key_text(key, context.key_type());
    // All of them, before anything is written.
    let refused = leave_out(&context, &mut asked)?;
    let mut reshards = Vec::with_capacity(asked.wanted.len());
    for (key, wanted) in &asked.wanted {
        reshards.push(context.reshard(key, wanted).map_err(exit)?);
    }
    let (todo, done): (Vec<_>, Vec<_>) =
        asked.wanted.iter().zip(&reshards).partition(|(_, reshard)| !reshard.is_done());
    let all_through = warnings::all_through(opened, context.id(), &table).await?;
    if how.dry_run {
        return plan(&context, &asked, &reshards, how, place, all_through).await;
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
        intents::known_to_all(opened, |one| one.knows_counters, "counters of single keys").await?;
    }
    if todo.iter().any(|(_, reshard)| reshard.narrows()) {
        intents::known_to_all(opened, |one| one.knows_narrowing, "counters that get fewer shards").await?;
    }
    if todo.iter().any(|(_, reshard)| reshard.has_slots_by_name()) {
        intents::known_to_all(opened, |one| one.knows_slots, "slots by name").await?;
    }
    if todo.iter().any(|((_, wanted), _)| wanted.split_at.is_some()) {
        intents::known_to_all(opened, |one| one.knows_ranges, "ranges of sort keys").await?;
    }
    if context.key_type() == KeyType::N {
        intents::known_to_all(opened, |one| one.knows_numbers, "shards of keys that are numbers").await?;
    }
    let is_long = |key: &[u8]| Subject::from((key, context.key_type())).is_long(context.id());
    if todo.iter().any(|((key, _), _)| is_long(key)) {
        intents::known_to_all(opened, |one| one.knows_long_keys, "keys of a kilobyte").await?;
    }
    if todo.iter().any(|(_, reshard)| reshard.has_buckets()) {
        intents::known_to_all(opened, |one| one.knows_steps, "buckets with several numbers of shards")
            .await?;
        for (_, reshard) in &todo {
            reshard.can_begin().await.map_err(exit)?;
        }
    }
    // Those that a prefix found have items.
    let named = todo.iter().filter(|_| asked.read.is_none()).map(|((key, _), reshard)| (text(key), *reshard));
    let mut warnings = warnings::of_keys(&context, named).await?;
    for warning in &warnings {
        tracing::warn!("{warning}");
    }
    warnings::ask(all_through.as_deref(), asked.yes)?;
    warnings.extend(all_through);
    warnings.extend(refused);
    let wish = |((key, layout), _): &((Vec<u8>, WantedLayout), &Reshard)| {
        let (key, key_type, layout) = (key.clone(), context.key_type(), layout.clone());
        Wish { index: None, key, key_type, layout }
    };
    let wishes: Vec<Wish> = todo.iter().map(wish).collect();
    if opened.access == Access::Alone || how.here {
        let here = &here::here(opened);
        let left = intents::left_to((opened, here), context.id(), &wishes, |one| one.carries, place).await?;
        let mut reports = Vec::new();
        for (wish, before) in wishes.iter().zip(&left) {
            let id = (context.id(), &*table);
            let report = here::carry_out((opened, here), id, (wish, before.as_ref()), how, place).await;
            reports.push(report.map_err(stopped)?);
        }
        return say_done(&table, &asked, &reports, &already, &warnings, place);
    }
    let gateways = intents::carriers(opened, |one| one.carries).await?;
    let intents = intents::write(opened, (context.id(), &table), &wishes, how, place).await?;
    if how.wait {
        let from = |intent: &ReshardIntent| {
            let has = context.record(&intent.key).map(|one| one.layout.shards);
            has.unwrap_or_else(|| context.without_record(&intent.key).shards)
        };
        let followed: Vec<_> = intents.iter().map(|intent| (intent, from(intent))).collect();
        let reports = follow::all(opened, &followed, place).await?;
        return say_done(&table, &asked, &reports, &already, &warnings, place);
    }
    let follow = status_command(&table, place);
    let keys: Vec<String> = intents.iter().map(ReshardIntent::key_text).collect();
    let mut next_steps = vec![follow.clone()];
    if let [one] = &*keys {
        next_steps.extend(["pause", "cancel"].map(|what| command(what, &table, one, place)));
    }
    let document = json!({
        "table": table, "asked": keys, "already": already, "gateways": gateways, "items_read": asked.read, "warnings": warnings,
        "next_steps": next_steps,
    });
    let what = match &*intents {
        [one] => format!(
            "{} asked for, for the key {:?} of table {table}",
            are(&one.request.layout),
            one.key_text()
        ),
        many => {
            format!(
                "other shards are asked for, for {} keys of table {table}{}",
                many.len(),
                items_read(asked.read)
            )
        }
    };
    let who = who(opened, gateways);
    say(place.output, &document, &format!("{what}. {who} carries it out. Follow it with: {follow}"))
}

/// Takes the keys out that cannot have what is wanted, where there are several, and says why of
/// each. The others go on.
///
/// # Errors
/// None is left: why the first cannot.
fn leave_out(context: &TableContext, asked: &mut Asked) -> Result<Vec<String>, Exit> {
    let (mut why, mut first) = (Vec::new(), None);
    if !asked.several {
        return Ok(why);
    }
    asked.wanted.retain(|(key, wanted)| match context.reshard(key, wanted) {
        Err(error @ WorkerError::Usage(_)) => {
            why.push(format!("The key {:?} is left out: {error}", key_text(key, context.key_type())));
            first.get_or_insert(error);
            false
        }
        _ => true,
    });
    why.iter().for_each(|why| tracing::warn!("{why}"));
    match first {
        Some(error) if asked.wanted.is_empty() => Err(exit(error)),
        _ => Ok(why),
    }
}

/// Who of so many gateways carries it out.
pub(super) fn who(opened: &Opened, gateways: usize) -> String {
    match opened.access {
        Access::BesideServer => "The server".to_owned(),
        _ => format!("One of {gateways} gateways"),
    }
}

/// How many items were read to find what a command is for, in words.
pub(super) fn items_read(read: Option<u64>) -> String {
    read.map(|read| format!(" ({read} items were read to find them)")).unwrap_or_default()
}

fn nothing_to_do(table: &str, asked: &Asked, already: &[String], place: &Place) -> Result<(), Exit> {
    match (&*asked.wanted, already) {
        ([(_, wanted)], [key]) if !asked.several => {
            let document =
                json!({ "table": table, "key": key, "to": wanted.shards, "already": true, "next_steps": [] });
            say(place.output, &document, &format!("the key {key:?} has {} already", wanted.in_words()))
        }
        _ => {
            let document = json!({ "table": table, "asked": [], "already": already, "items_read": asked.read, "next_steps": [] });
            let text = format!(
                "no key of table {table} is to be moved: {} have their shards already{}",
                already.len(),
                items_read(asked.read)
            );
            say(place.output, &document, &text)
        }
    }
}

fn say_done(
    table: &str,
    asked: &Asked,
    reports: &[ReshardReport],
    already: &[String],
    warnings: &[String],
    place: &Place,
) -> Result<(), Exit> {
    let line = |report: &ReshardReport| match &report.step {
        Some(step) => {
            format!("the key {:?} of table {} has {} {step}", report.key, report.table, shards(report.to))
        }
        None => format!(
            "the key {:?} of table {} has {}{}; it had {}. {} items were moved",
            report.key,
            report.table,
            report.split_at.as_ref().map_or_else(
                || shards(report.to),
                |points| format!("{} ranges, split at {points}", report.to)
            ),
            in_slots(&report.slots),
            report.from,
            report.moved
        ),
    };
    let text: Vec<String> = reports.iter().map(line).collect();
    let document = match reports {
        [report] if !asked.several => {
            let mut document = serde_json::to_value(report).map_err(software)?;
            document["warnings"] = json!(warnings);
            document["next_steps"] = json!([]);
            document
        }
        _ => json!({
            "table": table, "moved": reports, "already": already, "items_read": asked.read, "warnings": warnings, "next_steps": [],
        }),
    };
    say(place.output, &document, &text.join("\n"))
}

/// Says what would be done.
async fn plan(
    context: &TableContext,
    asked: &Asked,
    reshards: &[Reshard],
    how: &How,
    place: &Place,
    all_through: Option<String>,
) -> Result<(), Exit> {
    let mut plans = Vec::with_capacity(reshards.len());
    for ((key, wanted), reshard) in asked.wanted.iter().zip(reshards) {
        let mut plan = reshard.plan(how.rate).await.map_err(exit)?;
        if !reshard.is_done() {
            plan.warnings = warnings::of_plan(&plan, reshard).await?;
            plan.warnings.extend(all_through.clone());
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
    let next = plan.next_steps.first().map(|next| format!("\nNext: {next}"));
    let warnings = plan.warnings.iter().map(|warning| format!("\nwarning: {warning}"));
    let next = warnings.chain(next).collect::<String>();
    if let Some(counter) = plan.counter.as_ref().filter(|_| plan.from > plan.to) {
        return format!(
            "the key {:?} of table {} has {} and {} items; {} {}. ADDs to {} go to what is left first; then the parts in the others, some {}, are added to \
             their items, one transaction each, in some {} s, with some {} write and {} read units (${:.2} on demand). Nothing waits; a read of an item \
             takes twice the units meanwhile. Phases: {}. Point of no return: {}{next}",
            plan.key,
            plan.table,
            shards(plan.from),
            plan.items,
            if plan.to == 1 { "it becomes a whole key with" } else { "it keeps" },
            shards(plan.to),
            counter.join(", "),
            plan.to_move,
            plan.seconds,
            plan.write_units,
            plan.read_units,
            plan.dollars,
            plan.phases.join(", "),
            plan.point_of_no_return
        );
    }
    if let Some(counter) = &plan.counter {
        return format!(
            "the key {:?} of table {} has {} and {} items; with {} ADDs to {} go to each in turn, and no item moves or waits. A read of an item \
             takes {} to {} units, setting or deleting it {} write units. Phases: {}. Point of no return: {}{next}",
            plan.key,
            plan.table,
            shards(plan.from),
            plan.items,
            shards(plan.to),
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
            "the key {:?} of table {} has {} in each bucket to come, and gets {} {step}. Relief comes then, and not before: the bucket of now is one \
             of those. No item moves; writes into the buckets to come wait for a moment. Phases: {}. Point of no return: {}{next}",
            plan.key,
            plan.table,
            shards(plan.from),
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
        "the key {:?} of table {} has {}{} and {} items; for {}{} some {} of them move, some {} KB in {} s, with some {} write and {} read \
         units (${:.2} on demand). While they move, a page of a Query of the key takes up to {} read units. Writes of the key wait some {} ms; where a gateway \
         was killed or does not answer, up to {} s. Phases: {}. Point of no return: {}{}{next}",
        plan.key,
        plan.table,
        shards(plan.from),
        in_slots(&plan.from_slots),
        plan.items,
        plan.split_at
            .as_ref()
            .map_or_else(|| shards(plan.to), |points| format!("{} ranges, split at {points},", plan.to)),
        in_slots(&plan.to_slots),
        plan.to_move,
        plan.bytes_to_move / 1024,
        plan.seconds,
        plan.write_units,
        plan.read_units,
        plan.dollars,
        plan.page_units,
        plan.stall_millis,
        plan.longest_stall_millis / 1000,
        plan.phases.join(", "),
        plan.point_of_no_return,
        expires.unwrap_or_default()
    )
}
