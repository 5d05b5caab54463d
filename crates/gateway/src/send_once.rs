//! Sends one physical call, once, if the request's pass allows it.
//!
//! Not here: what is sent again (`send`).

use bytes::Bytes;
use heatsink_control::Pass;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;

use crate::heat::DrawnRequest;
use crate::{blocking, spans};

/// Sends one physical call, if the request's pass allows it, and reports whether it was answered.
pub(crate) async fn send(
    store: &dyn Store,
    pass: &Pass,
    operation: Operation,
    body: Bytes,
) -> Result<Bytes, Error> {
    let sending = pass.send(!operation.only_reads());
    let bytes = body.len();
    let call = spans::physical_call(operation, store.call_if(operation, body, &sending));
    let answer = blocking::run_future(bytes, call).await;
    sending.answered(&answer);
    answer
}

/// [`send`] of a client's request that may ask what it costs, and is sent as it is otherwise. Adds
/// what it cost.
pub(crate) async fn send_counted(
    store: &dyn Store,
    pass: &Pass,
    drawn: DrawnRequest,
    operation: Operation,
    body: Bytes,
    figures: &mut Vec<Bytes>,
) -> Result<Bytes, Error> {
    let asked = drawn.asking(operation, body);
    let answer = send(store, pass, operation, asked.body.clone()).await;
    let bytes = answer.as_ref().map_or(0, Bytes::len);
    let (answer, told) = blocking::run(bytes, || asked.answered(answer));
    figures.extend(told);
    answer
}
