//! Heatsink's own tables do not exist for clients.

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_layout::LayoutSource;
use serde::Deserialize;
use serde_json::json;

use crate::answer::unreadable;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::request::Request;
use crate::{Execution, PhysicalCall, Step};

/// The error of a request that names a hidden table: as if it did not exist, or, for one that would create it, as if it did.
pub(crate) fn refuse(operation: Operation, name: &str) -> Error {
    match operation {
        Operation::CreateTable => {
            Error::new(Code::ResourceInUseException, format!("Table already exists: {name}"))
        }
        Operation::DescribeTable | Operation::UpdateTable | Operation::DeleteTable => Error::new(
            Code::ResourceNotFoundException,
            format!("Requested resource not found: Table: {name} not found"),
        ),
        _ => Error::new(Code::ResourceNotFoundException, "Requested resource not found"),
    }
}

/// The most names that DynamoDB gives in one page of `ListTables`, and how many it gives without a `Limit` (AWS API
/// reference, `ListTables`).
const MOST_NAMES: usize = 100;

/// The plan of `ListTables`: hidden names are left out, and the page is filled up from the next one. A page that ends with
/// the last name in sight may say that there is more when only hidden names follow; DynamoDB, too, may give an empty last page.
pub(crate) fn list_tables(body: &Bytes, layouts: &dyn LayoutSource) -> Result<Plan, Error> {
    let hidden = layouts.hidden_tables();
    let request = Request::read(body)?;
    let limit = request.get("Limit").map_or(Some(MOST_NAMES), |raw| serde_json::from_slice(raw).ok());
    match limit.filter(|limit| (1..=MOST_NAMES).contains(limit)) {
        Some(limit) if !hidden.is_empty() => {
            Ok(Plan::Single(Box::new(ListTables { body: body.clone(), hidden, limit })))
        }
        // A wrong limit is the store's to refuse.
        _ => Ok(Plan::Forward {
            operation: Operation::ListTables,
            body: body.clone(),
            why: "nothing is hidden",
        }),
    }
}

struct ListTables {
    body: Bytes,
    hidden: Vec<String>,
    limit: usize,
}

impl Planned for ListTables {
    fn execute(self: Box<Self>) -> Box<dyn Execution> {
        Box::new(Listing {
            next: Some(self.body.clone()),
            plan: *self,
            names: Vec::new(),
            last: None,
            failed: None,
        })
    }

    fn explain(&self) -> Explanation {
        Explanation {
            plan: Kind::Single,
            why: "Heatsink's own tables are left out of the answer".to_owned(),
            calls: vec![CallExplanation::new(Operation::ListTables, &self.body)],
        }
    }
}

/// A page under way.
struct Listing {
    plan: ListTables,
    /// The next call's body.
    next: Option<Bytes>,
    names: Vec<String>,
    /// The store's `LastEvaluatedTableName`.
    last: Option<String>,
    failed: Option<Error>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    table_names: Vec<String>,
    last_evaluated_table_name: Option<String>,
}

impl Listing {
    fn done(&mut self) -> Result<Bytes, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut answer = serde_json::Map::new();
        // Only a full page can have more behind it, and it ends with a name in sight.
        if let (Some(_), Some(last)) = (&self.last, self.names.last()) {
            answer.insert("LastEvaluatedTableName".to_owned(), last.as_str().into());
        }
        answer.insert("TableNames".to_owned(), std::mem::take(&mut self.names).into());
        Ok(Bytes::from(serde_json::Value::Object(answer).to_string()))
    }
}

impl Execution for Listing {
    fn step(&mut self) -> Step {
        match self.next.take() {
            Some(body) => Step::Call(vec![PhysicalCall {
                id: 0,
                operation: Operation::ListTables,
                body,
                retry_throttled: false,
            }]),
            None => Step::Done(self.done()),
        }
    }

    fn answer(&mut self, _id: usize, answer: Result<Bytes, Error>) {
        let page = answer.and_then(|body| {
            serde_json::from_slice::<Page>(&body).map_err(|_| unreadable(Operation::ListTables))
        });
        match page {
            Ok(page) => {
                let hidden = &self.plan.hidden;
                self.names.extend(page.table_names.into_iter().filter(|name| !hidden.contains(name)));
                self.last = page.last_evaluated_table_name;
                let missing = self.plan.limit.saturating_sub(self.names.len());
                if let (Some(last), 1..) = (&self.last, missing) {
                    let body = json!({ "ExclusiveStartTableName": last, "Limit": missing });
                    self.next = Some(Bytes::from(body.to_string()));
                }
            }
            Err(error) => self.failed = Some(error),
        }
    }
}
