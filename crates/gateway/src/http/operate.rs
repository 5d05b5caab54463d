//! Has the service carry a request out: in a place in progress, within the time that a request has,
//! and no longer than its client waits where that changes nothing.
//!
//! Not here: what is done (`crate::service`), how the answer is sent (`deliver`).

use std::sync::Arc;

use bytes::Bytes;
use heatsink_access::Caller;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_route::Answer;

use super::deliver::Answered;
use super::door::Shared;
use super::work::{Alone, Work};
use crate::Service;
use crate::budget::Held;
use crate::only_reads::only_reads;
use crate::sent::Sent;

/// The answer of the service, within the time that a request has.
pub(super) async fn operate(
    (service, shared): (&Arc<Service>, &Shared),
    operation: Operation,
    body: Bytes,
    held: Held,
    caller: Option<Caller>,
) -> Result<Answered, Error> {
    let Shared { limits, live, counts, in_flight, .. } = shared;
    // Admit to a place in progress. After authentication: who is not known takes none.
    let most = live.get().requests;
    let Some(slot) = in_flight.take(most) else {
        counts.over_requests.increment(1);
        let message = format!("More than {most} requests are in progress");
        return Err(Error::new(Code::ThrottlingException, message));
    };
    let read_only = only_reads(operation, &body);
    let sent = Arc::new(Sent::default());
    let alone = if read_only {
        Alone::Ends(counts.reads_cancelled.clone())
    } else {
        Alone::GoesOn(counts.writes_alone.clone(), Arc::clone(&sent))
    };
    let service = Arc::clone(service);
    let sends = Arc::clone(&sent);
    let work = async move {
        let answer = service.call_until(operation, body, &sends, caller.as_ref()).await;
        drop((slot, held));
        answer
    };
    // Not through Env: a bound on an I/O wait. tokio registers the timer only if the answer is
    // not there at once.
    match tokio::time::timeout(limits.request, Work::new(work, alone)).await {
        Ok(answer) => answer.map(|Answer { body, missing }| Answered { body, missing, read_only }),
        // It waited all the time: for a layout to change, which it says in its own words, or for the
        // registry.
        Err(_) if sent.give_up() => Err(sent.waited().cloned().unwrap_or_else(|| {
            let message = format!(
                "No answer within {} s; nothing of the request was sent, so nothing was done. Try again",
                limits.request.as_secs()
            );
            Error::unavailable(message, Outcome::NotDone)
        })),
        Err(_) => {
            let message = format!(
                "No answer within {} s; the request may have been carried out",
                limits.request.as_secs()
            );
            Err(Error::unavailable(message, Outcome::Unknown))
        }
    }
}
