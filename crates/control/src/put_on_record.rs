//! Puts a table on record: its first record, and the entry of its name, in one transaction.
//!
//! Not here: what else becomes of records (`records`), and who asks first whether layouts may
//! change (`fence`).

use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use serde_json::{Value as Json, json};

use crate::fence::unless_frozen;
use crate::name::{Holder, NameEntry};
use crate::record::Record;
use crate::records::unchanged;
use crate::registry::Registry;

/// How often a transaction is sent again that met a write of the head, and the first pause before
/// that.
const ATTEMPTS: u32 = 20;
const AGAIN: Duration = Duration::from_millis(10);

/// The place of the check of the head among the actions.
const HEAD_AT: usize = 2;

impl Registry {
    /// Writes a table's first record and binds its name to it, if the name's entry still equals
    /// `entry`; creates the registry's table if necessary. Returns the record in force: this one,
    /// or the one that another process wrote first. Also while layouts are frozen: requests may
    /// wait for it.
    ///
    /// # Errors
    /// The store's.
    pub fn create<'a>(
        &'a self,
        entry: Option<&'a NameEntry>,
        record: &'a Record,
    ) -> BoxFuture<'a, Result<Record, Error>> {
        self.put_on_record(entry, record, None)
    }

    /// The same, unless layouts are frozen by then: for whoever asked long before, and has read the
    /// table since.
    ///
    /// # Errors
    /// The store's; retryable while layouts are frozen.
    pub fn create_unless_frozen<'a>(
        &'a self,
        entry: Option<&'a NameEntry>,
        record: &'a Record,
    ) -> BoxFuture<'a, Result<Record, Error>> {
        self.put_on_record(entry, record, Some(unless_frozen(self.name())))
    }

    fn put_on_record<'a>(
        &'a self,
        entry: Option<&'a NameEntry>,
        record: &'a Record,
        check: Option<Json>,
    ) -> BoxFuture<'a, Result<Record, Error>> {
        async move {
            let holder = Holder::Bound { id: record.id.clone() };
            let next = self.entry_after(entry, &record.name, holder);
            let mut named = json!({ "TableName": self.name(), "Item": next.item() });
            unchanged(&mut named, entry);
            let put = json!({ "TableName": self.name(), "Item": record.item(), "ConditionExpression": "attribute_not_exists(pk)" });
            let mut actions = vec![json!({ "Put": put }), json!({ "Put": named })];
            actions.extend(check);
            let body = json!({ "TransactItems": actions });
            let error = match self.transact_first(body).await {
                Ok(()) => return Ok(record.clone()),
                Err(error) => error,
            };
            if error.code != Code::TransactionCanceledException && error.outcome != Outcome::Unknown {
                return Err(self.failed(error));
            }
            // Another process was first; or this one was, and the answer was lost. The record itself
            // tells.
            if let Some(found) = self.read(&record.id).await? {
                return Ok(found);
            }
            if reason(&error, HEAD_AT) == Some("ConditionalCheckFailed")
                && let Some(frozen) = self.frozen().await?
            {
                return Err(frozen.into());
            }
            Err(Error::unavailable(
                format!("Table {} could not be put on record: {error}", record.name),
                Outcome::NotDone,
            ))
        }
        .boxed()
    }

    /// Sends it until it meets no write of the head, which others write all the time.
    async fn transact_first(&self, body: Json) -> Result<(), Error> {
        let mut attempts = 0;
        loop {
            let sent = match self.call_patiently(Operation::TransactWriteItems, body.clone()).await {
                Err(error) if error.code == Code::ResourceNotFoundException => {
                    self.make_own().await?;
                    self.call_patiently(Operation::TransactWriteItems, body.clone()).await
                }
                sent => sent,
            };
            match sent {
                Err(error)
                    if attempts < ATTEMPTS && reason(&error, HEAD_AT) == Some("TransactionConflict") =>
                {
                    attempts += 1;
                    self.env().sleep(AGAIN * attempts).await;
                }
                sent => return sent.map(drop),
            }
        }
    }
}

/// Why the action at a place had the transaction cancelled.
fn reason(error: &Error, at: usize) -> Option<&str> {
    error.members.get("CancellationReasons")?.get(at)?["Code"].as_str()
}
