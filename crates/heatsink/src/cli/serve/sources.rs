//! The files that make the configuration of a server, and when they may be read: whoever writes one
//! in pieces leaves a beginning for a moment, which may be whole by itself, and give more rights than
//! all of it. So they are taken only as two looks at all of them found them, some time apart.
//!
//! Not here: when that is asked for, and what is done with it (`reload`).

use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heatsink_access::{Clients, secret_file};
use heatsink_control::{ClientSettings, Rules, WebhookSettings};
use heatsink_env::Env;
use heatsink_gateway::http::{ServerTls, Settings};

use super::webhook::{self, Webhook};
use super::{front, tls};
use crate::cli::rules::{self, Found};
use crate::exit::Exit;

/// How long files have to stay as they are.
const SETTLED: Duration = Duration::from_millis(300);

/// How often they are looked at for that, in all.
const LOOKS: u32 = 20;

/// What is said of files that do not stay as they are.
pub const UNSETTLED: &str = "its files change while they are read: write each aside, and rename it";

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
    pub webhook: Option<Arc<Webhook>>,
    /// Why the server's certificate in force is kept, and not read.
    pub kept: Option<String>,
    /// The files as they were.
    pub look: Look,
}

/// All files at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// What is in them, hashed.
    pub contents: u64,
    /// Which files these are, and when each was changed, hashed: who writes one again and again is
    /// seen to do so, even if it holds the same each time that it is looked at.
    stamps: u64,
    /// When the youngest was changed, in milliseconds since 1970.
    changed: u64,
    /// What is in the rules, hashed.
    rules: u64,
    /// The files of secrets and policies that they name.
    named: Arc<[PathBuf]>,
}

impl Sources {
    /// Looks at all files. Where the rules cannot be read, those that they name are the ones of the
    /// look before.
    pub fn look(&self, before: Option<&Look>) -> Look {
        let rules = self.rules.clone().unwrap_or_else(rules::default_file);
        let (mut contents, mut stamps) = (self.hasher.build_hasher(), self.hasher.build_hasher());
        let mut changed = 0;
        let mut add = |file: &Path| {
            let found = secret_file::look(file);
            let about = found.as_ref().map(|(_, about)| about);
            let stamp = about.map(|about| {
                let changed = (about.mtime(), about.mtime_nsec(), about.ctime(), about.ctime_nsec());
                (about.dev(), about.ino(), about.size(), changed)
            });
            // Of the second that it is in, the last millisecond: later is safe.
            let second = about.and_then(|about| u64::try_from(about.mtime()).ok()).unwrap_or_default();
            changed = changed.max(second.saturating_add(1).saturating_mul(1_000));
            let bytes = found.map(|(bytes, _)| bytes);
            (file, &bytes).hash(&mut contents);
            (file, stamp).hash(&mut stamps);
            bytes
        };
        let text = add(&rules);
        let hash = self.hasher.hash_one(&text);
        let named = |text: Vec<u8>| {
            let text = String::from_utf8(text).ok()?;
            let read = Rules::read(&rules.display().to_string(), &text).ok()?;
            let files = read.clients().iter().flat_map(ClientSettings::files);
            let files = files.chain(read.webhook().into_iter().flat_map(WebhookSettings::files));
            // One may be named by all of them.
            let files: BTreeSet<PathBuf> = files.map(Path::to_path_buf).collect();
            Some(files.into_iter().collect())
        };
        let named = match before {
            // Reading the rules takes longer than all else.
            Some(before) if before.rules == hash => Arc::clone(&before.named),
            Some(before) => text.and_then(named).unwrap_or_else(|| Arc::clone(&before.named)),
            None => text.and_then(named).unwrap_or_default(),
        };
        for file in self.tls.files().chain(named.iter()) {
            add(file);
        }
        Look { contents: contents.finish(), stamps: stamps.finish(), changed, rules: hash, named }
    }

    /// Reads the configuration of a server that starts.
    ///
    /// # Errors
    /// Exit 64 with file, line and what to do.
    pub async fn begin(&self, env: &Arc<dyn Env>) -> Result<Configuration, Exit> {
        let mut look = self.look(None);
        for _ in 0..LOOKS {
            let age = Duration::from_millis(env.unix_millis().saturating_sub(look.changed));
            if let Some(rest) = SETTLED.checked_sub(age).filter(|rest| !rest.is_zero()) {
                env.sleep(rest).await;
            }
            match self.read_as(&look, || self.read(&look, env, None)) {
                Ok(read) => return read,
                Err(other) => look = other,
            }
        }
        Err(Exit::usage(format!("the configuration is not read: {UNSETTLED}")))
    }

    /// Reads what depends on the files, if these are as they were at that look, before and after.
    ///
    /// # Errors
    /// How they are in place of that.
    fn read_as<T>(&self, look: &Look, read: impl FnOnce() -> T) -> Result<T, Look> {
        let is_as = |found: Look| if found == *look { Ok(()) } else { Err(found) };
        is_as(self.look(Some(look)))?;
        let read = read();
        is_as(self.look(Some(look))).map(|()| read)
    }

    fn read(
        &self,
        look: &Look,
        env: &Arc<dyn Env>,
        in_force: Option<&ServerTls>,
    ) -> Result<Configuration, Exit> {
        let found = (self.remember)(rules::find_again(self.rules.as_deref())?);
        let tls::Read { tls, kept } = self.tls.read(&**env, in_force).map_err(Exit::usage)?;
        tls::can_know(found.rules.clients(), tls.as_ref()).map_err(|fault| Exit::usage(fault.to_string()))?;
        let settings = self.front.settings(tls, found.rules.limits()).map_err(Exit::usage)?;
        let webhook = found.rules.webhook().map(|settings| webhook::load(settings, env).map(Arc::new));
        let webhook = webhook.transpose().map_err(|fault| Exit::usage(fault.to_string()))?;
        Ok(Configuration { found, settings, webhook, kept, look: look.clone() })
    }

    /// Reads the configuration and its clients once nobody writes the files any more, which were as
    /// in that look.
    ///
    /// # Errors
    /// How the files were found last, where somebody goes on writing.
    pub async fn settle(self: &Arc<Self>, mut look: Look, reading: &Reading) -> Result<Loaded, Look> {
        for _ in 0..LOOKS {
            reading.env.sleep(SETTLED).await;
            match self.load(look, reading).await {
                Err(other) => look = other,
                loaded => return loaded,
            }
        }
        Err(look)
    }

    /// Reads the configuration and its clients, if the files are as they were at that look.
    ///
    /// # Errors
    /// How they are in place of that.
    pub async fn load(self: &Arc<Self>, look: Look, reading: &Reading) -> Result<Loaded, Look> {
        let (sources, reading, before) = (Arc::clone(self), reading.clone(), look.clone());
        let Reading { env, region, in_force } = reading;
        let loading = tokio::task::spawn_blocking(move || {
            let read = sources.read_as(&look, || {
                let configuration = sources.read(&look, &env, in_force.as_ref())?;
                let clients = Clients::load(configuration.found.rules.clients(), &region);
                Ok((configuration, clients.map_err(|fault| Exit::usage(fault.to_string()))?))
            })?;
            Ok(Loaded { look, read })
        });
        // It does not end only where the server does.
        loading.await.unwrap_or(Err(before))
    }
}

/// What a server that serves reads its configuration with.
#[derive(Clone)]
pub struct Reading {
    pub env: Arc<dyn Env>,
    pub region: String,
    pub in_force: Option<ServerTls>,
}

/// What was read of files that were as in a look.
pub struct Loaded {
    pub look: Look,
    /// The configuration with its clients, or what is wrong with it.
    pub read: Result<(Configuration, Clients), Exit>,
}
