//! Query and Scan: fetches only as many rows as a page can hold.
//!
//! Without a `Limit` the engine fetches every row from the start key to the end of the table, and
//! then keeps the first megabyte: a page costs as much as the table. So each page is requested with
//! a low estimated limit, and again with a larger limit until it ends for another reason. The
//! answer is that of the original request.

use dynoxide::Result;
use dynoxide::actions::query::{self, QueryRequest, QueryResponse};
use dynoxide::actions::scan::{self, ScanRequest, ScanResponse};

use super::engine::{Engine, drive};

/// The number of rows fetched first: at most 6.4 MB.
const FIRST: usize = 16;
/// The factor of each further limit.
const GROWTH: usize = 8;
/// A page holds fewer rows than this: 1 MB of items of two bytes, the smallest there are.
const MOST: usize = 1 << 19;

/// `Query`.
pub(super) fn query(engine: &Engine, request: QueryRequest) -> Result<QueryResponse> {
    let page = |limit| {
        let request = QueryRequest {
            table_name: request.table_name.clone(),
            key_condition_expression: request.key_condition_expression.clone(),
            filter_expression: request.filter_expression.clone(),
            projection_expression: request.projection_expression.clone(),
            expression_attribute_names: request.expression_attribute_names.clone(),
            expression_attribute_values: request.expression_attribute_values.clone(),
            scan_index_forward: request.scan_index_forward,
            limit,
            exclusive_start_key: request.exclusive_start_key.clone(),
            select: request.select.clone(),
            consistent_read: request.consistent_read,
            index_name: request.index_name.clone(),
            return_consumed_capacity: request.return_consumed_capacity.clone(),
            key_conditions: request.key_conditions.clone(),
            attributes_to_get: request.attributes_to_get.clone(),
            query_filter: request.query_filter.clone(),
            conditional_operator: request.conditional_operator.clone(),
            exclusive_start_key_raw: request.exclusive_start_key_raw.clone(),
        };
        drive(query::execute(&engine.storage, request))
    };
    grown(request.limit, page, |answer| answer.scanned_count)
}

/// `Scan`.
pub(super) fn scan(engine: &Engine, request: ScanRequest) -> Result<ScanResponse> {
    let page = |limit| {
        let request = ScanRequest {
            table_name: request.table_name.clone(),
            filter_expression: request.filter_expression.clone(),
            projection_expression: request.projection_expression.clone(),
            expression_attribute_names: request.expression_attribute_names.clone(),
            expression_attribute_values: request.expression_attribute_values.clone(),
            limit,
            exclusive_start_key: request.exclusive_start_key.clone(),
            select: request.select.clone(),
            consistent_read: request.consistent_read,
            index_name: request.index_name.clone(),
            segment: request.segment,
            total_segments: request.total_segments,
            return_consumed_capacity: request.return_consumed_capacity.clone(),
            attributes_to_get: request.attributes_to_get.clone(),
            scan_filter: request.scan_filter.clone(),
            conditional_operator: request.conditional_operator.clone(),
            exclusive_start_key_raw: request.exclusive_start_key_raw.clone(),
        };
        drive(scan::execute(&engine.storage, request))
    };
    grown(request.limit, page, |answer| answer.scanned_count)
}

/// The page under the client's `limit`: with larger and larger limits, until a smaller one than the
/// client's did not end it.
fn grown<A>(
    limit: Option<usize>,
    page: impl Fn(Option<usize>) -> Result<A>,
    scanned: impl Fn(&A) -> usize,
) -> Result<A> {
    let mut guess = FIRST;
    while guess < limit.unwrap_or(MOST) {
        let answer = page(Some(guess))?;
        if scanned(&answer) < guess {
            return Ok(answer);
        }
        guess = guess.saturating_mul(GROWTH);
    }
    page(limit)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// A table of `rows` of which a page holds `fit`; what each call fetched, and how many rows the
    /// answer has.
    fn fetched(limit: Option<usize>, rows: usize, fit: usize) -> (Vec<Option<usize>>, usize) {
        let asked = RefCell::new(Vec::new());
        let page = |limit: Option<usize>| {
            asked.borrow_mut().push(limit);
            Ok(rows.min(fit).min(limit.unwrap_or(usize::MAX)))
        };
        let answer = grown(limit, page, |scanned| *scanned).unwrap();
        (asked.into_inner(), answer)
    }

    #[test]
    fn a_page_fetches_little_more_than_it_holds() {
        assert_eq!(fetched(None, 1_000_000, 3), (vec![Some(16)], 3));
        assert_eq!(fetched(None, 10, 1_000), (vec![Some(16)], 10));
        assert_eq!(fetched(None, 1_000_000, 200), (vec![Some(16), Some(128), Some(1024)], 200));
        assert_eq!(fetched(Some(5), 1_000_000, 200), (vec![Some(5)], 5));
        assert_eq!(fetched(Some(100), 1_000_000, 200), (vec![Some(16), Some(100)], 100));
        assert_eq!(fetched(Some(1 << 30), 20, 200), (vec![Some(16), Some(128)], 20));
        let (asked, answer) = fetched(None, 10_000_000, 500_000);
        assert_eq!((asked.last(), answer), (Some(&None), 500_000));
    }
}
