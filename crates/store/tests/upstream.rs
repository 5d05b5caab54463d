//! The upstream store against a server that misbehaves: what each fault becomes, and that no write
//! is sent twice.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "processes and sockets keep real time")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::{SharedCredentialsProvider, error::CredentialsError, future};
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation, Outcome};
use heatsink_env::{Env, ManualEnv, RealEnv};
use heatsink_store::upstream::{Bounds, Endpoint, Upstream};
use heatsink_store::{Permit, Store};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// What the server does with the n-th request, counted over all connections.
type Script = Arc<dyn Fn(usize) -> Act + Send + Sync>;

enum Act {
    /// Sends these bytes and keeps the connection.
    Send(Vec<u8>),
    /// Sends these bytes and closes.
    SendAndClose(Vec<u8>),
    /// Never answers.
    Silence,
}

/// The most connections that the tests' upstream opens.
const CONNECTIONS: usize = 3;

struct Fake {
    endpoint: Endpoint,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<AtomicUsize>,
}

impl Fake {
    async fn start(script: impl Fn(usize) -> Act + Send + Sync + 'static) -> Fake {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let fake = Fake { endpoint, requests: Arc::default(), connections: Arc::default() };
        let (requests, connections, script) =
            (fake.requests.clone(), fake.connections.clone(), Arc::new(script));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(converse(stream, requests.clone(), script.clone()));
            }
        });
        fake
    }

    fn upstream(&self) -> Upstream {
        self.upstream_with(
            Arc::new(RealEnv),
            SharedCredentialsProvider::new(Credentials::new("AKID", "secret", None, None, "test")),
        )
    }

    fn upstream_with(&self, env: Arc<dyn Env>, chain: SharedCredentialsProvider) -> Upstream {
        let bounds = Bounds {
            connect: Duration::from_millis(500),
            answer: Duration::from_millis(1_000),
            connections: CONNECTIONS,
        };
        Upstream::with(self.endpoint.clone(), bounds, env, "us-east-1".to_owned(), chain).unwrap()
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn converse(mut stream: TcpStream, requests: Arc<Mutex<Vec<String>>>, script: Script) {
    let mut read = Vec::new();
    loop {
        let mut piece = [0; 4096];
        match stream.read(&mut piece).await {
            Ok(n) if n > 0 => read.extend_from_slice(&piece[..n]),
            _ => return,
        }
        // Every request of these tests ends with its two-byte body.
        if !read.ends_with(b"{}") {
            continue;
        }
        let n = {
            let mut requests = requests.lock().unwrap();
            requests.push(String::from_utf8(std::mem::take(&mut read)).unwrap());
            requests.len() - 1
        };
        match script(n) {
            Act::Send(bytes) => stream.write_all(&bytes).await.unwrap(),
            Act::SendAndClose(bytes) => {
                stream.write_all(&bytes).await.unwrap();
                return;
            }
            Act::Silence => tokio::time::sleep(Duration::from_secs(60)).await,
        }
    }
}

fn answer(status: &str, extra: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{extra}\r\n{body}", body.len()).into_bytes()
}

fn ok() -> Vec<u8> {
    answer("200 OK", &format!("x-amz-crc32: {}\r\n", crc32fast::hash(b"{\"a\":1}")), "{\"a\":1}")
}

async fn put(upstream: &Upstream) -> Result<Bytes, Error> {
    upstream.call(Operation::PutItem, Bytes::from_static(b"{}")).await
}

async fn get(upstream: &Upstream) -> Result<Bytes, Error> {
    upstream.call(Operation::GetItem, Bytes::from_static(b"{}")).await
}

#[tokio::test]
async fn requests_are_signed_and_share_a_connection() {
    let fake = Fake::start(|_| Act::Send(ok())).await;
    let upstream = fake.upstream();
    for _ in 0..3 {
        assert_eq!(put(&upstream).await.unwrap(), "{\"a\":1}");
    }
    assert_eq!(fake.connections.load(Ordering::SeqCst), 1);
    let request = fake.requests()[0].to_lowercase();
    assert!(request.starts_with("post / http/1.1\r\n"), "{request}");
    for header in [
        "x-amz-target: dynamodb_20120810.putitem\r\n",
        "content-type: application/x-amz-json-1.0\r\n",
        "content-length: 2\r\n",
        "authorization: aws4-hmac-sha256 credential=akid/",
        "signedheaders=content-type;host;x-amz-date;x-amz-target, signature=",
    ] {
        assert!(request.contains(header), "{header} in {request}");
    }
}

#[tokio::test]
async fn every_fault_is_an_error_that_says_whether_it_was_done() {
    let throttled = r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"slow","ThrottlingReasons":[]}"#;
    let cut = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"a\"".to_vec();
    let chunked = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a\":\r\n".to_vec();
    let closing = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{\"a\":[1,2".to_vec();
    let cases: Vec<(&str, Act, Code, u16, Outcome)> = vec![
        (
            "throttled",
            Act::Send(answer("400 Bad Request", "", throttled)),
            Code::ProvisionedThroughputExceededException,
            400,
            Outcome::NotDone,
        ),
        (
            "500 with HTML",
            Act::Send(answer("500 Oops", "", "<html>no</html>")),
            Code::InternalServerError,
            500,
            Outcome::Unknown,
        ),
        (
            "503 with HTML",
            Act::Send(answer("503 Busy", "", "<html>no</html>")),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        (
            "404 with HTML",
            Act::Send(answer("404 Not Found", "", "<html>no</html>")),
            Code::InternalServerError,
            500,
            Outcome::NotDone,
        ),
        (
            "wrong checksum",
            Act::Send(answer("200 OK", "x-amz-crc32: 1\r\n", "{}")),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        ("closes mid-answer", Act::SendAndClose(cut), Code::ServiceUnavailable, 503, Outcome::Unknown),
        (
            "closes without answer",
            Act::SendAndClose(Vec::new()),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        (
            "no HTTP",
            Act::SendAndClose(b"220 smtp ready\r\n\r\n".to_vec()),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        (
            "cut, in a length that fits",
            Act::Send(answer("200 OK", "", "{\"a\":")),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        ("cut, chunked", Act::SendAndClose(chunked), Code::ServiceUnavailable, 503, Outcome::Unknown),
        (
            "cut, ended by closing",
            Act::SendAndClose(closing),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        (
            "nothing in it",
            Act::Send(answer("200 OK", "", "")),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        (
            "a checksum that is none",
            Act::Send(answer("200 OK", "x-amz-crc32: x\r\n", "{}")),
            Code::ServiceUnavailable,
            503,
            Outcome::Unknown,
        ),
        ("no object", Act::Send(answer("200 OK", "", "[]")), Code::ServiceUnavailable, 503, Outcome::Unknown),
        ("never answers", Act::Silence, Code::ServiceUnavailable, 503, Outcome::Unknown),
    ];
    for (name, act, code, status, outcome) in cases {
        let act = Mutex::new(Some(act));
        let fake = Fake::start(move |_| act.lock().unwrap().take().unwrap_or_else(|| Act::Send(ok()))).await;
        let upstream = fake.upstream();
        let error = put(&upstream).await.expect_err(name);
        assert_eq!((&error.code, error.status, error.outcome), (&code, status, outcome), "{name}: {error}");
        assert_eq!(fake.requests().len(), 1, "{name}: a write was sent again");
        assert!(put(&upstream).await.is_ok(), "{name}: the next request suffers");
    }
}

#[tokio::test]
async fn an_error_passes_on_byte_for_byte() {
    let body = r#"{ "message":"m",  "__type":"x#ConditionalCheckFailedException","Item":{}}"#;
    let fake = Fake::start(move |_| Act::Send(answer("400 Bad Request", "", body))).await;
    let error = put(&fake.upstream()).await.unwrap_err();
    assert_eq!(
        (error.code.clone(), error.body()),
        (Code::ConditionalCheckFailedException, Bytes::from(body))
    );
}

#[tokio::test]
async fn nobody_there_is_not_done() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let chain = SharedCredentialsProvider::new(Credentials::new("a", "b", None, None, "test"));
    let endpoint = Endpoint::parse(&format!("http://{gone}")).unwrap();
    let upstream =
        Upstream::with(endpoint, Bounds::default(), Arc::new(RealEnv), "us-east-1".into(), chain).unwrap();
    let error = put(&upstream).await.unwrap_err();
    assert_eq!((error.code.clone(), error.outcome), (Code::ServiceUnavailable, Outcome::NotDone), "{error}");
}

#[tokio::test]
async fn a_connection_that_closed_while_idle_costs_nobody_an_error() {
    // Closes after every answer, without saying so beforehand.
    let fake = Fake::start(|_| Act::SendAndClose(ok())).await;
    let upstream = fake.upstream();
    for _ in 0..5 {
        put(&upstream).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(fake.requests().len(), 5);
}

#[tokio::test]
async fn a_used_connection_that_closes_under_a_request_is_retried_for_reads_alone() {
    // The second request meets a connection that closes as it arrives.
    let script = |n| if n == 1 { Act::SendAndClose(Vec::new()) } else { Act::Send(ok()) };
    let fake = Fake::start(script).await;
    let upstream = fake.upstream();
    get(&upstream).await.unwrap();
    get(&upstream).await.unwrap();
    assert_eq!(fake.requests().len(), 3);

    let fake = Fake::start(script).await;
    let upstream = fake.upstream();
    put(&upstream).await.unwrap();
    let error = put(&upstream).await.unwrap_err();
    assert_eq!((error.outcome, fake.requests().len()), (Outcome::Unknown, 2));
}

#[tokio::test]
async fn an_abandoned_request_leaves_no_half_read_connection() {
    let fake = Fake::start(|n| if n == 0 { Act::Silence } else { Act::Send(ok()) }).await;
    let upstream = fake.upstream();
    assert!(tokio::time::timeout(Duration::from_millis(50), put(&upstream)).await.is_err());
    assert_eq!(put(&upstream).await.unwrap(), "{\"a\":1}");
    assert_eq!(fake.connections.load(Ordering::SeqCst), 2);
}

/// Credentials that last ten minutes from when they are asked for; from the third time on there are
/// none.
struct Expiring {
    env: ManualEnv,
    asked: AtomicUsize,
}

impl std::fmt::Debug for Expiring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Expiring")
    }
}

impl aws_credential_types::provider::ProvideCredentials for Expiring {
    fn provide_credentials<'a>(&'a self) -> future::ProvideCredentials<'a>
    where
        Self: 'a,
    {
        let n = self.asked.fetch_add(1, Ordering::SeqCst);
        let until = std::time::UNIX_EPOCH + Duration::from_millis(self.env.unix_millis() + 600_000);
        future::ProvideCredentials::ready(if n < 2 {
            Ok(Credentials::new(format!("AKID{n}"), "secret", Some("token".into()), Some(until), "test"))
        } else {
            Err(CredentialsError::not_loaded("gone"))
        })
    }
}

#[tokio::test]
async fn credentials_are_renewed_before_they_expire_and_outlive_a_failed_renewal() {
    let fake = Fake::start(|_| Act::Send(ok())).await;
    let env = ManualEnv::seeded(1);
    let chain = Expiring { env: env.clone(), asked: AtomicUsize::new(0) };
    let upstream = fake.upstream_with(Arc::new(env.clone()), SharedCredentialsProvider::new(chain));
    let used = async |minutes: u64| {
        env.advance(Duration::from_secs(60 * minutes));
        let answer = put(&upstream).await;
        let request = fake.requests().last().cloned().unwrap_or_default();
        let at = request.find("Credential=").map_or(0, |at| at + 11);
        assert!(request.contains("x-amz-security-token: token"), "{request}");
        answer.map(|_| request[at..at + 5].to_owned())
    };
    assert_eq!(used(0).await.unwrap(), "AKID0");
    assert_eq!(used(4).await.unwrap(), "AKID0");
    assert_eq!(used(2).await.unwrap(), "AKID1");
    // Renewal fails; what is there holds until it expires, and not beyond.
    assert_eq!(used(6).await.unwrap(), "AKID1");
    let error = used(5).await.unwrap_err();
    assert_eq!((error.outcome, error.code), (Outcome::NotDone, Code::ServiceUnavailable));
}

#[tokio::test]
async fn a_whole_answer_needs_no_checksum() {
    let fake = Fake::start(|_| Act::Send(answer("200 OK", "", " {\"a\":1} "))).await;
    assert_eq!(put(&fake.upstream()).await.unwrap(), " {\"a\":1} ");
}

#[tokio::test]
async fn requests_beyond_the_connections_wait_for_one_and_are_then_refused() {
    let fake = Fake::start(|n| if n < 2 * CONNECTIONS { Act::Send(ok()) } else { Act::Silence }).await;
    let upstream = fake.upstream();
    let all = |count: usize| futures::future::join_all((0..count).map(|_| put(&upstream)));
    assert!(all(2 * CONNECTIONS).await.iter().all(Result::is_ok), "a request that waits is answered");
    let answers = all(2 * CONNECTIONS).await;
    let refused = |error: &&Error| error.outcome == Outcome::NotDone && error.retryable();
    // The first ones hold every connection until their time is up; the others were never sent.
    assert_eq!(
        answers.iter().filter_map(|answer| answer.as_ref().err()).filter(refused).count(),
        CONNECTIONS
    );
    assert_eq!(fake.requests().len(), 3 * CONNECTIONS);
    assert_eq!(fake.connections.load(Ordering::SeqCst), CONNECTIONS);
}

#[tokio::test]
async fn operations_on_the_account_are_off_unless_allowed() {
    let fake = Fake::start(|_| Act::Send(ok())).await;
    let body = || Bytes::from_static(b"{}");
    let upstream = fake.upstream();
    for operation in
        [Operation::PutResourcePolicy, Operation::DeleteBackup, Operation::ExportTableToPointInTime]
    {
        let error = upstream.call(operation, body()).await.unwrap_err();
        assert_eq!((&error.code, error.outcome), (&Code::AccessDeniedException, Outcome::NotDone), "{error}");
        assert!(!error.retryable());
    }
    for operation in [Operation::CreateBackup, Operation::GetResourcePolicy, Operation::DeleteTable] {
        upstream.call(operation, body()).await.unwrap();
    }
    assert_eq!(fake.requests().len(), 3);
    fake.upstream().with_account_operations().call(Operation::PutResourcePolicy, body()).await.unwrap();
}

/// A permit that counts how often it is asked, and allows the first so many writes.
struct Allows {
    writes: usize,
    asked: AtomicUsize,
}

impl Allows {
    fn writes(writes: usize) -> Self {
        Allows { writes, asked: AtomicUsize::new(0) }
    }
}

impl Permit for Allows {
    fn check(&self) -> Result<(), Error> {
        if self.asked.fetch_add(1, Ordering::SeqCst) < self.writes {
            return Ok(());
        }
        Err(Error::unavailable("the lease is over", Outcome::NotDone))
    }
}

/// A server that takes a connection, waits, and then reads it to its end. Gives how many bytes
/// came, and whether the connection was reset.
async fn slow_reader(wait: Duration) -> (Endpoint, tokio::task::JoinHandle<(usize, bool)>) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(8).unwrap();
    let endpoint = Endpoint::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let reading = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::time::sleep(wait).await;
        let (mut count, mut piece) = (0, vec![0; 65_536]);
        loop {
            match stream.read(&mut piece).await {
                Ok(0) => return (count, false),
                Ok(n) => count += n,
                Err(_) => return (count, true),
            }
        }
    });
    (endpoint, reading)
}

#[tokio::test]
async fn a_request_whose_permit_ends_half_way_is_cut_off() {
    const BODY: usize = 16_000_000;
    let cases = [(Operation::PutItem, Outcome::Unknown), (Operation::GetItem, Outcome::NotDone)];
    for (operation, outcome) in cases {
        let (endpoint, reading) = slow_reader(Duration::from_millis(200)).await;
        let chain = SharedCredentialsProvider::new(Credentials::new("a", "b", None, None, "test"));
        let (bounds, region) = (Bounds::default(), "us-east-1".to_owned());
        let upstream = Upstream::with(endpoint, bounds, Arc::new(RealEnv), region, chain).unwrap();
        // The first write fills the socket's buffer, and the next one waits for the server.
        let permit = Allows::writes(2);
        let error =
            upstream.call_if(operation, Bytes::from(vec![b' '; BODY]), &permit).await.expect_err("cut off");
        assert_eq!((&error.code, error.outcome), (&Code::ServiceUnavailable, outcome), "{error}");
        assert!(error.to_string().contains("the lease is over"), "{error}");
        let (came, reset) = reading.await.unwrap();
        assert!(came < BODY / 2, "{came} bytes came");
        assert!(reset, "the system went on with what it had taken");
    }
}

#[tokio::test]
async fn a_permit_is_asked_once_for_what_one_write_takes_and_nothing_is_sent_where_it_refuses() {
    let fake = Fake::start(|_| Act::Send(ok())).await;
    let upstream = fake.upstream();
    for _ in 0..3 {
        let permit = Allows::writes(usize::MAX);
        upstream.call_if(Operation::PutItem, Bytes::from_static(b"{}"), &permit).await.unwrap();
        assert_eq!(permit.asked.load(Ordering::SeqCst), 1);
    }
    let permit = Allows::writes(0);
    let error = upstream.call_if(Operation::PutItem, Bytes::from_static(b"{}"), &permit).await.unwrap_err();
    assert_eq!(error.outcome, Outcome::NotDone);
    assert!(put(&upstream).await.is_ok(), "the connection is not the permit's");
    assert_eq!((fake.requests().len(), fake.connections.load(Ordering::SeqCst)), (4, 1));
}
