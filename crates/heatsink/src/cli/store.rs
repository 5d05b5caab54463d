//! Opens the store that the arguments ask for.

use std::path::Path;
use std::sync::Arc;

use heatsink_dynamo::Error;
use heatsink_env::Env;
use heatsink_gateway::Partitions;
use heatsink_physics::Quotas;
use heatsink_store::Store;
use heatsink_store::embedded::{Embedded, Synchronous};
use heatsink_store::partitioned::Partitioned;

use super::server_store::ServerStore;
use super::{ask_server, operator_socket};
use crate::exit::Exit;

/// The region that the embedded store stands for where the environment names none.
const EMBEDDED_REGION: &str = "us-east-1";
/// What names it, as for AWS's own tools.
const REGION_VARIABLES: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// The region that the embedded store stands for.
fn region() -> Result<String, Exit> {
    let named = |name: &&str| std::env::var(name).ok().filter(|region| !region.is_empty());
    let Some(name) = REGION_VARIABLES.iter().find(|name| named(name).is_some()) else {
        return Ok(EMBEDDED_REGION.to_owned());
    };
    let region = named(name).unwrap_or_default();
    let is_known = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match region.len() <= 32 && region.chars().all(is_known) {
        true => Ok(region),
        false => Err(Exit::usage(format!("{name} is no region: {region:?}; expected one like eu-west-1"))),
    }
}

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

/// The embedded engine, in memory or in `file`, whose writes survive what `synchronous` says, with
/// or without partitions before it, under these quotas. `address`: where it will be served.
pub async fn embedded(
    file: Option<&Path>,
    synchronous: Synchronous,
    partitions: Option<Quotas>,
    address: Option<&str>,
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
    let region = region()?;
    let mut engine = engine.map_err(cannot)?.in_region(&region).expiring();
    if let Some(address) = address {
        engine = engine.served_at(address);
    }
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

/// The DynamoDB endpoint at `url`, whose certificate the CA in that file has signed, with
/// operations on its account or without them.
#[cfg(feature = "upstream")]
pub async fn upstream(
    url: &str,
    ca: Option<&Path>,
    account_operations: bool,
    env: &Arc<dyn Env>,
) -> Result<Opened, Exit> {
    use heatsink_store::upstream::{Bounds, Endpoint, Network, Upstream};

    let endpoint = Endpoint::parse(url).map_err(|problem| Exit::usage(format!("--upstream: {problem}")))?;
    if endpoint.is_exposed() {
        tracing::warn!(
            "--upstream {endpoint}: plain http beyond this machine; everyone on the way can read and change items. Use https"
        );
    }
    let place = DataLocation::Upstream(endpoint.to_string());
    let network = Network::of_environment(ca.map(|file| ("--upstream-ca", file))).map_err(Exit::usage)?;
    let mut upstream = Upstream::connect(endpoint, Bounds::default(), &network, env.clone())
        .await
        .map_err(|problem| Exit::usage(format!("--upstream: {problem}")))?;
    if account_operations {
        upstream = upstream.with_account_operations();
    }
    let region = upstream.region().to_owned();
    Ok(Opened { store: Arc::new(upstream), region, place, partitions: None })
}

/// The store of the running server that `--server` names: the address or endpoint of its clients,
/// or its socket.
///
/// # Errors
/// Exit 64 for an address beyond loopback, 69 where no server of this user answers.
pub fn server(written: &str) -> Result<Arc<dyn Store>, Exit> {
    let socket =
        operator_socket::find(written)?.ok_or_else(|| ask_server::no_server_of_this_user(written))?;
    Ok(Arc::new(ServerStore::at(socket)))
}

/// Says that this build has none.
#[cfg(not(feature = "upstream"))]
pub async fn upstream(
    _url: &str,
    _ca: Option<&Path>,
    _account_operations: bool,
    _env: &Arc<dyn Env>,
) -> Result<Opened, Exit> {
    Err(Exit::usage("--upstream: this heatsink was built without the feature `upstream`"))
}
