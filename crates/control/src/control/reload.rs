//! Other rules for a gateway that serves.
//!
//! A table that is on record stays as its record says, whatever the rules say now. So other rules
//! decide only about tables that come on record from now on, and about what is not recorded:
//! consistency, and what becomes of physical keys.
//!
//! Not here: reading the rules (`rules`), when they are read (the command line).

use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};

use super::admission::LOOKS_AT_ONCE;
use super::{Control, StartError};
use crate::inner::Inner;
use crate::resolve::{Judgement, judge};
use crate::rules::Rules;
use crate::table_cache::TableStatus;

/// Rules that were compared with the registry and may come into force.
pub struct CheckedRules(Rules);

impl Control {
    /// Compares other rules with the registry. Changes nothing, but for making a registry where
    /// these rules are the first.
    ///
    /// # Errors
    /// [`StartError::Rules`] where the fence is another one, for which the gateway has to start
    /// anew, and where a rule cannot hold for a table that it names and that is served now;
    /// [`StartError::Store`] when the store cannot be asked.
    pub fn check_rules(&self, rules: Rules) -> BoxFuture<'_, Result<CheckedRules, StartError>> {
        async move {
            let Inner { registry, fence, tables, changer, .. } = &*self.inner;
            let (new, old) = (rules.fence(), self.rules());
            if !new.agrees(old.fence()) {
                return Err(StartError::Rules(
                    "[fence] is another one than at the start: start the gateway anew for it".to_owned(),
                ));
            }
            let recorded = registry.exists().await.map_err(StartError::Store)?;
            let settings = &fence.settings;
            if !settings.observes && !recorded && !rules.is_empty() && !settings.exclusive {
                changer.found().await.map_err(StartError::Store)?;
            }
            for name in self.named(&rules, recorded).await.map_err(StartError::Store)? {
                let known = tables.get(&name);
                // The fault of a table that is not served anyway is not that of these rules.
                if known.is_some_and(|known| known.status.answer().is_err()) {
                    continue;
                }
                let Some(described) = registry.describe(&name).await.map_err(StartError::Store)? else {
                    continue;
                };
                match judge(registry, &rules, &described, (None, None)).await {
                    Ok(Judgement::Stands(TableStatus::Refused { error, fatal: true }, ..)) => {
                        return Err(StartError::Rules(error.message.unwrap_or_default()));
                    }
                    // Its layout is being changed: its next request looks.
                    Err(error) if !error.retryable() => return Err(StartError::Store(error)),
                    _ => {}
                }
            }
            Ok(CheckedRules(rules))
        }
        .boxed()
    }

    /// Puts rules in force. Every known table is looked up again as long as what this returns is
    /// awaited; until then its requests go on with what is known of it, as they would at a gateway
    /// that still has the rules of before: none of them waits.
    #[must_use = "without it tables stay as they are known for some seconds"]
    pub fn replace_rules(&self, rules: CheckedRules) -> BoxFuture<'static, ()> {
        self.inner.fence.note_rules(&rules.0);
        self.inner.rules.store(Arc::new(rules.0));
        let (known, control) = (self.inner.tables.snapshot(), self.clone());
        async move {
            let names: Vec<&str> = known.names().collect();
            let looks: Vec<_> = names.into_iter().map(|name| control.look_again(name)).collect();
            stream::iter(looks).buffer_unordered(LOOKS_AT_ONCE).collect::<()>().await;
        }
        .boxed()
    }

    async fn look_again(&self, name: &str) {
        let tables = &self.inner.tables;
        // What refuses a table may be the rule that has changed.
        if tables.get(name).is_some_and(|known| known.status.answer().is_err()) {
            tables.expire(name);
        }
        let looked = self.look(name).await;
        // It may have joined one that had begun under the rules of before.
        let is_old = || tables.get(name).is_some_and(|known| known.fresh.is_expired());
        let looked = if looked.is_ok() && is_old() { self.look(name).await } else { looked };
        if let Err(error) = looked {
            tracing::debug!(table = name, "looking again under other rules failed: {error}");
            tables.expire(name);
        }
    }
}
