//! How intents are read from the registry, and written to it: each write on condition that nobody
//! wrote meanwhile.

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, KeyType, Operation, Outcome};
use serde_json::{Value as Json, json};

use super::item::{PARTITION, item_key, key};
use super::{Intents, MAX_INTENTS, Progress, Request, ReshardIntent, Subject};
use crate::registry::Registry;

impl Registry {
    /// All intents, but no more than [`MAX_INTENTS`]. Not `strongly`, the list may be out of date
    /// by a moment and costs half: writes are conditional anyway.
    ///
    /// # Errors
    /// The store's. No registry is no intent.
    pub async fn intents(&self, strongly: bool) -> Result<Intents, Error> {
        let mut found = Intents::default();
        loop {
            let after = found.next.take();
            let page = self.intents_after(strongly, after.as_deref(), MAX_INTENTS - found.len()).await?;
            found.known.extend(page.known);
            found.unknown.extend(page.unknown);
            found.next = page.next;
            if found.next.is_none() || found.len() >= MAX_INTENTS {
                return Ok(found);
            }
        }
    }

    /// A page of at most so many intents, in the order of tables and keys: those after
    /// [`Intents::next`] of the page before.
    ///
    /// # Errors
    /// The store's. No registry is no intent.
    pub fn intents_after<'a>(
        &'a self,
        strongly: bool,
        after: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Intents, Error>> {
        async move {
            let mut body = json!({
                "TableName": self.name(), "ConsistentRead": strongly, "Limit": limit, "KeyConditionExpression": "pk = :p",
                "ExpressionAttributeValues": { ":p": { "S": PARTITION } },
            });
            if let Some(after) = after {
                body["ExclusiveStartKey"] = item_key(after);
            }
            let page = match self.call(Operation::Query, body).await {
                Ok(page) => page,
                Err(error) if error.code == Code::ResourceNotFoundException => {
                    return self.absent(Intents::default());
                }
                Err(error) => return Err(self.failed(error)),
            };
            let mut found = Intents::default();
            for item in page["Items"].as_array().into_iter().flatten() {
                match ReshardIntent::read(item) {
                    Ok(intent) => found.known.push(intent),
                    Err(error) => found.unknown.push(error),
                }
            }
            found.next = page["LastEvaluatedKey"]["sk"]["S"].as_str().map(str::to_owned);
            if found.next.is_some() && found.next.as_deref() <= after {
                return Err(Error::internal("The store's list of reshards does not advance"));
            }
            Ok(found)
        }
        .boxed()
    }

    /// The intent of one key; `None` if there is none. Strongly consistent.
    ///
    /// # Errors
    /// As [`intent_for`](Self::intent_for).
    pub async fn intent(
        &self,
        table_id: &str,
        key: &[u8],
        key_type: KeyType,
    ) -> Result<Option<ReshardIntent>, Error> {
        self.intent_for(table_id, (key, key_type).into()).await
    }

    /// The intent of a key, or of a value of an index; `None` if there is none. Strongly
    /// consistent.
    ///
    /// # Errors
    /// The store's; an intent that cannot be read; `ValidationException` for a number.
    pub async fn intent_for(
        &self,
        table_id: &str,
        subject: Subject<'_>,
    ) -> Result<Option<ReshardIntent>, Error> {
        let key = key(table_id, subject)?;
        let body = json!({ "TableName": self.name(), "Key": key, "ConsistentRead": true });
        match self.call_patiently(Operation::GetItem, body).await {
            Ok(answer) => answer.get("Item").map(ReshardIntent::read).transpose(),
            Err(error) if error.code == Code::ResourceNotFoundException => self.absent(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// A first intent for a key, or for a value of an index.
    pub fn new_intent<'a>(
        &self,
        (table_id, table): (&str, &str),
        subject: impl Into<Subject<'a>>,
        request: Request,
    ) -> ReshardIntent {
        let Subject { index, key, key_type } = subject.into();
        ReshardIntent {
            table_id: table_id.to_owned(),
            table: table.to_owned(),
            index: index.map(str::to_owned),
            key: key.to_vec(),
            key_type,
            request,
            paused: false,
            cancelled: false,
            begun: false,
            carrier: None,
            progress: Progress::default(),
            ended: None,
            version: self.first_version(),
        }
    }

    /// Asks for something of a key, or of a value of an index: writes an intent, and gives it. `None`
    /// where there is one that has not ended, or where another one was first: that one stands.
    ///
    /// # Errors
    /// As [`intent_for`](Self::intent_for) and [`write_intent`](Self::write_intent).
    pub async fn ask(
        &self,
        table: (&str, &str),
        subject: Subject<'_>,
        request: Request,
    ) -> Result<Option<ReshardIntent>, Error> {
        let before = self.intent_for(table.0, subject).await?;
        if before.as_ref().is_some_and(ReshardIntent::is_open) {
            return Ok(None);
        }
        let mut intent = self.new_intent(table, subject, request);
        if let Some(before) = &before {
            intent.version = before.version + 1;
        }
        Ok(self.write_intent(before.as_ref(), &intent).await?.then_some(intent))
    }

    /// Writes an intent, if it still has the version of `from` (`None`: if there is none). `false`
    /// when it does not.
    ///
    /// # Errors
    /// The store's; `ValidationException` for a number.
    pub fn write_intent<'a>(
        &'a self,
        from: Option<&'a ReshardIntent>,
        to: &'a ReshardIntent,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let mut body = json!({ "TableName": self.name(), "Item": to.item()?, "ConditionExpression": "attribute_not_exists(pk)" });
            if let Some(from) = from {
                condition(&mut body, from);
            }
            match self.call_patiently(Operation::PutItem, body).await {
                Ok(_) => Ok(true),
                // The write may have been done, and the answer lost.
                Err(error)
                    if error.code == Code::ConditionalCheckFailedException
                        || error.outcome == Outcome::Unknown =>
                {
                    Ok(self.intent_for(&to.table_id, to.subject()).await?.as_ref() == Some(to))
                }
                Err(error) => Err(self.failed(error)),
            }
        }
        .boxed()
    }

    /// Removes an intent, if it still has that version. `false` when it does not.
    ///
    /// # Errors
    /// The store's.
    pub async fn remove_intent(&self, intent: &ReshardIntent) -> Result<bool, Error> {
        let key = key(&intent.table_id, intent.subject())?;
        let mut body = json!({ "TableName": self.name(), "Key": key });
        condition(&mut body, intent);
        match self.call_patiently(Operation::DeleteItem, body).await {
            Ok(_) => Ok(true),
            Err(error)
                if error.code == Code::ConditionalCheckFailedException
                    || error.outcome == Outcome::Unknown =>
            {
                Ok(self.intent_for(&intent.table_id, intent.subject()).await?.is_none())
            }
            Err(error) => Err(self.failed(error)),
        }
    }
}

fn condition(body: &mut Json, from: &ReshardIntent) {
    body["ConditionExpression"] = json!("#v = :v");
    body["ExpressionAttributeNames"] = json!({ "#v": "version" });
    body["ExpressionAttributeValues"] = json!({ ":v": { "N": from.version.to_string() } });
}
