//! PartiQL, of which updates put values and remove attributes only.

use heatsink_dynamo::expression::Projection;
use heatsink_dynamo::partiql::{self, Action, Operand, Put, TestKind};
use heatsink_dynamo::{Code, Error, Item, KeyValue, Value};
use serde_json::{Value as Json, json};

use super::batches::cancelled;
use super::{Store, failed_condition, item, key, shown};

impl Store {
    /// Carries out a statement. Gives the items that it reads: all of them, whatever the limit.
    fn statement(&mut self, body: &Json) -> Result<Vec<Json>, Error> {
        let statement = partiql::parse(body["Statement"].as_str().unwrap())
            .map_err(|_| Error::validation("Statement wasn't well formed, can't be processed"))?;
        if statement.table.name != self.schema.name {
            return Err(Error::new(Code::ResourceNotFoundException, "Requested resource not found"));
        }
        let parameters: Vec<Value> = body["Parameters"].as_array().into_iter().flatten().map(value).collect();
        if parameters.len() != statement.parameters {
            return Err(Error::validation("Number of parameters in request and statement don't match."));
        }
        let condition = statement.condition.as_ref();
        let meaning = condition.map(|condition| condition.meaning(&parameters).unwrap());
        let holds = |item: &Item| meaning.as_ref().is_none_or(|meaning| meaning.holds(item));
        if let Action::Select { shown: paths, order } = &statement.action {
            let names = statement.index.iter().flat_map(|index| {
                let index = self.schema.indexes.iter().find(|one| one.name == index.name).unwrap();
                index.key.attributes().all().map(|key| key.name.as_str())
            });
            let names: Vec<&str> = names.collect();
            let is_in = |item: &&Item| holds(item) && names.iter().all(|name| item.contains_key(*name));
            let mut found: Vec<Item> = self.items.values().filter(is_in).cloned().collect();
            if let Some(order) = order.first() {
                found.sort_by_key(|item| key(item, &order.path.root).map(KeyValue::into_owned));
                if order.descending {
                    found.reverse();
                }
            }
            let projection = Projection { paths: paths.clone() };
            let show =
                |item: &Item| if paths.is_empty() { shown(item) } else { shown(&projection.apply(item)) };
            return Ok(found.iter().map(show).collect());
        }
        if let Action::Insert { item } = &statement.action {
            let item: Item =
                item.iter().map(|(name, term)| (name.clone(), term.value(&parameters).unwrap())).collect();
            let key = self.key(&item)?;
            if self.items.contains_key(&key) {
                return Err(Error::new(
                    Code::DuplicateItemException,
                    "Duplicate primary key exists in table",
                ));
            }
            self.items.insert(key, item);
            return Ok(Vec::new());
        }
        let conjuncts = condition.map(partiql::Condition::conjuncts).unwrap_or_default();
        let mut named = Item::new();
        for conjunct in &conjuncts {
            if let partiql::Condition::Test(test) = conjunct
                && let TestKind::Compare(Operand::Path(place), _, Operand::Term(term)) = &test.kind
                && self.schema.key.has(&place.path.root)
            {
                named.insert(place.path.root.clone(), term.value(&parameters).unwrap());
            }
        }
        let key = self.key(&named)?;
        let old = self.items.get(&key).cloned();
        if old.is_none() && conjuncts.len() == named.len() && statement.action == Action::Delete {
            return Ok(Vec::new());
        }
        let Some(mut item) = old.filter(|old| holds(old)) else { return Err(failed_condition()) };
        match &statement.action {
            Action::Delete => drop(self.items.remove(&key)),
            Action::Update { written, .. } => {
                for (path, put) in written {
                    match put {
                        Put::Value(term) => item.insert(path.root.clone(), term.value(&parameters).unwrap()),
                        Put::Nothing => item.remove(&path.root),
                        Put::Made => panic!("{body}"),
                    };
                }
                self.items.insert(key, item);
            }
            other => panic!("{other:?}"),
        }
        Ok(Vec::new())
    }

    pub(super) fn execute(&mut self, body: &Json) -> Result<Json, Error> {
        let items = self.statement(body)?;
        let units = items.len().max(1) as f64;
        Ok(self.costing(body, json!({ "Items": items }), units, false))
    }

    pub(super) fn batch_execute(&mut self, body: &Json) -> Result<Json, Error> {
        let mut responses = Vec::new();
        for statement in body["Statements"].as_array().unwrap() {
            responses.push(match self.statement(statement) {
                Ok(items) => answer_of(items),
                Err(error) => {
                    let code = error.code.name().trim_end_matches("Exception").to_owned();
                    json!({ "Error": { "Code": code, "Message": error.message } })
                }
            });
        }
        let units = responses.len() as f64;
        Ok(self.costing(body, json!({ "Responses": responses }), units, true))
    }

    pub(super) fn transact_execute(&mut self, body: &Json) -> Result<Json, Error> {
        let before = self.items.clone();
        let (mut responses, mut reasons) = (Vec::new(), Vec::new());
        for statement in body["TransactStatements"].as_array().unwrap() {
            match self.statement(statement) {
                Ok(items) => {
                    responses.push(answer_of(items));
                    reasons.push(json!({ "Code": "None" }));
                }
                Err(error) => {
                    let code = error.code.name().trim_end_matches("Exception");
                    let code = if code == "ConditionalCheckFailed" { code } else { "ValidationError" };
                    reasons.push(json!({ "Code": code, "Message": error.message }));
                }
            }
        }
        if responses.len() == reasons.len() {
            let units = 2.0 * responses.len() as f64;
            return Ok(self.costing(body, json!({ "Responses": responses }), units, true));
        }
        self.items = before;
        Err(cancelled(&reasons))
    }
}

/// The response to one statement of several.
fn answer_of(items: Vec<Json>) -> Json {
    let mut answer = json!({ "TableName": "Tab" });
    if let Some(item) = items.into_iter().next() {
        answer["Item"] = item;
    }
    answer
}

fn value(json: &Json) -> Value {
    let mut object = item(&json!({ "value": json }));
    object.remove("value").unwrap()
}
