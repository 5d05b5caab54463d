//! `heatsink reshard` as an operator runs it, on a data file and beside gateways in processes of
//! their own: words, JSON, exit codes, what is refused.

mod data_file;
mod gateways;
mod leave;
mod lost_registry;
mod server;
mod words;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_credential_types::provider::SharedCredentialsProvider;
use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_store::upstream::{Bounds, Endpoint, Upstream};
use serde_json::{Value as Json, json};

const ITEMS: usize = 60;

/// A data file with items under `game`, one under a name that looks like a shard of `taken`, and a
/// table without a sort key.
pub(super) fn data(name: &str) -> PathBuf {
    let place = std::env::temp_dir().join(format!("heatsink-reshard-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place).unwrap();
    let path = place.join("data.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(&path).unwrap();
        let call = async |operation, body: Json| {
            store.call(operation, Bytes::from(body.to_string())).await.unwrap();
        };
        let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
        let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
        for (table, keys) in [("Scores", vec!["pk", "sk"]), ("Flat", vec!["pk"])] {
            let schema: Vec<Json> = keys.iter().zip(["HASH", "RANGE"]).map(|(name, kind)| key(name, kind)).collect();
            let attributes: Vec<Json> = keys.iter().map(|name| attribute(name)).collect();
            let body = json!({
                "TableName": table, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema, "AttributeDefinitions": attributes,
            });
            call(Operation::CreateTable, body).await;
        }
        for number in 0..ITEMS {
            let item = json!({ "pk": { "S": "game" }, "sk": { "S": format!("{number:03}") } });
            call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item })).await;
        }
        let item = json!({ "pk": { "S": "taken#~2" }, "sk": { "S": "a" } });
        call(Operation::PutItem, json!({ "TableName": "Scores", "Item": item })).await;
    });
    path
}

/// The exit code, and the JSON document on stdout or stderr.
pub(super) fn heatsink(data: &Path, args: &[&str]) -> (i32, Json) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
    command.arg("reshard").args(args).arg("--data").arg(data).args(["--output", "json"]);
    let output = command.current_dir(data.parent().unwrap()).stdin(Stdio::null()).output().unwrap();
    let text = if output.status.success() { output.stdout } else { output.stderr };
    let text = String::from_utf8(text).unwrap();
    let last = text.lines().last().unwrap_or_default();
    let document = serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {text}"));
    (output.status.code().unwrap(), document)
}

fn physical_keys(data: &Path) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Embedded::file(data).unwrap();
        let (mut keys, mut scan) = (Vec::new(), json!({ "TableName": "Scores" }));
        loop {
            let page = store.call(Operation::Scan, Bytes::from(scan.to_string())).await.unwrap();
            let page: Json = serde_json::from_slice(&page).unwrap();
            let items = page["Items"].as_array().unwrap().iter();
            keys.extend(items.map(|item| item["pk"]["S"].as_str().unwrap().to_owned()));
            match page.get("LastEvaluatedKey") {
                Some(last) => scan["ExclusiveStartKey"] = last.clone(),
                None => return keys,
            }
        }
    })
}

fn pause(time: Duration) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { RealEnv.sleep(time).await });
}

/// A store that gateways of other processes share, and the rules that they have.
pub(super) struct Town {
    place: PathBuf,
    pub(super) store: Server,
}

pub(super) struct Server {
    pub(super) child: Child,
    pub(super) endpoint: String,
}

impl Server {
    pub(super) fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.args(["serve", "--listen", "127.0.0.1:0", "--output", "json"]).args(args);
        local(&mut command).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let printed: Json = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?}"));
        Server { child, endpoint: printed["endpoint"].as_str().unwrap().to_owned() }
    }

    pub(super) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The command without any AWS configuration but fake credentials.
pub(super) fn local(command: &mut Command) -> &mut Command {
    command
        .env("AWS_ACCESS_KEY_ID", "local")
        .env("AWS_SECRET_ACCESS_KEY", "local")
        .env("AWS_EC2_METADATA_DISABLED", "true")
        .env("HEATSINK_LAME_DUCK", "0")
        .env("AWS_CONFIG_FILE", "/dev/null")
        .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        .env_remove("AWS_REGION")
        .env_remove("AWS_PROFILE")
        .env_remove("RUST_LOG")
        .stdin(Stdio::null())
}

impl Town {
    fn new(name: &str) -> Self {
        Town::settled(&data(name))
    }

    /// The store in this file, and a registry that everybody knows.
    pub(super) fn settled(data: &Path) -> Self {
        // The registry is there, and nobody is left who has not noticed it.
        let mut thaw = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        let thawed = local(thaw.args(["freeze", "--thaw", "--data"]).arg(data)).output().unwrap();
        assert!(thawed.status.success());
        Town::over(data)
    }

    /// The store in this file.
    fn over(data: &Path) -> Self {
        let place = data.parent().unwrap().to_owned();
        let fence =
            "rule = []\n[fence]\nlease = \"4s\"\nheartbeat = \"1s\"\npoll = \"200ms\"\nstraggler = \"1s\"\n";
        std::fs::write(place.join("fence.toml"), fence).unwrap();
        // To the store the gateways' registry is a table as any other.
        std::fs::write(place.join("store.toml"), "rule = []\n[fence]\nregistry = \"other.registry\"\n")
            .unwrap();
        let rules = place.join("store.toml");
        let args =
            ["--data", data.to_str().unwrap(), "--partitions", "off", "--rules", rules.to_str().unwrap()];
        let store = Server::start(&args);
        Town { place, store }
    }

    fn rules(&self) -> String {
        self.place.join("fence.toml").to_str().unwrap().to_owned()
    }

    /// A gateway, registered.
    pub(super) fn gateway(&self) -> Server {
        Server::start(&["--upstream", &self.store.endpoint, "--rules", &self.rules()])
    }

    /// The exit code of a command, and its JSON document.
    pub(super) fn run(&self, args: &[&str]) -> (i32, Json) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_heatsink"));
        command.args(args).args([
            "--upstream",
            &self.store.endpoint,
            "--rules",
            &self.rules(),
            "--output",
            "json",
        ]);
        let output = local(&mut command).output().unwrap();
        let text = if output.status.success() { output.stdout } else { output.stderr };
        let text = String::from_utf8(text).unwrap();
        let last = text.lines().last().unwrap_or_default();
        let document = serde_json::from_str(last).unwrap_or_else(|_| panic!("no JSON: {text}"));
        (output.status.code().unwrap(), document)
    }

    /// Where the store is, as a command that is run next has to say it.
    pub(super) fn words(&self) -> String {
        format!(" --upstream {} --rules {}", self.store.endpoint, self.rules())
    }

    pub(super) fn reshard(&self, args: &[&str]) -> (i32, Json) {
        self.run(&[&["reshard"], args].concat())
    }

    /// The reshard of a table that is asked for, once it is so.
    fn until(&self, what: &str, is: impl Fn(&Json) -> bool) -> Json {
        self.until_of("Scores", what, is)
    }

    pub(super) fn until_of(&self, table: &str, what: &str, is: impl Fn(&Json) -> bool) -> Json {
        for _ in 0..1_000 {
            let status = self.reshard(&["status", table]).1;
            if is(&status["reshards"][0]) {
                return status;
            }
            pause(Duration::from_millis(50));
        }
        panic!("{what}: {}", self.reshard(&["status", table]).1);
    }

    /// A request past the gateways.
    pub(super) fn past(&self, operation: Operation, body: &Json) -> Json {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = client(Endpoint::parse(&self.store.endpoint).unwrap());
            let answer = client.call(operation, Bytes::from(body.to_string())).await.unwrap();
            serde_json::from_slice(&answer).unwrap()
        })
    }
}

fn client(endpoint: Endpoint) -> Upstream {
    let keys = SharedCredentialsProvider::new(Credentials::new("local", "local", None, None, "test"));
    Upstream::with(endpoint, Bounds::default(), Arc::new(RealEnv), "us-east-1".to_owned(), keys).unwrap()
}
