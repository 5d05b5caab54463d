//! Table operations that turn a stream on or off: what they did is noted at once, and told under
//! the stream's label.

use dynoxide::Result;
use dynoxide::actions::create_table::{self, CreateTableRequest, CreateTableResponse};
use dynoxide::actions::delete_table::{self, DeleteTableRequest, DeleteTableResponse};
use dynoxide::actions::update_table::{self, UpdateTableRequest, UpdateTableResponse};

use super::engine::{Engine, drive};
use super::streams::kept::settle;

/// `CreateTable`.
pub(super) fn create_table(engine: &Engine, request: CreateTableRequest) -> Result<CreateTableResponse> {
    let mut done = drive(create_table::execute(&engine.storage, request))?;
    let told = &mut done.table_description;
    if let Some(stream) = settle(engine, &told.table_name)? {
        (told.latest_stream_arn, told.latest_stream_label) = (Some(stream.arn), Some(stream.label));
    }
    Ok(done)
}

/// `UpdateTable`.
pub(super) fn update_table(engine: &Engine, request: UpdateTableRequest) -> Result<UpdateTableResponse> {
    let mut done = drive(update_table::execute(&engine.storage, request, &engine.vectors))?;
    let told = &mut done.table_description;
    if let Some(stream) = settle(engine, &told.table_name)? {
        (told.latest_stream_arn, told.latest_stream_label) = (Some(stream.arn), Some(stream.label));
    }
    Ok(done)
}

/// `DeleteTable`.
pub(super) fn delete_table(engine: &Engine, request: DeleteTableRequest) -> Result<DeleteTableResponse> {
    let done = drive(delete_table::execute(&engine.storage, request, &engine.vectors))?;
    settle(engine, &done.table_description.table_name)?;
    Ok(done)
}
