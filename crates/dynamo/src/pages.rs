//! Pages of what is read piece by piece: where a request says that its page begins, and where an
//! answer says that the next one does.
//!
//! A store whose position stands still would be asked for ever by whoever follows it.

use memchr::memmem;
use serde_json::Value as Json;

use crate::{Error, Operation};

/// The members of a request, and those of its answer (service model: Query and Scan, ListTables,
/// ExecuteStatement and ListTagsOfResource).
const POSITIONS: [(&str, &str); 3] = [
    ("ExclusiveStartKey", "LastEvaluatedKey"),
    ("ExclusiveStartTableName", "LastEvaluatedTableName"),
    ("NextToken", "NextToken"),
];

/// Refuses an answer whose next page begins where its own did.
///
/// # Errors
/// `InternalServerError`, the store's fault.
pub fn advances(operation: Operation, request: &Json, answer: &Json) -> Result<(), Error> {
    let stands_still = |(begin, next): (&str, &str)| {
        let next = answer.get(next).filter(|next| !next.is_null());
        next.is_some() && next == request.get(begin)
    };
    if POSITIONS.into_iter().any(stands_still) { Err(stuck(operation)) } else { Ok(()) }
}

/// Whether a body may ask for a page that is not the first: whether it names such a member
/// anywhere.
pub fn may_go_on(body: &[u8]) -> bool {
    POSITIONS.iter().any(|(begin, _)| memmem::find(body, begin.as_bytes()).is_some())
}

/// What is said of a store that gives the same position again and again.
pub fn stuck(operation: Operation) -> Error {
    Error::internal(format!(
        "The store's {} says that there is more and goes on at the same position, so its answer is not whole. It was not asked further",
        operation.name()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_position_that_stands_still_is_refused_and_one_that_moves_or_ends_is_not() {
        for (begin, next) in POSITIONS {
            let of = |request: Json, answer: Json| advances(Operation::Query, &request, &answer);
            let at = |member: &str, position: Json| json!({ member: position, "Limit": 1 });
            assert!(
                of(at(begin, json!({ "pk": { "S": "a" } })), at(next, json!({ "pk": { "S": "a" } })))
                    .is_err()
            );
            of(at(begin, json!("a")), at(next, json!("b"))).unwrap();
            of(at(begin, json!("a")), at(next, Json::Null)).unwrap();
            of(at(begin, json!("a")), json!({})).unwrap();
            of(json!({}), at(next, json!("a"))).unwrap();
            of(json!({}), json!({})).unwrap();
        }
    }
}
