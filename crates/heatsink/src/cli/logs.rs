//! Where log lines go, and spans where an endpoint for them is named.
//!
//! Not here: what is logged (each place says so itself, by `tracing`).

use std::io::IsTerminal;

use heatsink_gateway::ACCESS_LOG;
use tracing::level_filters::LevelFilter;
use tracing::{Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use super::serve::{CONFIGURATION, Log, LogFormat};
use crate::exit::Exit;

#[cfg(feature = "otlp")]
pub use super::otlp::Spans;

/// Without the feature `otlp` there are no spans to send.
#[cfg(not(feature = "otlp"))]
pub struct Spans;

/// Sends lines to stderr: warnings and errors by default, and each reshard that this gateway takes,
/// ends or gives back; `RUST_LOG` asks for more. The AWS chain warns of every place where it finds
/// no credentials, which matters to nobody once it has found some; when it finds none at all, the
/// command says so itself. What is returned sends the last spans when it is dropped.
///
/// # Errors
/// For an endpoint of spans that is no URL.
pub fn install(log: &Log) -> Result<Option<Spans>, Exit> {
    let asked = std::env::var("RUST_LOG").ok().and_then(|levels| levels.parse::<Targets>().ok());
    let usual = || {
        let usual = Targets::new().with_default(Level::WARN);
        let usual = usual.with_target("aws_config", LevelFilter::OFF);
        usual.with_target("heatsink_workers", Level::INFO).with_target(CONFIGURATION, Level::INFO)
    };
    let access = if log.requests { LevelFilter::INFO } else { LevelFilter::OFF };
    let targets = asked.unwrap_or_else(usual).with_target(ACCESS_LOG, access);
    let lines = lines(log.format, std::io::stderr, std::io::stderr().is_terminal());
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

/// A line for each event.
fn lines<S, W>(format: LogFormat, writer: W, is_coloured: bool) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(is_coloured);
    match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A decision about a key is logged with the key.
    #[test]
    fn a_hostile_key_is_one_inert_line() {
        let key = "a\n2026-01-01T00:00:00Z ERROR forged\r\u{1b}[2J\u{202e}\u{7f}\"</script>";
        for format in [LogFormat::Text, LogFormat::Json] {
            let kept = Kept::default();
            let writer = kept.clone();
            let subscriber =
                tracing_subscriber::registry().with(lines(format, move || writer.clone(), false));
            tracing::subscriber::with_default(subscriber, || {
                tracing::info!(table = "Scores", key, shards = 16, "a key gets other shards");
            });
            let log = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
            let line = log.strip_suffix('\n').unwrap();
            assert!(!line.contains(|c: char| c.is_control() && c != '\u{7f}'), "{line:?}");
            match format {
                LogFormat::Text => assert!(!line.contains(['\u{202e}', '\u{7f}']), "{line:?}"),
                LogFormat::Json => {
                    let told: serde_json::Value = serde_json::from_str(line).unwrap();
                    assert_eq!((&told["key"], &told["shards"]), (&key.into(), &16.into()));
                }
            }
        }
    }
}
