//! Waits until intents have ended, and shows how far they are.

use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use heatsink_control::KeyRecord;
use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use heatsink_dynamo::display::excerpt;
use heatsink_env::MonotonicInstant;
use heatsink_workers::{NewestStep, ReshardReport, is_wanted};
use indicatif::{ProgressBar, ProgressStyle};

use super::args::Place;
use super::opened::Opened;
use super::told::{command_on, phase_name, status_of, unread};
use super::value_words;
use crate::cli::open::{not_answered, passes};
use crate::cli::progress::bar;
use crate::cli::serve::Signals;
use crate::exit::Exit;

/// How often the registry is read.
const LOOK: Duration = Duration::from_millis(500);

/// How long a gateway may take to begin before that is worth a word.
const PATIENCE: Duration = Duration::from_secs(15);

const COUNTED: &str = "{msg} {bar:30} {human_pos}/{human_len} items, {eta} left";
const UNCOUNTED: &str = "{msg} {human_pos} items moved";

/// How long the registry may be out of reach.
const UNREACHED: Duration = Duration::from_secs(60);

/// Waits for all of them, each with the shards that it had before.
///
/// # Errors
/// What the first that was not carried out says, once all have ended; a signal, after which
/// gateways go on with them.
pub(super) async fn all(
    opened: &Opened,
    intents: &[(&ReshardIntent, u16)],
    place: &Place,
) -> Result<Vec<ReshardReport>, Exit> {
    let mut signals = Signals::catch()?;
    match select(pin!(ended(opened, intents, place)), pin!(signals.next())).await {
        Either::Left((reports, _)) => reports,
        Either::Right((signal, _)) => {
            let table = intents.first().map(|(intent, _)| intent.table.as_str());
            let status = status_of(table, place);
            let cancel = intents.first().map(|(intent, _)| command_on("cancel", intent, place));
            Err(signal.at_once().saying(format!(
                "What was asked for is no longer followed, and goes on without this command: `{status}` says how far it is, `{}` takes it back",
                cancel.unwrap_or_default()
            )))
        }
    }
}

async fn ended(
    opened: &Opened,
    intents: &[(&ReshardIntent, u16)],
    place: &Place,
) -> Result<Vec<ReshardReport>, Exit> {
    let shown = bar(place.output, None, UNCOUNTED);
    let (mut reports, mut failed) = (Vec::new(), None);
    for (intent, from) in intents {
        match one(opened, intent, *from, place, &shown).await? {
            Ok(report) => reports.push(report),
            Err(text) => failed = failed.or(Some(text)),
        }
    }
    shown.finish_and_clear();
    match failed {
        None => Ok(reports),
        Some(text) => Err(Exit::failed(text)),
    }
}

/// Waits for one of them. The inner error is how it ended otherwise.
async fn one(
    opened: &Opened,
    intent: &ReshardIntent,
    from: u16,
    place: &Place,
    shown: &ProgressBar,
) -> Result<Result<ReshardReport, String>, Exit> {
    let registry = &opened.registry;
    let mut last = intent.clone();
    let mut unreached: Option<MonotonicInstant> = None;
    let mut quiet: Option<MonotonicInstant> = Some(opened.env.now());
    let report = |last: &ReshardIntent, record: Option<KeyRecord>| ReshardReport {
        table: last.table.clone(),
        key: last.key_text(),
        from,
        to: last.request.layout.shards,
        split_at: record.as_ref().and_then(|record| record.layout.split_points()).cloned(),
        slots: record.as_ref().map_or(&[][..], |record| record.layout.slots()).to_vec(),
        moved: last.progress.moved,
        step: record.and_then(|record| NewestStep::of(&record.layout)),
    };
    // Of a key. Values of indexes have none.
    let record = || async {
        match intent.index {
            None => registry.key_record(&intent.table_id, &intent.key, intent.key_type).await.map_err(unread),
            Some(_) => Ok(None),
        }
    };
    loop {
        let found = match registry.intent_for(&intent.table_id, intent.subject()).await {
            Ok(found) => found,
            Err(error) if passes(&error) => {
                let since = *unreached.get_or_insert(opened.env.now());
                if opened.env.now().since(since) > UNREACHED {
                    let goes_on = "The registry could not be read for a minute. What was asked for goes on without this command";
                    return Err(not_answered(goes_on, &error));
                }
                shown.set_message("the registry does not answer; asks again");
                opened.env.sleep(LOOK).await;
                continue;
            }
            Err(error) => return Err(unread(error)),
        };
        unreached = None;
        let same = found.filter(|found| found.request == intent.request);
        let Some(found) = same else {
            // It ended a while ago. What is on record says how.
            return Ok(match is_as_asked(opened, intent).await? {
                true => Ok(report(&last, record().await?)),
                false => Err(format!("The reshard of {} was cancelled", intent.subject().in_words())),
            });
        };
        if let Some(ended) = &found.ended {
            return Ok(match is_good(ended.how) {
                true => Ok(report(&found, record().await?)),
                false => Err(ended.text.clone()),
            });
        }
        show(shown, &found);
        if found.carrier.is_some() || found.version != last.version {
            quiet = None;
        }
        if quiet.is_some_and(|since| opened.env.now().since(since) > PATIENCE) && !found.paused {
            quiet = None;
            shown.suspend(|| {
                tracing::warn!(
                    "no gateway has begun with it within {} s: see `heatsink gateways`. `{}` takes it back",
                    PATIENCE.as_secs(),
                    command_on("cancel", &found, place)
                );
            });
        }
        last = found;
        opened.env.sleep(LOOK).await;
    }
}

/// Whether a key or a value has what was asked for, and stays there.
async fn is_as_asked(opened: &Opened, intent: &ReshardIntent) -> Result<bool, Exit> {
    let wanted = &intent.request.layout;
    if intent.index.is_none() {
        let record = opened.registry.key_record(&intent.table_id, &intent.key, intent.key_type).await;
        let record = record.map_err(unread)?.filter(|one| one.moves.is_none());
        return Ok(record.is_some_and(|one| is_wanted(&one.layout, wanted)));
    }
    let record = opened.registry.read(&intent.table_id).await.map_err(unread)?;
    Ok(match record.as_ref().and_then(|record| value_words::of(record, intent)) {
        // Values that have one shard leave the record.
        None => wanted.shards == 1,
        Some(layout) => layout.shards == wanted.shards && layout.migration.is_none(),
    })
}

fn show(shown: &ProgressBar, intent: &ReshardIntent) {
    let progress = &intent.progress;
    let phase = match (&progress.hindered, progress.phase, &intent.carrier) {
        _ if intent.paused => "paused".to_owned(),
        (Some(why), ..) => why.clone(),
        (None, Some(phase), _) => phase_name(phase),
        (None, None, Some(_)) => "begins".to_owned(),
        (None, None, None) => "waits for a gateway".to_owned(),
    };
    shown.set_message(format!("{} {phase}", excerpt(&intent.key_text(), 40)));
    if let Some(all) = progress.to_move {
        shown.set_length(all.max(progress.moved));
        if let Ok(style) = ProgressStyle::with_template(COUNTED) {
            shown.set_style(style);
        }
    }
    shown.set_position(progress.moved);
}

/// Whether an intent ended as it was meant to.
pub(super) fn is_good(how: EndedAs) -> bool {
    how == EndedAs::Moved
}
