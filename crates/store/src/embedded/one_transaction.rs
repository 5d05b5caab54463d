//! Operations of the engine and statements of ours in one transaction of SQLite: all of them are
//! carried out, or none.
//!
//! The engine library begins and ends a transaction of its own for each request; while one of ours
//! is open, SQLite's authorizer turns those statements into no-ops.

use dynoxide::Result;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

/// Carries `act` out in a transaction, which ends with it; undoes it where it fails.
///
/// # Errors
/// Those of `act`, and of SQLite.
pub(super) fn in_one<T>(connection: &Connection, act: impl FnOnce() -> Result<T>) -> Result<T> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    connection.authorizer(Some(without_transactions));
    let done = act();
    connection.authorizer(None::<fn(AuthContext<'_>) -> Authorization>);
    let done = done.and_then(|done| {
        connection.execute_batch("COMMIT")?;
        Ok(done)
    });
    if done.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK")?;
    }
    done
}

fn without_transactions(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Transaction { .. } => Authorization::Ignore,
        _ => Authorization::Allow,
    }
}
