//! What the registry says that operators look at: reshards and gateways, as JSON.
//!
//! Not here: who may ask (`admin`, `admin_address`).

use heatsink_control::Control;
use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_dynamo::Error;
use serde_json::{Value as Json, json};

/// The reshards that were asked for, the newest first. Eventually consistent.
///
/// # Errors
/// The store's.
pub(super) async fn reshards(control: &Control) -> Result<Json, Error> {
    let mut found = control.registry().intents(false).await?;
    found.known.sort_by_key(|one| std::cmp::Reverse(one.request.asked));
    let unreadable: Vec<String> = found.unknown.iter().map(ToString::to_string).collect();
    Ok(json!({ "reshards": found.known.iter().map(document).collect::<Vec<_>>(), "unreadable": unreadable }))
}

fn document(one: &ReshardIntent) -> Json {
    let progress = &one.progress;
    json!({
        "table": one.table, "index": one.index, "key": one.key_text(), "key_type": one.key_type.name(), "shards": one.request.layout.shards, "asked": one.request.asked,
        "phase": progress.phase, "moved": progress.moved, "to_move": progress.to_move, "per_second": progress.per_second, "paused": one.paused,
        "cancelled": one.cancelled, "gateway": one.carrier.as_ref().map(|carrier| &carrier.name), "hindered": progress.hindered, "ended": one.ended,
    })
}

/// The gateways of this store that are registered, and the newest change of layouts. An only gateway is not registered.
///
/// # Errors
/// The store's.
pub(super) async fn gateways(control: &Control) -> Result<Json, Error> {
    let found = control.changer().gateways().await?;
    let (epoch, list) = found.map_or((None, Vec::new()), |(epoch, list)| (Some(epoch), list));
    let gateways: Vec<Json> = list
        .iter()
        .map(|one| {
            let behind = epoch.is_some_and(|epoch| one.registration.epoch < epoch);
            json!({
                "id": one.registration.gateway, "name": one.name, "build": one.build, "since": one.since, "acknowledged": one.registration.epoch,
                "behind": behind,
            })
        })
        .collect();
    Ok(json!({ "epoch": epoch, "gateways": gateways }))
}
