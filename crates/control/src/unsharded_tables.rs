//! The tables of a store in which no registry was seen, for a gateway without rules: each is looked
//! at once, before its first request is forwarded, for signs that it was on record in a registry
//! that is lost.
//!
//! A look never makes a request fail but by a sign: the gateway needs no more permissions than its
//! clients' requests do, and no answer but theirs.
//!
//! Not here: the signs (`lost_registry`), tables in a store with a registry (`resolve`).

use std::collections::HashMap;
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use futures::future::{Either, select};
use futures::lock::Mutex;
use heatsink_dynamo::Error;
use heatsink_env::MonotonicInstant;

use crate::lost_registry;
use crate::registry::Registry;

/// How long requests wait for a look.
const PATIENCE: Duration = Duration::from_secs(3);

/// How long a refusal holds, and a look that could not ask everything. A registry may be restored
/// meanwhile.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Beyond so many names those are dropped that have to be looked at again: clients can name tables
/// that do not exist.
const MOST: usize = 1_000;

/// What was found of the tables.
#[derive(Default)]
pub(crate) struct UnshardedTables {
    found: ArcSwap<Names>,
    /// Looks are made one after the other: requests that wait for one of a table need not make it
    /// again.
    looking: Mutex<()>,
}

type Names = HashMap<String, Look, RandomState>;

/// What a look found.
#[derive(Clone)]
struct Look {
    /// When it has to be made again; `None`: never.
    again: Option<MonotonicInstant>,
    /// Why its requests are refused.
    refused: Option<Error>,
}

impl Look {
    fn holds(&self, now: MonotonicInstant) -> bool {
        self.again.is_none_or(|again| now < again)
    }
}

impl UnshardedTables {
    /// Whether all these tables are known to show no sign.
    pub fn know<S: AsRef<str>>(&self, names: &[S], now: MonotonicInstant) -> bool {
        let found = self.found.load();
        names
            .iter()
            .all(|name| found.get(name.as_ref()).is_some_and(|one| one.refused.is_none() && one.holds(now)))
    }

    /// Looks at those tables that are not known.
    ///
    /// # Errors
    /// `ValidationException` for a table that was on record.
    pub async fn look<S: AsRef<str>>(&self, registry: &Registry, names: &[S]) -> Result<(), Error> {
        let _looking = self.looking.lock().await;
        for name in names {
            let name = name.as_ref();
            let now = registry.env().now();
            let known = self.found.load().get(name).filter(|one| one.holds(now)).cloned();
            let look = match known {
                Some(look) => look,
                None => {
                    let (refused, done) = one(registry, name).await;
                    let again = if refused.is_none() && done { None } else { Some(now + LOOK_AGAIN) };
                    let look = Look { again, refused };
                    self.found.rcu(|found| {
                        let mut next = Names::clone(found);
                        if next.len() >= MOST {
                            next.retain(|_, one| one.again.is_none());
                        }
                        next.insert(name.to_owned(), look.clone());
                        next
                    });
                    look
                }
            };
            if let Some(error) = look.refused {
                return Err(error);
            }
        }
        Ok(())
    }
}

/// Looks at one table: why it is refused, and whether everything could be asked. A table that does
/// not exist is not remembered for long.
async fn one(registry: &Registry, name: &str) -> (Option<Error>, bool) {
    let look = async {
        let described = match registry.describe(name).await {
            Ok(Some(described)) => described,
            Ok(None) => return (None, false),
            Err(error) => {
                tracing::debug!(
                    table = name,
                    "it could not be described, so it shows no sign of a lost registry: {error}"
                );
                return (None, false);
            }
        };
        match lost_registry::of_table(registry, &described).await {
            Some(sign) => {
                let error = Error::validation(sign.refusal(&described.schema.name, registry.name()));
                tracing::error!(table = name, "{error}");
                (Some(error), true)
            }
            None => (None, registry.is_unsharded(&described.schema.id)),
        }
    };
    // Only a look that does not end at once needs a timer.
    let patience = async { registry.env().sleep(PATIENCE).await };
    match select(Box::pin(look), Box::pin(patience)).await {
        Either::Left((found, _)) => found,
        Either::Right(_) => (None, false),
    }
}
