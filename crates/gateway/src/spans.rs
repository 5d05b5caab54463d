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
pub(crate) async fn request<A>(
    operation: Operation,
    answer: impl Future<Output = Result<A, Error>>,
) -> Result<A, Error> {
    let span = tracing::info_span!(
        target: SPANS,
        "request",
        otel.name = operation.name(),
        otel.kind = "server",
        otel.status_code = Empty,
        db.system.name = "aws.dynamodb",
        db.operation.name = operation.name(),
        heatsink.plan = Empty,
        "error.type" = Empty,
    );
    let answer = answer.instrument(span.clone()).await;
    failed(&span, answer.as_ref().err());
    answer
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
    let span = tracing::info_span!(
        target: SPANS,
        "physical call",
        otel.name = operation.name(),
        otel.kind = "client",
        otel.status_code = Empty,
        db.system.name = "aws.dynamodb",
        db.operation.name = operation.name(),
        "error.type" = Empty,
    );
    async move {
        let answer = call.instrument(span.clone()).await;
        failed(&span, answer.as_ref().err());
        answer
    }
    .boxed()
}

/// Codes of errors are the type of an error, as OpenTelemetry's conventions for DynamoDB have it.
fn failed(span: &Span, error: Option<&Error>) {
    if let Some(error) = error {
        span.record("error.type", field::display(error.code.name()));
        span.record("otel.status_code", "ERROR");
    }
}
