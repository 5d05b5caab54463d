//! `heatsink gateways`: the gateways registered at a store, what each has acknowledged, and what a
//! layout change would wait for.

use std::sync::Arc;
use std::time::Duration;

use heatsink_control::{Bounds, Changer, Fencing, Gateway};
use heatsink_dynamo::display::inert;
use heatsink_env::{Env, RealEnv};
use serde_json::json;

use super::open::not_answered;
use super::store_args::{FenceArgs, StoreArgs};
use super::{print, runtime};
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// What `gateways` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    fence: FenceArgs,
    #[command(flatten)]
    store: StoreArgs,
    /// Remove the registration of the gateway with this id: it is dead, and none of its requests is
    /// in flight any more. No change waits for it then
    #[arg(long, value_name = "ID")]
    remove: Option<String>,
    /// How the list is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it.
pub fn run(args: Args) -> Result<(), Exit> {
    runtime::one_thread()?.block_on(list(args))
}

async fn list(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let fence = args.fence.settings()?;
    let store = args.store.open(&fence.registry, &env).await?;
    let changer = Changer::beside(store, Arc::clone(&env), Fencing::observing(&fence));
    let failed = |error| not_answered("The registry could not be read", &error);
    if let Some(gateway) = &args.remove {
        let listed = changer.gateways().await.map_err(failed)?.unwrap_or_default().1;
        if !listed.iter().any(|one| one.registration.gateway == *gateway) {
            return Err(Exit::usage(format!("no gateway with the id {gateway} is on the list")));
        }
        changer.strike(gateway).await.map_err(failed)?;
    }
    let frozen = changer.frozen().await.map_err(failed)?;
    let found = changer.gateways().await.map_err(failed)?;
    let now = env.unix_millis();
    match args.output {
        Output::Json => {
            let (epoch, gateways) = found.map_or((None, Vec::new()), |(epoch, list)| (Some(epoch), list));
            let gateways: Vec<_> = gateways.iter().map(|one| document(one, epoch, now)).collect();
            let since = frozen.map(|frozen| frozen.since);
            print::json(
                &json!({ "registry": fence.registry, "epoch": epoch, "frozen_since": since, "gateways": gateways }),
            )
        }
        Output::Text => {
            let mut text = match found {
                None => format!(
                    "There is no registry {}, and no gateway is registered. Either no table of the store was ever sharded, or this is not its registry, or it \
                     is lost: `heatsink verify TABLE` says which.\n",
                    fence.registry
                ),
                Some((epoch, list)) => words(&fence.registry, epoch, &list, now),
            };
            if let Some(frozen) = frozen {
                text.push_str(&format!("{frozen}.\n"));
            }
            print::text(&text)
        }
    }
}

fn document(gateway: &Gateway, epoch: Option<u64>, now: u64) -> serde_json::Value {
    let one = &gateway.registration;
    json!({
        "id": one.gateway, "name": gateway.name, "build": gateway.build, "since": gateway.since, "last_heard": gateway.heard, "beat": one.beat,
        "acknowledged": one.epoch, "behind": epoch.is_some_and(|epoch| one.epoch < epoch), "ended": one.ended,
        "dead": gateway.is_dead(now), "late_calls_ms": one.unclean.as_millis(), "bounds": one.bounds,
    })
}

fn words(registry: &str, epoch: u64, list: &[Gateway], now: u64) -> String {
    let (ended, list): (Vec<_>, Vec<_>) = list.iter().partition(|one| one.registration.ended);
    let longest = |of: fn(&Bounds) -> Duration, list: &[&Gateway]| {
        list.iter().map(|one| of(&one.registration.bounds)).max().unwrap_or_default().as_secs()
    };
    let mut text = format!("The newest change in {registry} is {epoch}.\n");
    if list.is_empty() {
        text = format!("No gateway is registered in {registry}. The newest change is {epoch}.\n");
    } else {
        let mut table = screen::table(["gateway", "name", "version", "last heard", "acknowledged"]);
        for gateway in &list {
            let one = &gateway.registration;
            let behind =
                if one.epoch < epoch { format!("{}, behind", one.epoch) } else { one.epoch.to_string() };
            let silent = Duration::from_millis(now.saturating_sub(gateway.heard));
            let heard = format!("{} s ago", silent.as_secs());
            let heard = if gateway.is_dead(now) { format!("{heard}, dead") } else { heard };
            let [id, name, build] = [&one.gateway, &gateway.name, &gateway.build].map(|text| inert(text));
            table.add_row([&*id, &*name, &*build, &*heard, &*behind]);
        }
        text.push_str(&format!(
            "{}\nA change waits for each of them to acknowledge it, for {} s at most.\n",
            screen::drawn(table, &[4]),
            longest(|bounds| bounds.lease + bounds.straggler, &list),
        ));
    }
    if !ended.is_empty() {
        text.push_str(&format!(
            "Gateways that were killed: {}. A change waits for calls that they may have sent, for {} s at most.\n",
            ended.iter().map(|one| inert(&one.registration.gateway)).collect::<Vec<_>>().join(", "),
            longest(|bounds| bounds.straggler, &ended),
        ));
    }
    text
}
