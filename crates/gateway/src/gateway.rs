//! A gateway in this process, put together: a store, the rules, the layouts on record, and the
//! service that answers requests.
//!
//! Not here: what a request becomes (`service`), sockets and headers (`http`).

use std::pin::pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::{BoxFuture, Either, join, select};
use heatsink_access::Clients;
use heatsink_control::{Control, Fencing, Rules, StartError};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_route::{Answer, Explanation};
use heatsink_store::Store;
use tokio::net::{TcpListener, UnixListener};

use crate::http::{self, Hosts, InProcess, Listener, Live, Settings};
use crate::status::Shown;
use crate::{KeyNames, Limits, Partitions, Recorded, Recording, Service, Status, Told};

/// A gateway in this process.
pub struct Gateway {
    service: Arc<Service>,
    status: Arc<Status>,
    control: Control,
    /// The store itself, if the operator's commands reach it through this gateway.
    shown_store: Option<Arc<dyn Store>>,
    env: Arc<dyn Env>,
    limits: Limits,
}

/// A gateway that is not started yet.
pub struct Builder {
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    rules: Rules,
    fencing: Option<Fencing>,
    limits: Limits,
    region: String,
    shown: Shown,
    recording: Option<Arc<Recording>>,
    clients: Arc<ArcSwap<Clients>>,
    shows_store: bool,
}

impl Gateway {
    /// A gateway in front of `store`. By default it has no rules, is the only gateway of its store,
    /// has the default [`Limits`] and stands for the region `us-east-1`.
    pub fn builder(store: Arc<dyn Store>) -> Builder {
        Builder {
            store,
            env: Arc::new(RealEnv),
            rules: Rules::default(),
            fencing: None,
            limits: Limits::default(),
            region: "us-east-1".to_owned(),
            shown: Shown::default(),
            recording: None,
            clients: Arc::default(),
            shows_store: false,
        }
    }

    /// Answers one request. Both bodies are JSON.
    ///
    /// # Errors
    /// DynamoDB's own error for the request, or the store's, unchanged.
    pub async fn call(&self, operation: Operation, body: impl Into<Bytes>) -> Result<Bytes, Error> {
        self.service.call(operation, body.into()).await
    }

    /// [`call`](Self::call) that also tells which shards the answer goes without. Only rules with
    /// `on_shard_error = "partial"` leave any out.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_marked(&self, operation: Operation, body: impl Into<Bytes>) -> Result<Answer, Error> {
        self.service.call_marked(operation, body.into()).await
    }

    /// What [`call`](Self::call) would do with a request, without doing it.
    pub async fn explain(&self, operation: Operation, body: &Bytes) -> Explanation {
        self.status.explain(operation, body).await
    }

    /// Its layouts: what is on record, and how it changes.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// What answers its requests, for a server of one's own. [`Control::keep`] has to run
    /// meanwhile.
    pub fn service(&self) -> &Arc<Service> {
        &self.service
    }

    /// What tells operators how it does.
    pub fn status(&self) -> &Arc<Status> {
        &self.status
    }

    /// Serves the operator's commands on `listener`, a socket that only its owner can reach, until
    /// `shutdown` resolves: what the admin address tells, and the store itself if it is
    /// [shown](Builder::showing_store).
    pub fn serve_operator<F: Future<Output = ()> + Send>(
        &self,
        listener: UnixListener,
        shutdown: F,
    ) -> impl Future<Output = ()> + use<F> {
        let (status, store) = (Arc::clone(&self.status), self.shown_store.clone());
        http::serve_operator(listener, status, store, Arc::clone(&self.env), shutdown)
    }

    /// Serves the admin address on `listener` to those whom `access` admits, until `shutdown`
    /// resolves. It may outlive [`serve`](Self::serve), and then says that the gateway is not
    /// ready.
    pub fn serve_admin<F: Future<Output = ()> + Send>(
        &self,
        listener: TcpListener,
        access: http::Access,
        shutdown: F,
    ) -> impl Future<Output = bool> + use<F> {
        http::serve_admin(listener, Arc::clone(&self.status), access, Arc::clone(&self.env), shutdown)
    }

    /// Serves DynamoDB's wire protocol on `listener`, to requests for `hosts`, until `shutdown`
    /// resolves. Then it stops accepting, lets requests in flight finish within [`Limits::drain`],
    /// and takes itself off the list of gateways. Returns whether all requests in flight finished.
    pub async fn serve(
        self,
        listener: TcpListener,
        hosts: Hosts,
        shutdown: impl Future<Output = ()> + Send,
    ) -> bool {
        let live = Live::new(Settings::plain(hosts, &self.limits));
        self.serve_until(listener.into(), live, shutdown.boxed()).await
    }

    /// [`serve`](Self::serve), with the settings that are in force.
    pub async fn serve_live(
        self,
        listener: impl Into<Listener>,
        live: Live,
        shutdown: impl Future<Output = ()> + Send,
    ) -> bool {
        self.serve_until(listener.into(), live, shutdown.boxed()).await
    }

    fn serve_until(self, listener: Listener, live: Live, shutdown: BoxFuture<'_, ()>) -> BoxFuture<'_, bool> {
        async move {
            let Gateway { service, status, control, env, limits, .. } = self;
            let serving = http::serve(listener, service, limits, live, env, shutdown);
            keep_while(serving.boxed(), &control, &status).await
        }
        .boxed()
    }

    /// Answers this program without a socket until `shutdown` resolves, as long as the future runs.
    /// Then it refuses what is asked, lets calls in flight finish within [`Limits::drain`], and
    /// takes itself off the list of gateways. The future returns whether all calls finished.
    pub fn serve_in_process(
        self,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> (Arc<InProcess>, BoxFuture<'static, bool>) {
        let Gateway { service, status, control, env, limits, .. } = self;
        let door = Arc::new(InProcess::new(service, limits, env));
        let serving = Arc::clone(&door);
        let served =
            async move { keep_while(serving.serve_until(shutdown.boxed()).boxed(), &control, &status).await };
        (door, served.boxed())
    }
}

/// Keeps the lease and the heat of a gateway while it is `serving`, and takes it off the list of
/// gateways afterwards. Returns what serving has returned.
async fn keep_while(serving: BoxFuture<'_, bool>, control: &Control, status: &Status) -> bool {
    let drained = {
        let keeping = pin!(join(control.keep(), status.keep_heat()));
        match select(serving, keeping).await {
            Either::Left((drained, _)) => drained,
            // It never ends.
            Either::Right((_, serving)) => serving.await,
        }
    };
    // Only now: a look that is under way holds what leaving waits for, and is gone with the block.
    control.leave().await;
    drained
}

impl Builder {
    /// Which keys are sharded, and how.
    #[must_use]
    pub fn rules(self, rules: Rules) -> Self {
        Builder { rules, ..self }
    }

    /// Its clock and its randomness.
    #[must_use]
    pub fn env(self, env: Arc<dyn Env>) -> Self {
        Builder { env, ..self }
    }

    /// How it agrees on changes of layouts with other gateways of its store.
    #[must_use]
    pub fn fencing(self, fencing: Fencing) -> Self {
        Builder { fencing: Some(fencing), ..self }
    }

    /// What connections and requests may take.
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        Builder { limits, ..self }
    }

    /// The AWS region that it stands for.
    #[must_use]
    pub fn region(self, region: &str) -> Self {
        Builder { region: region.to_owned(), ..self }
    }

    /// What tells its metrics.
    #[must_use]
    pub fn metrics(self, recorded: Recorded) -> Self {
        Builder { shown: Shown { metrics: Some(recorded), ..self.shown }, ..self }
    }

    /// How its metrics name the hottest keys; without it they name none.
    #[must_use]
    pub fn hot_keys(self, names: KeyNames) -> Self {
        Builder { shown: Shown { hot_keys: Some(names), ..self.shown }, ..self }
    }

    /// What tells the partitions of its store.
    #[must_use]
    pub fn partitions(self, partitions: Partitions) -> Self {
        Builder { shown: Shown { partitions: Some(partitions), ..self.shown }, ..self }
    }

    /// What tells what is done about heat.
    #[must_use]
    pub fn automatic(self, automatic: Told) -> Self {
        Builder { shown: Shown { automatic: Some(automatic), ..self.shown }, ..self }
    }

    /// Where the traffic that it counts is recorded.
    #[must_use]
    pub fn recording(self, recording: Arc<Recording>) -> Self {
        Builder { recording: Some(recording), ..self }
    }

    /// Whom it serves at the clients' address: everyone, by default. What is put in their place
    /// holds from the next request on. Callers in this process and operators are none of them.
    #[must_use]
    pub fn clients(self, clients: Arc<ArcSwap<Clients>>) -> Self {
        Builder { clients, ..self }
    }

    /// Whether the operator's commands reach the store itself through it
    /// ([`Gateway::serve_operator`]): for a store that no other process can reach.
    #[must_use]
    pub fn showing_store(self, shows_store: bool) -> Self {
        Builder { shows_store, ..self }
    }

    /// Starts it: reads what the store has on record and compares it with the rules.
    ///
    /// # Errors
    /// [`StartError::Rules`] when a rule names a table that has no record and that it cannot hold
    /// for; [`StartError::Store`] when the store cannot be asked.
    pub fn start(self) -> BoxFuture<'static, Result<Gateway, StartError>> {
        async move {
            let Builder {
                store,
                env,
                rules,
                fencing,
                limits,
                region,
                shown,
                recording,
                clients,
                shows_store,
            } = self;
            let fencing = fencing.unwrap_or_else(|| Fencing::exclusive(rules.fence()));
            let control = Control::join(Arc::clone(&store), Arc::clone(&env), rules, fencing).await?;
            let shown_store = shows_store.then(|| Arc::clone(&store));
            let service = Service::new(store, control.clone(), Arc::clone(&env), limits, &region);
            let mut service = service.with_clients(clients);
            if let Some(recording) = recording {
                service = service.with_recording(recording);
            }
            let status = Status::showing(&service, shown);
            let (service, status) = (Arc::new(service), Arc::new(status));
            Ok(Gateway { service, status, control, shown_store, env, limits })
        }
        .boxed()
    }
}
