//! `ClientRequestToken` of transactions: a repeated request is executed once, also across a
//! restart.
//!
//! A token is recorded in the same SQLite transaction as its writes, so after a kill either both
//! exist or neither.
//!
//! Not here: how tokens are stored, and for how long ([`super::token_table`]).

use dynoxide::actions::execute_transaction::{self, ExecuteTransactionRequest, ExecuteTransactionResponse};
use dynoxide::actions::transact_write_items::{
    self, TransactWriteItem, TransactWriteItemsRequest, TransactWriteItemsResponse,
};
use dynoxide::types::{self, ConsumedCapacity, Item};
use dynoxide::{DynoxideError, Result};
use heatsink_dynamo::json;
use rusqlite::Connection;
use sha2::{Digest, Sha256};

use super::answer;
use super::engine::{Engine, drive, table_name};
use super::one_transaction::in_one;
use super::token_table::{self, Operation, Units};

/// The longest token. Longer ones the engine refuses.
const LONGEST: usize = 36;

/// `TransactWriteItems`.
pub(super) fn transact_write_items(
    engine: &Engine,
    mut request: TransactWriteItemsRequest,
) -> Result<TransactWriteItemsResponse> {
    let act = |request| drive(transact_write_items::execute(&engine.storage, request));
    let enums = [&request.return_consumed_capacity, &request.return_item_collection_metrics];
    if !(usable(request.client_request_token.as_deref(), &enums)
        && (1..=100).contains(&request.transact_items.len()))
    {
        return act(request);
    }
    let Some(token) = request.client_request_token.take() else { return act(request) };
    let slot = Slot::new(engine, Operation::TransactWriteItems, token, &request.transact_items)?;
    let mode = request.return_consumed_capacity.clone();
    match slot.find()? {
        Some(units) => Ok(TransactWriteItemsResponse {
            consumed_capacity: replayed(&units, &mode),
            item_collection_metrics: None,
        }),
        None => slot.once(|| {
            let keys: Vec<_> = request.transact_items.iter().map(|action| located(engine, action)).collect();
            let size = |key: Option<&(String, String, String)>| {
                key.map_or(0, |(table, partition, sort)| engine.stored_size(table, partition, sort))
            };
            let before: Vec<usize> = keys.iter().map(|key| size(key.as_ref())).collect();
            let response = act(request)?;
            let mut units = Units::new();
            for (key, before) in keys.iter().zip(before) {
                let Some((table, ..)) = key else { continue };
                let larger = before.max(size(key.as_ref()));
                *units.entry(table.clone()).or_default() +=
                    types::TRANSACTIONAL_CAPACITY_FACTOR * types::read_capacity_units(larger);
            }
            Ok((response, units))
        }),
    }
}

/// Whether the transaction's token was used within the last ten minutes.
pub(super) fn known(engine: &Engine, body: &[u8]) -> bool {
    let token = json::member(body, "ClientRequestToken").ok().flatten();
    let Some(token) = token.and_then(|token| json::string(token).ok()) else { return false };
    let operation = Operation::TransactWriteItems;
    let slot = Slot {
        engine,
        operation,
        token: token.into_owned(),
        request: Vec::new(),
        now: engine.env.unix_millis(),
    };
    // Found, it stands for another request than none.
    slot.find().is_err()
}

/// The request that a token of this `TransactWriteItems` identifies.
pub(super) fn digest_of(body: &[u8]) -> Option<Vec<u8>> {
    let request: TransactWriteItemsRequest = serde_json::from_slice(body).ok()?;
    digested(&request.transact_items).ok()
}

fn digested(request: &impl serde::Serialize) -> Result<Vec<u8>> {
    let text = answer::write(request).map_err(|why| DynoxideError::InternalServerError(why.to_string()))?;
    Ok(Sha256::digest(&text).to_vec())
}

/// `ExecuteTransaction`. The token of a transaction that only reads is checked like any other, but
/// repeated reads are carried out again: their answers are not kept.
pub(super) fn execute_transaction(
    engine: &Engine,
    mut request: ExecuteTransactionRequest,
) -> Result<ExecuteTransactionResponse> {
    let act = |request| drive(execute_transaction::execute(&engine.storage, request));
    if !(usable(request.client_request_token.as_deref(), &[&request.return_consumed_capacity])
        && (1..=100).contains(&request.transact_statements.len()))
    {
        return act(request);
    }
    let Some(token) = request.client_request_token.take() else { return act(request) };
    let statements: Vec<_> = request
        .transact_statements
        .iter()
        .map(|one| {
            let mode = one.return_values_on_condition_check_failure.as_deref().unwrap_or("NONE");
            (&one.statement, &one.parameters, mode)
        })
        .collect();
    let slot = Slot::new(engine, Operation::ExecuteTransaction, token, &statements)?;
    let mode = request.return_consumed_capacity.clone();
    let reads = request.transact_statements.iter().all(|one| {
        one.statement.trim_start().get(..6).is_some_and(|word| word.eq_ignore_ascii_case("SELECT"))
    });
    match slot.find()? {
        Some(_) if reads => act(request),
        Some(units) => Ok(ExecuteTransactionResponse {
            // Writes are answered with an empty list.
            responses: Some(Vec::new()),
            consumed_capacity: replayed(&units, &mode),
        }),
        None => slot.once(|| {
            let count = request.transact_statements.len();
            // What a replay will cost follows from what this costs.
            let asked = matches!(mode.as_deref(), Some("TOTAL" | "INDEXES"));
            if !asked {
                request.return_consumed_capacity = Some("INDEXES".to_owned());
            }
            let mut response = act(request)?;
            let consumed = response.consumed_capacity.as_deref().unwrap_or_default();
            let units = if reads { Units::new() } else { read_units(consumed, count) };
            if !asked {
                response.consumed_capacity = None;
            }
            Ok((response, units))
        }),
    }
}

/// Whether the request is valid up to its token; otherwise the engine refuses it with its own
/// error.
fn usable(token: Option<&str>, enums: &[&Option<String>]) -> bool {
    const VALUES: [&str; 4] = ["NONE", "TOTAL", "INDEXES", "SIZE"];
    token.is_some_and(|token| token.len() <= LONGEST)
        && enums.iter().all(|value| value.as_deref().is_none_or(|value| VALUES.contains(&value)))
}

/// The record of one token.
struct Slot<'a> {
    engine: &'a Engine,
    operation: Operation,
    token: String,
    /// The content of the request, without the parameters of its answer.
    request: Vec<u8>,
    now: u64,
}

impl<'a> Slot<'a> {
    fn new(
        engine: &'a Engine,
        operation: Operation,
        token: String,
        request: &impl serde::Serialize,
    ) -> Result<Self> {
        let request = match engine.original.take() {
            Some(original) => original,
            None => digested(request)?,
        };
        Ok(Slot { engine, operation, token, request, now: engine.env.unix_millis() })
    }

    fn connection(&self) -> &Connection {
        self.engine.storage.conn()
    }

    /// What the token stands for, if it was used within the last ten minutes.
    ///
    /// # Errors
    /// `IdempotentParameterMismatchException` when it stands for another request.
    fn find(&self) -> Result<Option<Units>> {
        let found = token_table::find(self.connection(), self.operation, &self.token, self.now)?;
        match found {
            Some((request, _)) if request != self.request => {
                Err(DynoxideError::IdempotentParameterMismatchException(
                    "An error occurred (IdempotentParameterMismatchException)".to_owned(),
                ))
            }
            found => Ok(found.map(|(_, units)| units)),
        }
    }

    /// Carries out the request and records its token, both or neither.
    fn once<T>(&self, act: impl FnOnce() -> Result<(T, Units)>) -> Result<T> {
        let connection = self.connection();
        in_one(connection, || {
            let (response, units) = act()?;
            token_table::record(connection, self.operation, &self.token, &self.request, self.now, &units)?;
            Ok(response)
        })
    }
}

/// Table and key of what an action writes or checks, the key as the engine stores it; nothing where
/// the engine will refuse the action.
fn located(engine: &Engine, action: &TransactWriteItem) -> Option<(String, String, String)> {
    let (table, item): (&str, &Item) = match action {
        TransactWriteItem { put: Some(put), .. } => (&put.table_name, &put.item),
        TransactWriteItem { update: Some(update), .. } => (&update.table_name, &update.key),
        TransactWriteItem { delete: Some(delete), .. } => (&delete.table_name, &delete.key),
        TransactWriteItem { condition_check: Some(check), .. } => (&check.table_name, &check.key),
        _ => return None,
    };
    let table = table_name(table);
    let [partition, sort] = engine.key_names(table)?;
    let text = |name: &str| item.get(name)?.to_key_string();
    let sort = match sort {
        Some(sort) => text(&sort)?,
        None => String::new(),
    };
    Some((table.to_owned(), text(&partition?)?, sort))
}

/// A replay is charged as reads of the items that the first request wrote.
fn replayed(units: &Units, mode: &Option<String>) -> Option<Vec<ConsumedCapacity>> {
    types::build_transactional_capacity(units, mode, types::transactional_read_capacity)
}

/// What reading the items of a transaction costs whose writes cost `consumed`. Exact where the
/// items of a table are of one size in units; the engine does not tell the sizes of single
/// statements.
fn read_units(consumed: &[ConsumedCapacity], statements: usize) -> Units {
    let factor = types::TRANSACTIONAL_CAPACITY_FACTOR;
    #[allow(clippy::cast_precision_loss, reason = "at most 100 statements")]
    let count = if consumed.len() == 1 { statements as f64 } else { 1.0 };
    let units = consumed.iter().map(|one| {
        let written = one.table.as_ref().map_or(one.capacity_units, |table| table.capacity_units);
        let each = written / factor / count;
        (one.table_name.clone(), factor * count * (each / 4.0).ceil())
    });
    units.collect()
}
