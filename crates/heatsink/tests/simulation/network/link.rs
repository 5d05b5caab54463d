//! The store as one process reaches it: the way there, and the way back.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::FutureExt;
use futures::channel::oneshot;
use futures::future::{BoxFuture, Either, select};
use heatsink_dynamo::{Error, Operation, Outcome};
use heatsink_store::{Permit, Store};

use super::Network;
use super::bodies::{halves, joined, writes_key_record};
use super::weather::{Fate, Lost, QUICK};

/// The store as one process reaches it.
pub(super) struct Link {
    pub(super) network: Arc<Network>,
    pub(super) process: String,
}

type Answering = Arc<Mutex<Option<oneshot::Sender<Result<Bytes, Error>>>>>;

impl Link {
    /// Sends the request on its way. It arrives whatever becomes of the process.
    fn send(&self, operation: Operation, body: &Bytes, fate: Fate, answering: &Answering) {
        let (network, process) = (Arc::clone(&self.network), self.process.clone());
        let (body, answering) = (body.clone(), Arc::clone(answering));
        let halves = fate.split.and_then(|gap| Some((gap, halves(&body)?)));
        self.network.clock.after(fate.there, move || match halves {
            None => {
                let before = fate.torn.and_then(|gap| network.before(&body, network.clock.now() + gap));
                let answer = match fate.refused {
                    Some(why) => Err(why()),
                    None => network.answer(&process, operation, &body, fate.throttled),
                };
                // One that is cancelled is never half done, and the next one on these records
                // begins when the last is done.
                if answer.is_ok() && writes_key_record(operation, &body) {
                    network.state.lock().unwrap().torn = before;
                }
                network.reply(&process, operation, &body, fate, &answering, answer);
            }
            Some((gap, [first, second])) => {
                let read = network.answer(&process, operation, &first, fate.throttled);
                network.clock.clone().after(gap, move || {
                    let answer = read.and_then(|first| {
                        let second = network.answer(&process, operation, &second, false)?;
                        Ok(joined(&first, &second))
                    });
                    network.reply(&process, operation, &body, fate, &answering, answer);
                });
            }
        });
    }
}

impl Network {
    /// Sends the store's answer on its way back.
    fn reply(
        self: &Arc<Self>,
        process: &str,
        operation: Operation,
        body: &Bytes,
        fate: Fate,
        answering: &Answering,
        answer: Result<Bytes, Error>,
    ) {
        self.log.line(format!(
            "    store: {} of {process}{}: {}{} <- {}",
            operation.name(),
            if fate.there > QUICK { format!(" ({:?} late)", fate.there) } else { String::new() },
            answer.as_ref().map_or_else(|error| error.code.name().to_owned(), |_| "done".to_owned()),
            fate.lost.map_or(String::new(), |lost| format!(", answer lost ({lost:?})")),
            String::from_utf8_lossy(body),
        ));
        let answer = match fate.lost {
            Some(Lost::Silent) => return,
            Some(Lost::Broken) => Err(lost(operation)),
            None => answer,
        };
        let answering = Arc::clone(answering);
        // A transaction is answered when it is done.
        self.clock.after(fate.back + fate.torn.unwrap_or_default(), move || {
            if let Some(answering) = answering.lock().unwrap().take() {
                let _ = answering.send(answer);
            }
        });
    }
}

impl Store for Link {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            let fate = self.network.fate(&self.process, operation, &body);
            let (answering, answered) = oneshot::channel();
            let answering = Arc::new(Mutex::new(Some(answering)));
            self.send(operation, &body, fate, &answering);
            if let Some(there) = fate.twice {
                self.send(operation, &body, Fate { there, ..fate }, &answering);
            }
            let patience = self.network.state.lock().unwrap().weather.patience;
            match select(answered, self.network.clock.sleep(patience)).await {
                Either::Left((Ok(answer), _)) => answer,
                _ => Err(lost(operation)),
            }
        }
        .boxed()
    }

    fn call_if<'a>(
        &'a self,
        operation: Operation,
        body: Bytes,
        permit: &'a dyn Permit,
    ) -> BoxFuture<'a, Result<Bytes, Error>> {
        async move {
            if let Some(wait) = self.network.connection(&self.process, operation, &body) {
                self.network.clock.sleep(wait).await;
            }
            permit.check()?;
            self.call(operation, body).await
        }
        .boxed()
    }
}

/// What an upstream says when an answer is lost.
fn lost(operation: Operation) -> Error {
    let outcome = if operation.only_reads() { Outcome::NotDone } else { Outcome::Unknown };
    Error::unavailable("the answer was lost", outcome)
}
