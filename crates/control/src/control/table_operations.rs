//! Operations on tables, before the store has them and after it has answered: names are reserved,
//! changed tables are recorded and looked up again.
//!
//! Not here: the steps of creating and deleting a table (`table_lifecycle`).

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, TableSchema};
use heatsink_layout::DIRECTORY;

use super::admission::not_sent;
use super::{Control, is_named};
use crate::describe::{self, Described};
use crate::fence::Pass;
use crate::own_names;
use crate::registry::NOBODY;
use crate::rules::DesiredLayout;
use crate::table_cache::not_found;
use crate::table_lifecycle::{self, Deletion, Intent};
use crate::tags;

impl Control {
    /// Prepares a table operation before it goes to the store: checks it, and reserves the name of
    /// a table that is to be created. Pass the result to [`after`](Self::after).
    ///
    /// # Errors
    /// `ValidationException` for a `CreateTable` of the registry's name, or of a table that a rule
    /// names but cannot hold for, and for a request that would set or remove Heatsink's own tag;
    /// `ResourceNotFoundException` for any other operation on the registry. Retryable errors while
    /// layouts cannot change.
    pub async fn before<S: AsRef<str>>(
        &self,
        operation: Operation,
        request: &[u8],
        names: &[S],
    ) -> Result<Prepared, Error> {
        self.prepare(operation, request, names).await.map_err(not_sent)
    }

    async fn prepare<S: AsRef<str>>(
        &self,
        operation: Operation,
        request: &[u8],
        names: &[S],
    ) -> Result<Prepared, Error> {
        let named = heatsink_dynamo::json::member(request, "TableName").ok().flatten();
        let named = named.and_then(|name| heatsink_dynamo::json::string(name).ok());
        if let Some(name) = named.as_ref().filter(|name| self.is_hidden(name)) {
            return Err(match operation {
                Operation::CreateTable => {
                    let own = [DIRECTORY, NOBODY, self.inner.registry.name()];
                    let name = own.into_iter().find(|own| is_named(name, own)).unwrap_or_default();
                    own_names::refused(name)
                }
                _ => not_found(),
            });
        }
        tags::refuse(operation, request)?;
        let mut prepared = Prepared::default();
        if operation == Operation::CreateTable {
            if let Ok(schema) = TableSchema::from_create(request) {
                if let DesiredLayout::Impossible(reason) = self.inner.rules.load().desired_layout(&schema) {
                    return Err(Error::validation(reason));
                }
                if heatsink_dynamo::wire::check(operation, request).is_ok() {
                    self.ensure().await?;
                    prepared.intent = table_lifecycle::intend(&self.inner, &schema).await?.map(Box::new);
                }
            }
        } else if operation == Operation::DeleteTable {
            if let Some(name) = &named
                && heatsink_dynamo::wire::check(operation, request).is_ok()
            {
                self.ensure().await?;
                prepared.deletion = table_lifecycle::intend_deletion(&self.inner, name).await?.map(Box::new);
            }
        } else if table_lifecycle::needs_layouts(operation) {
            match self.resolve(names).await {
                Ok(pass) => prepared.pass = Some(pass),
                // Such operations stay possible on refused tables.
                Err(error) if !error.retryable() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(prepared)
    }

    /// Follows an operation that the store has answered: records a table that was created, and
    /// expires the cached status of one that was changed or deleted. Cheap for operations on items
    /// that succeeded; call it for those that failed too, with the tables that they named.
    pub async fn after<S: AsRef<str>>(
        &self,
        operation: Operation,
        names: &[S],
        prepared: Prepared,
        answer: Result<&Bytes, &Error>,
    ) {
        let Prepared { intent, deletion, .. } = prepared;
        match (operation, answer) {
            (Operation::CreateTable | Operation::DeleteTable | Operation::UpdateTable, answer) => {
                let described = answer.map(|body| describe::answer(body));
                let described = match &described {
                    Ok(Ok(described)) => Ok(described),
                    Ok(Err(error)) => {
                        tracing::warn!("{} succeeded, but: {error}", operation.name());
                        Err(error)
                    }
                    Err(error) => Err(*error),
                };
                self.follow(operation, intent, deletion, described).await;
                if let Ok(described) = described {
                    self.inner.tables.expire(&described.schema.name);
                }
            }
            (_, Err(error)) if error.code == Code::ResourceNotFoundException => {}
            _ => return,
        }
        for name in names {
            self.inner.tables.expire(name.as_ref());
        }
    }

    async fn follow(
        &self,
        operation: Operation,
        intent: Option<Box<Intent>>,
        deletion: Option<Box<Deletion>>,
        described: Result<&Described, &Error>,
    ) {
        let done = match (intent, deletion) {
            (Some(intent), _) => table_lifecycle::made(&self.inner, *intent, described).await,
            (None, Some(deletion)) => {
                table_lifecycle::deleted(&self.inner, *deletion, described.map(drop)).await
            }
            (None, None) => Ok(()),
        };
        if let Err(error) = done {
            // Nothing is lost: a gateway that finds a table with an intent records it, and the
            // record of a deleted table is never found again, because ids are not reused.
            tracing::warn!("{} was answered, but the registry could not follow: {error}", operation.name());
        }
    }
}

/// The result of [`Control::before`] for one table operation. Most requests need no preparation,
/// and carry this anyway.
#[derive(Debug, Default)]
pub struct Prepared {
    intent: Option<Box<Intent>>,
    deletion: Option<Box<Deletion>>,
    pass: Option<Pass>,
}

impl Prepared {
    /// The pass of the operation. Operations that depend on no layout have one that always holds.
    /// An operation with a reserved name may go on only while no other gateway can take this one
    /// for dead.
    pub fn pass(&mut self, control: &Control) -> Pass {
        let lease = control.inner.fence.lease();
        let begun = self.intent.is_some() || self.deletion.is_some();
        let other = || if begun { Pass::new(Arc::clone(lease)) } else { Pass::free(lease) };
        self.pass.take().unwrap_or_else(other)
    }
}
