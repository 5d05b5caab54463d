//! Runs work that would block a worker thread of the runtime for too long.

use std::future::Future;
use std::pin::pin;

use tokio::runtime::{Handle, RuntimeFlavor};

/// From this many bytes on, work may take a few milliseconds: the slowest pass over a body, the
/// wire check, takes about 6 ms for a megabyte in unoptimised builds, and 1 ms otherwise.
const BLOCKING: usize = 512 * 1024;

/// Whether work on so many bytes may block for long.
pub(crate) fn blocks(bytes: usize) -> bool {
    bytes >= BLOCKING
}

/// Does work on so many bytes. For large work, other tasks of this worker continue on another
/// worker. A runtime of one thread has no other worker, and neither has a caller without a runtime.
pub(crate) fn run<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    let movable =
        || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
    if blocks(bytes) && movable() { tokio::task::block_in_place(work) } else { work() }
}

/// Awaits work on so many bytes, with each poll as in [`run`].
pub(crate) async fn run_future<T>(bytes: usize, work: impl Future<Output = T>) -> T {
    if !blocks(bytes) {
        return work.await;
    }
    let mut work = pin!(work);
    std::future::poll_fn(|cx| run(bytes, || work.as_mut().poll(cx))).await
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_only_worker_goes_on_with_other_tasks_meanwhile() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let met = runtime.block_on(async {
            let busy = tokio::spawn(async {
                let (sender, receiver) = mpsc::channel();
                let other = tokio::spawn(async move { sender.send(()) });
                let met = run(BLOCKING, || receiver.recv_timeout(Duration::from_secs(20)).is_ok());
                let _ = other.await;
                met
            });
            busy.await.unwrap()
        });
        assert!(met, "the other task ran while this one worked");
    }

    #[test]
    fn each_poll_of_a_blocking_future_leaves_the_worker_to_others() {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
        let met = runtime.block_on(async {
            let busy = tokio::spawn(run_future(BLOCKING, async {
                let mut met = Vec::new();
                for _ in 0..3 {
                    let (sender, receiver) = mpsc::channel();
                    tokio::spawn(async move { sender.send(()) });
                    met.push(receiver.recv_timeout(Duration::from_secs(20)).is_ok());
                    tokio::task::yield_now().await;
                }
                met
            }));
            busy.await.unwrap()
        });
        assert_eq!(met, [true; 3]);
    }

    #[test]
    fn where_no_other_worker_is_the_work_is_done_all_the_same() {
        assert_eq!(run(BLOCKING, || 1), 1);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        assert_eq!(runtime.block_on(async { run(BLOCKING, || 2) }), 2);
    }
}
