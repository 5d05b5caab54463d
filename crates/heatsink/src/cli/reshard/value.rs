//! Values of an index: checks them all, then says what would be done, carries it out here, or
//! writes the intents.
//!
//! Not here: values on record and plans in words (`value_words`).

use heatsink_control::Gateway;
use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_layout::shards;
use heatsink_workers::{ReshardReport, ValueAsked, ValuePlan, ValueReshard};
use serde_json::{Value as Json, json};

use super::args::Start;
use super::ask::{items_read, who};
use super::intents::{self, Wish};
use super::opened::{Access, Opened};
use super::told::{are, command_on, exit, say, status_command, stopped, unread};
use super::value_words::{planned, start_command, words};
use super::{args, follow, here, keys, warnings};
use crate::cli::progress::Bar;
use crate::exit::Exit;

/// What a command is for.
struct Asked<'a> {
    start: &'a Start,
    shards: u16,
    index: &'a str,
    values: Vec<String>,
    /// How many items were read to find them.
    read: Option<u64>,
}

impl Asked<'_> {
    async fn prepared(&self, opened: &Opened, value: &str) -> Result<ValueReshard, Exit> {
        let Asked { start, shards, index, .. } = self;
        let asked = ValueAsked { table: &start.table, index, value, shards: *shards };
        let (store, env) = (opened.store.clone(), opened.env.clone());
        ValueReshard::prepare(store, env, &opened.rules, asked).await.map_err(exit)
    }

    /// The one value, unless the command is for any number of them.
    fn one(&self) -> Option<&str> {
        self.start.key.first().filter(|_| self.start.key.len() == 1).map(String::as_str)
    }
}

/// Gives values their shards, asks for that, or says what it would do.
pub(super) async fn begin(opened: &Opened, start: &Start, index: &str) -> Result<(), Exit> {
    let keys::Values { values, read } = keys::values(opened, start, index).await?;
    if values.len() > heatsink_layout::MAX_VALUE_LAYOUTS {
        let (named, most) = (values.len(), heatsink_layout::MAX_VALUE_LAYOUTS);
        return Err(Exit::usage(format!(
            "{named} values are named, and a table has {most} on record at most"
        )));
    }
    let asked = Asked { start, shards: args::shards(start)?, index, values, read };
    // All of them, before anything is written.
    let (mut todo, mut already) = (Vec::new(), Vec::new());
    for value in &asked.values {
        let reshard = asked.prepared(opened, value).await?;
        if start.how.dry_run || !reshard.is_done() {
            todo.push((value.as_str(), reshard));
        } else {
            already.push(value.as_str());
        }
    }
    let id = todo.first().map(|(_, reshard)| reshard.table_id().to_owned()).unwrap_or_default();
    let all_through = match todo.is_empty() {
        true => None,
        false => warnings::all_through(opened, &id, &start.table).await?,
    };
    if start.how.dry_run {
        return plan(&asked, &todo, all_through).await;
    }
    if todo.is_empty() {
        return nothing_to_do(&asked, &already);
    }
    if let Some(frozen) = opened.observer().frozen().await.map_err(unread)? {
        return Err(Exit::failed(format!("{frozen}. Nothing was changed")));
    }
    if start.how.here && opened.access == Access::BesideServer {
        return Err(Exit::usage(
            "--here: the server itself carries out what is asked of it; leave --here out, and say --wait to see it done",
        ));
    }
    intents::known_to_all(opened, |one| one.knows_values, "single values of indexes").await?;
    if todo.iter().any(|(_, reshard)| reshard.subject().is_long(reshard.table_id())) {
        intents::known_to_all(opened, |one| one.knows_long_keys, "values of a kilobyte").await?;
    }
    let wish = |(_, reshard): &(&str, ValueReshard)| {
        let subject = reshard.subject();
        let (index, key) = (Some(index.to_owned()), subject.key.to_vec());
        Wish { index, key, key_type: subject.key_type, layout: asked.shards.into() }
    };
    let wishes: Vec<Wish> = todo.iter().map(wish).collect();
    warnings::ask(all_through.as_deref(), start.yes)?;
    if opened.access == Access::Alone || start.how.here {
        let here = &here::here(opened);
        let carries = |one: &Gateway| one.carries_values;
        let left = intents::left_to((opened, here), &id, &wishes, carries, &start.place).await?;
        let mut reports = Vec::new();
        for ((value, _), (wish, before)) in todo.iter().zip(wishes.iter().zip(&left)) {
            let (of, table) = ((wish, before.as_ref()), (&*id, &*start.table));
            let report = here::carry_out((opened, here), table, of, &start.how, &start.place).await;
            reports.push((*value, report.map_err(stopped)?));
        }
        return say_done(&asked, &reports, &already);
    }
    let gateways = intents::carriers(opened, |one| one.carries_values).await?;
    let intents = intents::write(opened, (&id, &start.table), &wishes, &start.how, &start.place).await?;
    if start.how.wait {
        let from = todo.iter().map(|(_, reshard)| reshard.from());
        let followed: Vec<_> = intents.iter().zip(from).collect();
        let reports = follow::all(opened, &followed, &start.place).await?;
        let reports: Vec<_> = todo.iter().map(|(value, _)| *value).zip(reports).collect();
        return say_done(&asked, &reports, &already);
    }
    say_asked(opened, &asked, &intents, &already, gateways)
}

/// Says what would be done.
async fn plan(
    asked: &Asked<'_>,
    todo: &[(&str, ValueReshard)],
    all_through: Option<String>,
) -> Result<(), Exit> {
    let (start, index) = (asked.start, asked.index);
    let shown = Bar::new(start.place.output);
    let (mut documents, mut text) = (Vec::new(), Vec::new());
    for (value, reshard) in todo {
        let plan: ValuePlan = reshard.plan(&shown).await.map_err(exit)?;
        let no_items = (plan.items == 0)
            .then(|| format!("no item of table {} has the value {value:?}: is it spelt right?", start.table));
        let warnings: Vec<String> = no_items.into_iter().chain(all_through.clone()).collect();
        let again = start_command(&start.table, value, index, asked.shards, &start.place.words());
        let mut document = planned(&start.table, index, value, &plan, &again);
        text.push(words(value, index, &plan));
        text.extend(warnings.iter().map(|warning| format!("warning: {warning}")));
        document["warnings"] = json!(warnings);
        documents.push(document);
    }
    shown.done();
    let document = match (asked.one(), documents.pop()) {
        (Some(_), Some(one)) => one,
        (_, last) => {
            documents.extend(last);
            json!({ "table": start.table, "index": index, "values": documents, "items_read": asked.read, "next_steps": [] })
        }
    };
    say(start.place.output, &document, &text.join("\n"))
}

fn nothing_to_do(asked: &Asked<'_>, already: &[&str]) -> Result<(), Exit> {
    let (start, index) = (asked.start, asked.index);
    let (document, text) = match asked.one() {
        Some(value) => (
            json!({
                "table": start.table, "index": index, "value": value, "to": asked.shards, "already": true, "next_steps": [],
            }),
            format!("the value {value:?} of the index {index} has {} already", shards(asked.shards)),
        ),
        None => (
            json!({ "table": start.table, "index": index, "asked": [], "already": already, "items_read": asked.read, "next_steps": [] }),
            format!(
                "no value of the index {index} is to be spread: {} have their shards already{}",
                already.len(),
                items_read(asked.read)
            ),
        ),
    };
    say(start.place.output, &document, &text)
}

fn say_done(asked: &Asked<'_>, reports: &[(&str, ReshardReport)], already: &[&str]) -> Result<(), Exit> {
    let (start, index) = (asked.start, asked.index);
    let document = |(value, report): &(&str, ReshardReport)| -> Json {
        let ReshardReport { table, from, to, moved, .. } = report;
        json!({ "table": table, "index": index, "value": value, "from": from, "to": to, "rewritten": moved })
    };
    let next_steps = json!([status_command(&start.table, &start.place)]);
    let document = match (asked.one(), reports) {
        (Some(_), [one]) => {
            let mut document = document(one);
            document["next_steps"] = next_steps;
            document
        }
        _ => {
            let all: Vec<_> = reports.iter().map(document).collect();
            json!({ "table": start.table, "index": index, "rewritten": all, "already": already, "items_read": asked.read, "next_steps": next_steps })
        }
    };
    let line = |(value, report): &(&str, ReshardReport)| {
        let ReshardReport { table, from, to, moved, .. } = report;
        format!(
            "the value {value:?} of the index {index} of table {table} has {}; it had {from}. {moved} items were rewritten",
            shards(*to)
        )
    };
    say(start.place.output, &document, &reports.iter().map(line).collect::<Vec<_>>().join("\n"))
}

fn say_asked(
    opened: &Opened,
    asked: &Asked<'_>,
    intents: &[ReshardIntent],
    already: &[&str],
    gateways: usize,
) -> Result<(), Exit> {
    let (table, place) = (&asked.start.table, &asked.start.place);
    let follow = status_command(table, place);
    let mut next_steps = vec![follow.clone()];
    let what = match intents {
        [one] => {
            next_steps.extend(["pause", "cancel"].map(|what| command_on(what, one, place)));
            format!(
                "{} asked for, for {} of table {table}",
                are(&one.request.layout),
                one.subject().in_words()
            )
        }
        many => format!(
            "other shards are asked for, for {} values of the index {} of table {table}{}",
            many.len(),
            asked.index,
            items_read(asked.read)
        ),
    };
    let values: Vec<String> = intents.iter().map(ReshardIntent::key_text).collect();
    let document = json!({
        "table": table, "index": asked.index, "asked": values, "already": already, "gateways": gateways, "items_read": asked.read, "next_steps": next_steps,
    });
    let who = who(opened, gateways);
    say(place.output, &document, &format!("{what}. {who} carries it out. Follow it with: {follow}"))
}
