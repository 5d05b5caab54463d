//! Folds the fragments that a counter loses into its base fragments: carries out what a
//! [`Fold`](heatsink_reshard::Fold) asks for.
//!
//! Each fold is one transaction, with a permit of the claim. Which fragments there are the mover
//! reads, as it does of a key's items (`mover`).

use heatsink_control::claim::{ClaimError, Written};
use heatsink_dynamo::{Code, Outcome};
use heatsink_reshard::{Fold, FoldAnswer, FoldCall, Pulled, Rules};
use serde_json::{Map, Value as Json, json};

use crate::error::WorkerError;
use crate::key::mover::Work;
use crate::key::patience::Patience;
use crate::key::place::Old;

impl Work<'_> {
    /// Folds one fragment into the base fragment of its item.
    pub(crate) async fn fold(&self, old: Old) -> Result<Pulled, WorkerError> {
        let Old { item, from, to: base } = &old;
        let mut fold = Fold::of(item.clone(), Rules::ALL);
        let mut patience = Patience::new();
        loop {
            let answer = match fold.call() {
                FoldCall::Read => FoldAnswer::Read(self.stored(from, item).await?),
                FoldCall::Add { fragment, .. } => match self.add(base, &fragment) {
                    Some(add) => {
                        self.write_fold(vec![add, self.delete(from, &fragment)], &mut patience).await?
                    }
                    None => FoldAnswer::Stays,
                },
            };
            if let Some(pulled) = fold.answered(answer) {
                return Ok(pulled);
            }
        }
    }

    /// What a fragment holds of the counter's numbers, by name.
    fn parts<'f>(&'f self, fragment: &'f Json) -> impl Iterator<Item = (&'f str, Option<&'f Json>)> {
        let names = self.from.counter_attributes().unwrap_or_default();
        names.iter().map(|name| (name.as_str(), fragment.get(name)))
    }

    /// Adds a fragment's numbers to the base fragment, if that exists; `None` for what holds anything
    /// else, which no gateway has written.
    fn add(&self, base: &Json, fragment: &Json) -> Option<Json> {
        let known = |name: &String| {
            self.key.table.key.has(name) || self.parts(fragment).any(|(counter, _)| counter == name)
        };
        if !fragment.as_object()?.keys().all(known) {
            return None;
        }
        let (mut names, mut values, mut adds) = (Map::new(), Map::new(), Vec::new());
        for (at, (name, part)) in self.parts(fragment).enumerate() {
            let Some(part) = part else { continue };
            part.get("N")?;
            names.insert(format!("#a{at}"), json!(name));
            values.insert(format!(":a{at}"), part.clone());
            adds.push(format!("#a{at} :a{at}"));
        }
        if adds.is_empty() {
            return Some(self.check(base, fragment, "attribute_exists(#p)"));
        }
        names.insert("#p".to_owned(), json!(self.key.table.key.partition.name));
        Some(json!({ "Update": {
            "TableName": self.key.table.name, "Key": self.key.primary(base, fragment),
            "UpdateExpression": format!("ADD {}", adds.join(", ")), "ConditionExpression": "attribute_exists(#p)",
            "ExpressionAttributeNames": names, "ExpressionAttributeValues": values,
        } }))
    }

    /// Deletes a fragment that holds what it did.
    fn delete(&self, physical: &Json, fragment: &Json) -> Json {
        let (mut names, mut values) = (Map::new(), Map::new());
        let mut terms = vec!["attribute_exists(#p)".to_owned()];
        names.insert("#p".to_owned(), json!(self.key.table.key.partition.name));
        for (at, (name, part)) in self.parts(fragment).enumerate() {
            names.insert(format!("#a{at}"), json!(name));
            match part {
                Some(part) => {
                    values.insert(format!(":a{at}"), part.clone());
                    terms.push(format!("#a{at} = :a{at}"));
                }
                None => terms.push(format!("attribute_not_exists(#a{at})")),
            }
        }
        let mut delete = json!({
            "TableName": self.key.table.name, "Key": self.key.primary(physical, fragment),
            "ConditionExpression": terms.join(" AND "), "ExpressionAttributeNames": names,
        });
        if !values.is_empty() {
            delete["ExpressionAttributeValues"] = Json::Object(values);
        }
        json!({ "Delete": delete })
    }

    /// One transaction under the claim: on the base fragment, and on the other one.
    async fn write_fold(
        &self,
        actions: Vec<Json>,
        patience: &mut Patience,
    ) -> Result<FoldAnswer<Json>, WorkerError> {
        match self.claim.write(actions).await {
            Ok(Written::Done) => Ok(FoldAnswer::Done),
            // Of the base fragment, whatever the other one is.
            Ok(Written::Refused(failed)) if failed.contains(&0) => Ok(FoldAnswer::NoBase),
            Ok(Written::Refused(_)) => Ok(FoldAnswer::Changed),
            Err(ClaimError::TakenOver(_)) => Ok(FoldAnswer::ClaimGone),
            Err(ClaimError::Store(error)) if error.outcome == Outcome::Unknown => {
                patience.wait(&**self.registry.env(), error).await?;
                Ok(FoldAnswer::Again)
            }
            // Too large a sum, too long an item, or no number in the base fragment: the expressions are
            // right.
            Err(ClaimError::Store(error)) if error.code == Code::ValidationException => Ok(FoldAnswer::Stays),
            Err(ClaimError::Store(error)) => Err(error.into()),
        }
    }
}
