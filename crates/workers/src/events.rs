//! Tells somebody what is done about hot keys: decisions, how the reshards ended, and which keys
//! burn and are left alone.
//!
//! Nobody waits for it. Events are kept in a bounded queue; where it is full, new ones are dropped
//! and counted.
//!
//! Not here: how an event is sent (whoever calls [`EventQueue::deliver`]), what is decided
//! (`automatic`), how reshards end (`runner`).

use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use futures::future::{BoxFuture, Either, select};
use heatsink_env::{Env, MonotonicInstant};
use metrics::counter;
use serde_json::{Value as Json, json};

/// The most events that wait.
const WAITING: usize = 1_000;
/// The pause after the first time that an event was not taken. It doubles each time, up to `MOST`.
const PAUSE: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(60);
/// An event that was not taken so long after it happened is given up.
const KEPT: Duration = Duration::from_secs(600);

/// Takes events.
#[derive(Clone, Default)]
pub struct Events(Option<Arc<Open>>);

struct Open {
    env: Arc<dyn Env>,
    queue: Mutex<mpsc::Sender<Event>>,
}

/// The events that wait.
pub struct EventQueue {
    env: Arc<dyn Env>,
    waiting: mpsc::Receiver<Event>,
}

struct Event {
    at: MonotonicInstant,
    json: Json,
}

/// What became of an event that was sent.
#[derive(Debug)]
pub enum Sent {
    /// It was taken.
    Taken,
    /// Nobody wants events.
    Unwanted,
    /// It was not taken.
    Failed {
        /// Why.
        why: String,
        /// Whether it may be taken later.
        retryable: bool,
    },
}

/// Takes events, and gives them to whoever delivers them.
pub fn events(env: Arc<dyn Env>) -> (Events, EventQueue) {
    let (queue, waiting) = mpsc::channel(WAITING);
    let open = Open { env: Arc::clone(&env), queue: Mutex::new(queue) };
    (Events(Some(Arc::new(open))), EventQueue { env, waiting })
}

impl Events {
    /// Takes an event, to which an id, the time and its name are added. Never waits.
    pub(crate) fn tell(&self, name: &'static str, mut event: Json) {
        let Some(Open { env, queue }) = self.0.as_deref() else { return };
        event["id"] = json!(format!("{:016x}", env.random()));
        event["at_ms"] = json!(env.unix_millis());
        event["event"] = json!(name);
        let event = Event { at: env.now(), json: event };
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        if queue.try_send(event).is_err() {
            count("overflow");
        }
    }
}

impl std::fmt::Debug for Events {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Events").field(&self.0.is_some()).finish()
    }
}

impl EventQueue {
    /// Sends events as those of `gateway`, one after the other, until `stop` resolves. One that is
    /// not taken is sent again after a pause, and the others wait meanwhile.
    pub async fn deliver<'a>(
        mut self,
        gateway: &str,
        send: impl Fn(Bytes) -> BoxFuture<'a, Sent>,
        mut stop: BoxFuture<'static, ()>,
    ) {
        let mut is_down = false;
        while let Either::Right((Some(event), _)) = select(&mut stop, self.waiting.next()).await {
            let delivering = self.deliver_one(event, gateway, &send, &mut is_down);
            if let Either::Left(_) = select(&mut stop, pin!(delivering)).await {
                count("stopped");
                break;
            }
        }
        self.waiting.close();
        while self.waiting.next().await.is_some() {
            count("stopped");
        }
    }

    async fn deliver_one<'a>(
        &self,
        event: Event,
        gateway: &str,
        send: &impl Fn(Bytes) -> BoxFuture<'a, Sent>,
        is_down: &mut bool,
    ) {
        let Event { at, mut json } = event;
        json["gateway"] = json!(gateway);
        let body = Bytes::from(json.to_string());
        let mut pause = PAUSE;
        loop {
            let (why, retryable) = match send(body.clone()).await {
                Sent::Unwanted => return,
                Sent::Taken => {
                    if std::mem::take(is_down) {
                        tracing::info!("the webhook takes events again");
                    }
                    return count("delivered");
                }
                Sent::Failed { why, retryable } => (why, retryable),
            };
            if !retryable {
                tracing::warn!("the webhook refuses an event, which is not sent again: {why}");
                return count("refused");
            }
            if !std::mem::replace(is_down, true) {
                tracing::warn!("the webhook takes no events, and they are sent again: {why}");
            }
            if self.env.now().since(at) + pause >= KEPT {
                return count("given_up");
            }
            self.env.sleep(pause).await;
            pause = MOST.min(pause * 2);
        }
    }
}

fn count(outcome: &'static str) {
    counter!("heatsink_webhook_events_total", "outcome" => outcome).increment(1);
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use heatsink_env::{HastyEnv, ManualEnv};

    use super::*;

    /// Sends all that waits to a webhook that does so, in virtual time. Gives the numbers of the
    /// events that it was sent, and the seconds that passed.
    fn delivered(events: u32, mut answer: impl FnMut(u64) -> Sent + Send) -> (Vec<u64>, Duration) {
        let env = Arc::new(HastyEnv(ManualEnv::seeded(1)));
        let (taking, queue) = super::events(env.clone());
        (0..events).for_each(|nth| taking.tell("test", json!({ "nth": nth })));
        drop(taking);
        let begun = env.now();
        let seen = Mutex::new((Vec::new(), &mut answer));
        let send = |body: Bytes| {
            let event: Json = serde_json::from_slice(&body).unwrap();
            assert_eq!((&event["event"], &event["gateway"]), (&json!("test"), &json!("a")));
            let nth = event["nth"].as_u64().unwrap();
            let (seen, answer) = &mut *seen.lock().unwrap();
            seen.push(nth);
            std::future::ready(answer(nth)).boxed()
        };
        queue.deliver("a", send, futures::future::pending().boxed()).now_or_never().unwrap();
        (seen.into_inner().unwrap().0, env.now().since(begun))
    }

    fn failed(retryable: bool) -> Sent {
        Sent::Failed { why: "why".to_owned(), retryable }
    }

    #[test]
    fn events_come_in_order_and_once_where_they_are_taken_or_unwanted() {
        assert_eq!(delivered(3, |_| Sent::Taken), (vec![0, 1, 2], Duration::ZERO));
        assert_eq!(delivered(2, |_| Sent::Unwanted).0, [0, 1]);
    }

    #[test]
    fn one_that_is_not_taken_is_sent_again_with_longer_pauses_and_the_others_wait() {
        let mut failures = 3;
        let (seen, passed) = delivered(2, |_| {
            failures -= 1;
            if failures >= 0 { failed(true) } else { Sent::Taken }
        });
        assert_eq!((seen, passed), (vec![0, 0, 0, 0, 1], Duration::from_secs(1 + 2 + 4)));
        assert_eq!(delivered(2, |nth| if nth == 0 { failed(false) } else { Sent::Taken }).0, [0, 1]);
    }

    #[test]
    fn an_event_is_given_up_ten_minutes_after_it_happened_however_many_waited_before_it() {
        let (seen, passed) = delivered(500, |_| failed(true));
        assert!(passed <= KEPT, "{passed:?}");
        let of_first = seen.iter().filter(|nth| **nth == 0).count();
        assert!((10..20).contains(&of_first), "{of_first}");
        let each: std::collections::BTreeSet<u64> = seen.iter().copied().collect();
        assert!(each.len() == 500 && seen.len() < 600, "{} of {}", each.len(), seen.len());
    }

    #[test]
    fn a_full_queue_drops_new_events_and_never_waits() {
        let env: Arc<dyn Env> = Arc::new(ManualEnv::seeded(1));
        let (taking, mut queue) = events(env);
        (0..5_000).for_each(|nth| taking.tell("test", json!({ "nth": nth })));
        drop(taking);
        let kept = std::iter::from_fn(|| queue.waiting.next().now_or_never().flatten()).count();
        assert!((WAITING..WAITING + 2).contains(&kept), "{kept}");
        Events::default().tell("test", json!({}));
    }

    #[test]
    fn a_stop_ends_it_in_the_midst_of_a_pause() {
        let env = Arc::new(ManualEnv::seeded(1));
        let (taking, queue) = events(env);
        taking.tell("test", json!({}));
        let (stop, stopped) = futures::channel::oneshot::channel::<()>();
        let send = |_| std::future::ready(failed(true)).boxed();
        let mut delivering = pin!(queue.deliver("a", send, stopped.map(drop).boxed()));
        assert!((&mut delivering).now_or_never().is_none());
        drop(stop);
        assert!(delivering.now_or_never().is_some());
    }
}
