//! `ListTables` for someone who does not see every table: clients see none of Heatsink's own, and a
//! client with rights sees those that they name.
//!
//! Pages are as full as the store's own: what is left out of one is filled up from the next. So a
//! name that is not shown stands in no cursor either.
//!
//! Not here: other lists, from which entries are only taken out (`hidden`); whom a client's rights
//! show a table (`heatsink-access`).

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use serde::Deserialize;
use serde_json::json;

use crate::answer::unreadable;
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::request::Request;
use crate::{Answer, Calls, PhysicalCall};

/// The most names that DynamoDB gives in one page of `ListTables`, and how many it gives without a
/// `Limit` (AWS API reference, `ListTables`).
const MOST_NAMES: u8 = 100;

/// The plan of `ListTables` for whoever sees the tables that `sees` says.
pub(crate) fn plan<S>(body: &Bytes, sees: S) -> Result<Plan, Error>
where
    S: Fn(&str) -> bool + Send + Sync + 'static,
{
    let limit = names_of_page(Request::read(body)?.get("Limit"));
    Ok(Plan::Single(Box::new(ListTables { body: body.clone(), sees, limit })))
}

/// How many names a page has at most, by the request's `Limit`. Stores take numbers that are not
/// whole, and cut them. A wrong limit is the store's to refuse; where it does not, its page is no
/// larger than any.
fn names_of_page(limit: Option<&[u8]>) -> usize {
    let limit: Option<f64> = limit.and_then(|raw| serde_json::from_slice(raw).ok());
    let limit = limit.filter(|limit| *limit < f64::from(MOST_NAMES) + 1.0);
    let names = limit.and_then(|limit| (1..=MOST_NAMES).rev().find(|names| f64::from(*names) <= limit));
    usize::from(names.unwrap_or(MOST_NAMES))
}

struct ListTables<S> {
    body: Bytes,
    sees: S,
    limit: usize,
}

impl<S: Fn(&str) -> bool + Send + Sync + 'static> Planned for ListTables<S> {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(self.list(calls))
    }

    fn explain(&self) -> Explanation {
        Explanation {
            plan: Kind::Single,
            why: "tables that the client does not see are left out of the answer".to_owned(),
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

impl<S: Fn(&str) -> bool> ListTables<S> {
    async fn list(self: Box<Self>, calls: &mut dyn Calls) -> Result<Answer, Error> {
        // The first page is asked for by the client's own request: the store knows its faults.
        let ListTables { mut body, sees, limit } = *self;
        let mut names: Vec<String> = Vec::new();
        loop {
            let page = calls.one(PhysicalCall::only(Operation::ListTables, body)).await?;
            let page: Page = serde_json::from_slice(&page).map_err(|_| unreadable(Operation::ListTables))?;
            names.extend(page.table_names.into_iter().filter(|name| sees(name)));
            // That the store has more is not enough, since all of it may be left out: one name more
            // than fits shows that a page follows.
            if names.len() > limit {
                names.truncate(limit);
                return Ok(shown(names, true));
            }
            let Some(last) = page.last_evaluated_table_name else { return Ok(shown(names, false)) };
            let next = json!({ "ExclusiveStartTableName": last, "Limit": MOST_NAMES });
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
