//! Spans sent to a collector of OpenTelemetry, as OTLP over HTTP. How often they are sent, which
//! share of them is taken and with which attributes of the process, is set by OpenTelemetry's own
//! variables (`OTEL_BSP_SCHEDULE_DELAY`, `OTEL_TRACES_SAMPLER`, `OTEL_RESOURCE_ATTRIBUTES`).
//!
//! A collector that takes no spans harms nothing: 2,048 spans wait at most
//! (`OTEL_BSP_MAX_QUEUE_SIZE`), others are lost, and the log says so.
//!
//! Not here: what a span is (`heatsink_gateway::SPANS`).

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use heatsink_gateway::SPANS;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
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
    /// For what is no URL, and for one with TLS, which this build does not speak.
    pub fn to(endpoint: &str) -> Result<Self, Exit> {
        if endpoint.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https:")) {
            return Err(Exit::usage(
                "--otlp: spans are sent without TLS: name a collector on this machine or in a private network, with http://".to_owned(),
            ));
        }
        let url = format!("{}/v1/traces", endpoint.trim_end_matches('/'));
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_endpoint(&url)
            .build()
            .map_err(|error| Exit::usage(format!("--otlp: {error}")))?;
        let resource = Resource::builder().with_service_name("heatsink").build();
        let exporter = Told { exporter, url, lost: AtomicBool::new(false) };
        Ok(Spans(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build()))
    }

    /// What takes the spans of `tracing`, and no other ones than those of requests and physical
    /// calls.
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

/// An exporter that says in the log when spans begin to be lost, and when they arrive again; not
/// for each of the batches between.
#[derive(Debug)]
struct Told<E> {
    exporter: E,
    url: String,
    lost: AtomicBool,
}

impl<E: SpanExporter> SpanExporter for Told<E> {
    /// Never fails: the library would log each failure.
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let answer = self.exporter.export(batch).await;
        let before = self.lost.swap(answer.is_err(), Ordering::Relaxed);
        match answer {
            Err(error) if !before => tracing::warn!(
                url = self.url,
                "spans do not reach the collector, and are lost: {error}; requests are served as before"
            ),
            Ok(()) if before => tracing::warn!(url = self.url, "spans reach the collector again"),
            _ => {}
        }
        Ok(())
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
