//! The processing of a request, and what happens when its client has gone: a read is cancelled, any
//! other operation runs to its end.
//!
//! Writes of several steps (the parts of a counter's transaction, the directory's row before the
//! item, a read before a write) are safe when the store fails in between. They are not designed for
//! a caller that stops in between.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use metrics::Counter;
use tokio::runtime::Handle;

use crate::sent::Sent;

/// What happens to work whose client has gone, and the gauge that counts it.
pub(super) enum Alone {
    /// It is cancelled.
    Ends(Counter),
    /// It continues in a task of its own, unless it only waits for its turn.
    GoesOn(Counter, Arc<Sent>),
}

/// Work in progress.
pub(super) struct Work<F: Future + Send + 'static> {
    work: Option<Pin<Box<F>>>,
    begun: bool,
    alone: Alone,
}

impl<F: Future + Send + 'static> Work<F> {
    pub(super) fn new(work: F, alone: Alone) -> Self {
        Work { work: Some(Box::pin(work)), begun: false, alone }
    }
}

impl<F: Future + Send + 'static> Future for Work<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let Some(work) = &mut this.work else { return Poll::Pending };
        this.begun = true;
        let done = work.as_mut().poll(cx);
        if done.is_ready() {
            this.work = None;
        }
        done
    }
}

impl<F: Future + Send + 'static> Drop for Work<F> {
    fn drop(&mut self) {
        let Some(work) = self.work.take().filter(|_| self.begun) else { return };
        match &self.alone {
            Alone::Ends(count) => count.increment(1),
            Alone::GoesOn(_, sent) if sent.withdraw() => {}
            Alone::GoesOn(count, _) => {
                count.increment(1);
                // Without a runtime the process is ending, and its stores with it.
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(async move {
                        work.await;
                    });
                }
            }
        }
    }
}
