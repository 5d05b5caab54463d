//! Records the metrics for `GET /_heatsink/metrics`. Nothing is sent anywhere.

use std::sync::Arc;
use std::time::Duration;

use super::metric_help;
use heatsink_env::Env;
use heatsink_gateway::Recorded;
use metrics_exporter_prometheus::{BuildError, PrometheusBuilder};

/// Physical requests for one of the client's.
const CALLS: [f64; 10] = [1.0, 2.0, 4.0, 6.0, 10.0, 20.0, 40.0, 100.0, 400.0, 1000.0];
/// Single observations are kept until they are added up, which has to happen now and then.
const ADDED_UP: Duration = Duration::from_secs(5);

/// Installs the recorder for this process, and tells what it holds. Has to come before what counts is made.
///
/// # Errors
/// Another recorder is installed.
pub(super) fn install(env: &Arc<dyn Env>) -> Result<Recorded, BuildError> {
    let handle = PrometheusBuilder::new().set_buckets(&CALLS)?.install_recorder()?;
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
