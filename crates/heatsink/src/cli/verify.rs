//! `heatsink verify TABLE [KEY]`: checks that every item of a recorded table is where the record
//! puts it, and with `--repair` moves it there.

mod args;
mod rebuild;

use std::sync::Arc;

use heatsink_env::{Env, RealEnv};
use heatsink_workers::verify::{Class, Findings, Repaired, Verification, VerifyError};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

pub use self::args::Args;
use super::open::{not_answered, open_behind_gateways, passes};
use super::progress::Bar;
use super::{print, runtime};
use crate::exit::{Exit, without_numbers};
use crate::output::Output;

/// Items a second that are read of an upstream where no rate is given. Items of 1 KB then cost 500
/// read units a second.
const UPSTREAM_RATE: u64 = 2_000;

/// Runs it. Exit 0 when every item is in order; 1 when some are not, or when it stopped on the way;
/// 64 when it cannot be done as asked; 69 when the store did not answer and nothing was changed.
pub fn run(args: Args) -> Result<(), Exit> {
    runtime::threads()?.block_on(verify(args))
}

async fn verify(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let fence = args.fence.settings()?;
    let (data, upstream) = (args.data.as_deref(), args.upstream.as_deref());
    let store = open_behind_gateways(data, upstream, &fence.registry, &env).await?;
    let rate = args.rate.or(args.upstream.is_some().then_some(UPSTREAM_RATE));
    let reading = rebuild::Reading {
        args: &args,
        store: Arc::clone(&store),
        env: Arc::clone(&env),
        fence: &fence,
        rate,
    };
    if args.rebuild {
        return rebuild::rebuild(reading).await;
    }
    let ready =
        match Verification::prepare(store, env, &args.table, args.key.as_deref(), &fence.registry).await {
            Err(VerifyError::NotRecorded(said)) => return Err(rebuild::not_recorded(reading, &said).await),
            ready => ready.map_err(unread)?,
        };
    let bar = Bar::new(args.output);
    let (repaired, findings) = if args.yes {
        let (repaired, findings) = ready.repair(rate, &bar).await.map_err(unrepaired)?;
        (Some(repaired), findings)
    } else {
        (None, ready.look(rate, &bar).await.map_err(unread)?)
    };
    bar.done();
    match args.output {
        Output::Json => print::json(&document(&findings, repaired)?)?,
        Output::Text => print::text(&text(&args, &findings, repaired))?,
    }
    match findings.wrong() {
        0 => Ok(()),
        wrong => {
            Err(Exit::failed(format!("{wrong} items of table {} are not as its record says", args.table)))
        }
    }
}

fn document(findings: &Findings, repaired: Option<Repaired>) -> Result<Json, Exit> {
    let mut document = serde_json::to_value(findings).map_err(|error| Exit::software(error.to_string()))?;
    document["as_of"] = json!(utc(findings.began));
    document["wrong"] = json!(findings.wrong());
    document["repairable"] = json!(findings.repairable());
    if let Some(repaired) = repaired {
        document["repaired"] = json!(repaired);
    }
    Ok(document)
}

fn text(args: &Args, findings: &Findings, repaired: Option<Repaired>) -> String {
    let Findings { table, items, parts, began, ended, .. } = findings;
    let key = findings.key.as_ref().map_or_else(String::new, |key| format!(", key {key:?}"));
    let seconds = ended.saturating_sub(*began).div_ceil(1_000);
    let parts = if *parts > 0 { format!(" and {parts} parts of counters") } else { String::new() };
    let mut text = format!(
        "table {table}{key}: {items} items{parts} read, as of {} (within {seconds} s); on record: {}\n",
        utc(*began),
        findings.layouts
    );
    if let Some(repaired) = repaired {
        let Repaired { moved, deleted, rewritten, entered, left } = repaired;
        text += &format!(
            "repaired: {moved} moved to their place, {deleted} equal doubles deleted, {rewritten} index keys rewritten, {entered} buckets entered"
        );
        if left > 0 {
            text += &format!("; {left} left, because clients wrote to them meanwhile");
        }
        text += ". What follows was read afterwards\n";
    }
    text += &format!("{:>10} in order\n", findings.in_order);
    if findings.on_the_way > 0 {
        text += &format!(
            "{:>10} of them on their way to other shards: requests look in both places\n",
            findings.on_the_way
        );
    }
    if findings.old_copies > 0 {
        text += &format!(
            "{:>10} old copies of items that have moved; the move deletes them\n",
            findings.old_copies
        );
    }
    for class in Class::ALL {
        let count = findings.counts.of(class);
        if count == 0 {
            continue;
        }
        text += &format!("{count:>10} {}\n", class.meaning());
        let listed: Vec<_> = findings.findings.iter().filter(|finding| finding.class == class).collect();
        for finding in &listed {
            text += &format!("           {}: {}\n", finding.item, finding.detail);
        }
        let more = count.saturating_sub(u64::try_from(listed.len()).unwrap_or(count));
        if more > 0 {
            text += &format!("           and {more} more\n");
        }
        text += &format!("           what to do: {}\n", class.advice());
    }
    if args.repair && repaired.is_none() && findings.repairable() > 0 {
        text += &format!(
            "nothing was changed; --yes repairs {} of them: heatsink verify {table} … --repair --yes\n",
            findings.repairable()
        );
    }
    text
}

/// Milliseconds since 1970 as date and time.
fn utc(millis: u64) -> String {
    let seconds = i64::try_from(millis / 1_000).unwrap_or(i64::MAX);
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX).to_string()
}

/// A failure while nothing was changed.
fn unread(error: VerifyError) -> Exit {
    match error {
        VerifyError::Usage(_) | VerifyError::NotRecorded(_) => Exit::usage(error.to_string()),
        VerifyError::Stopped(_) => Exit::failed(error.to_string()).retryable(),
        VerifyError::Store(error) => {
            not_answered("the table was not read to its end, because the store failed", &error)
        }
    }
}

/// A failure of a repair: every item is whole, and the next run goes on.
fn unrepaired(error: VerifyError) -> Exit {
    match error {
        VerifyError::Usage(_) | VerifyError::NotRecorded(_) => Exit::usage(error.to_string()),
        VerifyError::Stopped(_) | VerifyError::Store(_) => {
            let said = without_numbers(&error.to_string());
            let exit =
                Exit::failed(format!("{said}. Items are at their old or at their new place; run this again"));
            let stays = matches!(&error, VerifyError::Store(cause) if !passes(cause));
            if stays { exit } else { exit.retryable() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_written_as_date_and_time() {
        assert_eq!(utc(1_767_225_600_000), "2026-01-01T00:00:00Z");
        assert_eq!(utc(1_767_225_600_000 + 3_600_000 + 62_999), "2026-01-01T01:01:02Z");
    }
}
