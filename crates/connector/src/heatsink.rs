//! A gateway that runs in this program, and what runs beside it: its lease, and the reshards that
//! are asked for or that hot keys need.
//!
//! Not here: what an SDK asks (`connector`), a gateway for one test (`local`).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join;
use heatsink_control::{Fencing, Rules};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::http::InProcess;
use heatsink_gateway::{self as gateway, Gateway, Limits, Status};
use heatsink_store::Store;
use heatsink_workers::{Acts, INDEX_DELAY, carry};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::{Connector, StartError};

/// A gateway that runs in this program, on the runtime that it was started on.
///
/// When it is dropped it refuses further requests at once, and ends as after [`stop`](Self::stop)
/// without anybody waiting for it.
pub struct Heatsink {
    connector: Connector,
    status: Arc<Status>,
    /// Stops what runs when it is dropped.
    stop: oneshot::Sender<()>,
    running: JoinHandle<bool>,
    _open: Open,
}

/// Refuses requests once it is dropped, also where the runtime has ended that would do so.
struct Open(Arc<InProcess>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A gateway that is not started yet. By default it has no rules, shares its store with other
/// gateways, and has the default [`Limits`].
pub struct Builder {
    store: Arc<dyn Store>,
    gateway: gateway::Builder,
    rules: Rules,
    name: String,
    exclusive: bool,
    index_delay: Duration,
}

impl Heatsink {
    /// A gateway in front of the DynamoDB endpoint at that URL. It signs with the credentials and
    /// the region of AWS's standard chain.
    ///
    /// # Errors
    /// [`StartError::Upstream`] for a URL that is none, and where there are no credentials or no
    /// region.
    #[cfg(feature = "upstream")]
    pub async fn upstream(url: &str) -> Result<Builder, StartError> {
        use heatsink_store::upstream::{Bounds, Endpoint, Network, Upstream};

        let endpoint = Endpoint::parse(url).map_err(StartError::Upstream)?;
        let network = Network::of_environment(None).map_err(StartError::Upstream)?;
        let upstream = Upstream::connect(endpoint, Bounds::default(), &network, Arc::new(RealEnv)).await;
        let upstream = upstream.map_err(StartError::Upstream)?;
        let region = upstream.region().to_owned();
        Ok(Heatsink::over(Arc::new(upstream)).region(&region))
    }

    /// A gateway in front of that store.
    pub fn over(store: Arc<dyn Store>) -> Builder {
        // Not on every system: the process alone says less.
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Builder {
            gateway: Gateway::builder(Arc::clone(&store)),
            store,
            rules: Rules::default(),
            name: format!("{} in a program, process {}", host.trim(), std::process::id()).trim().to_owned(),
            exclusive: false,
            index_delay: INDEX_DELAY,
        }
    }

    /// The HTTP client for the configuration of an SDK's client.
    pub fn connector(&self) -> Connector {
        self.connector.clone()
    }

    /// What tells operators how it does; `heatsink_gateway::http::serve_admin` serves it.
    pub fn status(&self) -> &Arc<Status> {
        &self.status
    }

    /// Stops: refuses further requests, lets those in flight finish within [`Limits::drain`], gives
    /// reshards back to other gateways, and takes itself off their list. Returns whether all
    /// requests finished.
    pub async fn stop(self) -> bool {
        drop(self.stop);
        // A task that panicked, or whose runtime ends, has not finished.
        self.running.await.unwrap_or(false)
    }
}

impl Builder {
    /// Which keys are sharded, and how. Its `[[client]]` and `[webhook]` sections mean nothing here.
    #[must_use]
    pub fn rules(self, rules: Rules) -> Self {
        Builder { rules, ..self }
    }

    /// What people find it by in `heatsink gateways`: by default, machine and process.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        Builder { name: name.to_owned(), ..self }
    }

    /// Says that no other gateway uses the same store: layout changes wait for nobody.
    #[must_use]
    pub fn only_gateway(self) -> Self {
        Builder { exclusive: true, ..self }
    }

    /// What requests may take. Those on connections mean nothing here.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Builder { gateway: self.gateway.limits(limits), ..self }
    }

    /// The AWS region that it stands for.
    #[must_use]
    pub fn region(self, region: &str) -> Self {
        Builder { gateway: self.gateway.region(region), ..self }
    }

    /// Says that indexes of the store do not lag behind their tables.
    #[cfg(feature = "local")]
    pub(crate) fn prompt_indexes(self) -> Self {
        Builder { index_delay: Duration::ZERO, ..self }
    }

    /// What tells the partitions of its store.
    #[cfg(feature = "local")]
    pub(crate) fn partitions(self, partitions: gateway::Partitions) -> Self {
        Builder { gateway: self.gateway.partitions(partitions), ..self }
    }

    /// Starts it on the runtime that this is called on.
    ///
    /// # Errors
    /// [`StartError`].
    pub async fn start(self) -> Result<Heatsink, StartError> {
        let Builder { store, gateway, rules, name, exclusive, index_delay } = self;
        let runtime = Handle::try_current().map_err(|_| StartError::NoRuntime)?;
        let env: Arc<dyn Env> = Arc::new(RealEnv);
        let fencing = match exclusive {
            true => Fencing::exclusive(rules.fence()),
            false => Fencing::shared(rules.fence(), &name),
        };
        let acts = Arc::new(Acts::default());
        let told = Arc::clone(&acts);
        let gateway = gateway.rules(rules).fencing(fencing.carrying());
        let gateway = gateway.automatic(Box::new(move || told.shown())).start().await?;
        let (control, status) = (gateway.control().clone(), Arc::clone(gateway.status()));
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = stopped.map(drop).shared();
        let (door, serving) = gateway.serve_in_process(stopped.clone());
        let carrying = carry(store, env, control, Arc::clone(&status) as _, acts, index_delay, stopped);
        let running = runtime.spawn(join(serving, carrying).map(|(drained, ())| drained));
        let open = Open(Arc::clone(&door));
        Ok(Heatsink { connector: Connector::new(door), status, stop, running, _open: open })
    }
}
