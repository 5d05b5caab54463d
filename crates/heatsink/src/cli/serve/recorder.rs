//! Records the metrics for `GET /_heatsink/metrics`. Nothing is sent anywhere.

use std::sync::Arc;
use std::time::Duration;

use super::metric_help;
use heatsink_env::Env;
use heatsink_gateway::Recorded;
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder};

/// Physical requests for one of the client's.
const CALLS: [f64; 10] = [1.0, 2.0, 4.0, 6.0, 10.0, 20.0, 40.0, 100.0, 400.0, 1000.0];
/// Seconds that a request takes: from a tenth of a millisecond to the time limit of a request.
const SECONDS: [f64; 16] = [
    0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
    30.0,
];
/// Single observations are kept until they are added up, which has to happen now and then.
const ADDED_UP: Duration = Duration::from_secs(5);

/// Installs the recorder for this process, and tells what it holds. Has to come before what counts
/// is made.
///
/// # Errors
/// Another recorder is installed.
pub(super) fn install(env: &Arc<dyn Env>) -> Result<Recorded, BuildError> {
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .set_buckets_for_metric(Matcher::Suffix("_per_request".to_owned()), &CALLS)?
        .install_recorder()?;
    metric_help::describe();
    let (env, adding) = (Arc::clone(env), handle.clone());
    tokio::spawn(async move {
        loop {
            env.sleep(ADDED_UP).await;
            adding.run_upkeep();
        }
    });
    Ok(Box::new(move || handle.render()))
}
