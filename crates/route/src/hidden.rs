//! Heatsink's own tables do not exist for clients: requests that name one are refused, and lists
//! leave them out. So do lists of tags with its own tag.

mod lists;
mod tags;

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, Operation};
use serde::Deserialize;
use serde_json::json;

use crate::answer::unreadable;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::request::Request;
use crate::{Answer, Calls, PhysicalCall};

pub(crate) use lists::plan as list;
pub(crate) use tags::list as list_tags;

/// The error of a request that names a hidden table: as if it did not exist, or, for one that would
/// create it, as if it did.
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

/// The most names that DynamoDB gives in one page of `ListTables`, and how many it gives without a
/// `Limit` (AWS API reference, `ListTables`).
const MOST_NAMES: u8 = 100;

/// The plan of `ListTables`: hidden names are left out, and the page is filled up from the next
/// one. A full page is followed by a look ahead, since only hidden names may be left.
pub(crate) fn list_tables(body: &Bytes, hidden: &Arc<[String]>) -> Result<Plan, Error> {
    let request = Request::read(body)?;
    if hidden.is_empty() {
        let why = "nothing is hidden";
        return Ok(Plan::Forward { operation: Operation::ListTables, body: body.clone(), why });
    }
    let limit = names_of_page(request.get("Limit"));
    Ok(Plan::Single(Box::new(ListTables { body: body.clone(), hidden: Arc::clone(hidden), limit })))
}

/// How many names a page of `ListTables` has at most, by the request's `Limit`. Stores take numbers
/// that are not whole, and cut them. A wrong limit is the store's to refuse; where it does not, its
/// page is no larger than any.
pub fn names_of_page(limit: Option<&[u8]>) -> usize {
    let limit: Option<f64> = limit.and_then(|raw| serde_json::from_slice(raw).ok());
    let limit = limit.filter(|limit| *limit < f64::from(MOST_NAMES) + 1.0);
    let names = limit.and_then(|limit| (1..=MOST_NAMES).rev().find(|names| f64::from(*names) <= limit));
    usize::from(names.unwrap_or(MOST_NAMES))
}

struct ListTables {
    body: Bytes,
    hidden: Arc<[String]>,
    limit: usize,
}

impl Planned for ListTables {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(self.list(calls))
    }

    fn explain(&self) -> Explanation {
        Explanation {
            plan: Kind::Single,
            why: "Heatsink's own tables are left out of the answer".to_owned(),
            calls: vec![CallExplanation::new(Operation::ListTables, &self.body)],
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Page {
    #[serde(default)]
    table_names: Vec<String>,
    last_evaluated_table_name: Option<String>,
}

impl ListTables {
    async fn list(self: Box<Self>, calls: &mut dyn Calls) -> Result<Answer, Error> {
        let mut names: Vec<String> = Vec::new();
        let mut body = self.body;
        loop {
            let missing = self.limit.saturating_sub(names.len());
            let page = calls.one(PhysicalCall::only(Operation::ListTables, body)).await?;
            let page: Page = serde_json::from_slice(&page).map_err(|_| unreadable(Operation::ListTables))?;
            let mut found = page.table_names.into_iter().filter(|name| !self.hidden.contains(name));
            if missing == 0 {
                return Ok(shown(names, found.next().is_some()));
            }
            names.extend(found);
            let Some(last) = page.last_evaluated_table_name else { return Ok(shown(names, false)) };
            // Behind a full page it is looked whether a name follows: only hidden ones may.
            let limit = match self.limit.saturating_sub(names.len()) {
                0 => self.hidden.len() + 1,
                missing => missing,
            };
            let next = json!({ "ExclusiveStartTableName": last, "Limit": limit });
            body = Bytes::from(next.to_string());
        }
    }
}

fn shown(names: Vec<String>, more: bool) -> Answer {
    let mut answer = serde_json::Map::new();
    if let (true, Some(last)) = (more, names.last()) {
        answer.insert("LastEvaluatedTableName".to_owned(), last.as_str().into());
    }
    answer.insert("TableNames".to_owned(), names.into());
    Bytes::from(serde_json::Value::Object(answer).to_string()).into()
}
