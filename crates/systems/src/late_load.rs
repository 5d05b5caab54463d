//! A load on a store whose updates take time, so that others come while one is under way. Still in
//! virtual time: the clock moves when all that comes before its next moment has come.

use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use futures::future::{FutureExt, poll_fn};
use futures::stream::{FuturesUnordered, StreamExt};
use heatsink_dynamo::Operation;
use serde_json::Value as Json;

use crate::stage::{Fault, Load, Stage, throttled};

impl Stage {
    /// Offers `per_second` updates of one item for `seconds` to a store that takes `takes` for each
    /// that reaches it; those that come meanwhile come together. Also how many reached it.
    ///
    /// # Errors
    /// The first error other than throttling.
    pub async fn offer_late(
        &self,
        per_second: u32,
        seconds: u32,
        takes: Duration,
        request: impl Fn(u32) -> (Operation, Json),
    ) -> Result<(Load, u64), Fault> {
        let before = self.store.late_updates();
        self.store.takes(takes);
        let (mut load, mut under_way, mut nth) = (Load::default(), FuturesUnordered::new(), 0);
        let mut passed = Duration::ZERO;
        while nth < per_second * seconds || !under_way.is_empty() {
            passed += takes;
            while nth < per_second * seconds && Duration::from_secs(1) * nth / per_second < passed {
                let (operation, body) = request(nth);
                let call = self.gateway.call(operation, Bytes::from(body.to_string()));
                under_way.push(call.map(move |answer| (nth, answer)).boxed());
                nth += 1;
            }
            // All of them wait now, the first for the store.
            let mut ready = step(&mut under_way).await;
            let reached = self.store.late_updates();
            self.clock.advance(takes);
            loop {
                match ready {
                    Some(Some((nth, Ok(_)))) => load.accepted.push(nth),
                    Some(Some((_, Err(error)))) if throttled(&error.code) => load.throttled += 1,
                    Some(Some((_, Err(error)))) => return Err(error.into()),
                    // All are answered, or the next one has reached the store.
                    Some(None) => break,
                    None if self.store.late_updates() > reached => break,
                    None => {}
                }
                ready = step(&mut under_way).await;
            }
        }
        self.store.takes(Duration::ZERO);
        load.accepted.sort_unstable();
        Ok((load, self.store.late_updates() - before))
    }
}

/// The next that is answered; the inner `None` if all are, the outer one if none is by now.
async fn step<S: StreamExt + Unpin>(of: &mut S) -> Option<Option<S::Item>> {
    let mut is_first = true;
    poll_fn(|context| match of.poll_next_unpin(context) {
        Poll::Ready(next) => Poll::Ready(Some(next)),
        // Others have their turn, and what they have woken is asked once more.
        Poll::Pending if is_first => {
            is_first = false;
            context.waker().wake_by_ref();
            Poll::Pending
        }
        Poll::Pending => Poll::Ready(None),
    })
    .await
}
