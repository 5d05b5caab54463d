//! The store that a command works on, and who else uses it.

use std::sync::Arc;

use heatsink_control::registry::Registry;
use heatsink_control::{Changer, Fencing, Gateway, Rules};
use heatsink_env::{Env, RealEnv};
use heatsink_store::Store;
use heatsink_workers::{TableContext, WorkerError};

use super::args::Place;
use super::told::unread;
use crate::cli::open::open_existing;
use crate::cli::{right_flag, rules, store};
use crate::exit::Exit;

/// The store that a command works on.
pub(in crate::cli) struct Opened {
    pub store: Arc<dyn Store>,
    pub env: Arc<dyn Env>,
    pub rules: Rules,
    pub registry: Registry,
    pub access: Access,
}

/// Who else uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Access {
    /// Nobody: a file, which one process has open.
    Alone,
    /// The one server that it belongs to.
    BesideServer,
    /// Any number of gateways, which are registered.
    BesideGateways,
}

impl Opened {
    pub async fn at(place: &Place) -> Result<Self, Exit> {
        let env: Arc<dyn Env> = Arc::new(RealEnv);
        let rules = rules::find(place.rules.as_deref())?.rules;
        let store = match &place.server {
            Some(server) => store::server(server)?,
            None => open_existing(place.data.as_deref(), place.upstream.as_deref(), &env).await?.store,
        };
        let name = &rules.fence().registry;
        match (&place.server, &place.upstream) {
            (Some(server), _) => right_flag::server(&*store, name, server).await?,
            (None, Some(url)) => right_flag::upstream(&*store, name, url).await?,
            (None, None) => {}
        }
        let access = match (&place.data, &place.server) {
            (Some(_), _) => Access::Alone,
            (None, Some(_)) => Access::BesideServer,
            (None, None) => Access::BesideGateways,
        };
        let registry = rules.fence().registry_in(Arc::clone(&store), Arc::clone(&env));
        Ok(Opened { store, env, rules, registry, access })
    }

    pub async fn table(&self, table: &str, streams_confirmed: bool) -> Result<TableContext, WorkerError> {
        let (store, env) = (Arc::clone(&self.store), Arc::clone(&self.env));
        TableContext::read(store, env, &self.rules, table, streams_confirmed).await
    }

    /// For looks at gateways; changes nothing.
    pub fn observer(&self) -> Changer {
        self.changer(Fencing::observing(self.rules.fence()))
    }

    /// Whether a gateway that lives carries reshards out, as `carries` says.
    pub async fn is_carried(&self, carries: fn(&Gateway) -> bool) -> Result<bool, Exit> {
        if self.access != Access::BesideGateways {
            return Ok(false);
        }
        let now = self.env.unix_millis();
        let listed = self.observer().gateways().await.map_err(unread)?.map(|(_, listed)| listed);
        Ok(listed.into_iter().flatten().any(|one| carries(&one) && !one.is_dead(now)))
    }

    pub fn changer(&self, fencing: Fencing) -> Changer {
        Changer::beside(Arc::clone(&self.store), Arc::clone(&self.env), fencing)
    }
}
