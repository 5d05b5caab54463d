//! `heatsink reshard`: asks for other shards for keys while clients use them, follows that, and says which keys are on record.
//!
//! The commands write intents to the registry, and a gateway carries them out. On a data file, where there is no gateway, and with `--here` the
//! command carries them out itself. With `--index` all of them are about values of that index ([`value`]).

mod args;
mod ask;
mod change;
mod follow;
mod here;
mod intents;
mod keys;
mod status;
mod value;
mod value_words;

use std::sync::Arc;

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{ReshardIntent, key_text};
use heatsink_control::{Changer, Fencing, Rules};
use heatsink_dynamo::display::is_inert;
use heatsink_env::{Env, RealEnv};
use heatsink_mover::{ReshardError, TableContext};
use heatsink_store::Store;
use serde_json::Value as Json;

use super::open::{not_answered, open_existing};
use super::{print, rules, store};
use crate::exit::{Exit, without_numbers};
use crate::output::Output;
pub use args::Args;
use args::{Place, Start, What};

/// Runs it. Exit 0 when it is as asked, or asked for; 64 when it cannot be; 69 when the store did not answer, or no gateway would carry it out; 1 when
/// it stopped on the way, and what it says tells how to go on.
pub fn run(args: Args) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.what {
            What::Start(start) => begin(start).await,
            What::Back(back) => self::back(back).await,
            What::Status(status) => status::list(status).await,
            What::Pause(one) => change::change(one, change::Change::Pause).await,
            What::Resume(one) => change::change(one, change::Change::Resume).await,
            What::Cancel(one) => change::change(one, change::Change::Cancel).await,
        }
    })
}

/// The store that a command works on.
struct Opened {
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    rules: Rules,
    registry: Registry,
    access: Access,
}

/// Who else uses the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Nobody: a file, which one process has open.
    Alone,
    /// The one server that it belongs to.
    BesideServer,
    /// Any number of gateways, which are registered.
    BesideGateways,
}

impl Opened {
    async fn at(place: &Place) -> Result<Self, Exit> {
        let env: Arc<dyn Env> = Arc::new(RealEnv);
        let rules = rules::find(place.rules.as_deref())?.rules;
        let store = match &place.server {
            Some(server) => store::server(server, &env)?,
            None => open_existing(place.data.as_deref(), place.upstream.as_deref(), &env).await?.store,
        };
        let access = match (&place.data, &place.server) {
            (Some(_), _) => Access::Alone,
            (None, Some(_)) => Access::BesideServer,
            (None, None) => Access::BesideGateways,
        };
        let registry = Registry::new(Arc::clone(&store), Arc::clone(&env), &rules.fence().registry);
        Ok(Opened { store, env, rules, registry, access })
    }

    async fn table(&self, table: &str, streams_confirmed: bool) -> Result<TableContext, ReshardError> {
        let (store, env) = (Arc::clone(&self.store), Arc::clone(&self.env));
        TableContext::read(store, env, &self.rules, table, streams_confirmed).await
    }

    /// For looks at gateways; changes nothing.
    fn observer(&self) -> Changer {
        self.changer(Fencing::observing(self.rules.fence()))
    }

    fn changer(&self, fencing: Fencing) -> Changer {
        Changer::beside(Arc::clone(&self.store), Arc::clone(&self.env), fencing)
    }
}

async fn begin(start: Start) -> Result<(), Exit> {
    args::shards(start.shards)?;
    let opened = Opened::at(&start.place).await?;
    if let Some(index) = &start.index {
        return value::begin(&opened, &start, index).await;
    }
    let wanted = args::wanted(&start)?;
    let context = opened.table(&start.table, start.how.confirm_streams).await.map_err(exit)?;
    let keys = keys::named(&opened, &context, &start).await?;
    let several = start.key.is_none();
    let in_full = |key: Vec<u8>| {
        let wanted = context.in_full(&key, &wanted);
        (key, wanted)
    };
    let wanted = keys.keys.into_iter().map(in_full).collect();
    ask::ask(&opened, context, ask::Asked { wanted, several, read: keys.read }, &start.how, &start.place)
        .await
}

async fn back(back: args::Back) -> Result<(), Exit> {
    let opened = Opened::at(&back.place).await?;
    let context = opened.table(&back.table, back.how.confirm_streams).await.map_err(exit)?;
    let wanted: Vec<_> = match &back.key {
        Some(key) => {
            let key = keys::bytes(&context, key)?;
            let wanted = context.in_full(&key, &context.without_record(&key));
            vec![(key, wanted)]
        }
        None => {
            let (counters, other): (Vec<_>, Vec<_>) =
                context.elsewhere().into_iter().partition(|(key, _)| context.is_counter(key));
            if !counters.is_empty() {
                let keys: Vec<_> =
                    counters.iter().map(|(key, _)| key_text(key, context.key_type())).collect();
                tracing::warn!(
                    "counters keep their shards, and these keys stay as they are: {}",
                    keys.join(", ")
                );
            }
            keys::bounded(other.len(), &back.table)?;
            other
        }
    };
    let several = back.key.is_none();
    ask::ask(&opened, context, ask::Asked { wanted, several, read: None }, &back.how, &back.place).await
}

/// A word as a shell takes it; one with characters that a terminal would act on as bash and zsh take it.
fn quoted(word: &str) -> String {
    if !word.chars().all(is_inert) {
        let escaped = word.chars().map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if is_inert(c) => c.to_string(),
            c => c.to_string().bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        });
        return format!("$'{}'", escaped.collect::<String>());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command on a key, as it can be run.
fn command(what: &str, table: &str, key: &str, place: &Place) -> String {
    format!("heatsink reshard {what} {} {}{}", quoted(table), quoted(key), place.words())
}

/// A command on what an intent is for, as it can be run.
fn command_on(what: &str, intent: &ReshardIntent, place: &Place) -> String {
    let index = intent.index.as_ref().map(|index| format!(" --index {}", quoted(index)));
    let (table, key) = (quoted(&intent.table), quoted(&intent.key_text()));
    format!("heatsink reshard {what} {table} {key}{}{}", index.unwrap_or_default(), place.words())
}

fn status_command(table: &str, place: &Place) -> String {
    format!("heatsink reshard status {}{}", quoted(table), place.words())
}

fn say(output: Output, document: &Json, text: &str) -> Result<(), Exit> {
    match output {
        Output::Json => print::json(document),
        Output::Text => print::text(&format!("{text}\n")),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "a conversion of errors")]
fn software(error: serde_json::Error) -> Exit {
    Exit::software(error.to_string())
}

fn unread(error: heatsink_dynamo::Error) -> Exit {
    not_answered("The registry could not be read", &error)
}

fn exit(error: ReshardError) -> Exit {
    match error {
        ReshardError::Usage(problem) => Exit::usage(problem),
        ReshardError::Stopped(problem) | ReshardError::Cancelled(problem) => Exit::failed(problem),
        ReshardError::Busy(problem) => Exit::failed(problem).retryable(),
        ReshardError::Store(_) => Exit::failed(without_numbers(&error.to_string())).retryable(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_whatever_the_key_is() {
        let server = Some("127.0.0.1:8000".to_owned());
        let place = Place { rules: None, data: None, upstream: None, server, output: Output::Text };
        let of = |key: &str| command("resume", "T", key, &place);
        assert_eq!(of("game_x"), "heatsink reshard resume T game_x --server 127.0.0.1:8000");
        assert_eq!(of("it's $(x)"), r"heatsink reshard resume T 'it'\''s $(x)' --server 127.0.0.1:8000");
        assert_eq!(quoted("a\n'b\\\u{1b}[31m\u{202e}"), r"$'a\x0a\'b\\\x1b[31m\xe2\x80\xae'");
    }
}
