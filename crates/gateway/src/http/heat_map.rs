//! The answers of `GET /_heatsink/heat/map`. One is built once for a while, however many ask, and
//! shared by all who take it.
//!
//! Not here: what is in a map (`crate::heat`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink_env::{Env, MonotonicInstant};
use heatsink_heat::history::Span;
use tokio::sync::Mutex;

use super::gzip;
use crate::Status;
use crate::budget::Budget;

/// A map is shown for one of its steps, and for no longer than this: its last column is not full
/// yet.
const LONGEST: Duration = Duration::from_secs(5);

/// The maps that were built last, one for each span.
#[derive(Default)]
pub(super) struct HeatMaps {
    spans: [Mutex<Option<Shown>>; 4],
}

struct Shown {
    until: MonotonicInstant,
    plain: Bytes,
    packed: Option<Bytes>,
}

impl HeatMaps {
    /// The map of a span, in gzip where that is `wanted` and worth it; `None` where there is no
    /// room for it.
    pub(super) async fn of(
        &self,
        span: Span,
        wanted: bool,
        status: &Status,
        env: &dyn Env,
    ) -> Option<(Bytes, bool)> {
        let mut shown = self.spans.get(span as usize)?.lock().await;
        if shown.as_ref().is_none_or(|shown| shown.until <= env.now()) {
            // The memory of the one before is free once nobody takes it any more.
            *shown = None;
            let plain = counted(status.budget(), Bytes::from(status.heat_map(span))).await?;
            let shown_for = Duration::from_millis(span.step()).min(LONGEST);
            *shown = Some(Shown { until: env.now() + shown_for, plain, packed: None });
        }
        let shown = shown.as_mut()?;
        if wanted
            && shown.packed.is_none()
            && let Some(packed) = gzip::write(&shown.plain).await
        {
            shown.packed = Some(counted(status.budget(), packed).await?);
        }
        match &shown.packed {
            Some(packed) if wanted => Some((packed.clone(), true)),
            _ => Some((shown.plain.clone(), false)),
        }
    }
}

/// The bytes, counted until their last copy is dropped.
async fn counted(budget: &Arc<Budget>, bytes: Bytes) -> Option<Bytes> {
    let held = budget.enter_answer(bytes.len()).await?;
    Some(held.carried_by(bytes))
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use heatsink_control::{Control, Rules};
    use heatsink_env::ManualEnv;
    use heatsink_store::embedded::Embedded;

    use super::*;
    use crate::{Limits, Service};

    #[test]
    fn a_map_is_built_once_for_its_step_and_counted_once() {
        let env = Arc::new(ManualEnv::seeded(1));
        let store = Arc::new(Embedded::memory().unwrap());
        let control = block_on(Control::start(store.clone(), env.clone(), Rules::default())).unwrap();
        let status = Status::of(&Service::new(store, control, env.clone(), Limits::default(), "eu-west-1"));
        let maps = HeatMaps::default();
        let ask = |span| block_on(maps.of(span, false, &status, &*env)).unwrap().0;
        let first = ask(Span::TenMinutes);
        let held = status.budget().held();
        assert_eq!(held, first.len());
        let shared: Vec<Bytes> = (0..100).map(|_| ask(Span::TenMinutes)).collect();
        assert!(shared.iter().all(|one| one.as_ptr() == first.as_ptr()));
        assert_eq!(status.budget().held(), held);
        env.advance(Duration::from_secs(1));
        let next = ask(Span::TenMinutes);
        assert!(next.as_ptr() != first.as_ptr());
        // Who still takes the one before holds it.
        assert_eq!(status.budget().held(), first.len() + next.len());
        drop((first, shared));
        assert_eq!(status.budget().held(), next.len());
        let weeks = ask(Span::FourWeeks);
        env.advance(LONGEST - Duration::from_millis(1));
        assert_eq!(ask(Span::FourWeeks).as_ptr(), weeks.as_ptr());
        env.advance(Duration::from_millis(1));
        assert!(ask(Span::FourWeeks).as_ptr() != weeks.as_ptr());
    }
}
