//! The second judge: genuine DynamoDB Local, unsharded and below sharding, in the place of the
//! embedded engine.
//!
//! The engine is not DynamoDB: what it accepts and DynamoDB refuses, one judge alone would never
//! show. DynamoDB Local is slow and old, so it judges fewer calls, and no call that it does not
//! know (`lacking`).
//!
//! It is started by `clients/local-judge`, which sets `HEATSINK_DYNAMODB_LOCAL`, its URL. It has to
//! run without `-sharedDb`: then each access key has tables of its own, and each store here has an
//! access key of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

/// Where DynamoDB Local listens.
pub const URL: &str = "HEATSINK_DYNAMODB_LOCAL";

/// Far more than any answer takes, on a machine with other work.
const PATIENCE: Duration = Duration::from_secs(120);

/// The access keys that no store uses, as numbers. Each costs the server threads and memory for
/// good, so they are used again.
static SPARE: Mutex<Vec<usize>> = Mutex::new(Vec::new());
static KEYS: AtomicUsize = AtomicUsize::new(0);
static STORES: AtomicUsize = AtomicUsize::new(0);

/// A DynamoDB with tables of its own in DynamoDB Local; dropping it deletes them. Calls block, and
/// are carried out in the order in which they are first polled: a case is the same every time.
pub struct Local {
    address: String,
    key: usize,
    /// Which store this is of the process: the server keeps the tokens of transactions, so they
    /// have to differ from store to store.
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
