//! What the registry says that operators look at: reshards and gateways, as JSON.
//!
//! Not here: who may ask (`admin_address`).

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use heatsink_control::Control;
use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_dynamo::Error;
use serde_json::{Value as Json, json};

/// How many reshards are told at once.
const PAGE: usize = 100;

/// The reshards that were asked for, a page of them with the newest first, and where the list goes
/// on after that. `after`: such a position of an earlier answer. Eventually consistent.
///
/// # Errors
/// The store's; `ValidationException` for what is no such position.
pub(super) async fn reshards(control: &Control, after: Option<&str>) -> Result<Json, Error> {
    let after = match after {
        None => None,
        Some(text) => {
            let position = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| String::from_utf8(bytes).ok());
            Some(position.ok_or_else(|| Error::validation("after is the next of an earlier answer"))?)
        }
    };
    let mut found = control.registry().intents_after(false, after.as_deref(), PAGE).await?;
    found.known.sort_by_key(|one| std::cmp::Reverse(one.request.asked));
    let unreadable: Vec<String> = found.unknown.iter().map(ToString::to_string).collect();
    let reshards: Vec<Json> = found.known.iter().map(document).collect();
    let mut page = json!({ "reshards": reshards, "unreadable": unreadable });
    if let Some(next) = found.next {
        page["next"] = json!(URL_SAFE_NO_PAD.encode(next));
    }
    Ok(page)
}

fn document(one: &ReshardIntent) -> Json {
    let progress = &one.progress;
    // An only gateway may have no name.
    let gateway = one.carrier.as_ref().map(|carrier| match carrier.name.is_empty() {
        true => &carrier.gateway,
        false => &carrier.name,
    });
    json!({
        "table": one.table, "index": one.index, "key": one.key_text(), "key_type": one.key_type.name(), "shards": one.request.layout.shards, "slots": one.request.layout.slots,
        "asked": one.request.asked,
        "phase": progress.phase, "moved": progress.moved, "to_move": progress.to_move, "per_second": progress.per_second, "paused": one.paused,
        "cancelled": one.cancelled, "gateway": gateway, "hindered": progress.hindered, "ended": one.ended,
    })
}

/// The gateways of this store that are registered, and the newest change of layouts. An only
/// gateway is not registered.
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
                "id": one.registration.gateway, "name": one.name, "build": one.build, "since": one.since, "last_heard": one.heard, "acknowledged": one.registration.epoch,
                "behind": behind, "ended": one.registration.ended,
            })
        })
        .collect();
    Ok(json!({ "epoch": epoch, "gateways": gateways }))
}
