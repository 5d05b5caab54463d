//! Whether a client may do what it asks for.
//!
//! Judged on logical keys, before anything is planned: IAM behind the gateway would see physical
//! ones. What a judgement needs to know of a table, its partition key above all, is asked of the
//! store and kept for some seconds.
//!
//! Not here: what rights say (`heatsink-access`), who asks (`http::front`), which tables a client is
//! shown (`planner`).

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use heatsink_access::{Caller, TableFacts};
use heatsink_dynamo::{Code, Error, IndexSchema, Operation, TableSchema, json};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_store::Store;
use serde_json::{Value as Json, json};
use sha2::{Digest, Sha256};

use crate::blocking;

/// How long facts are kept. A table of the same name with another key, made past this gateway, is
/// misjudged for as long.
const KEPT: Duration = Duration::from_secs(5);

/// Facts of so many tables are kept; beyond them all are forgotten.
const MOST: usize = 1_000;

/// The most characters of a transaction's token (service model 2012-08-10).
const TOKEN: usize = 36;

/// What is known of tables, for judgements.
#[derive(Default)]
pub(crate) struct Rights {
    known: Mutex<HashMap<String, (TableFacts, MonotonicInstant)>>,
}

impl Rights {
    /// Judges a request.
    ///
    /// # Errors
    /// `AccessDeniedException`, and what is wrong with a request that cannot be judged.
    pub(crate) async fn check(
        &self,
        caller: &Caller,
        store: &dyn Store,
        env: &dyn Env,
        operation: Operation,
        body: &Bytes,
    ) -> Result<(), Error> {
        let request = blocking::run(body.len(), || caller.ask(operation, body))?;
        let mut facts = HashMap::new();
        for table in request.tables() {
            facts.insert(table.clone(), self.of(table, store, env).await?);
        }
        blocking::run(body.len(), || request.judge(&facts))
    }

    async fn of(&self, table: &str, store: &dyn Store, env: &dyn Env) -> Result<TableFacts, Error> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = env.now();
        if let Some((facts, until)) = known().get(table)
            && now < *until
        {
            return Ok(facts.clone());
        }
        let asked = Bytes::from(json!({ "TableName": table }).to_string());
        let described =
            store.call(Operation::DescribeTable, asked).await.map_err(|error| match error.code {
                Code::ResourceNotFoundException => {
                    Error::new(Code::ResourceNotFoundException, "Requested resource not found")
                }
                _ => error,
            })?;
        let schema = TableSchema::from_description(&described)?;
        let arn = json::member(&described, "Table").ok().flatten();
        let arn = arn.and_then(|table| json::string(json::member(table, "TableArn").ok()??).ok());
        let of_index =
            |index: &IndexSchema| (index.name.clone(), index.key.names().map(str::to_owned).collect());
        let facts = TableFacts {
            keys: schema.key.names().map(str::to_owned).collect(),
            index_keys: schema.indexes.iter().map(of_index).collect(),
            partition_key: schema.key.partition.name,
            arn: arn.map(|arn| arn.into_owned()),
        };
        let mut known = known();
        if known.len() >= MOST {
            known.clear();
        }
        // From before it was asked on: its age is never understated.
        known.insert(table.to_owned(), (facts.clone(), now + KEPT));
        Ok(facts)
    }

    /// Forgets tables that may have changed.
    pub(crate) fn forget<S: AsRef<str>>(&self, tables: &[S]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for table in tables {
            known.remove(table.as_ref());
        }
    }
}

/// The request as the store is to see it: a transaction's token is of its client, so that nobody
/// learns of another's, or takes it first.
pub(crate) fn with_own_token(caller: &Caller, operation: Operation, body: Bytes) -> Bytes {
    if !matches!(operation, Operation::TransactWriteItems | Operation::ExecuteTransaction) {
        return body;
    }
    let given = json::member(&body, "ClientRequestToken").ok().flatten();
    let Some(token) = given.and_then(|token| json::string(token).ok()) else { return body };
    // What is too long, or empty, is the store's to refuse.
    if !(1..=TOKEN).contains(&token.chars().count()) {
        return body;
    }
    let digest = Sha256::new().chain_update(caller.id()).chain_update([0]).chain_update(token.as_bytes());
    let own: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).take(TOKEN / 2).collect();
    let own = Json::String(own).to_string();
    json::splice_members(&body, &[("ClientRequestToken", Some(own.as_bytes()))]).map_or(body, Bytes::from)
}
