//! The second judge: genuine DynamoDB Local, unsharded and below sharding, in the place of the embedded engine.
//!
//! The engine is not DynamoDB: what it accepts and DynamoDB refuses, one judge alone would never show. DynamoDB Local is slow and old, so
//! it judges fewer calls, and no call that it does not know ([`LACKING`]).
//!
//! It is started by `clients/local-judge`, which sets `HEATSINK_DYNAMODB_LOCAL`, its URL. It has to run without `-sharedDb`: then each access key has
//! tables of its own, and each store here has an access key of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation, wire};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::generate::Step;

/// Where DynamoDB Local listens.
pub const URL: &str = "HEATSINK_DYNAMODB_LOCAL";

/// Far more than any answer takes, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(120);

/// What DynamoDB Local 1.11.478, of January 2020, does not have. Calls of an operation are left out, members are taken out of calls.
const LACKING: &[(Lacking, &str)] = &[
    (Lacking::Operation("ExecuteStatement"), "PartiQL came to DynamoDB in November 2020"),
    (Lacking::Operation("BatchExecuteStatement"), "PartiQL came to DynamoDB in November 2020"),
    (Lacking::Operation("ExecuteTransaction"), "PartiQL came to DynamoDB in November 2020"),
    (Lacking::Operation("TagResource"), "the server has no tags"),
    (Lacking::Operation("UntagResource"), "the server has no tags"),
    (Lacking::Operation("ListTagsOfResource"), "the server has no tags"),
    (Lacking::Operation("DescribeEndpoints"), "the server has no endpoints but itself"),
    (Lacking::Operation("GetRecords"), "streams are left out (`without_stream`)"),
    (Lacking::Operation("ListStreams"), "streams are left out (`without_stream`)"),
    (
        Lacking::Member("ReturnValuesOnConditionCheckFailure"),
        "outside transactions it came in 2023; in transactions the server's reasons hold no items",
    ),
    (
        Lacking::Comparison("NOT_CONTAINS", "CONTAINS"),
        "the server does not hold it of an item without the attribute; the embedded engine and Heatsink do, as NOT contains(...) does",
    ),
];

enum Lacking {
    Operation(&'static str),
    Member(&'static str),
    /// A legacy operator, and one to take in its place.
    Comparison(&'static str, &'static str),
}

/// The most actions that the server takes in a transaction; DynamoDB takes 100.
const ACTIONS: u32 = 10;

/// Whether the server can carry out what rules make of a request: a counter is written by a transaction of as many actions as it has shards.
pub fn can(rules: &str) -> bool {
    let shards =
        rules.split("shards = ").skip(1).filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next());
    !rules.contains("\"counter\"")
        || shards.filter_map(|shards| shards.parse::<u32>().ok()).all(|shards| shards <= ACTIONS)
}

/// A table as the server can have it. It numbers the records of all streams of all access keys with one clock, and fails where two have the same
/// number.
pub fn without_stream(mut create: Json) -> Json {
    remove(&mut create, "StreamSpecification");
    create
}

/// What Heatsink adds to a refusal of an item that is too large.
const SUFFIX_COUNTS: &str = " (the table is sharded, and the shard suffix of ";

/// Whether two refusals of a request are one in the words of the server and of DynamoDB: the form of a request is checked before any store sees
/// it, in the words that DynamoDB has today, and the server has those of 2020.
pub fn same_refusal(step: &Step, server: &str, ours: &str) -> bool {
    let operation = Operation::by_name(&step.operation);
    let formless =
        operation.is_some_and(|operation| wire::check(operation, step.body.to_string().as_bytes()).is_err());
    formless || ours.strip_prefix(server).is_some_and(|more| more.starts_with(SUFFIX_COUNTS))
}

/// Writes numbers as the server gives them back from a put. It keeps those of an update as they were written until the item is put again, which
/// the writer past Heatsink does (`outside`), or they are added to, which the rows of a counter are (`counters`).
pub fn canonical_numbers(value: &mut Json) {
    match value {
        Json::Object(members) => {
            for (name, member) in members {
                match member {
                    Json::String(text) if name == "N" => {
                        if let Ok(number) = heatsink_dynamo::Number::parse(text) {
                            *text = number.to_string();
                        }
                    }
                    member => canonical_numbers(member),
                }
            }
        }
        Json::Array(elements) => elements.iter_mut().for_each(canonical_numbers),
        _ => {}
    }
}

/// Leaves out of a case what the server does not have.
pub fn leave_out(steps: &mut Vec<Step>) {
    for (lacking, _) in LACKING {
        match lacking {
            Lacking::Operation(name) => steps.retain(|step| step.operation != *name),
            Lacking::Member(name) => steps.iter_mut().for_each(|step| remove(&mut step.body, name)),
            Lacking::Comparison(name, other) => {
                steps.iter_mut().for_each(|step| replace(&mut step.body, name, other));
            }
        }
    }
}

fn remove(value: &mut Json, name: &str) {
    match value {
        Json::Object(members) => {
            members.remove(name);
            members.values_mut().for_each(|member| remove(member, name));
        }
        Json::Array(elements) => elements.iter_mut().for_each(|element| remove(element, name)),
        _ => {}
    }
}

fn replace(value: &mut Json, name: &str, other: &str) {
    match value {
        Json::Object(members) => {
            if members.get("ComparisonOperator").is_some_and(|operator| operator == name) {
                members.insert("ComparisonOperator".to_owned(), json!(other));
            }
            members.values_mut().for_each(|member| replace(member, name, other));
        }
        Json::Array(elements) => elements.iter_mut().for_each(|element| replace(element, name, other)),
        _ => {}
    }
}

/// The access keys that no store uses, as numbers. Each costs the server threads and memory for good, so they are used again.
static SPARE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static KEYS: AtomicUsize = AtomicUsize::new(0);
static STORES: AtomicUsize = AtomicUsize::new(0);

/// A DynamoDB with tables of its own in DynamoDB Local; dropping it deletes them. Calls block, and are carried out in the order in which they are
/// first polled: a case is the same every time.
pub struct Local {
    address: String,
    key: usize,
    /// Which store this is of the process: the server keeps the tokens of transactions, so they have to differ from store to store.
    number: usize,
    connection: Mutex<Option<BufReader<TcpStream>>>,
}

impl Local {
    /// An empty one.
    pub fn new() -> Self {
        let url = std::env::var(URL).unwrap_or_else(|_| {
            panic!("{URL} is not set; clients/local-judge starts DynamoDB Local and sets it")
        });
        let address = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let spare = SPARE.lock().expect("no panic").pop();
        let key = spare.unwrap_or_else(|| KEYS.fetch_add(1, Ordering::Relaxed));
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        let store = Local { address, key, number, connection: Mutex::new(None) };
        store.delete_tables();
        store
    }

    fn delete_tables(&self) {
        loop {
            let tables = self.ask(Operation::ListTables, &json!({}));
            let names = tables["TableNames"].as_array().cloned().unwrap_or_default();
            if names.is_empty() {
                return;
            }
            for name in names {
                self.ask(Operation::DeleteTable, &json!({ "TableName": name }));
            }
        }
    }

    fn ask(&self, operation: Operation, body: &Json) -> Json {
        let answer = block_on(self.call(operation, Bytes::from(body.to_string())));
        serde_json::from_slice(&answer.expect("DynamoDB Local answers")).expect("JSON")
    }

    fn send(&self, operation: Operation, body: &[u8]) -> std::io::Result<(u16, Bytes)> {
        let mut held = self.connection.lock().expect("no panic");
        let mut connection = match held.take() {
            Some(connection) => connection,
            None => {
                let stream = TcpStream::connect(&self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                BufReader::new(stream)
            }
        };
        let mut request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: {}\r\nContent-Length: {}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential=judge{}x{}/20200101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n\r\n",
            self.address,
            operation.target(),
            body.len(),
            std::process::id(),
            self.key,
        )
        .into_bytes();
        request.extend_from_slice(body);
        connection.get_mut().write_all(&request)?;
        let answer = read(&mut connection)?;
        *held = Some(connection);
        Ok(answer)
    }

    /// A request whose token no other store has sent.
    fn own(&self, operation: Operation, body: Bytes) -> Bytes {
        if operation != Operation::TransactWriteItems {
            return body;
        }
        let Ok(mut request) = serde_json::from_slice::<Json>(&body) else { return body };
        match request["ClientRequestToken"].as_str() {
            Some(token) if token.len() <= 24 => {
                request["ClientRequestToken"] = json!(format!("{token}-{}", self.number));
                Bytes::from(request.to_string())
            }
            _ => body,
        }
    }
}

fn read(connection: &mut BufReader<TcpStream>) -> std::io::Result<(u16, Bytes)> {
    let broken = || std::io::Error::other("the answer is no HTTP");
    let mut line = String::new();
    let mut next = |connection: &mut BufReader<TcpStream>| -> std::io::Result<String> {
        line.clear();
        if connection.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line.trim_end().to_owned())
    };
    let status = next(connection)?;
    let status = status.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
    let (mut length, mut chunked) = (0, false);
    loop {
        let header = next(connection)?.to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(text) = header.strip_prefix("content-length:") {
            length = text.trim().parse().map_err(|_| broken())?;
        }
        chunked |= header.starts_with("transfer-encoding:") && header.contains("chunked");
    }
    let mut body = vec![0; length];
    connection.read_exact(&mut body)?;
    while chunked {
        let size = usize::from_str_radix(&next(connection)?, 16).map_err(|_| broken())?;
        let from = body.len();
        body.resize(from + size, 0);
        connection.read_exact(&mut body[from..])?;
        next(connection)?;
        chunked = size > 0;
    }
    Ok((status, Bytes::from(body)))
}

impl Store for Local {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            let body = self.own(operation, body);
            let (status, answer) =
                self.send(operation, &body).unwrap_or_else(|why| panic!("DynamoDB Local: {why}"));
            if status == 200 { Ok(answer) } else { Err(Error::from_wire(status, answer)) }
        }
        .boxed()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.delete_tables();
            SPARE.lock().expect("no panic").push(self.key);
        }
    }
}
