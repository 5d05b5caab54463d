//! Heatsink's own tables do not exist for clients: requests that name one are refused, and lists leave them out. So do lists of tags with its own tag.

mod lists;
mod tags;

use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_layout::LayoutSource;
use serde::Deserialize;
use serde_json::json;

use crate::answer::unreadable;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::request::Request;
use crate::{Execution, PhysicalCall, Step};

pub(crate) use lists::plan as list;
pub(crate) use tags::list as list_tags;

/// The error of a request that names a hidden table: as if it did not exist, or, for one that would create it, as if it did.
pub(crate) fn refuse(operation: Operation, name: &str) -> Error {
    match operation {
        Operation::CreateTable | Operation::ImportTable => {
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

/// The plan of `ListTables`: hidden names are left out, and the page is filled up from the next one. A full page is
/// followed by a look ahead, since only hidden names may be left.
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
            looking_ahead: false,
            more: false,
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
    /// The page is full, and the next call looks whether a name follows it.
    looking_ahead: bool,
    more: bool,
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
        if let (true, Some(last)) = (self.more, self.names.last()) {
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
                let mut names = page.table_names.into_iter().filter(|name| !hidden.contains(name));
                if self.looking_ahead {
                    self.more = names.next().is_some();
                    return;
                }
                self.names.extend(names);
                let missing = self.plan.limit.saturating_sub(self.names.len());
                self.looking_ahead = missing == 0;
                if let Some(last) = page.last_evaluated_table_name {
                    let limit = if missing == 0 { hidden.len() + 1 } else { missing };
                    let body = json!({ "ExclusiveStartTableName": last, "Limit": limit });
                    self.next = Some(Bytes::from(body.to_string()));
                }
            }
            Err(error) => self.failed = Some(error),
        }
    }
}
