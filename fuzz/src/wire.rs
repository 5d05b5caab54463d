//! Request bodies: checked, planned, explained. The first byte chooses the operation.

use bytes::Bytes;
use heatsink_dynamo::{Operation, wire as checks};
use heatsink_route::{Router, tables_of};

use crate::layouts::Tables;

/// Any body of any operation is refused or planned, and a plan explains itself.
pub fn wire(data: &[u8]) {
    let Some((choice, body)) = data.split_first() else { return };
    let operation = Operation::ALL[usize::from(*choice) % Operation::ALL.len()];
    let checked = checks::check(operation, body);
    let named = tables_of(operation, body);
    let router = Router::new().hiding(["hidden".to_owned()].into());
    let planned = router.plan(operation, &Bytes::copy_from_slice(body), &Tables::new());
    if let Ok(plan) = planned {
        let _ = plan.explain();
        // ListTables names none.
        assert!(named.is_ok() || operation == Operation::ListTables, "planned without knowing its tables");
    }
    if checked.is_ok() {
        // As text: 1e999 is a number of JSON, though no machine's.
        let json: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(body);
        assert!(json.is_ok(), "a body passed the checks that is not JSON");
    }
}
