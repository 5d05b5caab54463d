//! A read of the registry that all operators share who ask for the same within a second.
//!
//! Not here: what is read (`overview`).

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use heatsink_env::{Env, MonotonicInstant};
use http::StatusCode;
use tokio::sync::Mutex;

/// How long an answer is told.
const TOLD_FOR: Duration = Duration::from_secs(1);

/// The last read. Others wait while one is under way: however many ask, the store has one read of
/// this kind at a time.
#[derive(Default)]
pub(super) struct SharedRead {
    last: Mutex<Option<Last>>,
}

struct Last {
    /// What was asked for.
    asked: String,
    until: MonotonicInstant,
    answer: (StatusCode, Bytes),
}

impl SharedRead {
    /// The answer to what is asked: the last one, if it is for the same and at most a second old,
    /// or what `read` gives.
    pub(super) async fn of(
        &self,
        asked: &str,
        env: &dyn Env,
        read: impl Future<Output = (StatusCode, Bytes)>,
    ) -> (StatusCode, Bytes) {
        let mut last = self.last.lock().await;
        if let Some(last) = last.as_ref().filter(|last| last.asked == asked && env.now() < last.until) {
            return last.answer.clone();
        }
        let answer = read.await;
        // Counted from its end: where a read takes long, those who waited for it have its answer,
        // too.
        let until = env.now() + TOLD_FOR;
        *last = Some(Last { asked: asked.to_owned(), until, answer: answer.clone() });
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use futures::executor::block_on;
    use futures::future::join_all;
    use heatsink_env::ManualEnv;

    use super::*;

    #[test]
    fn a_read_is_shared_for_a_second_by_those_who_ask_for_the_same() {
        let (env, reads) = (ManualEnv::seeded(1), AtomicU8::new(0));
        let shared = SharedRead::default();
        let ask = |asked| {
            shared.of(asked, &env, async {
                let number = reads.fetch_add(1, Ordering::Relaxed) + 1;
                (StatusCode::OK, Bytes::from(vec![number]))
            })
        };
        let told = block_on(join_all((0..100).map(|_| ask(""))));
        assert!(told.iter().all(|(_, body)| body[..] == [1]));
        assert_eq!(block_on(ask("x")).1[..], [2]);
        assert_eq!(block_on(ask("")).1[..], [3]);
        env.advance(TOLD_FOR - Duration::from_millis(1));
        assert_eq!(block_on(ask("")).1[..], [3]);
        env.advance(Duration::from_millis(1));
        assert_eq!(block_on(ask("")).1[..], [4]);
    }
}
