//! Spans sent to a collector of OpenTelemetry, as OTLP over HTTP. How often they are sent, which share of them is taken and with which attributes of the
//! process, is set by OpenTelemetry's own variables (`OTEL_BSP_SCHEDULE_DELAY`, `OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES`).
//!
//! Not here: what a span is (`heatsink_gateway::SPANS`).

use heatsink_gateway::SPANS;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::registry::LookupSpan;

use crate::exit::Exit;

/// Where spans are sent. The last ones are sent when it is dropped.
pub struct Spans(SdkTracerProvider);

impl Spans {
    /// To the collector at this URL, below which `/v1/traces` takes spans.
    ///
    /// # Errors
    /// For what is no URL.
    pub fn to(endpoint: &str) -> Result<Self, Exit> {
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let exporter = SpanExporter::builder()
            .with_http()
            .with_endpoint(url)
            .build()
            .map_err(|error| Exit::usage(format!("--otlp: {error}")))?;
        let resource = Resource::builder().with_service_name("heatsink").build();
        Ok(Spans(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
    }

    /// What takes the spans of `tracing`, and no other ones than those of requests and physical calls.
    pub fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        tracing_opentelemetry::layer()
            .with_tracer(self.0.tracer("heatsink"))
            .with_location(false)
            .with_threads(false)
            .with_filter(Targets::new().with_target(SPANS, Level::INFO))
    }
}

impl Drop for Spans {
    fn drop(&mut self) {
        // A collector that is gone is no reason for another exit code.
        let _ = self.0.shutdown();
    }
}
