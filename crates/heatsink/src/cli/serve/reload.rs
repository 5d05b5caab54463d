//! Reads rules, clients, certificates and limits again while the server serves: at SIGHUP, and when
//! what is in their files has changed. Kubernetes replaces files by links to other folders, which no
//! watch on a file notices, so the contents are read.
//!
//! A new configuration is read whole, checked whole, and put in force at once; of one that is wrong
//! nothing is taken.
//!
//! Not here: what the files mean (`rules`, `tls`), what of them is compared with the registry
//! (`heatsink_control`).

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::{Either, select};
use heatsink_access::Clients;
use heatsink_control::{CheckedRules, ClientSettings, Control, StartError};
use heatsink_env::Env;
use heatsink_gateway::http::{Live, ServerTls, Settings};
use metrics::{Counter, Gauge, counter, gauge};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{descriptors, front, notify, tls};
use crate::cli::rules::{self, Found};
use crate::exit::Exit;

/// How often the files are read.
const EVERY: Duration = Duration::from_secs(5);

/// What makes the configuration.
pub struct Sources {
    /// What `--rules` names.
    pub rules: Option<PathBuf>,
    pub front: front::Args,
    pub tls: tls::Args,
    /// Connections beyond those of clients.
    pub upwards: usize,
    /// Adds to rules what this process remembers.
    pub remember: Box<dyn Fn(Found) -> Found + Send + Sync>,
    /// Tells one content from another.
    pub hasher: RandomState,
}

/// A configuration that was read.
pub struct Configuration {
    pub found: Found,
    pub settings: Settings,
    /// Those of secrets and policies of clients.
    files: Vec<PathBuf>,
    /// What was in the files before they were read.
    contents: Contents,
}

/// What is in the files, hashed: the rules and TLS, and what the rules name for clients.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Contents {
    own: u64,
    of_clients: u64,
}

/// The clients of a server, which know its region.
#[derive(Clone)]
pub struct ServedClients {
    pub region: String,
    pub clients: Arc<ArcSwap<Clients>>,
}

impl ServedClients {
    /// Those that a configuration names, at a server of that region.
    ///
    /// # Errors
    /// Exit 64 with file, line and what to do.
    pub fn load(found: &Found, region: &str) -> Result<Self, Exit> {
        let clients = Clients::load(found.rules.clients(), region);
        let clients = clients.map_err(|fault| Exit::usage(fault.to_string()))?;
        Ok(ServedClients { region: region.to_owned(), clients: Arc::new(ArcSwap::from_pointee(clients)) })
    }
}

impl Sources {
    /// Reads all of it.
    ///
    /// # Errors
    /// Exit 64 with file, line and what to do.
    pub fn read(&self, env: &dyn Env) -> Result<Configuration, Exit> {
        let own = self.own_contents();
        let found = (self.remember)(rules::find(self.rules.as_deref())?);
        let files = found.rules.clients().iter().flat_map(ClientSettings::files);
        let files: Vec<PathBuf> = files.map(Path::to_path_buf).collect();
        let contents = Contents { own, of_clients: self.hash(&files) };
        let tls = self.tls.read(env).map_err(Exit::usage)?;
        let settings = self.front.settings(tls, found.rules.limits()).map_err(Exit::usage)?;
        Ok(Configuration { found, settings, files, contents })
    }

    /// What is in the files, where these are those of clients.
    fn contents(&self, of_clients: &[PathBuf]) -> Contents {
        Contents { own: self.own_contents(), of_clients: self.hash(of_clients) }
    }

    fn own_contents(&self) -> u64 {
        let rules = self.rules.clone().unwrap_or_else(rules::default_file);
        self.hash(std::iter::once(&rules).chain(self.tls.files()))
    }

    /// The contents of files, hashed; what cannot be read counts as a content too.
    fn hash<'a>(&self, files: impl IntoIterator<Item = &'a PathBuf>) -> u64 {
        let contents = files.into_iter().map(|file| std::fs::read(file).ok());
        self.hasher.hash_one(contents.collect::<Vec<_>>())
    }
}

/// Keeps the configuration of a server that serves.
pub struct Reload {
    sources: Arc<Sources>,
    served: ServedClients,
    control: Control,
    live: Live,
    env: Arc<dyn Env>,
    hangup: Signal,
    /// Whether rules were read from a file.
    has_rules_file: bool,
    /// The files of clients.
    files: Vec<PathBuf>,
    /// The contents that were taken, or refused for good.
    seen: Contents,
    /// What was refused last, so that it is told once.
    refused: Option<String>,
    generation: u32,
    generations: Gauge,
    refusals: Counter,
    expires: Gauge,
}

/// A configuration that can be taken.
struct Checked {
    settings: Settings,
    clients: Clients,
    rules: CheckedRules,
}

/// Why a configuration is not taken.
enum Refused {
    /// Until its files change.
    Wrong(String),
    /// For now: the registry cannot be asked.
    NotNow(String),
}

/// Catches SIGHUP, which ends a process otherwise.
///
/// # Errors
/// The system's.
pub fn hangups() -> std::io::Result<Signal> {
    signal(SignalKind::hangup())
}

impl Reload {
    /// Of a server that has just started with what `sources` say.
    pub fn of(
        sources: Sources,
        configuration: &Configuration,
        served: ServedClients,
        control: Control,
        live: Live,
        env: Arc<dyn Env>,
        hangup: Signal,
    ) -> Self {
        let reload = Reload {
            files: configuration.files.clone(),
            seen: configuration.contents,
            served,
            has_rules_file: configuration.found.file.is_some(),
            sources: Arc::new(sources),
            control,
            live,
            env,
            hangup,
            refused: None,
            generation: 1,
            generations: gauge!("heatsink_config_generation"),
            refusals: counter!("heatsink_config_refused_total"),
            expires: gauge!("heatsink_tls_certificate_expires_seconds"),
        };
        reload.tell(&configuration.settings);
        reload
    }

    /// Reads the files again and again. Does not end.
    pub async fn keep(mut self) {
        loop {
            let asked = {
                let waits = std::pin::pin!(self.hangup.recv());
                matches!(select(waits, self.env.sleep(EVERY)).await, Either::Left(_))
            };
            let (sources, files) = (Arc::clone(&self.sources), self.files.clone());
            let reading = tokio::task::spawn_blocking(move || sources.contents(&files));
            let Ok(contents) = reading.await else { return };
            if !asked && contents == self.seen {
                continue;
            }
            if asked {
                notify::reloading();
            }
            match self.take(contents).await {
                Ok(()) => {
                    self.refused = None;
                    tracing::info!(generation = self.generation, "another configuration is in force");
                }
                Err(refused) => {
                    let (Refused::Wrong(why) | Refused::NotNow(why)) = &refused;
                    // Told once, and each time that it is asked for.
                    if asked || self.refused.as_ref() != Some(why) {
                        self.refusals.increment(1);
                        tracing::error!(
                            "the configuration is refused, and the one before stays in force: {why}"
                        );
                    }
                    self.refused = Some(why.clone());
                }
            }
            if asked {
                notify::ready();
            }
        }
    }

    /// Reads, checks and takes the configuration. What is refused for good is not read again before
    /// one of its files changes.
    async fn take(&mut self, contents: Contents) -> Result<(), Refused> {
        let before = self.seen;
        let checked = self.check(contents).await;
        if let Err(Refused::NotNow(_)) = checked {
            self.seen = before;
        }
        let Checked { settings, clients, rules } = checked?;
        // Nothing is awaited here: all of it is in force at once.
        descriptors::provide(needed(&settings) + self.sources.upwards);
        self.generation += 1;
        self.tell(&settings);
        self.served.clients.store(Arc::new(clients));
        self.control.replace_rules(rules);
        self.live.replace(settings);
        Ok(())
    }

    /// Reads and checks the configuration. `contents` were in its files just now.
    async fn check(&mut self, contents: Contents) -> Result<Checked, Refused> {
        let (sources, env) = (Arc::clone(&self.sources), Arc::clone(&self.env));
        let region = self.served.region.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let configuration = sources.read(&*env)?;
            let clients = Clients::load(configuration.found.rules.clients(), &region);
            Ok::<_, Exit>((configuration, clients))
        });
        let read = reading.await.map_err(|_| Refused::NotNow("the server is stopping".to_owned()))?;
        self.seen = contents;
        let (configuration, clients) = read.map_err(|error| Refused::Wrong(error.to_string()))?;
        let Configuration { found, settings, files, contents } = configuration;
        (self.files, self.seen) = (files, contents);
        let clients = clients.map_err(|fault| Refused::Wrong(fault.to_string()))?;
        if self.served.clients.load().are_known() && !clients.are_known() {
            let why = "the rules name no [[client]] any more, and whoever reaches the address could do all: only a restart begins so";
            return Err(Refused::Wrong(why.to_owned()));
        }
        if self.has_rules_file && found.file.is_none() {
            let why = "the file of the rules is gone: an empty one says that there are no rules";
            return Err(Refused::Wrong(why.to_owned()));
        }
        self.has_rules_file = found.file.is_some();
        let rules = self.control.check_rules(found.rules).await.map_err(|error| match error {
            StartError::Rules(why) => Refused::Wrong(why),
            StartError::Store(error) => Refused::NotNow(error.to_string()),
        })?;
        Ok(Checked { settings, clients, rules })
    }

    fn tell(&self, settings: &Settings) {
        self.generations.set(f64::from(self.generation));
        if let Some(tls) = &settings.tls {
            self.expires.set(figure(tls));
        }
    }
}

/// The descriptors that clients may take.
pub fn needed(settings: &Settings) -> usize {
    let handshakes = settings.tls.as_ref().map_or(0, |_| heatsink::Limits::default().handshakes);
    settings.connections + handshakes
}

#[allow(clippy::cast_precision_loss, reason = "seconds of some thousand years are exact")]
fn figure(tls: &ServerTls) -> f64 {
    tls.expires() as f64
}
