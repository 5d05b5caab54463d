//! Writes and reads of one item: each with what must come of it.

use std::error::Error;

use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnConsumedCapacity, ReturnValue};

use crate::calls::{Failure, units};
use crate::known::{Attributes, Holds, one_more, text};
use crate::worker::{Answer, Worker};

impl Worker {
    pub(crate) async fn put(&mut self) {
        let (slot, value, at) = (self.any(), self.next(), self.gateway());
        let call =
            self.at[at].put_item().table_name(&self.shared.table).set_item(Some(self.whole(slot, &value)));
        let call = call.return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        let told = self.write("PutItem", slot, Some(Holds::put(&value)), true, Box::pin(call.send())).await;
        self.accepted(told.map(|told| units(told.consumed_capacity())));
    }

    pub(crate) async fn create(&mut self) {
        let (slot, value, at) = (self.any(), self.next(), self.gateway());
        let call =
            self.at[at].put_item().table_name(&self.shared.table).set_item(Some(self.whole(slot, &value)));
        let call = call
            .condition_expression("attribute_not_exists(pk)")
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        let holds = self.items[slot].holds.is_none();
        let told = self
            .write("a conditional PutItem", slot, Some(Holds::put(&value)), holds, Box::pin(call.send()))
            .await;
        self.accepted(told.map(|told| units(told.consumed_capacity())));
    }

    pub(crate) async fn update(&mut self) {
        let (slot, value, at) = (self.any(), self.next(), self.gateway());
        let call = self.at[at].update_item().table_name(&self.shared.table).set_key(Some(self.key(slot)));
        let call = call
            .update_expression("SET v = :v, g = :g")
            .return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        let call = call.expression_attribute_values(":v", AttributeValue::S(value.clone()));
        let call = call.expression_attribute_values(":g", self.group(slot));
        let after = Holds { value: Some(value), ..self.items[slot].holds.clone().unwrap_or_default() };
        let told = self.write("UpdateItem", slot, Some(after), true, Box::pin(call.send())).await;
        self.accepted(told.map(|told| units(told.consumed_capacity())));
    }

    pub(crate) async fn add(&mut self) {
        let (slot, at) = (self.any(), self.gateway());
        let call = self.at[at].update_item().table_name(&self.shared.table).set_key(Some(self.key(slot)));
        let call =
            call.update_expression("ADD n :one").return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        let call = call
            .expression_attribute_values(":one", AttributeValue::N("1".to_owned()))
            .return_values(ReturnValue::AllNew);
        let after = one_more(self.items[slot].holds.as_ref());
        let told = self.write("ADD", slot, Some(after.clone()), true, Box::pin(call.send())).await;
        if let Some(told) = &told {
            self.compare("ADD", slot, Some(&after), told.attributes());
        }
        self.accepted(told.map(|told| units(told.consumed_capacity())));
    }

    pub(crate) async fn delete(&mut self) {
        let (slot, at) = (self.any(), self.gateway());
        let before = self.items[slot].holds.clone();
        let call = self.at[at].delete_item().table_name(&self.shared.table).set_key(Some(self.key(slot)));
        let call =
            call.return_values(ReturnValue::AllOld).return_consumed_capacity(ReturnConsumedCapacity::Indexes);
        let told = self.write("DeleteItem", slot, None, true, Box::pin(call.send())).await;
        if let Some(told) = &told {
            self.compare("DeleteItem", slot, before.as_ref(), told.attributes());
        }
        self.accepted(told.map(|told| units(told.consumed_capacity())));
    }

    /// What an answer told of an item is what lies, or lay, there.
    fn compare(&self, what: &str, slot: usize, right: Option<&Holds>, told: Option<&Attributes>) {
        let told = told.filter(|told| !told.is_empty()).map(Holds::of);
        if told.as_ref() != right {
            self.fault(
                "lost",
                &self.items[slot].sk,
                &format!("{what} told of {told:?}, and {right:?} is right"),
            );
        }
    }

    /// One write of one item, which its condition lets through or not. Gives the answer.
    async fn write<T, E>(
        &mut self,
        what: &'static str,
        slot: usize,
        after: Option<Holds>,
        holds: bool,
        call: Answer<T, E>,
    ) -> Option<T>
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        self.shared.pace.turn(1).await;
        match self.sent(what, call).await {
            Ok(told) => {
                if !holds {
                    let text = format!("{what} was acknowledged, and its condition did not hold");
                    self.fault("accepted", &self.items[slot].sk, &text);
                }
                self.items[slot].holds = after;
                Some(told)
            }
            Err(failed) => {
                if failed.how == Failure::Condition && holds {
                    let item = &self.items[slot];
                    let text = format!(
                        "{what} was refused by its condition, and {:?} is there: {}",
                        item.holds, failed.text
                    );
                    self.fault("lost", &item.sk, &text);
                }
                self.shared.report.lost(self.second(), 1, failed.how);
                if failed.how == Failure::Unknown {
                    self.leave(slot, after);
                }
                self.rest().await;
                None
            }
        }
    }

    fn accepted(&self, units: Option<f64>) {
        if let Some(units) = units {
            self.accepted_together(1, units);
        }
    }

    pub(crate) async fn get(&mut self) {
        let (slot, at) = (self.any(), self.gateway());
        let call = self.at[at]
            .get_item()
            .table_name(&self.shared.table)
            .set_key(Some(self.key(slot)))
            .consistent_read(true);
        let Ok(told) = self.sent("GetItem", Box::pin(call.send())).await else { return self.rest().await };
        let (shown, item) = (told.item().map(Holds::of), &self.items[slot]);
        if !item.allows(shown.as_ref()) {
            let (shown, right) = (text(shown.as_ref()), text(item.holds.as_ref()));
            self.fault("lost", &item.sk, &format!("GetItem at g{at} showed {shown:?}, not {right:?}"));
        }
    }
}
