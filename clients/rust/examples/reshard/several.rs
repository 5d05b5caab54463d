//! Writes of several items: batches, and transactions with a token.

use std::time::Duration;

use aws_sdk_dynamodb::error::BuildError;
use aws_sdk_dynamodb::types::{
    AttributeValue, Delete, DeleteRequest, Put, PutRequest, ReturnConsumedCapacity, TransactWriteItem,
    Update, WriteRequest,
};
use heatsink_env::Env;
use rand::Rng;

use crate::calls::{Failure, units};
use crate::known::{Holds, one_more};
use crate::worker::Worker;

/// The most items that a batch, and a transaction, writes. Of one with an unknown outcome all are
/// left.
const BATCH: usize = 12;
const TRANSACTION: usize = 6;

impl Worker {
    pub(crate) async fn batch(&mut self) {
        let (slots, at) = (self.some(BATCH), self.gateway());
        let mut after: Vec<Option<Holds>> = Vec::new();
        let mut requests = Vec::new();
        for slot in &slots {
            let value = (self.rng.random_range(0..5) > 0).then(|| self.next());
            match self.batched(*slot, value.as_deref()) {
                Ok(request) => requests.push(request),
                Err(problem) => return self.fault("failed", "", &problem.to_string()),
            }
            after.push(value.as_deref().map(Holds::put));
        }
        self.shared.pace.turn(slots.len()).await;
        let call = self.at[at].batch_write_item().request_items(&self.shared.table, requests);
        let call = call.return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        let told = self.sent("BatchWriteItem", Box::pin(call.send())).await;
        match told {
            Ok(told) => {
                let left = told.unprocessed_items().and_then(|left| left.get(&self.shared.table));
                let left: Vec<&AttributeValue> = left.into_iter().flatten().filter_map(sort_key).collect();
                let mut done = 0;
                for (slot, after) in slots.iter().zip(after) {
                    if !left.contains(&&AttributeValue::S(self.items[*slot].sk.clone())) {
                        self.items[*slot].holds = after;
                        done += 1;
                    }
                }
                self.accepted_together(done, units(told.consumed_capacity()));
                self.shared.report.lost(self.second(), slots.len() - done, Failure::Throttled);
            }
            Err(failed) => self.failed_together(&slots, after, failed.how).await,
        }
    }

    fn batched(&self, slot: usize, value: Option<&str>) -> Result<WriteRequest, BuildError> {
        let request = WriteRequest::builder();
        Ok(match value {
            Some(value) => {
                request.put_request(PutRequest::builder().set_item(Some(self.whole(slot, value))).build()?)
            }
            None => request.delete_request(DeleteRequest::builder().set_key(Some(self.key(slot))).build()?),
        }
        .build())
    }

    /// None of these writes was done, or nobody knows.
    async fn failed_together(&mut self, slots: &[usize], after: Vec<Option<Holds>>, how: Failure) {
        self.shared.report.lost(self.second(), slots.len(), how);
        if how == Failure::Unknown {
            for (slot, after) in slots.iter().zip(after) {
                self.leave(*slot, after);
            }
        }
        self.rest().await;
    }

    /// All or nothing, and once: sent again with its token where the outcome is unknown, and now
    /// and then where it is known.
    pub(crate) async fn transact(&mut self) {
        let slots = self.some(TRANSACTION);
        let (mut actions, mut after) = (Vec::new(), Vec::new());
        for slot in &slots {
            match self.action(*slot) {
                Ok((action, holds)) => {
                    actions.push(action);
                    after.push(holds);
                }
                Err(problem) => return self.fault("failed", "", &problem.to_string()),
            }
        }
        let token = format!("{}-{}", self.next(), self.shared.seed);
        self.shared.pace.turn(slots.len()).await;
        let (mut outcome, mut spent) = (Err(Failure::Unknown), 0.0);
        for attempt in 0..4 {
            let at = self.gateway();
            let call = self.at[at].transact_write_items().set_transact_items(Some(actions.clone()));
            let call =
                call.client_request_token(&token).return_consumed_capacity(ReturnConsumedCapacity::Indexes);
            match self.sent("TransactWriteItems", Box::pin(call.send())).await {
                Ok(told) => {
                    outcome = Ok(());
                    if attempt == 0 {
                        spent = units(told.consumed_capacity());
                    }
                }
                Err(failed) if attempt == 0 => {
                    if failed.how == Failure::Condition {
                        let of: Vec<_> = slots.iter().map(|slot| &self.items[*slot]).collect();
                        let text = format!(
                            "a transaction was cancelled, and all conditions hold: {}; {of:?}",
                            failed.text
                        );
                        self.fault("lost", &self.items[slots[0]].sk, &text);
                    }
                    outcome = Err(failed.how);
                }
                // The store knows the token: it was done, under the layout of that time.
                Err(failed) if failed.how == Failure::TokenKnown => outcome = Ok(()),
                Err(_) => {}
            }
            let is_over = match outcome {
                Ok(()) => self.rng.random_range(0..10) < 7,
                Err(how) => how != Failure::Unknown,
            };
            if is_over {
                break;
            }
            let pause = [0, 100, 1500][self.rng.random_range(0..3)];
            self.shared.env.sleep(Duration::from_millis(pause)).await;
        }
        match outcome {
            Ok(()) => {
                for (slot, after) in slots.iter().zip(after) {
                    self.items[*slot].holds = after;
                }
                self.accepted_together(slots.len(), spent);
            }
            Err(how) => self.failed_together(&slots, after, how).await,
        }
    }

    /// One action of a transaction, whose condition holds, and what lies there after it.
    fn action(&mut self, slot: usize) -> Result<(TransactWriteItem, Option<Holds>), BuildError> {
        let exists = self.items[slot].holds.is_some();
        let condition = if exists { "attribute_exists(pk)" } else { "attribute_not_exists(pk)" };
        let (key, table) = (self.key(slot), self.shared.table.clone());
        let action = TransactWriteItem::builder();
        Ok(match self.rng.random_range(0..4) {
            0 => {
                let delete =
                    Delete::builder().table_name(table).set_key(Some(key)).condition_expression(condition);
                (action.delete(delete.build()?).build(), None)
            }
            1 => {
                let value = self.next();
                let item = self.whole(slot, &value);
                let put =
                    Put::builder().table_name(table).set_item(Some(item)).condition_expression(condition);
                (action.put(put.build()?).build(), Some(Holds::put(&value)))
            }
            _ => {
                let update =
                    Update::builder().table_name(table).set_key(Some(key)).condition_expression(condition);
                let update = update.update_expression("ADD n :one");
                let update = update.expression_attribute_values(":one", AttributeValue::N("1".to_owned()));
                (action.update(update.build()?).build(), Some(one_more(self.items[slot].holds.as_ref())))
            }
        })
    }
}

/// The sort key of an item that a batch left out.
fn sort_key(request: &WriteRequest) -> Option<&AttributeValue> {
    let put = request.put_request().and_then(|put| put.item().get("sk"));
    put.or_else(|| request.delete_request().and_then(|delete| delete.key().get("sk")))
}
