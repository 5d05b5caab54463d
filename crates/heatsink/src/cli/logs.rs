//! Where log lines go, and spans where an endpoint for them is named.
//!
//! Not here: what is logged (each place says so itself, by `tracing`).

use std::io::IsTerminal;

use heatsink_gateway::ACCESS_LOG;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::serve::{Log, LogFormat};
use crate::exit::Exit;

#[cfg(feature = "otlp")]
pub use super::otlp::Spans;

/// Without the feature `otlp` there are no spans to send.
#[cfg(not(feature = "otlp"))]
pub struct Spans;

/// Sends lines to stderr: warnings and errors by default, and each reshard that this gateway takes, ends or gives back; `RUST_LOG` asks for more. The
/// AWS chain warns of every place where it finds no credentials, which matters to nobody once it has found some; when it finds none at all, the command
/// says so itself. What is returned sends the last spans when it is dropped.
///
/// # Errors
/// For an endpoint of spans that is no URL.
pub fn install(log: &Log) -> Result<Option<Spans>, Exit> {
    let asked = std::env::var("RUST_LOG").ok().and_then(|levels| levels.parse::<Targets>().ok());
    let usual = || {
        let usual = Targets::new().with_default(Level::WARN);
        usual.with_target("aws_config", LevelFilter::OFF).with_target("heatsink_mover", Level::INFO)
    };
    let access = if log.requests { LevelFilter::INFO } else { LevelFilter::OFF };
    let targets = asked.unwrap_or_else(usual).with_target(ACCESS_LOG, access);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let registry = tracing_subscriber::registry();
    #[cfg(feature = "otlp")]
    if let Some(endpoint) = &log.otlp {
        let spans = Spans::to(endpoint)?;
        registry.with(lines.with_filter(targets)).with(spans.layer()).init();
        return Ok(Some(spans));
    }
    registry.with(lines).with(targets).init();
    Ok(None)
}
