//! Runs the command, in a directory of the test's own, on data of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

/// The two programs.
pub const HEATSINK: &str = "heatsink";
pub const LAB: &str = "heatsink-lab";

/// The program that has the command: the laboratory's, where it is one of that, else `heatsink`.
fn program(arguments: &[&str]) -> &'static str {
    match arguments.first() {
        Some(&("demo" | "picture" | "plan" | "simulate")) => LAB,
        _ => HEATSINK,
    }
}

/// Where a program lies.
fn built(program: &str) -> PathBuf {
    let heatsink = PathBuf::from(env!("CARGO_BIN_EXE_heatsink"));
    let built = heatsink.with_file_name(format!("{program}{}", std::env::consts::EXE_SUFFIX));
    assert!(built.exists(), "`cargo test --workspace` builds {}", built.display());
    built
}

/// A directory of its own, removed at the end.
pub struct TestDir(pub PathBuf);

impl TestDir {
    pub fn new(name: &str) -> Self {
        let place = std::env::temp_dir().join(format!("heatsink-output-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir_all(&place).unwrap();
        TestDir(place)
    }

    pub fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The command, run here without any AWS configuration but fake credentials.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_of(program(arguments), arguments)
    }

    /// The same of one of the two programs.
    pub fn command_of(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(built(program));
        command
            .args(arguments)
            .current_dir(&self.0)
            .stdin(Stdio::null())
            .env("HOME", &self.0)
            .env("AWS_ACCESS_KEY_ID", "local")
            .env("AWS_SECRET_ACCESS_KEY", "local")
            .env("AWS_CONFIG_FILE", "/dev/null")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
            .env("HEATSINK_LAME_DUCK", "0");
        for name in ["AWS_REGION", "AWS_PROFILE", "RUST_LOG", "COLUMNS", "AWS_SESSION_TOKEN"] {
            command.env_remove(name);
        }
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// A data file `data.db` with two tables: `Board` with items under a busy key, and `Single`
    /// without a sort key.
    pub fn data(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let store = Embedded::file(self.0.join("data.db")).unwrap();
            let call = |operation, body: Json| store.call(operation, Bytes::from(body.to_string()));
            for (table, keys) in [("Board", &["pk", "sk"][..]), ("Single", &["pk"])] {
                let kinds = ["HASH", "RANGE"];
                let schema: Vec<Json> = keys
                    .iter()
                    .zip(kinds)
                    .map(|(name, kind)| json!({ "AttributeName": name, "KeyType": kind }))
                    .collect();
                let attributes: Vec<Json> =
                    keys.iter().map(|name| json!({ "AttributeName": name, "AttributeType": "S" })).collect();
                let definition = json!({
                    "TableName": table, "BillingMode": "PAY_PER_REQUEST",
                    "AttributeDefinitions": attributes, "KeySchema": schema,
                });
                call(Operation::CreateTable, definition).await.unwrap();
            }
            for nth in 0..350 {
                // 700 units in one second: near a partition's ceiling.
                let sort = format!("2026-06-22T01:00:00.{nth:03}Z#scan-of-something-with-a-long-name");
                let item = json!({ "pk": { "S": "OPS_LOG" }, "sk": { "S": sort }, "text": { "S": "x".repeat(1_100) } });
                call(Operation::PutItem, json!({ "TableName": "Board", "Item": item })).await.unwrap();
            }
        });
    }
}

impl Drop for TestDir {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs the command with these arguments, one blank between them.
pub fn run(place: &TestDir, arguments: &str) -> Output {
    place.run(&arguments.split(' ').collect::<Vec<_>>())
}

/// The document that it prints, if all is well.
pub fn report(place: &TestDir, arguments: &str) -> Json {
    let done = run(place, &format!("{arguments} --output json"));
    assert_eq!(done.status.code(), Some(0), "{arguments}: {}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).unwrap()
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A running `heatsink` that has printed its banner as JSON.
pub struct Server {
    child: Child,
    pub banner: Json,
}

impl Server {
    /// `arguments` with `--output json`, on a free port unless they say where.
    pub fn start(place: &TestDir, arguments: &[&str]) -> Self {
        let mut child =
            place.command(arguments).args(["--output", "json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Server { child, banner: serde_json::from_str(&line).unwrap() }
    }

    /// Host and port.
    pub fn address(&self) -> String {
        self.banner["endpoint"].as_str().unwrap().trim_start_matches("http://").to_owned()
    }

    /// The whole answer at a path, asked as the operator's commands do.
    pub fn ask(&self, path: &str) -> String {
        let mut stream = UnixStream::connect(self.banner["socket"].as_str().unwrap()).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Ends it as a supervisor does, and waits for that.
    pub fn stop(mut self) {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port that nobody listens on.
pub fn closed_port() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
