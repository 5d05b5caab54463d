//! Reads rules, clients, certificates and limits again while the server serves: at SIGHUP, and when
//! what is in their files has changed. Kubernetes replaces files by links to other folders, which no
//! watch on a file notices, so the contents are read.
//!
//! A new configuration is read whole, once nobody writes it any more, checked whole, and put in force
//! at once; of one that is wrong nothing is taken. But where only the server's own certificate cannot
//! be used, which time alone brings about, the one in force is kept beside all else.
//!
//! Not here: when files may be read (`sources`), what they mean (`rules`, `tls`), what of them is
//! compared with the registry (`heatsink_control`).

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::{Either, select};
use heatsink_access::Clients;
use heatsink_control::{CheckedRules, Control, StartError};
use heatsink_env::Env;
use heatsink_gateway::http::{Live, ServerTls, Settings};
use metrics::{Counter, Gauge, counter, gauge};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::sources::{Configuration, Loaded, Look, Reading, Sources, UNSETTLED};
use super::webhook::ServedWebhook;
use super::{descriptors, notify};
use crate::cli::rules::Found;
use crate::exit::Exit;

/// How often the files are looked at.
const EVERY: Duration = Duration::from_secs(5);

/// So many looks that each find the files another way are told: nothing new is taken meanwhile.
const PATIENCE: u32 = 12;

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

/// Keeps the configuration of a server that serves.
pub struct Reload {
    sources: Arc<Sources>,
    served: ServedClients,
    control: Control,
    live: Live,
    webhook: ServedWebhook,
    env: Arc<dyn Env>,
    hangup: Signal,
    /// Whether rules were read from a file.
    has_rules_file: bool,
    /// The contents that were taken, or refused for good.
    seen: u64,
    /// The files as they were last: what begins to be written is taken by a later look.
    look: Look,
    /// How often they were another way each time that they were looked at.
    unsettled: u32,
    /// What was refused last, so that it is told once.
    refused: Option<String>,
    generation: u32,
    generations: Gauge,
    refusals: Counter,
    expires: Gauge,
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
            seen: configuration.look.contents,
            look: configuration.look.clone(),
            unsettled: 0,
            served,
            has_rules_file: configuration.found.file.is_some(),
            sources: Arc::new(sources),
            control,
            live,
            webhook: ServedWebhook::default(),
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

    /// The same, replacing that webhook too.
    pub fn with(self, webhook: ServedWebhook) -> Self {
        Reload { webhook, ..self }
    }

    /// Reads the files again and again. Does not end.
    pub async fn keep(mut self) {
        loop {
            let asked = {
                let waits = std::pin::pin!(self.hangup.recv());
                matches!(select(waits, self.env.sleep(EVERY)).await, Either::Left(_))
            };
            let Some(look) = self.look_again().await else { return };
            let before = std::mem::replace(&mut self.look, look.clone());
            if asked {
                notify::reloading();
            } else if look.contents == self.seen {
                self.unsettled = 0;
                continue;
            } else if look != before {
                // By the next look it is whole, or still as it is.
                self.unsettled += 1;
                if self.unsettled == PATIENCE {
                    self.refuse(false, UNSETTLED);
                }
                continue;
            }
            self.unsettled = 0;
            let reading = Reading {
                env: Arc::clone(&self.env),
                region: self.served.region.clone(),
                in_force: self.live.tls(),
            };
            let loaded = match asked {
                true => self.sources.settle(look, &reading).await,
                false => self.sources.load(look, &reading).await,
            };
            match loaded {
                Ok(loaded) => self.take(asked, loaded).await,
                Err(look) => {
                    self.look = look;
                    if asked {
                        self.refuse(asked, UNSETTLED);
                    }
                }
            }
            if asked {
                notify::ready();
            }
        }
    }

    async fn look_again(&self) -> Option<Look> {
        let (sources, before) = (Arc::clone(&self.sources), self.look.clone());
        tokio::task::spawn_blocking(move || sources.look(Some(&before))).await.ok()
    }

    /// Takes a configuration, or says why not. What is refused for good is not read again before one
    /// of its files changes.
    async fn take(&mut self, asked: bool, loaded: Loaded) {
        match self.put_in_force(loaded).await {
            Ok(kept) => {
                self.refused = None;
                tracing::info!(generation = self.generation, "another configuration is in force");
                if let Some(why) = kept {
                    self.refusals.increment(1);
                    tracing::error!(
                        "the certificate of before stays in force, and all else of the configuration is taken: {why}"
                    );
                }
            }
            Err(Refused::Wrong(why) | Refused::NotNow(why)) => self.refuse(asked, &why),
        }
    }

    /// Told once, and each time that it is asked for.
    fn refuse(&mut self, asked: bool, why: &str) {
        if asked || self.refused.as_deref() != Some(why) {
            self.refusals.increment(1);
            tracing::error!("the configuration is refused, and the one before stays in force: {why}");
        }
        self.refused = Some(why.to_owned());
    }

    /// Why the certificate of before is kept, if it is.
    async fn put_in_force(&mut self, loaded: Loaded) -> Result<Option<String>, Refused> {
        let before = std::mem::replace(&mut self.seen, loaded.look.contents);
        self.look = loaded.look;
        let (configuration, clients) = loaded.read.map_err(|error| Refused::Wrong(error.to_string()))?;
        let Configuration { found, settings, webhook, kept, .. } = configuration;
        let rules = match self.check(found, &clients).await {
            Ok(rules) => rules,
            Err(refused) => {
                if matches!(refused, Refused::NotNow(_)) {
                    self.seen = before;
                }
                return Err(refused);
            }
        };
        // Nothing is awaited here: all of it is in force at once.
        descriptors::provide(needed(&settings) + self.sources.upwards);
        self.generation += 1;
        self.tell(&settings);
        self.served.clients.store(Arc::new(clients));
        let looking = self.control.replace_rules(rules);
        self.live.replace(settings);
        self.webhook.replace(webhook);
        looking.await;
        Ok(kept)
    }

    /// Checks what was read against what is in force.
    async fn check(&mut self, found: Found, clients: &Clients) -> Result<CheckedRules, Refused> {
        if self.served.clients.load().are_known() && !clients.are_known() {
            let why = "the rules name no [[client]] any more, and whoever reaches the address could do all: only a restart begins so";
            return Err(Refused::Wrong(why.to_owned()));
        }
        if self.has_rules_file && found.file.is_none() {
            let why = "the file of the rules is gone: an empty one says that there are no rules";
            return Err(Refused::Wrong(why.to_owned()));
        }
        self.has_rules_file = found.file.is_some();
        self.control.check_rules(found.rules).await.map_err(|error| match error {
            StartError::Rules(why) => Refused::Wrong(why),
            StartError::Store(error) => Refused::NotNow(error.to_string()),
        })
    }

    fn tell(&self, settings: &Settings) {
        self.generations.set(f64::from(self.generation));
        if let Some(tls) = &settings.tls {
            self.expires.set(figure(tls));
            tls.notices().iter().for_each(|notice| tracing::warn!("{notice}"));
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
