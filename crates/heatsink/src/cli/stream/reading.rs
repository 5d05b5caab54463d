//! Reads the shards of a stream in turn, prints what comes, and puts it on record.
//!
//! Not here: which shards can be read (`shards`).

use std::io::{ErrorKind, Write};
use std::time::Duration;

use heatsink::{Gateway, Operation};
use heatsink_dynamo::{Code, Error};
use heatsink_env::{Env, MonotonicInstant};
use serde_json::{Value as Json, json};

use super::checkpoint::{Checkpoint, Position};
use super::shards::Shards;
use crate::cli::open::{not_answered, passes};
use crate::cli::print;
use crate::exit::Exit;
use crate::screen;

/// The pause after a round without records. DynamoDB answers five reads of a shard a second (AWS API
/// reference, `GetRecords`).
const PAUSE: Duration = Duration::from_millis(500);

/// How often shards are looked for that are new.
const LOOK: Duration = Duration::from_secs(10);

/// How long a store may fail to answer, in one row, before the command ends.
const PATIENCE: Duration = Duration::from_secs(60);

/// A stream that is being read.
pub(super) struct Reading<'a> {
    gateway: &'a Gateway,
    env: &'a dyn Env,
    table: &'a str,
    arn: String,
    shards: Shards,
    checkpoint: Checkpoint,
    /// Since when nothing was answered.
    failing: Option<MonotonicInstant>,
}

/// What one page of a shard came to.
#[derive(PartialEq, Eq)]
enum Page {
    Records,
    /// It is known where the next one begins.
    Begun,
    Nothing,
    /// Nobody reads what is printed.
    Closed,
}

impl<'a> Reading<'a> {
    /// Looks for the stream and its shards.
    ///
    /// # Errors
    /// Exit 64 for a table that has no stream, or none that the checkpoint is of; 69.
    pub(super) async fn begin(
        gateway: &'a Gateway,
        env: &'a dyn Env,
        table: &'a str,
        mut checkpoint: Checkpoint,
        from_newest: bool,
    ) -> Result<Self, Exit> {
        let described = call(gateway, Operation::DescribeTable, json!({ "TableName": table })).await;
        let described = described.map_err(|error| match error.code {
            Code::ResourceNotFoundException => Exit::usage(format!("there is no table {table}")),
            _ => not_answered(&format!("Table {table} could not be described"), &error),
        })?;
        let Some(arn) = described["Table"]["LatestStreamArn"].as_str().map(str::to_owned) else {
            return Err(Exit::usage(format!(
                "table {table} has no stream; turn one on with UpdateTable and StreamSpecification"
            )));
        };
        let newest = from_newest && !checkpoint.has_begun();
        checkpoint.of_stream(&arn)?;
        let shards = Shards::default();
        let mut reading = Reading { gateway, env, table, arn, shards, checkpoint, failing: None };
        reading.look(newest).await?;
        Ok(reading)
    }

    /// Prints what comes, until none has come for `idle`, or nobody reads it.
    ///
    /// # Errors
    /// Exit 1 where records are gone that were not printed; 69.
    pub(super) async fn run(mut self, idle: Option<Duration>) -> Result<(), Exit> {
        let (mut came, mut looked) = (self.env.now(), self.env.now());
        loop {
            let (mut pauses, mut ended) = (true, false);
            for id in self.shards.readable(&self.checkpoint) {
                match self.page(&id).await? {
                    Page::Records => (pauses, came) = (false, self.env.now()),
                    Page::Begun => pauses = false,
                    Page::Nothing => {}
                    Page::Closed => return Ok(()),
                }
                ended |= self.checkpoint.position(&id) == Some(&Position::Ended);
            }
            let now = self.env.now();
            if idle.is_some_and(|idle| now.since(came) >= idle) {
                return Ok(());
            }
            if ended || now.since(looked) >= LOOK {
                self.look(false).await?;
                looked = now;
            }
            if pauses {
                self.env.sleep(PAUSE).await;
            }
        }
    }

    /// Looks which shards the stream has.
    async fn look(&mut self, newest: bool) -> Result<(), Exit> {
        let mut described = Vec::new();
        let mut body = json!({ "StreamArn": self.arn });
        loop {
            let page = match call(self.gateway, Operation::DescribeStream, body.clone()).await {
                Ok(page) => page,
                Err(error) => {
                    self.failed(&error).await?;
                    continue;
                }
            };
            self.failing = None;
            let stream = &page["StreamDescription"];
            described.extend(stream["Shards"].as_array().cloned().unwrap_or_default());
            match stream["LastEvaluatedShardId"].as_str() {
                Some(last) => body["ExclusiveStartShardId"] = json!(last),
                None => break,
            }
        }
        self.shards.update(&described, newest);
        self.checkpoint.keep(|shard| self.shards.has(shard));
        Ok(())
    }

    /// The next page of a shard.
    async fn page(&mut self, id: &str) -> Result<Page, Exit> {
        let Some(shard) = self.shards.get_mut(id) else { return Ok(Page::Nothing) };
        let newest = shard.newest;
        let asked = match shard.iterator.clone() {
            Some(iterator) => {
                call(self.gateway, Operation::GetRecords, json!({ "ShardIterator": iterator })).await
            }
            None => {
                let mut body = json!({ "StreamArn": self.arn, "ShardId": id });
                match self.checkpoint.position(id) {
                    Some(Position::After(number)) => {
                        body["ShardIteratorType"] = json!("AFTER_SEQUENCE_NUMBER");
                        body["SequenceNumber"] = json!(number);
                    }
                    _ if newest => body["ShardIteratorType"] = json!("LATEST"),
                    _ => body["ShardIteratorType"] = json!("TRIM_HORIZON"),
                }
                call(self.gateway, Operation::GetShardIterator, body).await
            }
        };
        let answer = match asked {
            Ok(answer) => answer,
            Err(error) => return self.unread(id, &error).await,
        };
        self.failing = None;
        let Some(shard) = self.shards.get_mut(id) else { return Ok(Page::Nothing) };
        if let Some(iterator) = answer["ShardIterator"].as_str() {
            shard.iterator = Some(iterator.to_owned());
            return Ok(Page::Begun);
        }
        shard.iterator = answer["NextShardIterator"].as_str().map(str::to_owned);
        let has_ended = shard.iterator.is_none();
        let records = answer["Records"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !printed(records)? {
            return Ok(Page::Closed);
        }
        // Moves are left out of the page, so that a page of nothing may not be the last one.
        let last = records.last().and_then(|record| record["dynamodb"]["SequenceNumber"].as_str());
        if let Some(last) = last {
            self.checkpoint.set(id, Position::After(last.to_owned()));
        }
        if has_ended {
            self.checkpoint.set(id, Position::Ended);
        }
        if last.is_some() || has_ended {
            self.checkpoint.write()?;
        }
        Ok(if records.is_empty() { Page::Nothing } else { Page::Records })
    }

    /// A shard that was not read: what can be done about it.
    async fn unread(&mut self, id: &str, error: &Error) -> Result<Page, Exit> {
        match error.code.name() {
            // It is asked for anew, behind what was printed.
            "ExpiredIteratorException" => {
                if let Some(shard) = self.shards.get_mut(id) {
                    shard.iterator = None;
                }
            }
            "TrimmedDataAccessException" => {
                return Err(Exit::failed(format!(
                    "records of the stream of table {} are gone that were not printed: the store keeps them for 24 hours. Copy the table anew, \
                     and begin without this checkpoint",
                    self.table
                )));
            }
            // The shard is gone, with all that it had.
            "ResourceNotFoundException" => self.look(false).await?,
            _ => self.failed(error).await?,
        }
        Ok(Page::Nothing)
    }

    /// Waits a moment, unless the store has not answered for too long.
    async fn failed(&mut self, error: &Error) -> Result<(), Exit> {
        let now = self.env.now();
        let since = *self.failing.get_or_insert(now);
        if !passes(error) || now.since(since) >= PATIENCE {
            return Err(not_answered(
                &format!("The stream of table {} could not be read", self.table),
                error,
            ));
        }
        self.env.sleep(PAUSE).await;
        Ok(())
    }
}

/// Prints these records, a line each. Not where nobody reads them any more.
fn printed(records: &[Json]) -> Result<bool, Exit> {
    let mut lines = String::new();
    for record in records {
        lines += &screen::inert_json(&record.to_string());
        lines.push('\n');
    }
    let mut out = std::io::stdout().lock();
    match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        written => print::written(written).map(|()| true),
    }
}

async fn call(gateway: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = gateway.call(operation, body.to_string()).await?;
    serde_json::from_slice(&answer)
        .map_err(|_| Error::internal(format!("The store's answer to {} could not be read", operation.name())))
}
