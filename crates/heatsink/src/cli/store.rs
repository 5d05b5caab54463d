//! Opens the store that the arguments ask for.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use heatsink_dynamo::Error;
use heatsink_env::Env;
use heatsink_gateway::Partitions;
use heatsink_physics::Quotas;
use heatsink_store::Store;
use heatsink_store::embedded::{Embedded, Synchronous};
use heatsink_store::partitioned::Partitioned;

use crate::exit::Exit;

/// The region that the embedded store stands for.
const EMBEDDED_REGION: &str = "us-east-1";

/// Where the data lies.
pub enum DataLocation {
    /// In this process.
    Memory,
    /// In a file.
    File(String),
    /// In another DynamoDB endpoint.
    #[cfg_attr(not(feature = "upstream"), allow(dead_code, reason = "constructed by that feature"))]
    Upstream(String),
}

/// A store that is ready.
pub struct Opened {
    pub store: Arc<dyn Store>,
    pub region: String,
    pub place: DataLocation,
    /// Tells the partitions of a table, where there are any.
    pub partitions: Option<Partitions>,
}

/// The embedded engine, in memory or in `file`, whose writes survive what `synchronous` says, with or without partitions before it, under these quotas. `address`: where
/// it will be served.
pub async fn embedded(
    file: Option<&Path>,
    synchronous: Synchronous,
    partitions: Option<Quotas>,
    address: Option<SocketAddr>,
    env: &Arc<dyn Env>,
) -> Result<Opened, Exit> {
    let (engine, place) = match file {
        Some(file) => (
            Embedded::file_with(file, synchronous, env.clone()),
            DataLocation::File(file.display().to_string()),
        ),
        None => (Embedded::memory_with(env.clone()), DataLocation::Memory),
    };
    // The message alone: the code is for clients, and there is none yet.
    let said = |error: Error| error.message.unwrap_or_else(|| error.code.name().to_owned());
    let cannot = |error: Error| match file {
        Some(file) => {
            Exit::unavailable(format!("cannot open the data file {}: {}", file.display(), said(error)))
        }
        None => Exit::software(format!("cannot start the embedded store: {}", said(error))),
    };
    let mut engine = engine.map_err(cannot)?;
    if let Some(address) = address {
        engine = engine.served_at(&address.to_string());
    }
    let region = EMBEDDED_REGION.to_owned();
    let Some(quotas) = partitions else {
        return Ok(Opened { store: Arc::new(engine), region, place, partitions: None });
    };
    let store = match file {
        Some(file) => {
            let mut beside = file.as_os_str().to_owned();
            beside.push(".partitions");
            Partitioned::start_kept(engine, env.clone(), quotas, Path::new(&beside)).await
        }
        None => Partitioned::start(engine, env.clone(), quotas).await,
    };
    let store = Arc::new(store.map_err(cannot)?);
    let told = Arc::clone(&store);
    let partitions: Partitions = Box::new(move |table| told.report(table));
    Ok(Opened { store, region, place, partitions: Some(partitions) })
}

/// How many connections an upstream takes at most: to its tables and to its streams.
#[cfg(feature = "upstream")]
pub fn upstream_connections() -> usize {
    2 * heatsink_store::upstream::Bounds::default().connections
}

/// There is no upstream in this build.
#[cfg(not(feature = "upstream"))]
pub fn upstream_connections() -> usize {
    0
}

/// The DynamoDB endpoint at `url`, with operations on its account or without them.
#[cfg(feature = "upstream")]
pub async fn upstream(url: &str, account_operations: bool, env: &Arc<dyn Env>) -> Result<Opened, Exit> {
    use heatsink_store::upstream::{Bounds, Endpoint, Upstream};

    let endpoint = Endpoint::parse(url).map_err(|problem| Exit::usage(format!("--upstream: {problem}")))?;
    if endpoint.is_exposed() {
        tracing::warn!(
            "--upstream {endpoint}: plain http beyond this machine; everyone on the way can read and change items. Use https"
        );
    }
    let place = DataLocation::Upstream(endpoint.to_string());
    let mut upstream = Upstream::connect(endpoint, Bounds::default(), env.clone())
        .await
        .map_err(|problem| Exit::usage(format!("--upstream: {problem}")))?;
    if account_operations {
        upstream = upstream.with_account_operations();
    }
    let region = upstream.region().to_owned();
    Ok(Opened { store: Arc::new(upstream), region, place, partitions: None })
}

/// The store behind the Heatsink server at this address or endpoint, which is on this machine.
#[cfg(feature = "upstream")]
pub fn server(written: &str, env: &Arc<dyn Env>) -> Result<Arc<dyn Store>, Exit> {
    use heatsink_store::upstream::{Bounds, Endpoint, Upstream};

    let server = written.trim_start_matches("http://").trim_end_matches('/');
    super::address::loopback("--server", server)?;
    let wrong = |problem| Exit::usage(format!("--server: {problem}"));
    let endpoint = Endpoint::parse(&format!("http://{server}")).map_err(wrong)?;
    Ok(Arc::new(Upstream::behind(endpoint, Bounds::default(), env.clone()).map_err(wrong)?))
}

/// Says that this build cannot ask one.
#[cfg(not(feature = "upstream"))]
pub fn server(_written: &str, _env: &Arc<dyn Env>) -> Result<Arc<dyn Store>, Exit> {
    Err(Exit::usage("--server: this heatsink was built without the feature `upstream`"))
}

/// Says that this build has none.
#[cfg(not(feature = "upstream"))]
pub async fn upstream(_url: &str, _account_operations: bool, _env: &Arc<dyn Env>) -> Result<Opened, Exit> {
    Err(Exit::usage("--upstream: this heatsink was built without the feature `upstream`"))
}
