//! Continuous backups: whether they are on for a table, as Terraform and the CDK set and ask. The
//! setting alone is kept: nothing can be restored.

use heatsink_dynamo::{Code, Error, Operation};
use serde_json::{Value as Json, json};

use super::backups_table::{self, Setting};
use super::describe::existing;
use super::engine::Engine;

/// How many days one can go back where the request does not say, and at most.
const DAYS: u64 = 35;
/// How many seconds ago the latest point of time is that a table can be restored to.
const BEHIND: i64 = 5 * 60;

/// Whether the operation is answered here.
pub(super) const fn answers(operation: Operation) -> bool {
    matches!(operation, Operation::DescribeContinuousBackups | Operation::UpdateContinuousBackups)
}

/// The answer, after the change where the request is one.
///
/// # Errors
/// `ValidationException` for a request without a table or a setting, `TableNotFoundException` for a
/// table that is not there.
pub(super) fn answer(engine: &Engine, operation: Operation, request: &Json) -> Result<Json, Error> {
    let wanted = match operation {
        Operation::UpdateContinuousBackups => Some(Wanted::read(request)?),
        _ => None,
    };
    let name = existing(engine, request, "TableName", |name| {
        Error::new(
            Code::Other("com.amazonaws.dynamodb.v20120810#TableNotFoundException".to_owned()),
            format!("Table not found: {name}"),
        )
    })?;
    let unread = |why: dynoxide::DynoxideError| {
        Error::internal(format!("the setting of continuous backups could not be read or written: {why}"))
    };
    let table = engine.storage.get_table_metadata(&name).map_err(unread)?;
    let id = table.and_then(|table| table.table_id).unwrap_or(name);
    let connection = engine.storage.conn();
    let now = i64::try_from(engine.env.unix_millis() / 1000).unwrap_or(i64::MAX);
    match wanted {
        Some(Wanted::On { days }) => backups_table::turn_on(connection, &id, &Setting { since: now, days }),
        Some(Wanted::Off) => backups_table::turn_off(connection, &id),
        None => Ok(()),
    }
    .map_err(unread)?;
    let described = match backups_table::find(connection, &id).map_err(unread)? {
        Some(Setting { since, days }) => json!({
            "PointInTimeRecoveryStatus": "ENABLED", "RecoveryPeriodInDays": days,
            "EarliestRestorableDateTime": since, "LatestRestorableDateTime": since.max(now - BEHIND),
        }),
        None => json!({ "PointInTimeRecoveryStatus": "DISABLED" }),
    };
    Ok(json!({ "ContinuousBackupsDescription": {
        "ContinuousBackupsStatus": "ENABLED", "PointInTimeRecoveryDescription": described,
    } }))
}

/// What a request sets.
enum Wanted {
    On { days: u64 },
    Off,
}

impl Wanted {
    fn read(request: &Json) -> Result<Wanted, Error> {
        const AT: &str = "pointInTimeRecoverySpecification";
        let refused = |at: &str, why: &str| {
            Error::validation(format!(
                "1 validation error detected: Value at '{at}' failed to satisfy constraint: Member must {why}"
            ))
        };
        let specification = &request["PointInTimeRecoverySpecification"];
        if !specification.is_object() {
            return Err(refused(AT, "not be null"));
        }
        let Some(on) = specification["PointInTimeRecoveryEnabled"].as_bool() else {
            return Err(refused(&format!("{AT}.pointInTimeRecoveryEnabled"), "not be null"));
        };
        let days = match &specification["RecoveryPeriodInDays"] {
            Json::Null => DAYS,
            days => days.as_u64().filter(|days| (1..=DAYS).contains(days)).ok_or_else(|| {
                let within =
                    format!("have value greater than or equal to 1 and less than or equal to {DAYS}");
                refused(&format!("{AT}.recoveryPeriodInDays"), &within)
            })?,
        };
        Ok(if on { Wanted::On { days } } else { Wanted::Off })
    }
}
