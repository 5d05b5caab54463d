//! Starts the command, reads what it prints, talks HTTP to it, stops it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for an answer, or for a command's end.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    printed: String,
    endpoint: String,
}

/// The command, with no AWS configuration but fake credentials.
pub fn heatsink() -> Command {
    heatsink_by(Command::new(env!("CARGO_BIN_EXE_heatsink")))
}

fn heatsink_by(mut command: Command) -> Command {
    command
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env("HEATSINK_LAME_DUCK", "0")
        .env_remove("AWS_CA_BUNDLE")
        .env_remove("SSL_CERT_FILE")
        .env_remove("HTTPS_PROXY")
        .env_remove("AWS_REGION")
        .env_remove("AWS_PROFILE")
        .env_remove("RUST_LOG");
    command
}

/// The program that has the command: the laboratory's, where it is one of that, else `heatsink`.
fn program(arguments: &[&str]) -> PathBuf {
    let heatsink = PathBuf::from(env!("CARGO_BIN_EXE_heatsink"));
    match arguments.first() {
        Some(&("demo" | "picture" | "plan" | "simulate")) => {
            let lab = heatsink.with_file_name(format!("heatsink-lab{}", std::env::consts::EXE_SUFFIX));
            assert!(lab.exists(), "`cargo test --workspace` builds {}", lab.display());
            lab
        }
        _ => heatsink,
    }
}

/// Runs the command to its end.
pub fn run(args: &[&str]) -> Output {
    heatsink_by(Command::new(program(args))).args(args).stdin(Stdio::null()).output().unwrap()
}

/// A directory of the test's own.
pub fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("heatsink-serve-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

impl Server {
    /// Serves on a free port.
    pub fn start(args: &[&str]) -> Self {
        Server::spawn(&[&["--output", "json"], args].concat()).started()
    }

    /// The same, by a command that prints JSON.
    pub fn of(command: &mut Command) -> Self {
        Server::child(command).started()
    }

    /// The same, with that as its standard input.
    pub fn passing(command: &mut Command, stdin: Stdio) -> Self {
        Server::child_with(command, stdin).started()
    }

    /// The same, begun by a shell after it has run `first`.
    pub fn start_after(first: &str, args: &[&str]) -> Self {
        let mut command = heatsink_by(Command::new("sh"));
        command.args(["-c", &format!("{first} && exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_heatsink")]);
        Server::of(command.args(["serve", "--listen", "127.0.0.1:0", "--output", "json"]).args(args))
    }

    fn started(self) -> Self {
        let mut server = self;
        server.stdout.read_line(&mut server.printed).unwrap();
        let printed: serde_json::Value = serde_json::from_str(&server.printed).unwrap();
        server.endpoint = printed["endpoint"].as_str().unwrap().to_owned();
        server
    }

    /// The same, printing for people.
    pub fn start_text(args: &[&str]) -> Self {
        let mut server = Server::spawn(args);
        while !server.printed.contains("Data lies") {
            assert_ne!(server.stdout.read_line(&mut server.printed).unwrap(), 0, "{}", server.printed);
        }
        server.endpoint = server.printed.lines().next().unwrap().rsplit(' ').next().unwrap().to_owned();
        server
    }

    fn spawn(args: &[&str]) -> Self {
        let mut command = heatsink();
        Server::child(command.args(["serve", "--listen", "127.0.0.1:0"]).args(args))
    }

    fn child(command: &mut Command) -> Self {
        Server::child_with(command, Stdio::null())
    }

    fn child_with(command: &mut Command, stdin: Stdio) -> Self {
        let mut child = command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Server { child, stdout, printed: String::new(), endpoint: String::new() }
    }

    pub fn printed(&self) -> &str {
        &self.printed
    }

    pub fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    pub fn address(&self) -> String {
        self.endpoint.trim_start_matches("http://").to_owned()
    }

    /// What it printed as JSON, at a name.
    fn told(&self, name: &str) -> String {
        let printed: serde_json::Value = serde_json::from_str(&self.printed).unwrap();
        printed[name].as_str().unwrap().to_owned()
    }

    /// Host and port of its admin address.
    pub fn admin(&self) -> String {
        self.told("admin").trim_start_matches("http://").to_owned()
    }

    /// The socket of the operator's commands.
    pub fn socket(&self) -> PathBuf {
        PathBuf::from(self.told("socket"))
    }

    /// Asks at a path as the operator's commands do: status and body.
    pub fn ask(&self, path: &str) -> (u16, String) {
        let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        exchange(UnixStream::connect(self.socket()).unwrap(), request.as_bytes())
    }

    /// The value of a metric; the name with its labels.
    pub fn metric(&self, name: &str) -> f64 {
        let metrics = self.ask("/_heatsink/metrics").1;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{signal}"), &self.child.id().to_string()])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    /// Whether it has not ended yet.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal and waits: the exit code and what stood on stderr.
    pub fn stop(self, signal: &str) -> (Option<i32>, String) {
        self.signal(signal);
        self.wait()
    }

    /// Waits for its end: the exit code and what stood on stderr. A command that does not end fails
    /// its test, and does not hold up all tests.
    pub fn wait(mut self) -> (Option<i32>, String) {
        let mut pipe = self.child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            pipe.read_to_string(&mut text).map(|_| text)
        });
        let given_up = Instant::now() + PATIENCE;
        while self.runs() {
            assert!(Instant::now() < given_up, "the command has not ended after {PATIENCE:?}");
            std::thread::sleep(Duration::from_millis(10));
        }
        (self.child.wait().unwrap().code(), stderr.join().unwrap().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// One operation on a connection of its own: status and body.
pub fn call(endpoint: &str, operation: &str, body: &str) -> (u16, String) {
    send(
        endpoint.trim_start_matches("http://"),
        &post(&format!("DynamoDB_20120810.{operation}"), body.as_bytes()),
    )
}

/// A signed request.
pub fn post(target: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/x-amz-json-1.0\r\nx-amz-target: {target}\r\n\
         x-amz-date: 20260101T000000Z\r\nauthorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, \
         SignedHeaders=host, Signature=0\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

/// Sends bytes and reads until the server closes: status and body.
pub fn send(address: &str, request: &[u8]) -> (u16, String) {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    exchange(stream, request)
}

fn exchange(mut stream: impl Read + Write, request: &[u8]) -> (u16, String) {
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}
