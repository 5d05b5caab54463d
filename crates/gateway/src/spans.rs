//! Spans of requests and of physical calls, where somebody takes them.
//!
//! They have no keys and no items: traces are read by more people than tables are.
//!
//! Not here: where they go, and in which form (the installer of a `tracing` subscriber decides).

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use tracing::field::Empty;
use tracing::{Instrument, Level, Span, field};

/// The target of the spans, by which they are asked for.
pub const SPANS: &str = "heatsink_spans";

/// Whether anybody takes them.
pub(crate) fn are_taken() -> bool {
    tracing::span_enabled!(target: SPANS, Level::INFO)
}

/// Answers a client's request within a span of its own.
pub(crate) fn request<A>(
    operation: Operation,
    answer: impl Future<Output = Result<A, Error>>,
) -> impl Future<Output = Result<A, Error>> {
    within(span("server", operation), answer)
}

/// Names the plan of the request that is being answered.
pub(crate) fn planned(plan: &'static str) {
    if are_taken() {
        Span::current().record("heatsink.plan", plan);
    }
}

/// Sends a physical call within a span of its own.
pub(crate) fn physical_call<'a, A: 'a>(
    operation: Operation,
    call: BoxFuture<'a, Result<A, Error>>,
) -> BoxFuture<'a, Result<A, Error>> {
    if !are_taken() {
        return call;
    }
    within(span("client", operation), call).boxed()
}

/// A span in the terms of OpenTelemetry: a request that is served, or one that is sent.
fn span(kind: &'static str, operation: Operation) -> Span {
    tracing::info_span!(
        target: SPANS,
        "call",
        otel.name = operation.name(),
        otel.kind = kind,
        otel.status_code = Empty,
        db.system.name = "aws.dynamodb",
        db.operation.name = operation.name(),
        heatsink.plan = Empty,
        "error.type" = Empty,
    )
}

/// Waits for an answer within a span. Codes of errors are the type of an error, as OpenTelemetry's
/// conventions for DynamoDB have it.
async fn within<A>(span: Span, answer: impl Future<Output = Result<A, Error>>) -> Result<A, Error> {
    let answer = answer.instrument(span.clone()).await;
    if let Err(error) = &answer {
        span.record("error.type", field::display(error.code.name()));
        span.record("otel.status_code", "ERROR");
    }
    answer
}
