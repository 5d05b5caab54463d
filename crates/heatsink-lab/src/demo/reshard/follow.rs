//! Follows what the gateways do by themselves: the first throttle, the decision, the phases of the
//! key.
//!
//! Not here: the decision (`heatsink_heat::policy`), carrying it out (`heatsink-workers`).

use std::sync::Arc;
use std::time::Duration;

use heatsink::Rules;
use heatsink_control::registry::Registry;
use heatsink_dynamo::{Error, KeyType};
use heatsink_env::Env;

use super::options::{KEY, Options};
use super::reached::{FIRST_THROTTLE, Moved};
use super::steps::Steps;
use crate::demo::fleet::Fleet;
use crate::demo::server::failed;
use crate::demo::workload::TABLE;
use crate::exit::Exit;

/// How often it looks at the registry.
const LOOK: Duration = Duration::from_millis(50);

/// Follows until the load is over.
pub(super) async fn follow(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    options: &Options,
    steps: &Steps<'_>,
) -> Result<Moved, Exit> {
    let registry = Registry::new(fleet.store.clone(), Arc::clone(env), &Rules::default().fence().registry);
    let software = |error: Error| failed(&error);
    let described = registry.describe(TABLE).await.map_err(software)?;
    let id = described.ok_or_else(|| Exit::software("the demo's table is gone"))?.schema.id;
    let over = u32::try_from((options.before + options.after) * 1_000).unwrap_or(u32::MAX);
    let mut moved = Moved { items: 0, rate: options.rate, shards: 1, because: None };
    let (mut throttled, mut phase) = (false, None);
    while steps.ledger.millis() < over {
        env.sleep(LOOK).await;
        if let Some(first) = steps.ledger.first_throttle().filter(|_| !throttled) {
            steps.reached_at(FIRST_THROTTLE, first);
            throttled = true;
        }
        let intent = registry.intent(&id, KEY.as_bytes(), KeyType::S).await.map_err(software)?;
        let Some(intent) = intent else { continue };
        if moved.because.is_none() {
            moved.shards = intent.request.layout.shards;
            moved.because = Some(intent.request.by.clone());
            steps.reached(&format!("decided: {} shards", moved.shards));
        }
        moved.items = intent.progress.moved;
        let record = registry.key_record(&id, KEY.as_bytes(), KeyType::S).await.map_err(software)?;
        let Some(record) = record else { continue };
        let now = record.moves.as_ref().map(|moves| moves.phase);
        if now != phase {
            phase = now;
            steps.reached(
                &now.map_or_else(|| "STABLE".to_owned(), |phase| format!("{phase:?}").to_uppercase()),
            );
        }
    }
    Ok(moved)
}
